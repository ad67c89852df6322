"""What the Job controller remembers of one Job, and its pods that are to be made or to go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from muster.api.instant import MINUTE, SECOND, Instant
from muster.api.machine import Effect, WakeAt
from muster.api.object import Object
from muster.controllers.jobs import failures
from muster.controllers.jobs.manifests import is_indexed, pod_names
from muster.controllers.jobs.members import Member, Stage, Tally
from muster.controllers.jobs.progress import Progress, completions_of, replaces_only_failed

SETTLE: Instant = SECOND
"""How long changes of pods are collected before the status is written."""
BREATH: Instant = SECOND // 10
"""Between batches of new pods, so that one Job does not keep all others waiting."""
FIRST_DELAY: Instant = 10 * SECOND
LONGEST_DELAY: Instant = 10 * MINUTE
"""Between a pod's failure and the next pod: doubles with every failure since the last success."""
LONGEST_RETRY: Instant = MINUTE
"""Between refused creates."""

JOBS, PODS = "jobs", "pods"
SYNC, CREATE, LOOK, RELEASE, DELETE, STATUS, ORPHAN = (
    "sync", "create", "look", "release", "delete", "status", "orphan",
)  # fmt: skip
"""First parts of tags; a Job's uid follows, then a pod's name or uid."""


@dataclass(slots=True)
class Creation:
    """A pod that was asked for and is not in the watch yet.

    `answered`: the server has it, or had it. `listed`: all pods were listed since, so that it may have come and gone.
    """

    index: int | None
    answered: bool = False
    listed: bool = False


@dataclass(slots=True)
class JobState:
    """One Job by uid. `job` is None before its watch event has come, and for good once it is `gone`."""

    uid: str
    place: tuple[str, str] = ("", "")
    job: Object | None = None
    gone: bool = False
    tally: Tally = field(default_factory=Tally)
    creating: dict[str, Creation] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    """Names that pods of others have."""
    leaving: set[str] = field(default_factory=set)
    """Active pods that this controller has begun to delete."""
    started: Instant | None = None
    """When it was started or resumed in this controller's life; the status has it soon after."""
    streak: int = 0
    last_failure: Instant = 0
    refusals: int = 0
    retry_at: Instant = 0
    goes_on: bool = False
    """More pods are to be made once those on their way are there."""
    timer: Instant | None = None

    def wake(self, at: Instant | None) -> list[Effect]:
        """Makes sure that the Job is looked at by then; None takes the timer back."""
        if at is None:
            if self.timer is None:
                return []
        elif self.timer is not None and self.timer <= at:
            return []
        self.timer = at
        return [WakeAt(at, (SYNC, self.uid))]

    def put(self, member: Member, now: Instant) -> None:
        before = self.tally.members.get(member.uid)
        self.tally.put(member)
        self.creating.pop(member.name, None)
        if member.stage is not Stage.ACTIVE:
            self.leaving.discard(member.uid)
        if before is None or before.stage is Stage.ACTIVE:
            self._note_end(member, now)

    def _note_end(self, member: Member, now: Instant) -> None:
        """Counts failures in a row. Those of one moment count once, and a pod that was evicted has not failed."""
        if member.stage is Stage.SUCCEEDED:
            self.streak = 0
        elif member.stage is Stage.FAILED and member.tracked and not failures.was_disrupted(member.pod):
            self.streak += not self.streak or now - self.last_failure >= SECOND
            self.last_failure = now

    def relisted(self) -> None:
        """All pods are about to be listed: those that were made before are among them, or gone."""
        self.creating = {name: each for name, each in self.creating.items() if not each.answered}
        for each in self.creating.values():
            each.listed = True

    def drop(self, uid: str) -> None:
        self.tally.drop(uid)
        self.leaving.discard(uid)

    @property
    def active(self) -> int:
        """Active pods, those on their way included, those that are leaving not."""
        return self.there - len(self.leaving)

    @property
    def there(self) -> int:
        """Active pods, those on their way and those that are leaving included: room for new ones is what is left."""
        return len(self.tally.active) + len(self.creating)

    def may_create_at(self) -> Instant:
        """When the next pod may be made, after failures and refusals."""
        after = 0
        if self.streak:
            after = self.last_failure + min(LONGEST_DELAY, FIRST_DELAY << min(self.streak - 1, 10))
        return max(after, self.retry_at)

    def refused(self, now: Instant) -> bool:
        """A create was refused: wait, longer each time. True for the first of those that were sent together."""
        if now < self.retry_at:
            return False
        self.retry_at = now + min(LONGEST_RETRY, SECOND << min(self.refusals, 10))
        self.refusals += 1
        return True


def surplus(state: JobState, wanted: int) -> list[Member]:
    """Active pods that should not be: leftovers and doubles of an index first, then those least advanced."""
    job = state.job
    there = [member for uid, member in state.tally.active.items() if uid not in state.leaving]
    if job is None or not there:
        return []
    # One that has lost its finalizer was about to be deleted by a controller that did not live to do it.
    too_many = [member for member in there if not member.tracked]
    if is_indexed(job.raw):
        seen: set[int | None] = set()
        limit = completions_of(job.raw) or 0
        for member in sorted((each for each in there if each.tracked), key=_seniority):
            if member.rank in seen or member.rank is None or member.rank >= limit:
                too_many.append(member)
            seen.add(member.rank)
    rest = len(there) - len(too_many) + len(state.creating) - wanted
    if rest > 0:
        doubles = {member.uid for member in too_many}
        kept = sorted((each for each in there if each.uid not in doubles), key=_worth)
        too_many += kept[:rest]
    return too_many


def _seniority(member: Member) -> tuple[bool, str, str]:
    return not member.ready, member.pod.meta.get("creationTimestamp") or "", member.name


def _worth(member: Member) -> tuple[bool, bool, int, str]:
    """Unbound before bound, unready before ready, high indexes before low ones."""
    bound = bool((member.pod.raw.get("spec") or {}).get("nodeName"))
    return bound, member.ready, -(member.rank or 0), member.name


def new_pods(state: JobState, progress: Progress, number: int) -> Iterator[tuple[str, int | None]]:
    """Names and indexes of as many new pods."""
    assert state.job is not None
    job = state.job.raw
    first = progress.failed + progress.succeeded * (not is_indexed(job))
    if not is_indexed(job):
        names = pod_names(job, None, first)
        for _ in range(number):
            yield _free(names, state), None
        return
    taken = {creation.index for creation in state.creating.values()} | progress.completed
    if replaces_only_failed(job):
        taken |= set(state.tally.ending_indexes())
    for index in range(completions_of(job) or 0):
        if number <= 0:
            return
        if index not in taken and not state.tally.at_index.of(index):
            yield _free(pod_names(job, index, first), state), index
            number -= 1


def _free(names: Iterator[str], state: JobState) -> str:
    return next(n for n in names if n not in state.tally.names and n not in state.creating and n not in state.taken)


def group_used(state: JobState) -> str | None:
    """The group that a pod of this Job names."""
    for member in state.tally.members.values():
        group: Any = (member.pod.raw.get("spec") or {}).get("schedulingGroup") or {}
        return group.get("podGroupName")  # type: ignore[no-any-return]
    return None
