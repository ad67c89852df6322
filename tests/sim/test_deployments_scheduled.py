"""A Deployment on a whole cluster in virtual time: its pods are placed and run, and nodes are lost."""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random
from typing import Any

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND
from muster.apiserver.server import ApiServer
from muster.controllers.machine import makers
from muster.plugins import default_profile
from muster.scheduler.machine import Scheduler
from muster.sim.cluster import uids
from muster.sim.world import SCHEDULER, START, World

CPUS = 4


def world(*nodes: str) -> World:
    gates = FeatureGates()
    server = ApiServer(gates, new_uid=uids(Random(1)), started=START)
    made = World(server, {**makers(gates), SCHEDULER: partial(Scheduler, default_profile(), gates=gates)}, now=START)
    for name in nodes:
        status = {
            "allocatable": {"cpu": str(CPUS), "memory": "8Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}
        assert made.call(writes.create(node)).ok
    return made


def deployment(replicas: int, **strategy: Any) -> dict[str, Any]:
    labels = {"app": "web"}
    container = {"name": "c", "image": "v1", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "containers": [container],
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{each}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 5,
                }
                for each in ("unreachable", "not-ready")
            ],
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": strategy},
        },
    }


def change(made: World, resource: str, name: str, body: Any, subresource: str | None = None) -> None:
    assert made.call(writes.patch(resource, "default", name, body, subresource=subresource)).ok


def status(made: World) -> dict[str, Any]:
    return dict(made.call(writes.get("deployments", "default", "web")).body["status"])


def running(made: World) -> Counter[str]:
    """Nodes of the pods that run and stay."""
    pods = made.call(writes.list_all("pods")).body["items"]
    return Counter(
        each["spec"]["nodeName"]
        for each in pods
        if each["status"]["phase"] == "Running" and "deletionTimestamp" not in each["metadata"]
    )


def test_its_pods_are_placed_run_and_rolled_out_in_the_room_there_is():
    made = world("a", "b", "c")
    assert made.call(writes.create(deployment(12, maxSurge=0, maxUnavailable=3))).ok
    made.advance(20 * SECOND)
    assert running(made) == {"a": CPUS, "b": CPUS, "c": CPUS}
    image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "v2"}]}}}}
    change(made, "deployments", "web", image)
    made.advance(60 * SECOND)
    assert (status(made)["updatedReplicas"], status(made)["availableReplicas"]) == (12, 12)


def test_pods_without_room_wait_and_come_when_there_is_a_node_for_them():
    made = world("a")
    assert made.call(writes.create(deployment(6, maxSurge=1, maxUnavailable=0))).ok
    made.advance(20 * SECOND)
    assert (status(made)["replicas"], status(made)["availableReplicas"], status(made)["unavailableReplicas"]) == (
        6,
        4,
        2,
    )
    change(made, "deployments", "web", {"spec": {"replicas": 3}}, "scale")
    made.advance(20 * SECOND)
    assert running(made) == {"a": 3}


def test_pods_of_a_lost_node_are_replaced_elsewhere():
    made = world("a", "b", "c")
    assert made.call(writes.create(deployment(6, maxSurge=1, maxUnavailable=1))).ok
    made.advance(20 * SECOND)
    assert set(running(made)) == {"a", "b", "c"}
    change(made, "nodes", "a", {"metadata": {"annotations": {"muster.dev/lost": "true"}}})
    made.advance(120 * SECOND)
    assert status(made)["availableReplicas"] == 6
    assert running(made)["a"] == 0
    assert running(made).total() == 6
    change(made, "nodes", "a", {"metadata": {"annotations": {"muster.dev/lost": None}}})
    made.advance(60 * SECOND)
    assert len(made.call(writes.list_all("pods")).body["items"]) == 6
