"""Draining a node: cordon it, then evict its pods, as `kubectl drain` does."""

from __future__ import annotations

from collections.abc import Iterable

from muster.api import writes
from muster.api.calls import Request
from muster.api.object import Object
from muster.controllers.pod_status import TERMINAL, deleted, node_of, phase


def cordon(node: str, *, unschedulable: bool = True) -> Request:
    """Marks a node as unschedulable, or as schedulable again."""
    return writes.patch("nodes", "", node, {"spec": {"unschedulable": unschedulable or None}})


def evictions(node: str, pods: Iterable[Object]) -> list[Request]:
    """An Eviction for every pod on the node that has neither ended nor been deleted.

    One that is answered 429 would breach a PodDisruptionBudget; try it again later.
    """
    return [
        writes.evict(pod.namespace, pod.name, uid=pod.uid)
        for pod in pods
        if node_of(pod) == node and not deleted(pod) and phase(pod) not in TERMINAL
    ]
