"""What a failed pod means for its Job: `spec.podFailurePolicy`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.object import Object

COUNT, IGNORE, FAIL_JOB = "Count", "Ignore", "FailJob"
_EXPECTED = "True"


def action(job: Mapping[str, Any], pod: Object) -> str:
    """COUNT, IGNORE or FAIL_JOB: the action of the first rule that the pod meets, else COUNT."""
    for rule in (job["spec"].get("podFailurePolicy") or {}).get("rules") or ():
        if _meets_conditions(rule, pod) or _meets_exit_codes(rule.get("onExitCodes"), pod):
            return IGNORE if rule.get("action") == IGNORE else FAIL_JOB if rule.get("action") == FAIL_JOB else COUNT
    return COUNT


def was_disrupted(pod: Object) -> bool:
    """Whether it was ended from outside (evicted, preempted, deleted), and not by itself."""
    return bool(pod.meta.get("deletionTimestamp")) or ("DisruptionTarget", "True") in _conditions(pod)


def _meets_conditions(rule: Mapping[str, Any], pod: Object) -> bool:
    wanted = rule.get("onPodConditions") or ()
    there = _conditions(pod) if wanted else ()
    return any((each.get("type"), each.get("status") or _EXPECTED) in there for each in wanted)


def _conditions(pod: Object) -> set[tuple[str | None, str | None]]:
    conditions = (pod.raw.get("status") or {}).get("conditions") or ()
    return {(condition.get("type"), condition.get("status")) for condition in conditions}


def _meets_exit_codes(wanted: Mapping[str, Any] | None, pod: Object) -> bool:
    if not wanted:
        return False
    status = pod.raw.get("status") or {}
    values, inside = wanted.get("values") or (), wanted.get("operator") == "In"
    for field in ("containerStatuses", "initContainerStatuses"):
        for container in status.get(field) or ():
            code = ((container.get("state") or {}).get("terminated") or {}).get("exitCode")
            if wanted.get("containerName") in (None, container.get("name")) and code and (code in values) == inside:
                return True
    return False
