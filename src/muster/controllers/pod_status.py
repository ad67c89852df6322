"""What a kubelet reports about a pod: running, ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muster.api.instant import Instant, from_time, to_time
from muster.api.object import Object
from muster.controllers.resizing import resources_of
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


def running(pod: Object, now: Instant, admitted: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The status of a pod that has just started; `admitted`: the spec that its resources were allocated for."""
    spec = admitted or pod.raw.get("spec") or {}
    state = {"running": {"startedAt": to_time(now)}}
    status: dict[str, Any] = {
        "phase": "Running",
        "startTime": to_time(now),
        "conditions": _conditions(pod, "True", now),
        "containerStatuses": [_started(each, state) for each in spec.get("containers") or ()],
    }
    sidecars = [each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    if sidecars:
        status["initContainerStatuses"] = [_started(each, state) for each in sidecars]
    if spec.get("resources"):
        status |= _size(spec)
    if pod.meta.get("generation"):
        status["observedGeneration"] = pod.meta["generation"]
    return status


def refused(pod: Object, resource: str, message: str, now: Instant) -> dict[str, Any]:
    """The status of a pod for which its node had no room when it came."""
    return {
        "phase": "Failed",
        "reason": f"OutOf{resource}",
        "message": f"Pod was rejected: {message}",
        "startTime": to_time(now),
        "conditions": _conditions(pod, "False", now, reason="PodFailed"),
    }


def _size(holder: Mapping[str, Any]) -> dict[str, Any]:
    """What is allocated, and what is carried out: of a pod that has just started, what was asked for."""
    resources = resources_of(holder)
    return {"allocatedResources": resources.get("requests") or {}, "resources": resources}


def _started(container: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    return {**_container(container, state, ready=True), **_size(container)}


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
        "containerStatuses": [_ended(pod, each, state) for each in _containers(pod)],
    }


def _ended(pod: Object, container: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """What was told of its size and its restarts stays."""
    for told in (pod.raw.get("status") or {}).get("containerStatuses") or ():
        if told.get("name") == container.get("name"):
            return {**_container(container, state, ready=False), **_kept(told)}
    return _container(container, state, ready=False)


def _kept(told: Mapping[str, Any]) -> dict[str, Any]:
    return {key: told[key] for key in ("restartCount", "allocatedResources", "resources") if key in told}


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
