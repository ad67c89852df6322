"""The example of a constrained gang does what it says."""

from pathlib import Path

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.controllers.fleet import RACK, Shape, node_manifests
from muster.runtime.documents import read
from muster.sim.cluster import cluster

EXAMPLE = Path(__file__).parents[2] / "examples" / "racked.yaml"


def test_the_example_of_a_constrained_gang_starts_in_one_rack():
    world = cluster(FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling"))
    world.call(writes.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}))
    for node in node_manifests(Shape(zones=2, racks=2, nodes=5, gpus=8)):
        world.call(writes.create(node))
    for document in read(EXAMPLE):
        manifest = document.value
        manifest["metadata"]["namespace"] = "default"
        assert world.call(writes.create(manifest)).ok
    world.settle()
    racks = {node["metadata"]["name"]: node["metadata"]["labels"][RACK] for node in items(world, "nodes")}
    nodes = [pod["spec"].get("nodeName") for pod in items(world, "pods")]
    assert len(nodes) == 4 and None not in nodes
    assert len({racks[name] for name in nodes}) == 1


def items(world, resource):
    return world.call(writes.list_all(resource)).body["items"]
