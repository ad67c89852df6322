"""What a kubelet does about a pod that is resized in place: it grants, defers or refuses, carries out, and reports.

A pod is in one of three states: what its spec wants is not allocated (the kubelet is asked), it is allocated and not
carried out (PodResizeInProgress), or it is. Everything is read from the pod itself, so a kubelet may be restarted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from muster.api import core
from muster.api.instant import Instant, from_time, to_time
from muster.api.object import Object
from muster.api.qos import BEST_EFFORT, BURSTABLE, GUARANTEED, qos_class
from muster.api.requests import pod_allocated, pod_requests

Json = Mapping[str, Any]
Amounts = Mapping[str, int]

PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
DEFERRED, INFEASIBLE = "Deferred", "Infeasible"
_CONTAINERS = (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses"))
_RANKS = {GUARANTEED: 0, BURSTABLE: 1, BEST_EFFORT: 2}


class Slot(NamedTuple):
    """Resources of one container, or of the pod as a whole (`field` ""), as wanted and as reported."""

    field: str
    name: str
    wanted: Json
    told: Json
    policies: Sequence[Json] = ()

    @property
    def allocated(self) -> bool:
        return bool((self.told.get("allocatedResources") or {}) == (self.wanted.get("requests") or {}))

    @property
    def settled(self) -> bool:
        """Where nothing was ever reported, nothing is resized."""
        return "resources" not in self.told or (self.allocated and bool(self.told["resources"] == self.wanted))


@dataclass(frozen=True, slots=True)
class Report:
    """A new status of a pod, and what it says in an event; `grants`: what is set aside for it from now on."""

    pod: Object
    status: Json
    reason: str = ""
    message: str = ""
    grants: Amounts | None = None


def resources_of(holder: Json) -> dict[str, Any]:
    """Requests and limits as a status tells them."""
    given = holder.get("resources") or {}
    return {what: dict(given[what]) for what in ("requests", "limits") if given.get(what)}


def slots(pod: Object) -> Iterator[Slot]:
    spec, status = pod.raw.get("spec") or {}, pod.raw.get("status") or {}
    for field, told_in in _CONTAINERS:
        told = {entry.get("name"): entry for entry in status.get(told_in) or ()}
        for each in spec.get(field) or ():
            name = each.get("name", "")
            yield Slot(told_in, name, resources_of(each), told.get(name, {}), each.get("resizePolicy") or ())
    if spec.get("resources"):
        yield Slot("", "", resources_of(spec), status)


def unsettled(pod: Object) -> bool:
    """Whether anything is to be done about its size, or to be said of it."""
    return any(not slot.settled for slot in slots(pod)) or any(
        condition(pod, type_) is not None for type_ in (PENDING, IN_PROGRESS)
    )


def condition(pod: Object, type_: str) -> Json | None:
    for found in (pod.raw.get("status") or {}).get("conditions") or ():
        if found.get("type") == type_ and found.get("status") == "True":
            return found  # type: ignore[no-any-return]
    return None


def allocated(pod: Object) -> dict[str, int]:
    """What is set aside for it, as reported; `pods` included."""
    return {**pod_allocated(_typed(pod)), "pods": 1}


def desired(raw: Json) -> dict[str, int]:
    """What a pod asks for; `pods` included."""
    return {**pod_requests(msgspec.convert(raw, core.Pod, strict=False)), "pods": 1}


def consider(allocatable: Amounts, held: Mapping[str, Amounts], pods: Sequence[Object], now: Instant) -> list[Report]:
    """What a kubelet reports of pods whose size is not settled.

    `held`: by uid, what is set aside for every pod on the node. The one whose turn it is gets what is free (KEP-1287):
    whoever needs no more, then by priority, quality of service and age of the condition.
    """
    free = dict(allocatable)
    for amounts in held.values():
        for name, amount in amounts.items():
            free[name] = free.get(name, 0) - amount
    reports: list[Report] = []
    for pod in sorted(pods, key=lambda pod: _turn(pod, held[pod.uid], now)):
        if all(slot.settled or slot.allocated for slot in slots(pod)):
            reports += _allocated(pod, now)
            continue
        wants, has = desired(pod.raw), held[pod.uid]
        lacking = next((n for n, a in wants.items() if n in allocatable and a - has.get(n, 0) > free[n]), None)
        if lacking is None:
            for name in wants.keys() | has.keys():
                more = wants.get(name, 0) - has.get(name, 0)
                free[name] = free.get(name, 0) - max(more, 0)  # What is given back counts once it is reported.
            reports.append(_granted(pod, wants, now))
        else:
            reports += _refused(pod, lacking, wants[lacking], free[lacking] + has.get(lacking, 0), allocatable, now)
    return reports


def due(pod: Object, delay: Instant) -> Instant | None:
    """When what is in progress will be carried out."""
    started = condition(pod, IN_PROGRESS)
    return None if started is None else from_time(started["lastTransitionTime"]) + delay


def carried_out(pod: Object, now: Instant) -> Report:
    """The containers have what was allocated to them; those whose policy says so were restarted."""
    status: dict[str, Any] = {}
    for slot in slots(pod):
        if "resources" not in slot.told or slot.told["resources"] == slot.wanted:
            continue
        actual = slot.wanted if slot.allocated else _as_allocated(slot)
        restarts = slot.field and any(
            policy.get("restartPolicy") == "RestartContainer"
            and _amounts(actual, policy.get("resourceName")) != _amounts(slot.told["resources"], policy["resourceName"])
            for policy in slot.policies
        )
        changes: dict[str, Any] = {"resources": actual}
        if restarts:
            changes["restartCount"] = (slot.told.get("restartCount") or 0) + 1
            changes["state"] = {"running": {"startedAt": to_time(now)}}
        _set(pod, status, slot, changes)
    kept = [one for one in _conditions(pod) if one.get("type") != IN_PROGRESS]
    return _report(pod, status, kept, "ResizeCompleted", f"Pod resize completed: {_sizes(pod, granted=True)}")


def _allocated(pod: Object, now: Instant) -> list[Report]:
    """All that is wanted is allocated: it is carried out, or that was it."""
    kept = [one for one in _conditions(pod) if one.get("type") != PENDING]
    if all(slot.settled for slot in slots(pod)):
        kept = [one for one in kept if one.get("type") != IN_PROGRESS]
        return [_report(pod, {}, kept)] if len(kept) < len(_conditions(pod)) else []
    if condition(pod, IN_PROGRESS) is not None:
        return [_report(pod, {}, kept)] if len(kept) < len(_conditions(pod)) else []
    kept.append(_condition(pod, IN_PROGRESS, now))
    return [_report(pod, {}, kept, "ResizeStarted", f"Pod resize started: {_sizes(pod)}")]


def _granted(pod: Object, wants: Amounts, now: Instant) -> Report:
    status: dict[str, Any] = {}
    for slot in slots(pod):
        if "resources" in slot.told and not slot.allocated:
            _set(pod, status, slot, {"allocatedResources": slot.wanted.get("requests") or {}})
    kept = [one for one in _conditions(pod) if one.get("type") not in (PENDING, IN_PROGRESS)]
    kept.append(_condition(pod, IN_PROGRESS, now))
    report = _report(pod, status, kept, "ResizeStarted", f"Pod resize started: {_sizes(pod)}")
    return Report(report.pod, report.status, report.reason, report.message, wants)


def _refused(pod: Object, name: str, wants: int, room: int, allocatable: Amounts, now: Instant) -> list[Report]:
    """Deferred until there is room, or infeasible on this node."""
    capacity = allocatable[name]
    if wants > capacity:
        reason, said = INFEASIBLE, f"Node didn't have enough capacity: {name}, requested: {wants}, capacity: {capacity}"
    else:
        used = capacity - room
        reason = DEFERRED
        said = f"Node didn't have enough resource: {name}, requested: {wants}, used: {used}, capacity: {capacity}"
    before = condition(pod, PENDING)
    new = _condition(pod, PENDING, now, reason, said)
    if before is not None:
        same = before.get("reason") == reason and before.get("observedGeneration") == new["observedGeneration"]
        if same and (before.get("message") == said or reason == DEFERRED):
            return []  # How much is used just now is not worth a write.
        new["lastTransitionTime"] = before.get("lastTransitionTime") or new["lastTransitionTime"]
    kept = [one for one in _conditions(pod) if one.get("type") != PENDING]
    return [_report(pod, {}, [*kept, new], f"Resize{reason}", f"{said} ({_sizes(pod)})")]


def _turn(pod: Object, has: Amounts, now: Instant) -> tuple[object, ...]:
    wants, view = desired(pod.raw), _typed(pod)
    waits = condition(pod, PENDING)
    since = from_time(waits["lastTransitionTime"]) if waits and waits.get("reason") == DEFERRED else now
    grows = any(amount > has.get(name, 0) for name, amount in wants.items())
    return (grows, -(view.spec.priority or 0), _RANKS[qos_class(view.spec)], since, pod.namespace, pod.name)


def _condition(pod: Object, type_: str, now: Instant, reason: str = "", message: str = "") -> dict[str, Any]:
    made = {"type": type_, "status": "True", "lastTransitionTime": to_time(now), "observedGeneration": _generation(pod)}
    return made | ({"reason": reason, "message": message} if reason else {})


def _conditions(pod: Object) -> Sequence[Json]:
    return (pod.raw.get("status") or {}).get("conditions") or ()


def _generation(pod: Object) -> int:
    return int(pod.meta.get("generation") or 0)


def _report(pod: Object, status: Json, conditions: Sequence[Json], reason: str = "", message: str = "") -> Report:
    told = {**status, "conditions": conditions, "observedGeneration": _generation(pod)}
    return Report(pod, told, reason, message and f"{message}, generation {_generation(pod)}")


def _set(pod: Object, status: dict[str, Any], slot: Slot, changes: Json) -> None:
    """Puts changes of one slot into a status that is being made."""
    if not slot.field:
        status.update(changes)
        return
    entries = status.get(slot.field) or (pod.raw.get("status") or {}).get(slot.field) or ()
    status[slot.field] = [{**one, **changes} if one.get("name") == slot.name else one for one in entries]


def _as_allocated(slot: Slot) -> dict[str, Any]:
    """What is carried out of an earlier wish, where another one waits by now: the limits stay as they are."""
    before = slot.told["resources"]
    return {**before, "requests": dict(slot.told.get("allocatedResources") or {})}


def _amounts(resources: Json, name: str | None) -> tuple[Any, Any]:
    return (resources.get("requests") or {}).get(name), (resources.get("limits") or {}).get(name)


def _sizes(pod: Object, *, granted: bool = False) -> str:
    """`c: cpu 100m to 300m`: of each container that changes, what changes."""
    found = []
    for slot in slots(pod):
        before = (slot.told.get("resources") or {}).get("requests") or {}
        after = (slot.told.get("allocatedResources") if granted else slot.wanted.get("requests")) or {}
        changed = [
            f"{n} {before.get(n, 0)} to {after.get(n, 0)}"
            for n in sorted(before.keys() | after.keys())
            if before.get(n) != after.get(n)
        ]
        if changed:
            found.append(f"{slot.name or 'pod'}: {', '.join(changed)}")
    return "; ".join(found) or "limits"


def _typed(pod: Object) -> core.Pod:
    return msgspec.convert(pod.raw, core.Pod, strict=False)
