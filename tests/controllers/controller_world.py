"""A world of controllers around a real in-process API server, without a scheduler: pods are bound to any node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND
from muster.api.machine import Effect, Event, Listed, Machine, Observed, Write
from muster.api.object import Object
from muster.apiserver.server import ApiServer
from muster.controllers.apps.daemon.eligible import target_of
from muster.controllers.machine import makers
from muster.sim.cluster import uids
from muster.sim.faults import CALM, Faults, Rates
from muster.sim.world import START, World

DEFAULTS = FeatureGates()
WITH_JOB = FeatureGates.of("GenericWorkload", "WorkloadWithJob")


class Binder:
    """Binds every pod that has no node to the one that its affinity names, else to the first one there is."""

    resources = ("nodes", "pods")

    def __init__(self) -> None:
        self._nodes: dict[str, None] = {}
        self._waiting: dict[str, Object] = {}

    def handle(self, event: Event, now: int) -> Sequence[Effect]:
        if isinstance(event, Listed):
            return [effect for obj in event.objects for effect in self._see(event.resource, obj)]
        if isinstance(event, Observed):
            if event.change == "DELETED":
                self._nodes.pop(event.object.name, None)
                self._waiting.pop(event.object.uid, None)
                return ()
            return self._see(event.resource, event.object)
        return ()

    def _see(self, resource: str, obj: Object) -> Sequence[Effect]:
        if resource == "nodes":
            self._nodes[obj.name] = None
            return [effect for pod in list(self._waiting.values()) for effect in self._bind(pod)]
        if obj.raw["spec"].get("nodeName") or obj.meta.get("deletionTimestamp"):
            self._waiting.pop(obj.uid, None)
            return ()
        return self._bind(obj)

    def _bind(self, pod: Object) -> Sequence[Effect]:
        wanted = target_of(pod) or next(iter(self._nodes), "")
        if wanted not in self._nodes:
            self._waiting[pod.uid] = pod
            return ()
        self._waiting.pop(pod.uid, None)
        return [Write(writes.bind(pod.namespace, pod.name, pod.uid, wanted))]


class Cluster:
    """A world, and what a test does to it and asks of it."""

    def __init__(
        self,
        *names: str,
        gates: FeatureGates = DEFAULTS,
        seed: int = 0,
        rates: Rates = CALM,
        **hollow: Any,
    ) -> None:
        self.server = ApiServer(gates, new_uid=uids(Random(seed)), started=START)
        made: dict[str, Callable[[], Machine]] = {**makers(gates, **hollow), "binder": Binder}
        chosen = {name: made[name] for name in names} if names else made
        self.faults = Faults(Random(seed), rates)
        self.world = World(self.server, chosen, self.faults)
        self.world.settle()

    def create(self, *manifests: Mapping[str, Any]) -> None:
        for manifest in manifests:
            response = self.world.call(writes.create(manifest))
            assert response.ok, response.body
        self.world.settle()

    def patch(self, resource: str, name: str, body: Any, subresource: str | None = None) -> None:
        response = self.world.call(writes.patch(resource, "default", name, body, subresource=subresource))
        assert response.ok, response.body
        self.world.settle()

    def delete(self, resource: str, name: str, **options: Any) -> None:
        response = self.world.call(writes.delete(resource, "default", name, **options))
        assert response.ok, response.body
        self.world.settle()

    def advance(self, seconds: float) -> None:
        self.world.advance(int(seconds * SECOND))

    def all(self, resource: str) -> list[dict[str, Any]]:
        return list(self.world.call(writes.list_all(resource)).body["items"])

    def get(self, resource: str, name: str) -> dict[str, Any] | None:
        response = self.world.call(writes.get(resource, "default", name))
        return response.body if response.ok else None

    def status(self, resource: str, name: str) -> dict[str, Any]:
        return (self.get(resource, name) or {}).get("status") or {}

    def conditions(self, resource: str, name: str) -> dict[str, str]:
        return {each["type"]: each["status"] for each in self.status(resource, name).get("conditions") or ()}

    def reasons(self, kind: str) -> list[str]:
        """Reasons of the events about objects of a kind."""
        return [each["reason"] for each in self.all("events") if each["involvedObject"]["kind"] == kind]


def node(name: str = "n1", **more: Any) -> dict[str, Any]:
    status = {"allocatable": {"cpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status, **more}


def pod(name: str, on: str | None = None, *, spec: Mapping[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    inside = {"containers": [{"name": "c", "image": "pause"}], **(spec or {})}
    if on is not None:
        inside["nodeName"] = on
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **meta},
        "spec": inside,
    }


def job(name: str = "train", *, annotations: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A Job of pods with these annotations; `spec` is added to its spec."""
    template = {
        "metadata": {"annotations": dict(annotations or {})},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "pause"}]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": template, **spec},
    }
