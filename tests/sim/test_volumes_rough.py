"""Gangs with claims in a rough world: everybody is bound in the end, no volume given twice, nothing left behind."""

from __future__ import annotations

import pytest

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.api.instant import MINUTE, SECOND
from muster.scheduler.parties import Parties
from muster.sim.cluster import cluster
from muster.sim.faults import CALM, ROUGH
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest
from muster.testing.partial import partly_bound

GATES = FeatureGates.of("GenericWorkload")
LATE = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "volumeBindingMode": "WaitForFirstConsumer"}


def volume(name, node):
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/mnt"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


def claim(name, class_name):
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": class_name}
    spec["resources"] = {"requests": {"storage": "1Gi"}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}} | {
        "spec": spec
    }


@pytest.mark.parametrize("number", range(6))
def test_gangs_with_claims_are_bound_in_the_end_whatever_happens(number):
    world = cluster(GATES, seed=number, priority_admission=False, rates=ROUGH)

    def create(manifest):
        response = world.call(writes.create(manifest))
        assert response.ok, response.body

    for i in range(4):
        create(node_manifest(f"n{i}", cpu="2"))
        create(volume(f"v{i}", f"n{i}"))
    create({**LATE, "metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner"})
    create({**LATE, "metadata": {"name": "made"}, "provisioner": "csi.example.com"})
    for class_name in ("local", "made"):
        create(gang_manifest(class_name, 4))
        for i in range(4):
            create(claim(f"{class_name}-{i}", class_name))
            used = [{"name": "v", "persistentVolumeClaim": {"claimName": f"{class_name}-{i}"}}]
            create(pod_manifest(f"{class_name}-{i}", cpu="1", group=class_name, volumes=used))
        world.advance(MINUTE // 2)
    assert world.faults.counts
    world.faults.rates = CALM
    world.restart()
    world.advance(30 * MINUTE)
    pods = world.call(writes.list_all("pods")).body["items"]
    assert [pod["metadata"]["name"] for pod in pods if not pod["spec"].get("nodeName")] == []
    claims = world.call(writes.list_all("persistentvolumeclaims")).body["items"]
    volumes = [one["spec"].get("volumeName") for one in claims]
    assert all(volumes) and len(set(volumes)) == 8
    scheduler = world.machine()
    assert not scheduler.cache.stock.chosen and not scheduler.commit.claiming and not scheduler.cache.assumed


def mixed(number, rates):
    """A gang of which two members have claims and two have none, told at every step whether it is partly bound."""
    world = cluster(GATES, seed=number, priority_admission=False, rates=rates)
    wrong = []
    world.overhear = lambda name, event, effects: wrong.extend(partly_bound(world.server, world.now))
    manifests = [node_manifest(f"n{i}", cpu="2") for i in range(3)]
    manifests.append({**LATE, "metadata": {"name": "made"}, "provisioner": "csi.example.com"})
    manifests += [gang_manifest("g", 4), claim("c0", "made"), claim("c1", "made")]
    for i in range(5):
        used = [{"name": "v", "persistentVolumeClaim": {"claimName": f"c{i}"}}] if i < 2 else []
        manifests.append(pod_manifest(f"g-{i}", cpu="1", group="g", volumes=used))
    for manifest in manifests:
        assert world.call(writes.create(manifest)).ok
    return world, wrong


def test_a_partly_bound_gang_would_be_seen(monkeypatch):
    monkeypatch.setattr(Parties, "lets", lambda self, binding: True)
    world, wrong = mixed(0, CALM)
    world.advance(MINUTE)
    assert "g-2, g-3, g-4 of g are bound, 3 of 4 can be" in wrong


@pytest.mark.parametrize("number", range(8))
def test_no_gang_is_partly_bound_while_claims_of_its_minimum_are_open(number):
    world, wrong = mixed(number, ROUGH)
    for _ in range(number % 4):
        world.advance(SECOND // 5)
        world.restart()
    world.advance(MINUTE)
    world.faults.rates = CALM
    world.restart()
    world.advance(30 * MINUTE)
    pods = world.call(writes.list_all("pods")).body["items"]
    assert [pod["metadata"]["name"] for pod in pods if not pod["spec"].get("nodeName")] == []
    assert wrong == []
