"""A cluster to measure: the scheduler alone around an in-process API server, in virtual time, hollow kubelets off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from random import Random
from time import perf_counter
from unittest.mock import patch

from muster.api import writes
from muster.api.calls import Response
from muster.api.gates import FeatureGates
from muster.apiserver.server import ApiServer
from muster.bench import fleet
from muster.bench.fleet import Manifest
from muster.model.snapshot import Snapshot
from muster.plugins import default_profile
from muster.scheduler.cache import Cache
from muster.scheduler.machine import Scheduler
from muster.sim.cluster import uids
from muster.sim.world import SCHEDULER, World

GATES = FeatureGates.of("GenericWorkload")
TOPOLOGY = FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")


class Unfinished(Exception):
    """The scheduler did not do what the shape is about; its figures would mean nothing."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """One decision: for how many entries and pods, and how many seconds it took with its snapshot."""

    entries: int
    pods: int
    seconds: float


def empty(nodes: int) -> World:
    """A cluster of so many nodes that the scheduler has seen, and no pods."""
    return _of(fleet.nodes(nodes), GATES)


def racked(nodes: int) -> World:
    """The same in fifty racks, with topology constraints and hierarchies switched on."""
    return _of(fleet.nodes(nodes, fleet.per_large_rack(nodes)), TOPOLOGY)


def _of(nodes: Iterable[Manifest], gates: FeatureGates) -> World:
    server = ApiServer(gates, new_uid=uids(Random(0)))
    world = World(server, {SCHEDULER: partial(Scheduler, default_profile(), gates=gates)}, stopwatch=perf_counter)
    create(world, nodes)
    world.settle()
    return world


def create(world: World, manifests: Iterable[Manifest]) -> None:
    """
    Raises:
        Unfinished: the server refused one of them.
    """
    for manifest in manifests:
        answer = world.request(writes.create(manifest))
        if not (isinstance(answer, Response) and answer.ok):
            raise Unfinished(f"the server refused {manifest['kind']} {manifest['metadata']['name']}: {answer}")


def cycles(world: World, pending: Iterable[Manifest]) -> list[Cycle]:
    """Shows the pending objects to the scheduler while it is paused, lets it go, and times every decision it takes."""
    world.pause()
    create(world, pending)
    world.settle()
    known = len(world.decisions)
    with _timed_snapshots() as snapshots:
        world.resume()
        world.settle()
    taken = world.decisions[known:]
    each = sum(snapshots) / max(len(taken), 1)
    return [Cycle(len(decision.entries), decision.pods, decision.seconds + each) for decision in taken]


def bound(world: World) -> int:
    """How many pods have a node."""
    answer = world.request(writes.list_all("pods"))
    assert isinstance(answer, Response)
    return sum("nodeName" in pod["spec"] for pod in answer.body["items"])


def expect_bound(world: World, wanted: int) -> None:
    """
    Raises:
        Unfinished: another number of pods has a node.
    """
    found = bound(world)
    if found != wanted:
        raise Unfinished(f"{found:,} pods are bound, {wanted:,} should be")


@contextmanager
def _timed_snapshots() -> Iterator[Sequence[float]]:
    """Meanwhile, notes how many seconds each snapshot of a cache takes: it is made inside the machine."""
    original, taken = Cache.snapshot, list[float]()

    def timed(cache: Cache) -> Snapshot:
        began = perf_counter()
        try:
            return original(cache)
        finally:
            taken.append(perf_counter() - began)

    with patch.object(Cache, "snapshot", timed):
        yield taken
