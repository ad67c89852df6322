"""The DaemonSet controller in a world with an API server, kubelets and a binder."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from controller_world import Cluster, node

from muster.api.object import Object
from muster.controllers.apps.daemon.eligible import Eligible

SELECTED = {"app": "agent"}
CONTAINER = {"name": "main", "image": "registry.example/agent:1"}
SETTLED = 30
GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
DEAD = {"key": "dead", "effect": "NoExecute"}


def template(version: int = 1, **spec: Any) -> dict[str, Any]:
    container = {**CONTAINER, "image": f"registry.example/agent:{version}"}
    return {"metadata": {"labels": SELECTED}, "spec": {"containers": [container], **spec}}


def daemon_set(name: str = "agent", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": SELECTED}, "template": template(), **spec},
    }


def machine(name: str, *taints: dict[str, str], **labels: str) -> dict[str, Any]:
    made = node(name)
    made["metadata"]["labels"] = labels
    return {**made, "spec": {"taints": list(taints)}} if taints else made


def settled(*manifests: dict[str, Any], nodes: int = 4, seconds: float = SETTLED, **options: Any) -> Cluster:
    cluster = Cluster(**options)
    cluster.create(*(machine(f"n{each}") for each in range(nodes)), *manifests)
    cluster.advance(seconds)
    return cluster


def placed(cluster: Cluster) -> dict[str, int]:
    """Pods by node, those that are being deleted left out."""
    alive = [each for each in cluster.all("pods") if not each["metadata"].get("deletionTimestamp")]
    return dict(Counter(each["spec"].get("nodeName", "") for each in alive))


def versions(cluster: Cluster) -> list[str]:
    return sorted(each["spec"]["containers"][0]["image"].rpartition(":")[2] for each in cluster.all("pods"))


def update(cluster: Cluster, seconds: float = SETTLED, **spec: Any) -> None:
    cluster.patch("daemonsets", "agent", {"spec": spec})
    cluster.advance(seconds)


def test_every_node_has_one_pod_that_is_meant_for_it() -> None:
    cluster = settled(daemon_set())
    assert placed(cluster) == {"n0": 1, "n1": 1, "n2": 1, "n3": 1}
    status = cluster.status("daemonsets", "agent")
    assert status == {
        "observedGeneration": 1,
        "desiredNumberScheduled": 4,
        "currentNumberScheduled": 4,
        "numberMisscheduled": 0,
        "numberReady": 4,
        "numberAvailable": 4,
        "updatedNumberScheduled": 4,
    }
    (revision,) = cluster.all("controllerrevisions")
    for pod in cluster.all("pods"):
        label = "controller-revision-hash"
        assert pod["metadata"]["labels"][label] == revision["metadata"]["labels"][label]
        keys = {each["key"] for each in pod["spec"]["tolerations"]}
        assert {"node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready"} <= keys


def test_nodes_that_come_get_a_pod_and_those_that_go_take_theirs_along() -> None:
    cluster = settled(daemon_set(), nodes=2)
    cluster.create(machine("n9"))
    cluster.advance(SETTLED)
    assert placed(cluster) == {"n0": 1, "n1": 1, "n9": 1}
    cluster.delete("nodes", "n0")
    cluster.advance(120)
    assert placed(cluster) == {"n1": 1, "n9": 1}
    assert cluster.status("daemonsets", "agent")["desiredNumberScheduled"] == 2


def test_labels_taints_and_cordons_decide_who_is_wanted() -> None:
    cluster = Cluster()
    cluster.create(
        machine("plain"),
        machine("fast", disk="ssd"),
        machine("gpu", GPU, disk="ssd"),
        daemon_set(template=template(nodeSelector={"disk": "ssd"})),
    )
    cluster.advance(SETTLED)
    assert placed(cluster) == {"fast": 1}
    cluster.patch("nodes", "plain", {"metadata": {"labels": {"disk": "ssd"}}, "spec": {"unschedulable": True}})
    cluster.patch("nodes", "fast", {"metadata": {"labels": {"disk": None}}})
    cluster.advance(SETTLED)
    assert placed(cluster) == {"plain": 1}, "a cordon is no reason to stay away"
    update(cluster, template=template(nodeSelector={"disk": "ssd"}, tolerations=[{"key": "gpu", "operator": "Exists"}]))
    assert placed(cluster) == {"plain": 1, "gpu": 1}


def test_a_taint_that_forbids_new_pods_lets_the_old_one_stay() -> None:
    cluster = settled(daemon_set(), nodes=2)
    cluster.patch("nodes", "n0", {"spec": {"taints": [GPU]}})
    cluster.advance(SETTLED)
    assert placed(cluster) == {"n0": 1, "n1": 1}
    status = cluster.status("daemonsets", "agent")
    assert (status["desiredNumberScheduled"], status["numberMisscheduled"]) == (1, 1)
    cluster.patch("nodes", "n0", {"spec": {"taints": [DEAD]}})
    cluster.advance(SETTLED)
    assert placed(cluster) == {"n1": 1}
    cluster.patch("nodes", "n0", {"spec": {"taints": None}})
    cluster.advance(SETTLED)
    assert placed(cluster) == {"n0": 1, "n1": 1}


def test_a_node_in_trouble_keeps_its_pod() -> None:
    cluster = settled(daemon_set(), nodes=2)
    cluster.patch("nodes", "n0", {"metadata": {"annotations": {"muster.dev/lost": "true"}}})
    cluster.advance(3600)
    assert placed(cluster) == {"n0": 1, "n1": 1}


def test_the_affinity_of_the_template_counts_too() -> None:
    def on(*terms: dict[str, Any], **labels: str) -> bool:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
        made = template(affinity={"nodeAffinity": required})
        return Eligible(made).on(Object(machine("n1", **labels))).wanted

    rack = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["a", "b"]}]}
    assert on(rack, rack="a") and not on(rack, rack="c")
    assert on({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]})
    assert not on({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]})


def test_an_update_replaces_so_many_pods_at_a_time() -> None:
    cluster = settled(daemon_set(updateStrategy={"rollingUpdate": {"maxUnavailable": 2}}), nodes=5)
    cluster.patch("daemonsets", "agent", {"spec": {"template": template(2)}})
    fewest, most = 5, 0
    for _ in range(80):
        cluster.advance(0.25)
        fewest = min(fewest, cluster.status("daemonsets", "agent").get("numberAvailable", 0))
        most = max(most, *placed(cluster).values())
    assert (fewest, most) == (3, 1) and versions(cluster) == ["2"] * 5
    assert cluster.status("daemonsets", "agent")["updatedNumberScheduled"] == 5


def test_an_update_with_surge_never_takes_a_node_out_of_service() -> None:
    surge = {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": "40%"}}
    cluster = settled(daemon_set(updateStrategy=surge), nodes=5)
    cluster.patch("daemonsets", "agent", {"spec": {"template": template(2)}})
    doubled = 0
    for _ in range(80):
        cluster.advance(0.25)
        assert cluster.status("daemonsets", "agent")["numberAvailable"] == 5
        pending = [each for each in cluster.all("pods") if (each.get("status") or {}).get("phase") != "Running"]
        doubled = max(doubled, len(pending))
        assert max(placed(cluster).values()) <= 2
    assert doubled == 2 and versions(cluster) == ["2"] * 5


def test_on_delete_leaves_updating_to_the_user() -> None:
    cluster = settled(daemon_set(updateStrategy={"type": "OnDelete"}), nodes=2)
    update(cluster, template=template(2))
    assert versions(cluster) == ["1", "1"]
    cluster.delete("pods", cluster.all("pods")[0]["metadata"]["name"])
    cluster.advance(SETTLED)
    assert versions(cluster) == ["1", "2"]
    assert cluster.status("daemonsets", "agent")["updatedNumberScheduled"] == 1


def test_an_update_waits_until_new_pods_have_been_ready_long_enough() -> None:
    cluster = settled(daemon_set(minReadySeconds=20), nodes=2, seconds=60)
    cluster.patch("daemonsets", "agent", {"spec": {"template": template(2)}})
    cluster.advance(15)
    assert versions(cluster) == ["1", "2"]
    cluster.advance(60)
    assert versions(cluster) == ["2", "2"]
    assert cluster.status("daemonsets", "agent")["numberAvailable"] == 2


def test_what_fails_again_and_again_is_replaced_more_and_more_slowly() -> None:
    made = template()
    made["metadata"]["annotations"] = {"muster.dev/run-for": "1s", "muster.dev/exit": "1"}
    cluster = settled(daemon_set(template=made), nodes=1, seconds=0.1)
    seen: dict[str, None] = {}
    counts = []
    for _ in range(6):
        for _ in range(300):
            cluster.advance(0.2)
            seen.update(dict.fromkeys(each["metadata"]["uid"] for each in cluster.all("pods")))
        counts.append(len(seen))
    assert counts[0] > 4 and counts[-1] < 12
    assert "FailedDaemonPod" in cluster.reasons("DaemonSet")


def test_a_pod_that_is_deleted_comes_back() -> None:
    cluster = settled(daemon_set(), nodes=2)
    before = {each["metadata"]["uid"] for each in cluster.all("pods")}
    for pod in cluster.all("pods"):
        cluster.delete("pods", pod["metadata"]["name"])
    cluster.advance(SETTLED)
    assert placed(cluster) == {"n0": 1, "n1": 1}
    assert not before & {each["metadata"]["uid"] for each in cluster.all("pods")}


def test_revisions_are_kept_up_to_the_limit() -> None:
    cluster = settled(daemon_set(revisionHistoryLimit=1), nodes=1)
    for version in (2, 3, 4):
        update(cluster, template=template(version))
    assert sorted(each["revision"] for each in cluster.all("controllerrevisions")) == [3, 4]
    update(cluster, template=template(3))
    assert sorted(each["revision"] for each in cluster.all("controllerrevisions")) == [4, 5]


def test_pods_of_a_deleted_set_are_taken_over_by_its_successor() -> None:
    cluster = settled(daemon_set(), nodes=2)
    before = {each["metadata"]["uid"] for each in cluster.all("pods")}
    cluster.delete("daemonsets", "agent", propagation="Orphan")
    cluster.advance(SETTLED)
    assert len(cluster.all("pods")) == 2
    cluster.create(daemon_set())
    cluster.advance(SETTLED)
    assert {each["metadata"]["uid"] for each in cluster.all("pods")} == before
    assert len(cluster.all("controllerrevisions")) == 1
    cluster.delete("daemonsets", "agent")
    cluster.advance(SETTLED)
    assert cluster.all("pods") == [] and cluster.all("controllerrevisions") == []


def test_a_pod_with_other_labels_is_let_go_and_replaced() -> None:
    cluster = settled(daemon_set(), nodes=1)
    (pod,) = cluster.all("pods")
    cluster.patch("pods", pod["metadata"]["name"], {"metadata": {"labels": {"app": "mine"}}})
    cluster.advance(SETTLED)
    assert placed(cluster) == {"n0": 2}
    assert cluster.status("daemonsets", "agent")["currentNumberScheduled"] == 1


@pytest.mark.parametrize("rolling", [{"maxUnavailable": 1}, {"maxUnavailable": 0, "maxSurge": 1}])
def test_an_update_that_cannot_become_ready_stops_and_can_be_taken_back(rolling: dict[str, Any]) -> None:
    cluster = settled(daemon_set(updateStrategy={"rollingUpdate": rolling}))
    update(cluster, template=template(2, nodeSelector={}, schedulingGates=[{"name": "example.com/never"}]))
    cluster.advance(600)
    assert versions(cluster).count("2") == 1
    update(cluster, template=template(1, schedulingGates=None))
    cluster.advance(60)
    assert versions(cluster) == ["1"] * 4 and cluster.status("daemonsets", "agent")["numberAvailable"] == 4


def test_a_set_that_is_at_rest_writes_nothing() -> None:
    cluster = settled(daemon_set())
    revision = cluster.server.revision
    cluster.advance(300)
    assert cluster.server.revision == revision
