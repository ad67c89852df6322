"""A Deployment's status: numbers of its versions, and whether it is available and gets on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muster.api.instant import SECOND, Instant, from_time, to_time
from muster.controllers.apps.deployments.sizes import Limits
from muster.controllers.apps.deployments.versions import Version
from muster.controllers.apps.replicasets import FAILURE

Json = Mapping[str, Any]
Conditions = list[Json]
PROGRESSING, AVAILABLE = "Progressing", "Available"
DONE, UPDATED, TIMED_OUT = "NewReplicaSetAvailable", "ReplicaSetUpdated", "ProgressDeadlineExceeded"
PAUSED, RESUMED, CREATED, FOUND = "DeploymentPaused", "DeploymentResumed", "NewReplicaSetCreated", "FoundNewReplicaSet"
NOT_CREATED = "ReplicaSetCreateError"
_FOR_EVER = 2**31 - 1
_NUMBERS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")


def deadline_of(deployment: Json) -> int | None:
    """Seconds without progress after which it counts as stuck; None: it may take for ever."""
    seconds = deployment["spec"].get("progressDeadlineSeconds")
    return None if seconds is None or seconds == _FOR_EVER else int(seconds)


def condition(conditions: Sequence[Json], type_: str) -> Json:
    """The condition of this type, or an empty one."""
    return next((each for each in conditions if each.get("type") == type_), {})


def numbers(deployment: Json, new: Version | None, old: Sequence[Version], limits: Limits) -> dict[str, int]:
    """The fields of the status that are counts."""
    everyone = [*old, new] if new is not None else list(old)

    def total(field: str) -> int:
        return sum((each.object.raw.get("status") or {}).get(field) or 0 for each in everyone)

    available = total("availableReplicas")
    return {
        "replicas": total("replicas"),
        "updatedReplicas": ((new.object.raw.get("status") or {}).get("replicas") or 0) if new is not None else 0,
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(each.size for each in everyone) - available),
        "terminatingReplicas": total("terminatingReplicas"),
        "observedGeneration": deployment["metadata"].get("generation") or 0,
    }


def is_complete(deployment: Json, status: Json) -> bool:
    """Whether all pods are of the newest version, available, and as many as wanted."""
    wanted = deployment["spec"].get("replicas") or 0
    observed = (status.get("observedGeneration") or 0) >= (deployment["metadata"].get("generation") or 0)
    counts = (status.get(each) or 0 for each in ("updatedReplicas", "replicas", "availableReplicas"))
    return observed and all(each == wanted for each in counts)


def conditions(
    deployment: Json,
    counts: Json,
    new: Version | None,
    old: Sequence[Version],
    limits: Limits,
    problem: str | None,
    now: Instant,
    *,
    rolling_out: bool,
) -> Conditions:
    """Available, Progressing and ReplicaFailure. `problem`: why the newest version could not be made.

    `rolling_out`: False while it is paused, scaled or deleted; then nothing is said about progress.
    """
    there: Conditions = list((deployment.get("status") or {}).get("conditions") or ())
    there = _paused(deployment, there, now)
    enough = counts["availableReplicas"] >= limits.least
    reason = "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable"
    message = f"Deployment {'has' if enough else 'does not have'} minimum availability."
    there = put(there, AVAILABLE, "True" if enough else "False", reason, message, now)
    if not rolling_out:
        return there
    if deadline_of(deployment) is None:
        there = [each for each in there if each.get("type") != PROGRESSING]
    elif problem is not None:
        there = put(there, PROGRESSING, "False", NOT_CREATED, problem, now)
    else:
        there = _progress(deployment, there, counts, new, now)
    failure = next(filter(None, (_failure(each) for each in (new, *old) if each is not None)), None)
    there = [each for each in there if each.get("type") != FAILURE]
    return [*there, failure] if failure is not None else there


def put(there: Conditions, type_: str, status: str, reason: str, message: str, now: Instant) -> Conditions:
    """Sets a condition; one that has this status for this reason stays as it is."""
    before = condition(there, type_)
    if before.get("status") == status and before.get("reason") == reason:
        return there
    at = to_time(now)
    since = before["lastTransitionTime"] if before.get("status") == status else at
    made = {
        "type": type_,
        "status": status,
        "lastUpdateTime": at,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }
    return [*(each for each in there if each.get("type") != type_), made]


def _paused(deployment: Json, there: Conditions, now: Instant) -> Conditions:
    """So that time in which it was paused does not count as time without progress."""
    if deadline_of(deployment) is None:
        return there
    reason, paused = condition(there, PROGRESSING).get("reason"), deployment["spec"].get("paused")
    if reason == TIMED_OUT or bool(paused) == (reason == PAUSED):
        return there
    said = (PAUSED, "Deployment is paused") if paused else (RESUMED, "Deployment is resumed")
    return put(there, PROGRESSING, "Unknown", *said, now)


def _progress(deployment: Json, there: Conditions, counts: Json, new: Version | None, now: Instant) -> Conditions:
    who = f'ReplicaSet "{new.object.name}"' if new is not None else f'Deployment "{deployment["metadata"]["name"]}"'
    before = condition(there, PROGRESSING)
    if new is not None and not before:
        since = to_time(now) == new.object.meta.get("creationTimestamp")
        there = put(there, PROGRESSING, "True", CREATED if since else FOUND, _first_words(new, made=since), now)
        before = condition(there, PROGRESSING)
    old: Json = deployment.get("status") or {}
    if counts["replicas"] == counts["updatedReplicas"] and before.get("reason") == DONE:
        return there
    if is_complete(deployment, counts):
        return put(there, PROGRESSING, "True", DONE, f"{who} has successfully progressed.", now)
    if _has_progressed(old, counts):
        there = _touched(there, before)
        return put(there, PROGRESSING, "True", UPDATED, f"{who} is progressing.", now)
    due = progress_due(deployment, there)
    if due is not None and due <= now:
        return put(there, PROGRESSING, "False", TIMED_OUT, f"{who} has timed out progressing.", now)
    return there


def _first_words(new: Version, *, made: bool) -> str:
    return f'{"Created" if made else "Found"} new replica set "{new.object.name}"'


def _touched(there: Conditions, before: Json) -> Conditions:
    """Progress is noted anew each time, which is what its deadline counts from."""
    if before.get("reason") != UPDATED:
        return there
    return [{**each, "reason": ""} if each is before else each for each in there]


def _has_progressed(old: Json, counts: Json) -> bool:
    was = {field: old.get(field) or 0 for field in _NUMBERS}
    return bool(
        counts["updatedReplicas"] > was["updatedReplicas"]
        or counts["replicas"] - counts["updatedReplicas"] < was["replicas"] - was["updatedReplicas"]
        or counts["readyReplicas"] > was["readyReplicas"]
        or counts["availableReplicas"] > was["availableReplicas"]
    )


def progress_due(deployment: Json, there: Sequence[Json]) -> Instant | None:
    """When it counts as stuck, unless it gets on; None if it has got to its end, or nobody asks."""
    seconds, before = deadline_of(deployment), condition(there, PROGRESSING)
    if seconds is None or not before.get("lastUpdateTime") or before.get("reason") in (DONE, TIMED_OUT, PAUSED):
        return None
    return from_time(before["lastUpdateTime"]) + (seconds + 1) * SECOND


def _failure(version: Version) -> Json | None:
    """A ReplicaSet's failure, as the Deployment tells it."""
    found = condition((version.object.raw.get("status") or {}).get("conditions") or (), FAILURE)
    if not found:
        return None
    return {**found, "lastUpdateTime": found.get("lastTransitionTime")}
