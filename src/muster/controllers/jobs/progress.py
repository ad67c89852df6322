"""How far a Job is: its counts, and how it ends. Pure: from the Job and its pods to numbers and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.api.instant import SECOND, Instant, from_time
from muster.controllers.jobs import failures, indexes
from muster.controllers.jobs.manifests import is_indexed
from muster.controllers.jobs.members import Member, Stage, Tally

Json = Mapping[str, Any]
DEFAULT_BACKOFF_LIMIT = 6


@dataclass(slots=True)
class Progress:
    """The counts of a Job, with what its pods say beyond its status.

    A pod that has ended is counted in two steps, so that it is counted once whatever happens in between: its uid is
    written to `status.uncountedTerminatedPods` (or its index to `completedIndexes`); only then its finalizer goes; only
    when that is gone the uid turns into a number.
    """

    succeeded: int = 0
    failed: int = 0
    completed: set[int] = field(default_factory=set)
    pending_succeeded: list[str] = field(default_factory=list)
    pending_failed: list[str] = field(default_factory=list)
    counted: list[Member] = field(default_factory=list)
    """Pods whose end is on record: their finalizer may go."""
    fails: str = ""
    """Message of the failure policy's rule that fails the Job."""

    @property
    def total_failed(self) -> int:
        return self.failed + len(self.pending_failed)

    @property
    def total_succeeded(self) -> int:
        return self.succeeded + len(self.pending_succeeded)

    @property
    def settled(self) -> bool:
        """Whether every pod that has ended is a number."""
        return not self.pending_succeeded and not self.pending_failed


def completions_of(job: Json) -> int | None:
    value: int | None = job["spec"].get("completions")
    return value


def parallelism_of(job: Json) -> int:
    value = job["spec"].get("parallelism")
    return 1 if value is None else int(value)


def measure(job: Json, tally: Tally) -> Progress:
    """The counts of this Job with these pods."""
    status = job.get("status") or {}
    recorded = status.get("uncountedTerminatedPods") or {}
    progress = Progress(failed=status.get("failed") or 0)
    written = indexes.parse(status.get("completedIndexes") or "") if is_indexed(job) else frozenset()
    if is_indexed(job):
        limit = completions_of(job) or 0
        progress.completed = {index for index in written if index < limit}
    else:
        progress.succeeded = status.get("succeeded") or 0
        for uid in recorded.get("succeeded") or ():
            if not _carry_over(uid, tally, progress.pending_succeeded):
                progress.succeeded += 1
    for uid in recorded.get("failed") or ():
        if not _carry_over(uid, tally, progress.pending_failed):
            progress.failed += 1
    on_record = {*(recorded.get("succeeded") or ()), *(recorded.get("failed") or ())}
    for member in tally.uncounted.values():
        _count(member, job, progress, on_record, written)
    if is_indexed(job):
        progress.succeeded = len(progress.completed)
    return progress


def _carry_over(uid: str, tally: Tally, pending: list[str]) -> bool:
    """Keeps a recorded uid while its pod still has the finalizer."""
    if uid not in tally.uncounted:
        return False
    pending.append(uid)
    return True


def _count(member: Member, job: Json, progress: Progress, on_record: set[str], written: frozenset[int]) -> None:
    if member.uid in on_record:
        progress.counted.append(member)
    elif member.stage is Stage.SUCCEEDED and is_indexed(job):
        _count_index(member, job, progress, written)
    elif member.stage is Stage.SUCCEEDED:
        progress.pending_succeeded.append(member.uid)
    elif member.stage is Stage.FAILED or not replaces_only_failed(job):
        _count_failure(member, job, progress)


def _count_index(member: Member, job: Json, progress: Progress, written: frozenset[int]) -> None:
    limit = completions_of(job) or 0
    if member.rank is None or member.rank >= limit or member.rank in written:
        progress.counted.append(member)
    else:
        progress.completed.add(member.rank)


def _count_failure(member: Member, job: Json, progress: Progress) -> None:
    what = failures.action(job, member.pod)
    if what == failures.IGNORE:
        progress.counted.append(member)
        return
    progress.pending_failed.append(member.uid)
    if what == failures.FAIL_JOB:
        progress.fails = f"Pod {member.pod.namespace}/{member.name} matches a FailJob rule of podFailurePolicy"


def replaces_only_failed(job: Json) -> bool:
    """Whether a pod is replaced only once it has ended, not already when it is being deleted."""
    return bool(job["spec"].get("podReplacementPolicy") == "Failed")


def failure(job: Json, progress: Progress, started: Instant | None, now: Instant) -> tuple[str, str] | None:
    """Reason and message if the Job has failed."""
    spec = job["spec"]
    if progress.fails:
        return "PodFailurePolicy", progress.fails
    limit = spec.get("backoffLimit")
    if progress.total_failed > (DEFAULT_BACKOFF_LIMIT if limit is None else limit):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    ends = deadline(job, started)
    if ends is not None and now >= ends and not spec.get("suspend"):
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return None


def deadline(job: Json, started: Instant | None) -> Instant | None:
    seconds = job["spec"].get("activeDeadlineSeconds")
    return None if seconds is None or started is None else started + seconds * SECOND


def start_time(job: Json) -> Instant | None:
    text = (job.get("status") or {}).get("startTime")
    return from_time(text) if text else None


def is_complete(job: Json, progress: Progress, active: int) -> bool:
    """Whether enough pods have succeeded."""
    wanted = completions_of(job)
    if wanted is None:
        return progress.total_succeeded > 0 and active == 0
    return progress.total_succeeded >= wanted


def wanted_active(job: Json, progress: Progress, active: int) -> int:
    """How many pods should be active now, of a Job that is under way."""
    parallelism, completions = parallelism_of(job), completions_of(job)
    if completions is not None:
        return max(0, min(parallelism, completions - progress.total_succeeded))
    return min(parallelism, active) if progress.total_succeeded else parallelism
