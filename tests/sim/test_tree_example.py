"""The example of a hierarchy does what it says."""

from pathlib import Path

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.controllers.fleet import RACK, Shape, node_manifests
from muster.runtime.documents import read
from muster.sim.cluster import cluster

EXAMPLE = Path(__file__).parents[2] / "examples" / "tree.yaml"
ZONE = "topology.kubernetes.io/zone"


def test_the_example_of_a_hierarchy_starts_in_one_zone_each_group_in_one_rack():
    world = cluster(FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup"))
    world.call(writes.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}))
    for node in node_manifests(Shape(zones=2, racks=2, nodes=1, gpus=8)):
        world.call(writes.create(node))
    for document in read(EXAMPLE):
        manifest = document.value
        manifest["metadata"]["namespace"] = "default"
        assert world.call(writes.create(manifest)).ok
    world.settle()
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in items(world, "nodes")}
    pods = items(world, "pods")
    where = {pod["metadata"]["name"]: labels[pod["spec"]["nodeName"]] for pod in pods}
    assert len({labels[ZONE] for labels in where.values()}) == 1
    for group in ("prefill", "decode"):
        assert len({its[RACK] for name, its in where.items() if group in name}) == 1
    (root,) = items(world, "compositepodgroups")
    assert [c["status"] for c in root["status"]["conditions"]] == ["True"]


def items(world, resource):
    return world.call(writes.list_all(resource)).body["items"]
