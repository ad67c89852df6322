"""What people are told of a group that lost members, and of pods that make room for it."""

from __future__ import annotations

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.plugins import default_profile
from muster.sim.cluster import cluster
from muster.sim.world import World
from muster.testing.builders import gang_manifests, node_manifest, pod_manifest
from muster.views.why import why


def running(nodes: int) -> World:
    world = cluster(FeatureGates.of("GenericWorkload"), priority_admission=False)
    world.call(writes.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}))
    for number in range(nodes):
        assert world.call(writes.create(node_manifest(f"n{number}", gpus=1))).ok
    return world


def create(world: World, *manifests: dict) -> None:
    for manifest in manifests:
        assert world.call(writes.create(manifest)).ok
    world.quiesce()


def told(world: World, name: str, kind: str) -> str:
    found = why(world.machine(), default_profile(), "default", name, kind)
    assert found is not None
    return found["sentence"]


def test_a_group_that_lost_a_member_says_how_many_run_and_what_the_other_waits_for():
    world = running(4)
    create(world, *gang_manifests("train", 4, gpus=1))
    lost = world.call(writes.get("pods", "default", "train-3")).body["spec"]["nodeName"]
    assert world.call(writes.delete("pods", "default", "train-3")).ok
    create(world, pod_manifest("taker", gpus=1, nodeName=lost), pod_manifest("train-4", group="train", gpus=1))
    assert told(world, "train", "PodGroup").startswith(
        "PodGroup default/train: running 3 of 4, one member waits: it needs 4 members at once, 0 can be placed, "
        "1 short (0/4 nodes are available: 4 Insufficient nvidia.com/gpu)"
    )


def test_what_is_evicted_for_a_pod_and_why_is_told_as_long_as_it_waits():
    world = running(2)
    create(
        world,
        pod_manifest("low", gpus=1, nodeName="n0", priority=1),
        pod_manifest("mid", gpus=1, nodeName="n1", priority=2),
    )
    world.hold_terminations(True)
    create(world, pod_manifest("high", gpus=1, priority=5))
    assert "1 pod of 2 of lower priority is evicted: default/low on n0" in told(world, "high", "Pod")
    assert "no better choice exists" in told(world, "high", "Pod")
    world.hold_terminations(False)
    world.quiesce()
    assert why(world.machine(), default_profile(), "default", "high", "Pod") is None
