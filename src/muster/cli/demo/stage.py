"""The cluster that the demo plays on, and what can be seen of it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from muster.api import writes
from muster.api.calls import STRATEGIC_PATCH, Request
from muster.api.gates import WORKLOAD_AWARE, FeatureGates
from muster.cli.demo.cast import APP
from muster.cli.failure import Failure
from muster.controllers.fleet import GPU, RACK
from muster.runtime.clock import SystemClock
from muster.runtime.wiring import Cluster, Setup, assemble
from muster.views.tree import COMPOSITE, Branch, Objects, tree

SPEED = 20
"""The cluster's clock runs so many times faster than the wall: node time-outs of a minute take three seconds."""
PATIENCE = 20.0
"""Seconds of wall time that any one thing may take before the demo gives up."""
GLANCE = 0.05
"""Seconds between two looks at the cluster."""

Raw = Mapping[str, Any]


class Life(NamedTuple):
    """What must stay the same of a pod that survives."""

    uid: str
    restarts: int


class Stage:
    """Acts through the API like any client; `shown` is called at every look at the cluster."""

    def __init__(self, shown: Callable[[], None] = lambda: None) -> None:
        gates = FeatureGates.of(*WORKLOAD_AWARE, "InPlacePodVerticalScalingSchedulerPreemption")
        self.cluster: Cluster = assemble(Setup(gates=gates, clock=SystemClock(SPEED)))
        self.shown = shown
        self.racks: dict[str, str] = {}
        """Node name -> rack."""

    def create(self, manifests: Sequence[Raw]) -> None:
        for manifest in manifests:
            answer = self.cluster.create(manifest)
            if not answer.ok:
                raise Failure(f"{manifest['kind']} {manifest['metadata']['name']}: {answer.body['message']}")
            if manifest["kind"] == "Node":
                self.racks[manifest["metadata"]["name"]] = manifest["metadata"]["labels"][RACK]

    def patch(self, resource: str, name: str, body: Raw) -> None:
        self._checked(writes.patch(resource, "default", name, body))

    def resize(self, pod: str, requests: Mapping[str, str]) -> None:
        """Asks for other resources of its container while it runs."""
        body = {"spec": {"containers": [{"name": "main", "resources": {"requests": dict(requests)}}]}}
        self._checked(writes.patch("pods", "default", pod, body, STRATEGIC_PATCH, subresource="resize"))

    def cpu(self, app: str, name: str) -> str:
        """What the kubelet says that the container has."""
        (container,) = self._pod(app, name)["status"]["containerStatuses"]
        return str(container["resources"]["requests"]["cpu"])

    def node(self, app: str, name: str) -> str:
        """Where it runs."""
        return str(self._pod(app, name)["spec"]["nodeName"])

    def _pod(self, app: str, name: str) -> Raw:
        (pod,) = (pod for pod in self.pods(app) if pod["metadata"]["name"] == name)
        return pod

    def pods(self, app: str | None = None) -> list[Raw]:
        """Pods that are there and not on their way out."""
        request = writes.list_all("pods", "default", label_selector=f"{APP}={app}" if app else "")
        items: list[Raw] = self._checked(request)["items"]
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]

    def bound(self, app: str) -> int:
        return sum(1 for pod in self.pods(app) if pod["spec"].get("nodeName"))

    def running(self, app: str) -> int:
        return sum(1 for pod in self.pods(app) if (pod.get("status") or {}).get("phase") == "Running")

    def lives(self, app: str) -> dict[str, Life]:
        """Name -> life of the running pods."""
        return {
            pod["metadata"]["name"]: Life(pod["metadata"]["uid"], _restarts(pod))
            for pod in self.pods(app)
            if (pod.get("status") or {}).get("phase") == "Running"
        }

    def per_rack(self) -> dict[str, Counter[str]]:
        """Rack -> how many pods of each part run there, and under GPU how many accelerators they hold."""
        seen: dict[str, Counter[str]] = {rack: Counter() for rack in dict.fromkeys(self.racks.values())}
        for pod in self.pods():
            node = pod["spec"].get("nodeName")
            if node:
                counter = seen[self.racks[node]]
                counter[pod["metadata"]["labels"][APP]] += 1
                counter[GPU] += _gpus(pod)
        return seen

    def tree(self, name: str) -> tuple[Branch, ...]:
        """A hierarchy as the API shows it now."""
        names = ("compositepodgroups", "podgroups", "pods", "nodes")
        listed = (self._checked(writes.list_all(resource, "default"))["items"] for resource in names)
        return tree(Objects(*listed), COMPOSITE, name)

    async def until(self, what: str, done: Callable[[], bool]) -> float:
        """Looks again and again until it is so; returns the seconds it took.

        Raises:
            Failure: it did not happen.
        """
        began = time.perf_counter()
        while not done():
            if time.perf_counter() - began > PATIENCE:
                raise Failure(f"the demo waited {PATIENCE:.0f} s in vain: {what}")
            self.shown()
            await asyncio.sleep(GLANCE)
        self.shown()
        return time.perf_counter() - began

    def _checked(self, request: Request) -> Raw:
        answer = self.cluster.call(request)
        if not answer.ok:
            raise Failure(f"{request.method} {request.path}: {answer.body['message']}")
        body: Raw = answer.body
        return body


def _restarts(pod: Raw) -> int:
    return sum(status.get("restartCount", 0) for status in (pod.get("status") or {}).get("containerStatuses") or [])


def _gpus(pod: Raw) -> int:
    requests = (container["resources"].get("requests") or {} for container in pod["spec"]["containers"])
    return sum(int(request.get(GPU, 0)) for request in requests)
