"""CSINodes of hollow nodes: which drivers they have, and how many volumes each driver attaches there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muster.api import writes
from muster.api.instant import Instant
from muster.api.machine import DELETED, Effect, Event, Listed, Observed, Refused, WakeAt, Woken, Write, Written
from muster.api.object import Object
from muster.controllers.annotations import csi_drivers
from muster.controllers.volumes.known import CSI_NODES, NODES
from muster.controllers.writing import AGAIN, Pending


class Drivers:
    """Makes a CSINode for a node that names drivers in an annotation, once, and takes it back with the node."""

    resources: tuple[str, ...] = (NODES, CSI_NODES)

    def __init__(self) -> None:
        self._nodes: dict[str, Object] = {}
        self._there: set[str] = set()
        self._listed: set[str] = set()
        self._pending = Pending()

    def handle(self, event: Event, now: Instant) -> Sequence[Effect]:
        match event:
            case Observed(resource, change, obj):
                return self._observed(resource, obj, gone=change == DELETED)
            case Listed(resource, objects):
                return self._all(resource, objects)
            case Written(str(name), response):
                return self._look(name) if self._pending.written(name, response) else ()
            case Refused(str(name), response):
                self._pending.forget(name)
                return [WakeAt(now + AGAIN, name)] if response.status not in (404, 409) else ()
            case Woken(str(name)):
                return self._look(name)
        return ()

    def _all(self, resource: str, objects: Sequence[Object]) -> list[Effect]:
        self._listed.add(resource)
        self._pending.listed()
        if resource == NODES:
            self._nodes = {obj.name: obj for obj in objects}
        else:
            self._there = {obj.name for obj in objects}
        return [effect for name in self._nodes for effect in self._look(name)]

    def _observed(self, resource: str, obj: Object, *, gone: bool) -> list[Effect]:
        if resource == CSI_NODES:
            self._pending.observed(obj.name, obj.revision)
            (self._there.discard if gone else self._there.add)(obj.name)
            return [] if gone else self._look(obj.name)
        if not gone:
            self._nodes[obj.name] = obj
            return self._look(obj.name)
        known = self._nodes.pop(obj.name, None)
        ours = known is not None and _drivers(known) and obj.name in self._there
        return [Write(writes.delete(CSI_NODES, "", obj.name), obj.name)] if ours else []

    def _look(self, name: str) -> list[Effect]:
        node = self._nodes.get(name)
        if node is None or name in self._there or name in self._pending or len(self._listed) < len(self.resources):
            return []
        drivers = _drivers(node)
        if not drivers:
            return []
        self._pending.begin(name)
        return [Write(writes.create(_csi_node(name, drivers)), name)]


def _drivers(node: Object) -> Sequence[tuple[str, int | None]]:
    return csi_drivers(node.meta.get("annotations") or {})


def _csi_node(name: str, drivers: Sequence[tuple[str, int | None]]) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    for driver, limit in drivers:
        found.append(
            {"name": driver, "nodeID": name} | ({"allocatable": {"count": limit}} if limit is not None else {})
        )
    meta = {"name": name}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": meta, "spec": {"drivers": found}}
