"""Priority admission (V34): priority class names become numbers, for pods and for groups."""

from __future__ import annotations

from typing import Any

from muster.api import catalog
from muster.apiserver import status
from muster.apiserver.log import Raw
from muster.apiserver.state import Call

Json = dict[str, Any]

SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Classes that every cluster has."""
PREEMPT = "PreemptLowerPriority"

_GROUPS = (catalog.POD_GROUP, catalog.COMPOSITE_POD_GROUP)


def on_create(call: Call, made: Json) -> None:
    """Resolves the class of a pod or group; lets only one class be the global default.

    Raises:
        Failure: 403, the class does not exist, or a given number differs from the class's.
    """
    if call.kind is catalog.POD:
        made["spec"] = _resolved(call, made, with_policy=True)
    elif call.kind in _GROUPS:
        made["spec"] = _resolved(call, made, with_policy=call.gates.pod_group_preemption_policy)
    elif call.kind is catalog.PRIORITY_CLASS:
        on_update(call, made)


def on_update(call: Call, made: Json) -> None:
    """Lets only one class be the global default.

    Raises:
        Failure: 403, another class is.
    """
    default = _global_default(call) if made.get("globalDefault") else None
    name = made["metadata"]["name"]
    if default is not None and default["metadata"]["name"] != name:
        why = f"PriorityClass {default['metadata']['name']} is already marked as default. Only one default can exist"
        raise status.forbidden(call.kind, name, why)


def _resolved(call: Call, made: Json, *, with_policy: bool) -> Json:
    spec = dict(made.get("spec", {}))
    chosen = _class_of(call, made, spec)
    priority, policy = 0, PREEMPT
    if chosen is not None:
        spec["priorityClassName"] = chosen["metadata"]["name"]
        priority, policy = chosen.get("value", 0), chosen.get("preemptionPolicy") or PREEMPT
    _require(call, made, spec, "priority", priority)
    spec["priority"] = priority
    if with_policy:
        _require(call, made, spec, "preemptionPolicy", policy)
        spec["preemptionPolicy"] = policy
    return spec


def _class_of(call: Call, made: Json, spec: Raw) -> Raw | None:
    name = spec.get("priorityClassName")
    if not name:
        return _global_default(call)
    found = call.store.get(catalog.PRIORITY_CLASS.plural, "", name)
    if found is None:
        why = f"no PriorityClass with name {name} was found"
        raise status.forbidden(call.kind, made["metadata"]["name"], why)
    return found


def _global_default(call: Call) -> Raw | None:
    """The class marked as the default; of several, the one with the lowest value."""
    marked = [found for found in call.store.all(catalog.PRIORITY_CLASS.plural) if found.get("globalDefault")]
    return min(marked, key=lambda found: found.get("value", 0), default=None)


def _require(call: Call, made: Json, spec: Raw, field: str, computed: int | str) -> None:
    given = spec.get(field)
    if given is not None and given != computed:
        why = (
            f"spec.{field} ({given}) must not differ from what priority admission computed from the PriorityClass "
            f"({computed}): leave it out"
        )
        raise status.forbidden(call.kind, made["metadata"]["name"], why)
