"""A pod's quality-of-service class, from the cpu and memory of its containers."""

from __future__ import annotations

from collections.abc import Mapping

from muster.api import quantity
from muster.api.core import PodSpec, Resources
from muster.api.meta import Quantity

GUARANTEED = "Guaranteed"
BURSTABLE = "Burstable"
BEST_EFFORT = "BestEffort"

_COUNTED = ("cpu", "memory")


def qos_class(spec: PodSpec) -> str:
    """Guaranteed: cpu and memory limited everywhere and requests equal to limits; BestEffort: neither asked for.

    Pod-level resources, where given, decide alone (KEP-2837).
    """
    parts = [spec.resources] if spec.resources else [c.resources for c in (*spec.containers, *spec.init_containers)]
    if not any(_positive(part.requests) or _positive(part.limits) for part in parts):
        return BEST_EFFORT
    return GUARANTEED if all(_guaranteed(part) for part in parts) else BURSTABLE


def _positive(amounts: Mapping[str, Quantity]) -> bool:
    return any(quantity.nanos(amounts[name]) > 0 for name in _COUNTED if name in amounts)


def _guaranteed(part: Resources) -> bool:
    return all(
        name in part.limits
        and quantity.nanos(part.limits[name]) > 0
        and quantity.nanos(part.requests.get(name, part.limits[name])) == quantity.nanos(part.limits[name])
        for name in _COUNTED
    )
