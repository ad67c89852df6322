"""A Job's status: what it should say, and whether that differs from what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muster.api.instant import Instant, to_time
from muster.controllers.jobs import indexes
from muster.controllers.jobs.manifests import is_indexed
from muster.controllers.jobs.members import Tally
from muster.controllers.jobs.progress import Progress
from muster.controllers.writing import with_condition

Json = Mapping[str, Any]
SUSPENDED, COMPLETE, FAILED = "Suspended", "Complete", "Failed"
CRITERIA_MET, FAILURE_TARGET = "SuccessCriteriaMet", "FailureTarget"


def has(job: Json, type_: str) -> bool:
    """Whether a condition is True."""
    return condition(job, type_).get("status") == "True"


def condition(job: Json, type_: str) -> Json:
    for each in (job.get("status") or {}).get("conditions") or ():
        if each.get("type") == type_:
            return each  # type: ignore[no-any-return]
    return {}


def is_finished(job: Json) -> bool:
    return has(job, COMPLETE) or has(job, FAILED)


Verdict = tuple[str, str, str]
"""How a Job ends, once that is decided: CRITERIA_MET or FAILURE_TARGET, reason, message."""


def wanted_status(
    job: Json,
    tally: Tally,
    progress: Progress,
    *,
    leaving: int,
    verdict: Verdict | None,
    started: Instant | None,
    now: Instant,
) -> dict[str, Any]:
    """The fields of the status that this controller writes. `leaving` active pods are being deleted."""
    old: Json = job.get("status") or {}
    conditions = _suspension(job, old.get("conditions") or (), now)
    completed_at = old.get("completionTime")
    if verdict is not None and not is_finished(job):
        done = not tally.active and not tally.ending and progress.settled
        conditions = _ending(job, conditions, verdict, done, now)
        if done and verdict[0] == CRITERIA_MET:
            completed_at = to_time(now)
    pending = {"succeeded": progress.pending_succeeded, "failed": progress.pending_failed}
    return {
        "active": len(tally.active) - leaving,
        "ready": tally.ready,
        "terminating": tally.ending + leaving,
        "succeeded": progress.succeeded,
        "failed": progress.failed,
        "completedIndexes": indexes.compress(progress.completed) if is_indexed(job) else None,
        "uncountedTerminatedPods": {key: uids for key, uids in pending.items() if uids},
        "startTime": None if started is None else to_time(started),
        "completionTime": completed_at,
        "conditions": list(conditions),
    }


def _ending(job: Json, conditions: Sequence[Json], verdict: Verdict, done: bool, now: Instant) -> Sequence[Json]:
    """The verdict; and the final condition, once no pod is left and every one is counted."""
    type_, reason, message = verdict
    if not has(job, type_):
        conditions = with_condition(conditions, type_, "True", now, reason=reason, message=message)
    if done:
        final = COMPLETE if type_ == CRITERIA_MET else FAILED
        conditions = with_condition(conditions, final, "True", now, reason=reason, message=message)
    return conditions


def _suspension(job: Json, conditions: Sequence[Json], now: Instant) -> Sequence[Json]:
    if is_finished(job):
        return conditions
    if job["spec"].get("suspend"):
        if not has(job, SUSPENDED):
            return with_condition(conditions, SUSPENDED, "True", now, reason="JobSuspended", message="Job suspended")
    elif has(job, SUSPENDED):
        return with_condition(conditions, SUSPENDED, "False", now, reason="JobResumed", message="Job resumed")
    return conditions


def changes(old: Json, wanted: Json) -> dict[str, Any]:
    """A merge patch of the status: only what differs, null for what goes."""
    patch: dict[str, Any] = {}
    for key, value in wanted.items():
        if (old.get(key) or None) == (value or None):
            continue
        if key == "uncountedTerminatedPods":
            value = {"succeeded": value.get("succeeded"), "failed": value.get("failed")}
        patch[key] = value
    return patch
