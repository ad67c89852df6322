"""The example of pods with disks does what it says."""

from pathlib import Path

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.controllers.fleet import Shape, node_manifests
from muster.runtime.documents import read
from muster.sim.cluster import cluster

EXAMPLE = Path(__file__).parents[2] / "examples" / "volumes.yaml"
ZONE = "topology.kubernetes.io/zone"


def test_the_example_makes_every_disk_in_the_zone_where_its_pod_goes():
    world = cluster(FeatureGates.of("GenericWorkload"))
    for node in node_manifests(Shape(zones=2, racks=2, nodes=4, gpus=0)):
        world.call(writes.create(node))
    for document in read(EXAMPLE):
        answer = world.call(writes.create(document.value))
        assert answer.ok, answer.body
    world.advance(60_000_000)
    zones = {node["metadata"]["name"]: node["metadata"]["labels"][ZONE] for node in items(world, "nodes")}
    claims = {claim["metadata"]["name"]: claim for claim in items(world, "persistentvolumeclaims")}
    volumes = {volume["metadata"]["name"]: volume for volume in items(world, "persistentvolumes")}
    assert set(claims) == {"disk-0", "disk-1", "database-0-scratch", "database-1-scratch"}
    pods = items(world, "pods")
    for pod in pods:
        zone = zones[pod["spec"]["nodeName"]]
        name = pod["metadata"]["name"]
        for claim in (f"disk-{name[-1]}", f"{name}-scratch"):
            assert claims[claim]["status"]["phase"] == "Bound"
            assert zone_of(volumes[claims[claim]["spec"]["volumeName"]]) == zone
    assert len({zones[pod["spec"]["nodeName"]] for pod in pods}) == 2


def zone_of(volume):
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    ((key, values),) = [(each["key"], each["values"]) for each in term["matchExpressions"]]
    assert key == ZONE
    return values[0]


def items(world, resource):
    return world.call(writes.list_all(resource)).body["items"]
