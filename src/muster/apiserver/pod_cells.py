"""What a table says of a pod: READY, STATUS and RESTARTS, from its phase and what its containers report."""

from __future__ import annotations

from typing import Any

from muster.apiserver.log import Raw
from muster.apiserver.sheet import Sheet, condition


def ready(pod: Raw, sheet: Sheet) -> str:
    """Containers that are ready, of all that count: sidecars do, other init containers do not."""
    spec, status = pod["spec"], pod.get("status", {})
    sidecars = {entry["name"] for entry in _sidecars(spec)}
    total = len(spec.get("containers") or ()) + len(sidecars)
    reports = [entry for entry in status.get("initContainerStatuses") or () if entry["name"] in sidecars]
    reports += status.get("containerStatuses") or ()
    return f"{sum(bool(entry.get('ready')) for entry in reports)}/{total}"


def restarts(pod: Raw, sheet: Sheet) -> str:
    """How often containers were started again, and how long the last time is ago."""
    status = pod.get("status", {})
    reports: list[Raw] = list(status.get("containerStatuses") or ())
    sidecars = {entry["name"] for entry in _sidecars(pod["spec"])}
    started = status.get("initContainerStatuses") or ()
    if any(condition(pod, "Initialized").get("status") == word for word in ("True",)):
        reports += [entry for entry in started if entry["name"] in sidecars]
    else:
        reports += started
    count = sum(entry.get("restartCount", 0) for entry in reports)
    ended = [((entry.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for entry in reports]
    last = max((time for time in ended if time), default=None)
    return f"{count} ({sheet.age(last)} ago)" if count and last else str(count)


def shown_status(pod: Raw, sheet: Sheet) -> str:
    """The phase, or the reason that says more: of the pod, of an init container, of a container."""
    status = pod.get("status", {})
    said: str = status.get("reason") or status.get("phase") or "Unknown"
    if condition(pod, "PodScheduled").get("reason") == "SchedulingGated":
        said = "SchedulingGated"
    waiting = _initializing(pod["spec"], status)
    if waiting:
        said = waiting
    else:
        said = _of_containers(pod, status, said)
    if "deletionTimestamp" in pod["metadata"]:
        if status.get("reason") == "NodeLost":
            return "Unknown"
        return (
            said if said in ("Completed", "Error") or status.get("phase") in ("Succeeded", "Failed") else "Terminating"
        )
    return said


def _sidecars(spec: Raw) -> list[Raw]:
    return [entry for entry in spec.get("initContainers") or () if entry.get("restartPolicy") == "Always"]


def _initializing(spec: Raw, status: Raw) -> str:
    """`Init:...` while an init container is not done; "" afterwards."""
    sidecars = {entry["name"] for entry in _sidecars(spec)}
    reports = status.get("initContainerStatuses") or ()
    for index, entry in enumerate(reports):
        state = entry.get("state") or {}
        ended, waits = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and not ended.get("exitCode"):
            continue
        if entry["name"] in sidecars and entry.get("started"):
            continue
        if ended is not None:
            return f"Init:{_ended(ended)}"
        if waits.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waits['reason']}"
        return f"Init:{index}/{len(spec.get('initContainers') or ())}"
    return ""


def _of_containers(pod: Raw, status: Raw, said: str) -> str:
    running = False
    for entry in reversed(status.get("containerStatuses") or ()):
        state: dict[str, Any] = entry.get("state") or {}
        waits, ended = state.get("waiting") or {}, state.get("terminated")
        if waits.get("reason"):
            said = waits["reason"]
        elif ended is not None:
            said = _ended(ended)
        elif entry.get("ready") and state.get("running") is not None:
            running = True
    if said == "Completed" and running:
        return "Running" if condition(pod, "Ready").get("status") == "True" else "NotReady"
    return said


def _ended(state: Raw) -> str:
    if state.get("reason"):
        reason: str = state["reason"]
        return reason
    return f"Signal:{state['signal']}" if state.get("signal") else f"ExitCode:{state.get('exitCode', 0)}"
