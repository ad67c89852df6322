"""One look at one Job: what its pods and its status lack, as writes."""

from __future__ import annotations

from collections.abc import Sequence

from muster.api import writes
from muster.api.instant import Instant
from muster.api.machine import Effect, Write
from muster.api.object import Object
from muster.controllers.jobs import status as job_status
from muster.controllers.jobs.groups import COMPONENT, JobGroups
from muster.controllers.jobs.manifests import PodTemplate
from muster.controllers.jobs.members import TRACKING, Member, Stage
from muster.controllers.jobs.progress import (
    Progress,
    deadline,
    failure,
    is_complete,
    measure,
    replaces_only_failed,
    start_time,
    wanted_active,
)
from muster.controllers.jobs.state import (
    CREATE,
    DELETE,
    JOBS,
    PODS,
    RELEASE,
    SETTLE,
    STATUS,
    Creation,
    JobState,
    group_used,
    new_pods,
    surplus,
)
from muster.controllers.jobs.status import CRITERIA_MET, FAILURE_TARGET, SUSPENDED
from muster.controllers.pod_status import deleted
from muster.controllers.writing import Pending, event, without_finalizer

BATCH = 500
"""Pods of one Job that are asked for at a time, as in Kubernetes; the next follow when the watch has shown these."""


class Sync:
    """Compares a Job with its pods. Keeps nothing but what is under way, which it shares with the controller."""

    def __init__(self, groups: JobGroups, pending: Pending) -> None:
        self._groups = groups
        self._pending = pending

    def pods(self, state: JobState, now: Instant) -> list[Effect]:
        """Makes and deletes pods; lets go of those that are counted."""
        job = state.job
        if job is None:
            return []
        progress = measure(job.raw, state.tally)
        if deleted(job):
            return self.let_go_of_all(state)
        effects = self._let_go(state, progress.counted)
        if job_status.is_finished(job.raw):
            return effects + self._remove(state, 0)
        if self._verdict(state, progress, now) is not None or job.raw["spec"].get("suspend"):
            return effects + self._remove(state, 0)
        return effects + self._grow_or_shrink(state, job, progress, now)

    def _grow_or_shrink(self, state: JobState, job: Object, progress: Progress, now: Instant) -> list[Effect]:
        begun = bool(state.tally or state.creating) or start_time(job.raw) is not None
        effects, group = self._groups.settle(job, group_used(state), begun, now)
        if state.started is None and group.ready:
            state.started = now
        wanted = wanted_active(job.raw, progress, state.active)
        effects += self._remove(state, wanted)
        missing = wanted - state.there
        if replaces_only_failed(job.raw):
            missing -= state.tally.ending
        if missing <= 0 or not group.ready:
            return effects if group.again is None else effects + state.wake(group.again)
        at = state.may_create_at()
        if at > now:
            return effects + state.wake(at)
        if state.refusals:
            missing = 1
        return effects + self._create(state, PodTemplate(job.raw, group.name), progress, missing)

    @staticmethod
    def _create(state: JobState, template: PodTemplate, progress: Progress, missing: int) -> list[Effect]:
        """Asks for new pods, at most BATCH at a time."""
        room = BATCH - len(state.creating)
        state.goes_on = missing > room
        effects: list[Effect] = []
        for name, index in list(new_pods(state, progress, min(missing, room))):
            state.creating[name] = Creation(index)
            effects.append(Write(writes.create(template.pod(name, index)), (CREATE, state.uid, name)))
        return effects

    def _remove(self, state: JobState, wanted: int) -> list[Effect]:
        """Deletes active pods until so many are left. They first lose their finalizer, so that they do not count."""
        effects: list[Effect] = []
        state.leaving |= {member.uid for member in surplus(state, wanted)}
        for uid in sorted(state.leaving):
            member = state.tally.members[uid]
            if member.tracked:
                effects += self._let_go(state, [member])
            else:
                effects += self.delete(state, member.uid)
        return effects

    def delete(self, state: JobState, uid: str) -> list[Effect]:
        member, key = state.tally.members.get(uid), (DELETE, state.uid, uid)
        if member is None or key in self._pending or member.stage is not Stage.ACTIVE:
            return []
        self._pending.begin(key, member.pod.revision)
        return [Write(writes.delete(PODS, member.pod.namespace, member.name, uid=uid), key)]

    def _let_go(self, state: JobState, members: Sequence[Member]) -> list[Effect]:
        """Takes the finalizer off pods whose end is on record, or that are not to count."""
        effects: list[Effect] = []
        for member in members:
            key = (RELEASE, state.uid, member.uid)
            if key not in self._pending:
                self._pending.begin(key, member.pod.revision)
                effects.append(Write(without_finalizer(PODS, member.pod, TRACKING), key))
        return effects

    def let_go_of_all(self, state: JobState) -> list[Effect]:
        """Nobody will count the pods of a Job that is gone."""
        return self._let_go(state, list(state.tally.uncounted.values()))

    # -- status

    def _verdict(self, state: JobState, progress: Progress, now: Instant) -> job_status.Verdict | None:
        """How the Job ends, once that is decided."""
        assert state.job is not None
        job = state.job.raw
        for type_ in (CRITERIA_MET, FAILURE_TARGET):
            there = job_status.condition(job, type_)
            if there.get("status") == "True":
                return type_, there.get("reason", ""), there.get("message", "")
        failed = failure(job, progress, self._started(state, state.job), now)
        if failed is not None:
            return FAILURE_TARGET, *failed
        if is_complete(job, progress, state.active):
            return CRITERIA_MET, "CompletionsReached", "Reached expected number of succeeded pods"
        return None

    def status(self, state: JobState, now: Instant) -> list[Effect]:
        """Writes the status if it is not what it should be."""
        job, key = state.job, (STATUS, state.uid, "")
        if job is None or deleted(job):
            return []
        if key in self._pending:
            return state.wake(now + SETTLE)
        progress = measure(job.raw, state.tally)
        verdict = self._verdict(state, progress, now)
        wanted = job_status.wanted_status(
            job.raw,
            state.tally,
            progress,
            leaving=len(state.leaving),
            verdict=verdict,
            started=self._started(state, job) or (now if verdict else None),
            now=now,
        )
        effects = self._until_deadline(state, job, now)
        patch = job_status.changes(job.raw.get("status") or {}, wanted)
        if not patch:
            return effects
        self._pending.begin(key, job.revision)
        body = {"metadata": {"resourceVersion": job.revision}, "status": patch}
        effects.append(Write(writes.patch(JOBS, job.namespace, job.name, body, subresource="status"), key))
        return effects + _news(job, wanted["conditions"], now)

    @staticmethod
    def _started(state: JobState, job: Object) -> Instant | None:
        """The start time that the status should have; resuming sets it anew, and a Job without its group has none."""
        there = start_time(job.raw)
        if job.raw["spec"].get("suspend"):
            state.started = None
        elif there is None or job_status.has(job.raw, SUSPENDED):
            return state.started
        return there

    def _until_deadline(self, state: JobState, job: Object, now: Instant) -> list[Effect]:
        ends = deadline(job.raw, self._started(state, job))
        if ends is None or ends <= now or job_status.is_finished(job.raw):
            return []
        return state.wake(ends)


def _news(job: Object, conditions: Sequence[dict[str, str]], now: Instant) -> list[Effect]:
    """Events for conditions that are about to become True (or, of Suspended, False)."""
    effects: list[Effect] = []
    for condition in conditions:
        before = job_status.condition(job.raw, condition["type"])
        if before.get("status") == condition["status"]:
            continue
        if condition["type"] == SUSPENDED:
            reason = "Suspended" if condition["status"] == "True" else "Resumed"
        elif condition["type"] == job_status.COMPLETE:
            reason = "Completed"
        elif condition["type"] == job_status.FAILED:
            reason = condition.get("reason", "Failed")
        else:
            continue
        warning = condition["type"] == job_status.FAILED
        effects.append(
            event(job.raw, reason, condition.get("message", ""), component=COMPONENT, now=now, warning=warning)
        )
    return effects
