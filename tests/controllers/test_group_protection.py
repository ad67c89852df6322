"""Deleted groups stay until nothing lives in them (V36)."""

from __future__ import annotations

from typing import Any

import pytest
from controller_world import Cluster, node, pod

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.sim.faults import Rates

GATES = FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
PARTS = ("podgroups", "hollow", "binder")


def group(name: str, kind: str = "PodGroup", parent: str | None = None) -> dict[str, Any]:
    version = "v1beta1" if kind == "PodGroup" else "v1alpha3"
    spec: dict[str, Any] = {
        "schedulingPolicy": {"basic": {}},
        "workloadRef": {"workloadName": "w", "templateName": name},
    }
    if parent:
        spec["parentCompositePodGroupName"] = parent
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def member(name: str, of: str = "g", **meta: Any) -> dict[str, Any]:
    return pod(name, spec={"schedulingGroup": {"podGroupName": of}}, **meta)


def names(cluster: Cluster, resource: str = "podgroups") -> set[str]:
    return {each["metadata"]["name"] for each in cluster.all(resource)}


def test_an_empty_group_goes_at_once():
    cluster = Cluster(*PARTS, gates=GATES)
    cluster.create(group("g"))
    cluster.delete("podgroups", "g")
    assert names(cluster) == set()


def test_a_deleted_group_stays_until_its_last_pod_is_gone():
    cluster = Cluster(*PARTS, gates=GATES)
    cluster.create(node(), group("g"), group("other"), member("a"), member("b"), member("c", "other"))
    cluster.advance(3)
    cluster.delete("podgroups", "g")
    cluster.delete("pods", "a")
    cluster.advance(5)
    assert names(cluster) == {"g", "other"}
    cluster.delete("pods", "b")
    cluster.advance(5)
    assert names(cluster) == {"other"}


def test_pods_that_have_ended_do_not_hold_their_group():
    cluster = Cluster(*PARTS, gates=GATES)
    cluster.create(node(), group("g"), member("a", annotations={"muster.dev/run-for": "2s"}))
    cluster.delete("podgroups", "g")
    assert names(cluster) == {"g"}
    cluster.advance(5)
    assert names(cluster) == set()
    assert cluster.status("pods", "a")["phase"] == "Succeeded"


def test_a_composite_stays_until_no_group_names_it_as_its_parent():
    cluster = Cluster(*PARTS, gates=GATES)
    cluster.create(group("root", "CompositePodGroup"), group("inner", "CompositePodGroup", "root"))
    cluster.create(group("leaf", parent="inner"))
    cluster.delete("compositepodgroups", "root")
    cluster.delete("compositepodgroups", "inner")
    assert names(cluster, "compositepodgroups") == {"root", "inner"}
    cluster.delete("podgroups", "leaf")
    assert names(cluster, "compositepodgroups") == set()


def test_a_restarted_controller_goes_on_where_the_last_one_was():
    cluster = Cluster(*PARTS, gates=GATES)
    cluster.create(node(), group("g"), member("a"))
    cluster.delete("podgroups", "g")
    cluster.world.restart("podgroups")
    cluster.world.settle()
    assert names(cluster) == {"g"}
    cluster.world.call(writes.delete("pods", "default", "a", grace_seconds=0))
    cluster.world.restart("podgroups")
    cluster.world.settle()
    assert names(cluster) == set()


@pytest.mark.parametrize("life", range(5))
def test_refused_and_unanswered_writes_are_repeated(life):
    rates = Rates(lost_watch=0.1, late=0.4, conflict=0.5, unanswered=0.2)
    cluster = Cluster(*PARTS, gates=GATES, seed=life, rates=rates)
    cluster.world.call(writes.create(group("g")))
    cluster.world.call(writes.delete("podgroups", "default", "g"))
    cluster.advance(60)
    assert names(cluster) == set()
