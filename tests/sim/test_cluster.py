"""The whole road in the virtual world: pods created, decided, bound."""

from __future__ import annotations

from typing import Any

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.api.instant import MINUTE, SECOND
from muster.sim.cluster import cluster
from muster.sim.faults import Rates
from muster.sim.world import World
from muster.testing.builders import gang_manifests, node_manifest, pod_manifest

GATES = FeatureGates.of("GenericWorkload")


def create(world: World, *manifests: dict[str, Any]) -> None:
    for manifest in manifests:
        world.tick(SECOND)
        response = world.call(writes.create(manifest))
        assert response.ok, response


def bound(world: World) -> dict[str, str]:
    """Pod -> node."""
    pods = world.call(writes.list_all("pods")).body["items"]
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}


def test_a_gang_is_bound_at_the_present_time_and_every_decision_is_recorded() -> None:
    ticks = iter(range(1_000))
    world = cluster(GATES, priority_admission=False, stopwatch=lambda: next(ticks) / 1000)
    create(world, node_manifest("n1", cpu="3"), *gang_manifests("g", 3))
    before = world.now
    world.settle()
    assert set(bound(world)) == {"g-0", "g-1", "g-2"}
    assert world.now == before
    (decision,) = world.decisions
    assert decision.pods == 3 and round(decision.seconds, 6) == 0.001


def test_a_paused_scheduler_decides_nothing_and_stays_paused_over_a_restart() -> None:
    world = cluster(GATES, priority_admission=False)
    create(world, node_manifest("n1"))
    world.pause()
    create(world, pod_manifest("p"))
    world.advance(MINUTE)
    world.restart()
    world.advance(MINUTE)
    assert bound(world) == {} and world.decisions == []
    world.resume()
    world.settle()
    assert bound(world) == {"p": "n1"}


def test_a_refused_binding_is_seen_by_the_scheduler_and_tried_again() -> None:
    world = cluster(GATES, priority_admission=False)
    world.server.refuse_binding.add("default/p")
    create(world, node_manifest("n1"), pod_manifest("p"))
    world.quiesce()
    assert bound(world) == {}
    world.server.refuse_binding.clear()
    world.advance(MINUTE)
    assert bound(world) == {"p": "n1"}


def test_held_terminations_keep_pods_until_they_are_let_go() -> None:
    world = cluster(GATES, priority_admission=False)
    create(world, node_manifest("n1"), pod_manifest("p"))
    world.settle()
    world.hold_terminations(True)
    world.call(writes.delete("pods", "default", "p"))
    world.advance(10 * MINUTE)
    assert bound(world) == {"p": "n1"}
    world.hold_terminations(False)
    world.settle()
    assert bound(world) == {}


def test_a_scheduler_killed_between_bindings_leaves_a_gang_that_the_next_one_completes() -> None:
    """Whatever step the kill hits, all members are bound in the end, each on a node of its own."""
    for seed in range(20):
        world = cluster(GATES, seed=seed, priority_admission=False, rates=Rates(killed=0.2))
        create(world, *(node_manifest(f"n{number}", cpu="1") for number in range(4)), *gang_manifests("g", 4))
        world.advance(2 * MINUTE)
        world.faults.rates = Rates()
        world.advance(2 * MINUTE)
        assert sorted(bound(world).values()) == ["n0", "n1", "n2", "n3"]


def test_a_waiting_gang_costs_no_decision_between_safety_retries() -> None:
    world = cluster(GATES, priority_admission=False)
    create(world, node_manifest("n1", cpu="1"), *gang_manifests("g", 2))
    world.quiesce()
    before = len(world.decisions)
    world.advance(4 * MINUTE)
    assert len(world.decisions) == before
    world.advance(2 * MINUTE)
    assert len(world.decisions) == before + 1


def test_two_worlds_of_one_seed_end_alike_to_the_uid() -> None:
    def end() -> Any:
        world = cluster(GATES, seed=5, priority_admission=False, rates=Rates(late=0.5, lost_watch=0.1))
        create(world, node_manifest("n1"), *gang_manifests("g", 3))
        world.advance(MINUTE)
        return world.call(writes.list_all("pods")).body

    assert end() == end()
