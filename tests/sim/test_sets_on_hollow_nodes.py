"""StatefulSets and DaemonSets from manifest to running pods: controllers, scheduler, volumes, hollow nodes."""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random
from typing import Any

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND
from muster.apiserver.server import ApiServer
from muster.controllers.apps.daemon.keeping import Keeping
from muster.controllers.machine import makers
from muster.plugins import default_profile
from muster.scheduler.machine import Scheduler
from muster.sim.cluster import uids
from muster.sim.world import SCHEDULER, START, World
from muster.testing.builders import node_manifest

LABELS = {"app": "x"}
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "local",
    },
}
CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "local"},
    "provisioner": "disk.example.com",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def whole_cluster(nodes: int) -> World:
    gates = FeatureGates()
    server = ApiServer(gates, new_uid=uids(Random(0)), started=START)
    machines: dict[str, Any] = {**makers(gates)}
    machines[SCHEDULER] = partial(Scheduler, default_profile(), gates=gates, preemption=True)
    world = World(server, machines)
    for number in range(nodes):
        create(world, node_manifest(f"n{number}", cpu="4", memory="8Gi"))
    return world


def create(world: World, manifest: dict[str, Any]) -> None:
    response = world.call(writes.create(manifest))
    assert response.ok, response.body


def keeper(kind: str, cpu: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "x", "namespace": "default"},
        "spec": {"selector": {"matchLabels": LABELS}, "template": template, **spec},
    }


def everything(world: World, resource: str) -> list[dict[str, Any]]:
    return list(world.call(writes.list_all(resource)).body["items"])


def bound(world: World) -> dict[str, str]:
    claims = everything(world, "persistentvolumeclaims")
    return {each["metadata"]["name"]: each["spec"]["volumeName"] for each in claims}


def test_a_daemon_runs_on_every_node_also_on_cordoned_and_lost_ones() -> None:
    world = whole_cluster(6)
    world.call(writes.patch("nodes", "", "n1", {"spec": {"unschedulable": True}}))
    world.call(writes.patch("nodes", "", "n2", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}))
    create(world, keeper("DaemonSet", "100m"))
    world.advance(30 * SECOND)
    pods = everything(world, "pods")
    assert Counter(pod["spec"]["nodeName"] for pod in pods) == Counter(["n0", "n1", "n3", "n4", "n5"])
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    world.call(writes.patch("nodes", "", "n3", {"metadata": {"annotations": {"muster.dev/lost": "true"}}}))
    create(world, node_manifest("n9", cpu="4", memory="8Gi"))
    world.advance(900 * SECOND)
    nodes = sorted(pod["spec"]["nodeName"] for pod in everything(world, "pods"))
    assert nodes == ["n0", "n1", "n3", "n4", "n5", "n9"]


def test_a_daemon_that_finds_no_room_waits_for_its_own_node() -> None:
    world = whole_cluster(2)
    for name in ("a", "b"):
        other = keeper("DaemonSet", "3")
        other["metadata"]["name"] = name
        other["spec"]["selector"] = {"matchLabels": {"app": name}}
        other["spec"]["template"] = {**other["spec"]["template"], "metadata": {"labels": {"app": name}}}
        create(world, other)
        world.advance(20 * SECOND)
    status = world.call(writes.get("daemonsets", "default", "b")).body["status"]
    assert (status["desiredNumberScheduled"], status["currentNumberScheduled"], status["numberReady"]) == (2, 2, 0)
    assert world.call(writes.delete("daemonsets", "default", "a")).ok
    world.advance(60 * SECOND)
    assert world.call(writes.get("daemonsets", "default", "b")).body["status"]["numberAvailable"] == 2


def test_a_stateful_set_comes_back_to_its_volumes_and_their_nodes() -> None:
    world = whole_cluster(4)
    create(world, CLASS)
    create(world, keeper("StatefulSet", "1", replicas=3, serviceName="x", volumeClaimTemplates=[CLAIM]))
    world.advance(60 * SECOND)
    before = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in everything(world, "pods")}
    assert sorted(before) == ["x-0", "x-1", "x-2"]
    volumes = {
        each["metadata"]["name"]: each["spec"]["volumeName"] for each in everything(world, "persistentvolumeclaims")
    }
    assert sorted(volumes) == ["data-x-0", "data-x-1", "data-x-2"]
    restarted = {"spec": {"template": {"metadata": {"annotations": {"restarted": "yes"}}}}}
    assert world.call(writes.patch("statefulsets", "default", "x", restarted)).ok
    world.advance(120 * SECOND)
    status = world.call(writes.get("statefulsets", "default", "x")).body["status"]
    assert (status["updatedReplicas"], status["readyReplicas"]) == (3, 3)
    assert status["currentRevision"] == status["updateRevision"]
    after = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in everything(world, "pods")}
    assert after == before, "a volume that only one node reaches keeps its pod there"
    assert bound(world) == volumes


def test_what_happens_on_one_node_costs_the_daemon_sets_that_node_only(monkeypatch: Any) -> None:
    looks: list[str] = []
    settle = Keeping._settle

    def counting(self: Keeping, slot: Any) -> Any:
        looks.append(slot.node)
        return settle(self, slot)

    monkeypatch.setattr(Keeping, "_settle", counting)
    world = whole_cluster(60)
    create(world, keeper("DaemonSet", "100m"))
    world.advance(30 * SECOND)
    looks.clear()
    victim = everything(world, "pods")[0]
    world.call(writes.patch("nodes", "", "n7", {"metadata": {"labels": {"some": "label"}}}))
    world.call(writes.delete("pods", "default", victim["metadata"]["name"]))
    world.advance(30 * SECOND)
    assert set(looks) == {"n7", victim["spec"]["nodeName"]} and len(looks) < 20
