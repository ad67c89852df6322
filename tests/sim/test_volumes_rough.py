"""Gangs with claims in a rough world: everybody is bound in the end, no volume given twice, nothing left behind."""

from __future__ import annotations

import pytest

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.api.instant import MINUTE
from muster.sim.cluster import cluster
from muster.sim.faults import CALM, ROUGH
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest

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
