"""Nodes that are cordoned, unready, lost, gone, and what becomes of their pods."""

from __future__ import annotations

from typing import Any

import pytest
from controller_world import Cluster, node, pod

from muster.api.instant import SECOND
from muster.api.object import Object
from muster.controllers.drain import cordon, evictions
from muster.controllers.taints import evicted_at

NO_EXECUTE = "NoExecute"


def taints(cluster: Cluster, name: str = "n1") -> set[tuple[str, str]]:
    found = cluster.get("nodes", name).get("spec", {}).get("taints", ())
    return {(each["key"].removeprefix("node.kubernetes.io/"), each["effect"]) for each in found}


def ready(cluster: Cluster, status: str, name: str = "n1") -> None:
    cluster.patch("nodes", name, {"status": {"conditions": [{"type": "Ready", "status": status}]}}, "status")


def lose(cluster: Cluster, name: str = "n1", lost: str | None = "true") -> None:
    cluster.patch("nodes", name, {"metadata": {"annotations": {"muster.dev/lost": lost}}})


def tolerating(seconds: int | None = None, key: str = "node.kubernetes.io/unreachable") -> dict[str, Any]:
    toleration = {"key": key, "operator": "Exists", "effect": NO_EXECUTE}
    return {"tolerations": [toleration if seconds is None else {**toleration, "tolerationSeconds": seconds}]}


def names(cluster: Cluster) -> set[str]:
    return {each["metadata"]["name"] for each in cluster.all("pods")}


def leaving(cluster: Cluster) -> set[str]:
    return {each["metadata"]["name"] for each in cluster.all("pods") if "deletionTimestamp" in each["metadata"]}


def test_an_unready_node_is_tainted_and_the_taints_go_when_it_is_ready_again():
    cluster = Cluster("nodes")
    cluster.create(node())
    ready(cluster, "False")
    assert taints(cluster) == {("not-ready", "NoSchedule"), ("not-ready", NO_EXECUTE)}
    ready(cluster, "Unknown")
    assert taints(cluster) == {("unreachable", "NoSchedule"), ("unreachable", NO_EXECUTE)}
    ready(cluster, "True")
    assert taints(cluster) == set()


def test_taints_of_others_are_kept():
    cluster = Cluster("nodes")
    cluster.create(node(spec={"taints": [{"key": "example.com/mine", "effect": "NoSchedule"}]}))
    ready(cluster, "False")
    ready(cluster, "True")
    assert taints(cluster) == {("example.com/mine", "NoSchedule")}


def test_a_cordoned_node_is_tainted_as_unschedulable():
    cluster = Cluster("nodes")
    cluster.create(node())
    cluster.patch("nodes", "n1", {"spec": {"unschedulable": True}})
    assert taints(cluster) == {("unschedulable", "NoSchedule")}
    cluster.patch("nodes", "n1", {"spec": {"unschedulable": None}})
    assert taints(cluster) == set()


def test_pressure_is_a_taint_too():
    cluster = Cluster("nodes")
    cluster.create(node())
    conditions = [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "True"}]
    cluster.patch("nodes", "n1", {"status": {"conditions": conditions}}, "status")
    assert taints(cluster) == {("disk-pressure", "NoSchedule")}


def test_a_node_that_reports_nothing_is_taken_for_ready():
    cluster = Cluster("nodes")
    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    cluster.advance(600)
    assert taints(cluster) == set()


def test_a_lost_node_is_unknown_after_forty_seconds_and_ready_again_once_it_is_back():
    cluster = Cluster("nodes", "hollow")
    cluster.create(node())
    lose(cluster)
    cluster.advance(39)
    assert cluster.conditions("nodes", "n1") == {"Ready": "True"}
    cluster.advance(2)
    assert cluster.conditions("nodes", "n1") == {"Ready": "Unknown"}
    assert taints(cluster) == {("unreachable", "NoSchedule"), ("unreachable", NO_EXECUTE)}
    lose(cluster, lost=None)
    assert cluster.conditions("nodes", "n1") == {"Ready": "True"}
    assert taints(cluster) == set()


def test_a_node_that_is_back_before_anyone_noticed_was_never_lost():
    cluster = Cluster("nodes", "hollow")
    cluster.create(node())
    lose(cluster)
    cluster.advance(20)
    lose(cluster, lost=None)
    cluster.advance(60)
    assert cluster.conditions("nodes", "n1") == {"Ready": "True"}


def test_pods_are_evicted_when_their_toleration_ends():
    cluster = Cluster("nodes")
    cluster.create(node())
    cluster.create(pod("now", on="n1", spec=tolerating(0)), pod("later", on="n1", spec=tolerating(60)))
    cluster.create(pod("never", on="n1", spec=tolerating()))
    ready(cluster, "Unknown")
    cluster.advance(59)
    assert leaving(cluster) == {"now"}
    cluster.advance(2)
    assert leaving(cluster) == {"now", "later"}
    cluster.advance(10_000)
    assert leaving(cluster) == {"now", "later"}


def test_pods_stay_if_the_node_is_back_before_their_toleration_ends():
    cluster = Cluster("nodes")
    cluster.create(node(), pod("p", on="n1", spec=tolerating(60)))
    ready(cluster, "Unknown")
    cluster.advance(30)
    ready(cluster, "True")
    cluster.advance(600)
    assert leaving(cluster) == set()


def test_a_restart_does_not_give_pods_more_time():
    cluster = Cluster("nodes")
    cluster.create(node(), pod("p", on="n1", spec=tolerating(60)))
    ready(cluster, "Unknown")
    cluster.advance(50)
    cluster.world.restart("nodes")
    cluster.advance(11)
    assert leaving(cluster) == {"p"}


def test_evicted_pods_say_why():
    cluster = Cluster("nodes")
    cluster.create(node(), pod("p", on="n1"))
    taint = {"key": "example.com/broken", "effect": NO_EXECUTE}
    cluster.patch("nodes", "n1", {"spec": {"taints": [taint]}})
    assert leaving(cluster) == {"p"}
    found = [each for each in cluster.status("pods", "p")["conditions"] if each["type"] == "DisruptionTarget"]
    assert [each["reason"] for each in found] == ["DeletionByTaintManager"]


def test_a_terminating_pod_on_a_lost_node_stays_until_the_node_is_deleted():
    cluster = Cluster("nodes", "hollow")
    cluster.create(node(), pod("p", on="n1", spec=tolerating(0)))
    cluster.advance(5)
    lose(cluster)
    cluster.advance(600)
    assert leaving(cluster) == names(cluster) == {"p"}
    cluster.delete("nodes", "n1")
    cluster.advance(50)
    assert names(cluster) == set()


def test_pods_of_a_deleted_node_are_deleted_after_a_while():
    cluster = Cluster("nodes", "hollow")
    cluster.create(node(), node("n2"), pod("p", on="n1"), pod("q", on="n2"))
    cluster.delete("nodes", "n1")
    cluster.advance(30)
    assert names(cluster) == {"p", "q"}
    cluster.advance(20)
    assert names(cluster) == {"q"}


def test_pods_survive_if_the_node_is_registered_anew_in_time():
    cluster = Cluster("nodes", "hollow")
    cluster.create(node(), pod("p", on="n1"))
    cluster.delete("nodes", "n1")
    cluster.advance(30)
    cluster.create(node())
    cluster.advance(600)
    assert names(cluster) == {"p"}


def test_pods_bound_to_a_node_that_never_was_are_collected():
    cluster = Cluster("nodes")
    cluster.create(pod("p", on="nowhere"))
    cluster.advance(41)
    assert names(cluster) == set()


def test_draining_a_node_cordons_it_and_evicts_what_runs_there():
    cluster = Cluster("nodes", "hollow")
    cluster.create(node(), node("n2"), pod("p", on="n1"), pod("q", on="n2"))
    cluster.advance(3)
    assert cluster.world.call(cordon("n1")).ok
    for request in evictions("n1", map(Object, cluster.all("pods"))):
        assert cluster.world.call(request).ok
    cluster.advance(5)
    assert names(cluster) == {"q"}
    assert cluster.get("nodes", "n1")["spec"]["unschedulable"] is True


@pytest.mark.parametrize(
    ("tolerations", "at"),
    [
        ([], 0),
        ([{"operator": "Exists"}], None),
        ([{"key": "k", "operator": "Exists", "tolerationSeconds": 30}], 130 * SECOND),
        ([{"key": "k", "value": "v", "effect": NO_EXECUTE, "tolerationSeconds": -5}], 100 * SECOND),
        ([{"key": "k", "value": "other"}], 0),
        ([{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], 0),
        ([{"operator": "Exists", "tolerationSeconds": 9}, {"key": "k", "value": "v"}], 109 * SECOND),
    ],
)
def test_the_shortest_matching_toleration_counts(tolerations, at):
    taint = {"key": "k", "value": "v", "effect": NO_EXECUTE}
    assert evicted_at([taint], [100 * SECOND], tolerations) == at
