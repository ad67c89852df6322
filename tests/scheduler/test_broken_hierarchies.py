"""Hierarchies that run and have lost members: they go before equals, with what they lack (M12)."""

from __future__ import annotations

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND
from muster.sim.cluster import cluster
from muster.sim.world import World
from muster.testing import invariants
from muster.testing.builders import composite_manifest, gang_manifest, node_manifest, pod_manifest, workload_ref

GATES = FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")


def composite(name: str, minimum: int | None, parent: str | None = None) -> dict:
    return composite_manifest(name, minimum, priority=0, **({"parentCompositePodGroupName": parent} if parent else {}))


def leaf(name: str, minimum: int | None, parent: str) -> dict:
    return gang_manifest(name, minimum, priority=0, parentCompositePodGroupName=parent, workloadRef=workload_ref("w"))


def members(group: str, *numbers: int) -> list[dict]:
    return [pod_manifest(f"{group}-{n}", group=group, cpu="1", priority=0) for n in numbers]


def running(*manifests: dict, cpu: str) -> World:
    """All of it runs, and an older pod and an older hierarchy wait for room."""
    world = cluster(GATES, seed=1, priority_admission=False)
    create(world, node_manifest("n1", cpu=cpu), *manifests)
    create(world, pod_manifest("older", cpu="1", priority=0))
    create(world, composite("rival", 1), leaf("r", 1, "rival"), *members("r", 0))
    world.advance(30 * SECOND)
    world.pause()
    return world


def create(world: World, *manifests: dict) -> None:
    for manifest in manifests:
        answer = world.request(writes.create(manifest))
        assert answer.ok, answer.body
    world.settle()


def lose(world: World, *pods: str) -> None:
    for name in pods:
        assert world.request(writes.delete("pods", "default", name)).ok
    world.settle()
    world.advance(1 * SECOND)


def bound(world: World) -> set[str]:
    state = invariants.read(world.server, world.now)
    return {pod["metadata"]["name"] for pod in state.pods if pod["spec"].get("nodeName")}


def test_a_broken_hierarchy_takes_the_room_of_its_lost_member_before_older_equals() -> None:
    world = running(
        composite("root", 2),
        leaf("a", 2, "root"),
        leaf("b", 2, "root"),
        *members("a", 0, 1),
        *members("b", 0, 1),
        cpu="4",
    )
    lose(world, "b-1")
    create(world, *members("b", 2))
    world.resume()
    world.advance(30 * SECOND)
    assert bound(world) == {"a-0", "a-1", "b-0", "b-2"}


def test_a_group_two_levels_down_that_is_broken_makes_its_hierarchy_go_first() -> None:
    world = running(
        composite("root", 1),
        composite("sub", 1, "root"),
        leaf("a", 2, "sub"),
        leaf("b", 1, "root"),
        *members("a", 0, 1),
        *members("b", 0),
        cpu="3",
    )
    lose(world, "a-0")
    create(world, *members("a", 2))
    world.resume()
    world.advance(30 * SECOND)
    assert bound(world) == {"a-1", "a-2", "b-0"}


def test_only_what_a_broken_hierarchy_lacks_goes_before_equals() -> None:
    world = running(
        composite("root", 2), leaf("a", 2, "root"), leaf("b", 1, "root"), *members("a", 0, 1), *members("b", 0), cpu="3"
    )
    lose(world, "a-1", "b-0")
    create(world, *members("a", 2, 3, 4), *members("b", 1, 2))
    create(world, node_manifest("n2", cpu="1"))
    world.resume()
    world.advance(30 * SECOND)
    assert len(bound(world)) == 4
    assert bound(world) >= {"a-0", "a-2", "b-1", "older"}


def test_a_new_child_of_a_running_hierarchy_does_not_go_before_older_equals() -> None:
    world = running(composite("root", 1), leaf("a", 1, "root"), *members("a", 0), cpu="1")
    create(world, leaf("b", 1, "root"), *members("b", 0))
    create(world, node_manifest("n2", cpu="1"))
    world.resume()
    world.advance(30 * SECOND)
    assert bound(world) == {"a-0", "older"}
