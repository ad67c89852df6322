"""The example of pods that look at each other does what it says."""

from pathlib import Path

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.controllers.fleet import Shape, node_manifests
from muster.runtime.documents import read
from muster.sim.cluster import cluster

EXAMPLE = Path(__file__).parents[2] / "examples" / "spread.yaml"
ZONE = "topology.kubernetes.io/zone"


def test_the_example_puts_one_of_each_in_every_zone_and_never_both_on_a_node():
    world = cluster(FeatureGates.of("GenericWorkload"))
    world.call(writes.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}))
    for node in node_manifests(Shape(zones=3, racks=3, nodes=6, gpus=0)):
        world.call(writes.create(node))
    for document in read(EXAMPLE):
        manifest = document.value
        manifest["metadata"]["namespace"] = "default"
        assert world.call(writes.create(manifest)).ok
    world.settle()
    zones = {node["metadata"]["name"]: node["metadata"]["labels"][ZONE] for node in items(world, "nodes")}
    nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in items(world, "pods")}
    for app in ("cache", "store"):
        assert {zones[nodes[f"{app}-{n}"]] for n in range(3)} == set(zones.values())
    assert len(set(nodes.values())) == 6


def items(world, resource):
    return world.call(writes.list_all(resource)).body["items"]
