"""The named shapes: what each builds, what it measures, and what it has to reach on 5,000 nodes.

All but `restart`, `tight` and those of preemption run the scheduler in the virtual world, against the in-process API
server, as it runs anywhere: watch events come in, the cache makes a snapshot for each decision, bindings go out and
come back before the next one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from statistics import median

from muster.api.instant import MINUTE
from muster.bench import cluster, fleet, neighbours, preemption
from muster.bench.api import api
from muster.bench.cluster import Unfinished
from muster.bench.fleet import Manifest
from muster.bench.measure import GIBI, Target, in_child, seconds
from muster.bench.tight import tight
from muster.sim.world import World

Values = Mapping[str, float]
"""One measurement: a value for each of the shape's targets, by name."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Everything but the number of nodes is scaled down with it below 5,000, so that the same things happen."""

    name: str
    targets: tuple[Target, ...]
    measure: Callable[[int], Values]
    """Takes the number of nodes."""


def gang_small(nodes: int) -> Values:
    gangs = [fleet.gang(f"small-{number:04d}", 3, gpus=1) for number in range(fleet.scaled(3_000, nodes))]
    return {"gang-small": _pods_per_second(cluster.empty(nodes), chain.from_iterable(gangs))}


def mixed_gang(nodes: int) -> Values:
    gangs = [fleet.mixed_gang(f"mixed-{number:02d}", 4) for number in range(fleet.scaled(50, nodes))]
    return {"mixed-gang": _pods_per_second(cluster.empty(nodes), chain.from_iterable(gangs))}


def tas_small(nodes: int) -> Values:
    """Gangs of two nodes each, which fill nine tenths of fifty racks."""
    gangs = [fleet.racked_gang(f"racked-{number:04d}", 4, gpus=4) for number in range(fleet.scaled(2_250, nodes))]
    return {"tas-small": _pods_per_second(cluster.racked(nodes), chain.from_iterable(gangs))}


def cpg_tas(nodes: int) -> Values:
    """Hierarchies of two gangs of four: a zone for both, a rack for each."""
    trees = [fleet.hierarchy(f"cpg-{number:04d}", 2, 4, gpus=2) for number in range(fleet.scaled(1_500, nodes))]
    return {"cpg-tas": _pods_per_second(cluster.racked(nodes), chain.from_iterable(trees))}


def basic_pods(nodes: int) -> Values:
    return {"basic-pods": _pods_per_second(cluster.empty(nodes), fleet.singles(fleet.scaled(10_000, nodes)))}


def lived_in(nodes: int) -> Values:
    """Single pods again, but no two nodes are used alike, so that nothing known of one serves for another."""
    pending = fleet.singles(fleet.scaled(10_000, nodes))
    return {"lived-in": _pods_per_second(cluster.empty(nodes), pending, there=fleet.fillers(nodes))}


def spread(nodes: int) -> Values:
    """Single pods of ten services, each spread hard over the racks and softly over the nodes."""
    pending = neighbours.spread_singles(fleet.scaled(5_000, nodes))
    return {"spread": _pods_per_second(cluster.empty(nodes), pending)}


def pod_affinity(nodes: int) -> Values:
    """Single pods of ten services: near their own kind, one a node, and by preference near another service."""
    pending = neighbours.sociable_singles(fleet.scaled(5_000, nodes))
    return {"pod-affinity": _pods_per_second(cluster.empty(nodes), pending)}


def _pods_per_second(world: World, manifests: Iterable[Manifest], there: Sequence[Manifest] = ()) -> float:
    """Pods placed in a second of decision time, when all of these are pending at once and all of them fit.

    `there`: pods that are bound before.
    """
    pending = list(manifests)
    cluster.create(world, there)
    taken = cluster.cycles(world, pending)
    wanted = len([manifest for manifest in pending if manifest["kind"] == "Pod"])
    cluster.expect_bound(world, wanted + len(there))
    return wanted / sum(cycle.seconds for cycle in taken)


LARGE = 1_000
"""Members of a large gang, on 5,000 nodes."""


def large_gangs(nodes: int) -> list[list[Manifest]]:
    """Nine of them, of pods that ask for half a node each."""
    return [fleet.gang(f"large-{number}", fleet.scaled(LARGE, nodes), gpus=4) for number in range(9)]


def gang_large(nodes: int) -> Values:
    """Milliseconds a gang; the median over nine."""
    return {"gang-large": _milliseconds_a_gang(cluster.empty(nodes), large_gangs(nodes))}


def tas_large(nodes: int) -> Values:
    """Milliseconds a gang of pods without accelerators that nearly fills a rack; the median over nine."""
    size = fleet.scaled(LARGE, nodes)
    gangs = [fleet.racked_gang(f"racked-{number}", size, cpu=CPU_OF_TWELVE) for number in range(9)]
    return {"tas-large": _milliseconds_a_gang(cluster.racked(nodes), gangs)}


CPU_OF_TWELVE = "8"
"""Twelve such pods fill a node."""


def _milliseconds_a_gang(world: World, gangs: Sequence[Sequence[Manifest]]) -> float:
    taken = cluster.cycles(world, chain.from_iterable(gangs))
    cluster.expect_bound(world, sum(len(gang) - 1 for gang in gangs))
    return 1e3 * median(cycle.seconds / cycle.entries for cycle in taken for _ in range(cycle.entries))


def unschedulable(nodes: int) -> Values:
    """Milliseconds from queue head to verdict, for gangs that need one node more than is free; the median over five."""
    size = fleet.scaled(LARGE, nodes)
    world = cluster.empty(nodes)
    taken = islice(fleet.usable(nodes), len(list(fleet.usable(nodes))) - (size - 1))
    fillers = [fleet.pod(f"filler-{n:05d}", "filler", gpus=fleet.GPUS, nodeName=f"node-{n:05d}") for n in taken]
    cluster.create(world, fillers)
    gangs = [fleet.gang(f"huge-{number}", size, gpus=fleet.GPUS) for number in range(5)]
    return {"unschedulable": _milliseconds_to_the_verdict(world, gangs, len(fillers))}


def tas_unschedulable(nodes: int) -> Values:
    """The same for gangs that need one pod more than any rack holds."""
    size = 12 * fleet.per_large_rack(nodes) + 1
    gangs = [fleet.racked_gang(f"huge-{number}", size, cpu=CPU_OF_TWELVE) for number in range(5)]
    return {"tas-unschedulable": _milliseconds_to_the_verdict(cluster.racked(nodes), gangs, 0)}


def _milliseconds_to_the_verdict(world: World, gangs: Sequence[Sequence[Manifest]], bound: int) -> float:
    cycles = cluster.cycles(world, chain.from_iterable(gangs))
    cluster.expect_bound(world, bound)
    if sum(cycle.entries for cycle in cycles) < len(gangs):
        raise Unfinished("not every gang got a verdict")
    return 1e3 * median(cycle.seconds / cycle.entries for cycle in cycles)


def restart(nodes: int) -> Values:
    """Seconds until a new scheduler can decide, and GiB of memory that it has held by then."""
    measured = json.loads(in_child("muster.bench.restart", nodes))
    return {"restart": measured["seconds"], "memory": measured["bytes"] / GIBI}


def end_to_end(nodes: int) -> Values:
    """Pods a second from the creation of the first object until all pods are bound, one gang after the other."""
    gangs = large_gangs(nodes)
    world = cluster.empty(nodes)

    def road() -> None:
        for gang in gangs:
            cluster.create(world, gang)
            world.settle()

    took = seconds(road)
    wanted = sum(len(gang) - 1 for gang in gangs)
    cluster.expect_bound(world, wanted)
    return {"end-to-end": wanted / took}


def idle(nodes: int) -> Values:
    """Decisions taken in four minutes in which nothing happens and a gang waits that cannot fit."""
    world = cluster.empty(nodes)
    cluster.create(world, fleet.gang("waiting", nodes + 1, gpus=fleet.GPUS))
    world.quiesce()
    known = len(world.decisions)
    if not known:
        raise Unfinished("the gang got no verdict")
    world.advance(4 * MINUTE)
    return {"idle": float(len(world.decisions) - known)}


def _preempting(name: str, measure: Callable[[int], Values], bound: float, about: str, victims: int) -> Shape:
    return Shape(
        name,
        (
            Target(name, "ms", bound, True, about),
            Target(f"{name}-victims", "pods", victims, True, "evicted by it; the target is the least that will do"),
        ),
        measure,
    )


def _shape(name: str, measure: Callable[[int], Values], unit: str, bound: float, about: str, at_most: bool) -> Shape:
    return Shape(name, (Target(name, unit, bound, at_most, about),), measure)


SHAPES: Mapping[str, Shape] = {
    shape.name: shape
    for shape in (
        _shape("gang-small", gang_small, "pods/s", 15_000, "decision time, 3,000 gangs of 3", False),
        _shape("gang-large", gang_large, "ms/gang", 15, "decision time, 9 gangs of 1,000; median", True),
        _shape("basic-pods", basic_pods, "pods/s", 10_000, "decision time, 10,000 single pods", False),
        _shape("lived-in", lived_in, "pods/s", 10_000, "the same where hardly two nodes are used alike", False),
        _shape("mixed-gang", mixed_gang, "pods/s", 5_000, "decision time, 50 gangs of 20 in 5 roles", False),
        _shape(
            "cpg-tas", cpg_tas, "pods/s", 8_000, "decision time, 1,500 hierarchies of 2 gangs in zone and rack", False
        ),
        _shape("tas-small", tas_small, "pods/s", 12_000, "decision time, 2,250 gangs of 4 in 50 racks", False),
        _shape(
            "tas-large", tas_large, "ms/gang", 20, "decision time, 9 gangs of 1,000, each in one rack; median", True
        ),
        _shape("spread", spread, "pods/s", 2_000, "decision time, 5,000 pods spread over racks and nodes", False),
        _shape("pod-affinity", pod_affinity, "pods/s", 2_000, "decision time, 5,000 pods near and apart", False),
        Shape(
            "tight",
            (
                Target("tight", "ms/gang", 50, True, "gangs of 150 pods in 8 roles that fill 90 to 100 %; median"),
                Target("tight-placed", "%", 99, False, "of them within a first attempt's budget"),
            ),
            tight,
        ),
        _shape("unschedulable", unschedulable, "ms", 20, "verdict on a gang of 1,000 that lacks one node", True),
        _shape("tas-unschedulable", tas_unschedulable, "ms", 30, "verdict on a gang that no rack holds", True),
        _preempting("preempt-gang", preemption.preempt_gang, 10, "10 gangs of 10 against 1,000 singles; median", 10),
        _preempting("preempt-gang-gangs", preemption.preempt_gang_gangs, 10, "the same against 50 gangs of 10", 10),
        _preempting("preempt-rack", preemption.preempt_rack, 100, "a gang that needs a whole rack of 20,000 pods", 400),
        _preempting("preempt-mode", preemption.preempt_mode, 10, "100 gangs of 10 against 1,000 whole groups", 10),
        _preempting("unpreemptable", preemption.unpreemptable, 50, "verdict where evicting all is not enough", 0),
        Shape(
            "preempt-mixed",
            (
                Target("preempt-mixed", "ms/gang", 500, True, "gangs of 12, alike or not, in full clusters; median"),
                Target("preempt-gap", "pods", 0, True, "evicted beyond the exact optimum; median"),
                Target("preempt-best", "%", 90, False, "of them with the best victims there are"),
            ),
            preemption.preempt_mixed,
        ),
        Shape(
            "restart",
            (
                Target("restart", "s", 5, True, "20 bound pods a node listed, to the first decision asked for"),
                Target("memory", "GiB", 1.5, True, "most memory of that process, decoded objects included"),
            ),
            restart,
        ),
        _shape("end-to-end", end_to_end, "pods/s", 2_000, "created to bound, 9 gangs of 1,000, one core", False),
        Shape(
            "api",
            (
                Target(
                    "api-create", "pods/s", 5_000, False, "created in process, each answered when it is on the disk"
                ),
                Target("api-memory", "KiB/pod", 12, True, "memory that a stored pod takes"),
                Target("api-http-create", "pods/s", 2_500, False, "the same over HTTP, the server on one core"),
                Target("api-list", "s", 1, True, "list of 20,000 pods over HTTP"),
                Target("api-watch", "s", 1, True, "latest event of 50 watchers at 500 events/s, after it was due"),
            ),
            api,
        ),
        _shape("idle", idle, "decisions", 0, "in 4 minutes of waiting for what cannot come", True),
    )
}
"""By name, in the order in which `muster bench` runs them."""
