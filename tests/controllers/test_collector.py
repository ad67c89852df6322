"""Garbage collection by owner references."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from controller_world import Cluster, job, node, pod

from muster.api import writes
from muster.sim.faults import Rates

COLLECTOR = ("collector",)


def owner(cluster: Cluster, resource: str, name: str, **more: Any) -> dict[str, Any]:
    found = cluster.get(resource, name)
    api = {"jobs": "batch/v1", "nodes": "v1", "pods": "v1"}[resource]
    return {"apiVersion": api, "kind": found["kind"], "name": name, "uid": found["metadata"]["uid"], **more}


def names(cluster: Cluster, resource: str = "pods") -> set[str]:
    return {each["metadata"]["name"] for each in cluster.all(resource)}


def owned(*names_: str, **reference: Any) -> Cluster:
    """A Job that owns pods of these names, bound to no node."""
    cluster = Cluster(*COLLECTOR)
    cluster.create(job())
    for name in names_:
        cluster.create(pod(name, ownerReferences=[owner(cluster, "jobs", "train", **reference)]))
    return cluster


def test_dependents_of_a_deleted_owner_are_deleted():
    cluster = owned("a", "b")
    cluster.create(pod("other"))
    cluster.delete("jobs", "train", propagation="Background")
    cluster.advance(1)
    assert names(cluster) == {"other"}


def test_chains_of_owners_are_followed_to_the_end():
    cluster = owned("a")
    cluster.create(pod("b", ownerReferences=[owner(cluster, "pods", "a")]))
    cluster.create(pod("c", ownerReferences=[owner(cluster, "pods", "b")]))
    cluster.delete("jobs", "train", propagation="Background")
    cluster.advance(1)
    assert names(cluster) == set()


def test_an_object_stays_as_long_as_one_owner_is_left():
    cluster = owned()
    cluster.create(job(name="second"))
    both = [owner(cluster, "jobs", "train"), owner(cluster, "jobs", "second")]
    cluster.create(pod("shared", ownerReferences=both))
    cluster.delete("jobs", "train", propagation="Background")
    cluster.advance(1)
    assert names(cluster) == {"shared"}
    cluster.delete("jobs", "second", propagation="Background")
    cluster.advance(1)
    assert names(cluster) == set()


def test_an_object_whose_owner_never_was_is_deleted():
    cluster = owned()
    missing = {"apiVersion": "batch/v1", "kind": "Job", "name": "never", "uid": "no-such-uid"}
    cluster.create(pod("p", ownerReferences=[missing]))
    cluster.advance(1)
    assert names(cluster) == set()


def test_an_owner_of_that_name_with_another_uid_does_not_count():
    cluster = owned()
    stale = {**owner(cluster, "jobs", "train"), "uid": "uid-of-an-earlier-one"}
    cluster.create(pod("p", ownerReferences=[stale]))
    cluster.advance(1)
    assert names(cluster) == set()


def test_owners_of_kinds_that_this_server_does_not_know_are_trusted():
    cluster = owned()
    unknown = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "js", "uid": "u"}
    cluster.create(pod("p", ownerReferences=[unknown]))
    cluster.advance(60)
    assert names(cluster) == {"p"}


def test_foreground_deletion_keeps_the_owner_until_its_blocking_dependents_are_gone():
    cluster = owned("free")
    cluster.create(node())
    blocking = owner(cluster, "jobs", "train", blockOwnerDeletion=True)
    cluster.create(pod("blocking", on="n1", ownerReferences=[blocking]))
    cluster.delete("jobs", "train", propagation="Foreground")
    cluster.advance(1)
    assert (names(cluster, "jobs"), names(cluster)) == ({"train"}, {"blocking"})
    cluster.delete("pods", "blocking", grace_seconds=0)
    assert (names(cluster, "jobs"), names(cluster)) == (set(), set())


def test_orphaning_leaves_the_dependents_without_that_owner():
    cluster = owned("a", "b")
    cluster.delete("jobs", "train", propagation="Orphan")
    cluster.advance(1)
    assert names(cluster, "jobs") == set()
    assert names(cluster) == {"a", "b"}
    assert not any(each["metadata"].get("ownerReferences") for each in cluster.all("pods"))


def test_what_became_ownerless_while_nobody_collected_is_collected_after_a_restart():
    cluster = owned("a", "b")
    cluster.world.request(writes.delete("jobs", "default", "train", propagation="Background"))
    cluster.world.restart("collector")
    cluster.advance(1)
    assert names(cluster) == set()


@pytest.mark.parametrize("life", range(8))
def test_late_and_lost_events_never_cost_a_pod_its_life_and_spare_none(life):
    random = Random(life)
    cluster = Cluster(*COLLECTOR, seed=life, rates=Rates(lost_watch=0.05, late=0.5, conflict=0.1, unanswered=0.1))
    alive: set[str] = set()
    for number in range(12):
        name = f"j{number}"
        assert cluster.world.call(writes.create(job(name=name))).ok
        for index in range(3):
            reference = owner(cluster, "jobs", name)
            assert cluster.world.call(writes.create(pod(f"{name}-{index}", ownerReferences=[reference]))).ok
        alive.add(name)
        cluster.advance(random.random())
        if random.random() < 0.5:
            gone = random.choice(sorted(alive))
            alive.discard(gone)
            cluster.world.call(writes.delete("jobs", "default", gone, propagation="Background"))
        assert {f"{each}-{index}" for each in alive for index in range(3)} <= names(cluster)
    cluster.advance(60)
    assert names(cluster) == {f"{each}-{index}" for each in alive for index in range(3)}


def own(cluster: Cluster, owner_name: str, *dependents: str) -> None:
    for name in dependents:
        there = cluster.get("pods", name) or {}
        owners = there["metadata"].get("ownerReferences") or []
        reference = owner(cluster, "pods", owner_name, blockOwnerDeletion=True)
        cluster.patch("pods", name, {"metadata": {"ownerReferences": [*owners, reference]}})


@pytest.mark.parametrize("ring", ["a", "ab", "abc"])
def test_owners_of_each_other_do_not_wait_for_each_other_for_ever(ring):
    cluster = Cluster(*COLLECTOR)
    cluster.create(*(pod(name) for name in ring), pod("other"))
    for name, dependent in zip(ring, ring[1:] + ring[0], strict=True):
        own(cluster, name, dependent)
    cluster.delete("pods", ring[0], propagation="Foreground")
    cluster.advance(60)
    assert names(cluster) == {"other"}


def test_a_ring_of_owners_still_waits_for_what_blocks_it_from_outside():
    cluster = Cluster(*COLLECTOR)
    cluster.create(node(), pod("a"), pod("b"), pod("c", on="n1"))
    own(cluster, "a", "b")
    own(cluster, "b", "a", "c")
    cluster.delete("pods", "b", propagation="Foreground")
    cluster.advance(60)
    assert {"b", "c"} <= names(cluster)
    cluster.delete("pods", "c", grace_seconds=0)
    cluster.advance(1)
    assert names(cluster) == set()


@pytest.mark.parametrize("wrong", [{"name": "other"}, {"kind": "Pod", "apiVersion": "v1"}])
def test_an_owner_that_is_another_object_than_the_reference_says_does_not_count(wrong):
    cluster = owned("kept")
    cluster.create(pod("p", ownerReferences=[{**owner(cluster, "jobs", "train"), **wrong}]))
    cluster.advance(1)
    assert names(cluster) == {"kept"}


def test_an_owner_in_another_namespace_does_not_count():
    cluster = owned("kept")
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    elsewhere = pod("p", ownerReferences=[owner(cluster, "jobs", "train")])
    elsewhere["metadata"]["namespace"] = "team"
    cluster.create(elsewhere)
    cluster.advance(1)
    assert names(cluster) == {"kept"}


def test_a_cluster_wide_object_cannot_be_owned_by_one_in_a_namespace_and_stays():
    cluster = owned()
    there = owner(cluster, "jobs", "train")
    for name, reference in (("n1", there), ("n2", {**there, "uid": "never"})):
        cluster.create(node(name, metadata={"name": name, "ownerReferences": [reference]}))
    cluster.delete("jobs", "train", propagation="Background")
    cluster.advance(60)
    assert names(cluster, "nodes") == {"n1", "n2"}


def test_a_cluster_wide_owner_counts_for_objects_in_namespaces():
    cluster = Cluster(*COLLECTOR)
    cluster.create(node("n1"))
    cluster.create(pod("p", ownerReferences=[owner(cluster, "nodes", "n1")]))
    cluster.advance(5)
    assert names(cluster) == {"p"}
    assert cluster.world.call(writes.delete("nodes", "", "n1")).ok
    cluster.advance(5)
    assert names(cluster) == set()
