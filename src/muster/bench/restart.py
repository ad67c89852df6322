"""A scheduler that starts in a full cluster: how long until it can decide, and how much memory that takes.

Run in a process of its own, so that its peak memory is that of one scheduler with the objects it was told about.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from typing import Any

import msgspec

from muster.api.gates import FeatureGates
from muster.api.machine import Listed
from muster.api.object import Object
from muster.bench import fleet
from muster.bench.measure import peak_memory, seconds
from muster.plugins import default_profile
from muster.runtime.collector import calm_collector
from muster.scheduler.effects import Decide
from muster.scheduler.machine import Scheduler
from muster.sim.world import START

CREATED = "2026-01-01T00:00:00Z"
PER_NODE = 20
"""Bound pods on each node: 100,000 on 5,000."""


def main(nodes: int) -> None:
    """Prints what was measured, as JSON: `seconds` from the first list to the first decision, and peak `bytes`."""
    gc.disable()
    listed = {"nodes": list(_decoded(_nodes(nodes))), "pods": list(_decoded(_pods(nodes)))}
    gc.enable()
    calm_collector()
    scheduler = Scheduler(default_profile(), gates=FeatureGates.of("GenericWorkload"))
    took = seconds(lambda: start(scheduler, listed))
    print(json.dumps({"seconds": took, "bytes": peak_memory()}))


def start(scheduler: Scheduler, listed: dict[str, list[Object]]) -> Decide:
    """Lists everything to a new scheduler until it asks for its first decision.

    Raises:
        RuntimeError: it was told everything and asks for none.
    """
    for resource in scheduler.resources:
        for effect in scheduler.handle(Listed(resource, listed.get(resource, ())), START):
            if isinstance(effect, Decide):
                return effect
    raise RuntimeError("the scheduler was told of a pending pod and asks for no decision")


def _decoded(manifests: Iterator[dict[str, Any]]) -> Iterator[Object]:
    """Each as it comes from the wire: JSON decoded, nothing shared between objects, no typed view yet."""
    for number, manifest in enumerate(manifests):
        meta = manifest["metadata"]
        meta |= {"uid": f"{number:032x}", "resourceVersion": str(number + 1), "creationTimestamp": CREATED}
        yield Object(msgspec.json.decode(msgspec.json.encode(manifest)))


def _nodes(count: int) -> Iterator[dict[str, Any]]:
    yield from fleet.nodes(count)


def _pods(nodes: int) -> Iterator[dict[str, Any]]:
    """Running single pods, PER_NODE on each node, and one that is pending."""
    for number, manifest in enumerate(fleet.singles(nodes * PER_NODE)):
        manifest["spec"]["nodeName"] = f"node-{number % nodes:05d}"
        manifest["status"] = _running(number)
        yield manifest
    yield fleet.pod("pending", "pending")


def _running(number: int) -> dict[str, Any]:
    types = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    state = {"name": "main", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": CREATED}}}
    return {
        "phase": "Running",
        "startTime": CREATED,
        "podIP": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": CREATED} for kind in types],
        "containerStatuses": [state],
    }
