"""What a kubelet reports about a pod: running, ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muster.api.instant import Instant, from_time, to_time
from muster.api.object import Object
from muster.controllers.writing import with_condition

TERMINAL = frozenset({"Succeeded", "Failed"})


def phase(pod: Object) -> str:
    return (pod.raw.get("status") or {}).get("phase") or "Pending"


def node_of(pod: Object) -> str:
    """The node it is bound to, or ""."""
    return (pod.raw.get("spec") or {}).get("nodeName") or ""


def deleted(obj: Object) -> bool:
    """Whether it has a deletion timestamp."""
    return bool(obj.meta.get("deletionTimestamp"))


def is_ready(pod: Object) -> bool:
    for condition in (pod.raw.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready":
            return bool(condition.get("status") == "True")
    return False


def started_at(pod: Object, otherwise: Instant) -> Instant:
    text = (pod.raw.get("status") or {}).get("startTime")
    return from_time(text) if text else otherwise


def running(pod: Object, now: Instant) -> dict[str, Any]:
    """The status of a pod that has just started."""
    state = {"running": {"startedAt": to_time(now)}}
    return {
        "phase": "Running",
        "startTime": to_time(now),
        "conditions": _conditions(pod, "True", now),
        "containerStatuses": [_container(each, state, ready=True) for each in _containers(pod)],
    }


def ended(pod: Object, exit_code: int, now: Instant) -> dict[str, Any]:
    """The status of a pod whose containers have ended."""
    began = (pod.raw.get("status") or {}).get("startTime") or to_time(now)
    state = {
        "terminated": {
            "exitCode": exit_code,
            "reason": "Error" if exit_code else "Completed",
            "startedAt": began,
            "finishedAt": to_time(now),
        }
    }
    return {
        "phase": "Failed" if exit_code else "Succeeded",
        "startTime": began,
        "conditions": _conditions(pod, "False", now, reason="PodFailed" if exit_code else "PodCompleted"),
        "containerStatuses": [_container(each, state, ready=False) for each in _containers(pod)],
    }


def _conditions(pod: Object, ready: str, now: Instant, *, reason: str = "") -> Sequence[Mapping[str, Any]]:
    conditions: Sequence[Mapping[str, Any]] = (pod.raw.get("status") or {}).get("conditions") or ()
    conditions = with_condition(conditions, "Initialized", "True", now)
    for type_ in ("ContainersReady", "Ready"):
        conditions = with_condition(conditions, type_, ready, now, reason=reason)
    return conditions


def _containers(pod: Object) -> Sequence[Mapping[str, Any]]:
    return (pod.raw.get("spec") or {}).get("containers") or ()


def _container(container: Mapping[str, Any], state: Mapping[str, Any], *, ready: bool) -> dict[str, Any]:
    image = container.get("image") or ""
    return {
        "name": container.get("name", ""),
        "image": image,
        "imageID": image,
        "ready": ready,
        "started": ready,
        "restartCount": 0,
        "state": state,
    }
