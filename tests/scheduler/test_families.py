"""Pods without spread constraints are spread by what their Services and controllers select."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from muster.api import catalog, writes
from muster.api.calls import Request
from muster.api.object import Object
from muster.engine.profile import SYSTEM_SPREAD
from muster.model.keys import Key
from muster.model.neighbours import LabelRequirement
from muster.model.records import PodRecord
from muster.plugins import default_profile
from muster.scheduler.families import Families, controller_of, selector_of
from muster.scheduler.ingest import Ingest
from muster.scheduler.machine import Scheduler
from muster.sim.cluster import cluster
from muster.sim.world import World
from muster.testing.builders import node_manifest, pod_manifest

ZONE = "topology.kubernetes.io/zone"
WEB = (LabelRequirement("app", "In", ("web",)),)


def owned(kind: str = "ReplicaSet", version: str = "apps/v1", name: str = "web") -> list[dict[str, object]]:
    return [{"apiVersion": version, "kind": kind, "name": name, "uid": "u", "controller": True}]


def record(labels: dict[str, str], owners: list[dict[str, object]] | None = None, **spec: object) -> PodRecord:
    manifest = pod_manifest("p", labels=labels, **spec)
    manifest["metadata"] |= {"uid": "p", **({"ownerReferences": owners} if owners else {})}
    return Ingest().pod(Object(manifest))


def selected(families: Families, pod: PodRecord) -> tuple[LabelRequirement, ...] | None:
    demands = families.applied(pod).cls.demands
    if demands is None:
        return None
    assert [c.topology_key for c in demands.spread] == [c.topology_key for c in SYSTEM_SPREAD]
    (selector,) = {c.selector for c in demands.spread}
    assert selector.namespaces == ("default",)
    return selector.requirements


def test_services_that_select_the_pod_and_its_controller_say_together_who_is_alike():
    families, pod = Families(SYSTEM_SPREAD), record({"app": "web", "rev": "1"}, owned())
    assert selected(families, pod) is None
    assert families.put("services", Key("default", "web"), WEB)
    assert families.put("services", Key("default", "other"), (LabelRequirement("app", "In", ("db",)),))
    assert families.put("services", Key("elsewhere", "web"), (LabelRequirement("rev", "In", ("1",)),))
    assert selected(families, pod) == WEB
    rev = (LabelRequirement("rev", "In", ("1",)),)
    assert families.put("replicasets", Key("default", "web"), rev)
    assert selected(families, pod) == (*WEB, *rev)
    assert families.put("services", Key("default", "web"), None)
    assert selected(families, pod) == rev


def test_a_call_undoes_the_one_before_and_alike_pods_share_a_class():
    families, one, two = Families(SYSTEM_SPREAD), record({"app": "web"}), record({"app": "web", "x": "y"})
    families.put("services", Key("default", "web"), WEB)
    spread = families.applied(one)
    assert families.applied(two).cls is spread.cls
    assert families.applied(spread) is spread
    families.put("services", Key("default", "web"), None)
    assert families.empty
    assert families.applied(spread) == one


def test_what_selects_nobody_and_what_stays_as_it_was_changes_nothing():
    families = Families(SYSTEM_SPREAD)
    assert not families.put("services", Key("default", "headless"), ())
    assert not families.put("services", Key("default", "gone"), None)
    assert families.empty
    families.put("services", Key("default", "web"), WEB)
    assert not families.put("services", Key("default", "web"), WEB)


def test_a_pod_with_constraints_of_its_own_keeps_them():
    own = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
    families, pod = Families(SYSTEM_SPREAD), record({"app": "web"}, topologySpreadConstraints=[own])
    families.put("services", Key("default", "web"), WEB)
    assert families.applied(pod) is pod


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        (owned(), ("replicasets", "web")),
        (owned("StatefulSet"), ("statefulsets", "web")),
        (owned("ReplicationController", "v1"), ("replicationcontrollers", "web")),
        (owned("Job", "batch/v1"), None),
        ([owned()[0] | {"controller": False}], None),
    ],
)
def test_only_controllers_of_replicas_count(owners, expected):
    assert controller_of({"ownerReferences": owners}) == expected


def test_selectors_are_read_from_both_shapes():
    labels = {"spec": {"selector": {"app": "web"}}}
    assert selector_of("services", labels) == selector_of("replicationcontrollers", labels) == WEB
    expressions = [{"key": "tier", "operator": "NotIn", "values": ["b", "a"]}]
    whole = {"spec": {"selector": {"matchLabels": {"app": "web"}, "matchExpressions": expressions}}}
    assert selector_of("replicasets", whole) == (*WEB, LabelRequirement("tier", "NotIn", ("a", "b")))
    assert selector_of("services", {"spec": {}}) == ()


def service() -> dict[str, object]:
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"}, "spec": spec}


def zones(world: World) -> Counter[str]:
    nodes = {n["metadata"]["name"]: n for n in world.call(Request("GET", catalog.NODE.path(None))).body["items"]}
    pods = world.call(Request("GET", catalog.POD.path("default"))).body["items"]
    placed = [nodes[p["spec"]["nodeName"]] for p in pods if p["spec"].get("nodeName")]
    return Counter(node["metadata"]["labels"][ZONE] for node in placed)


def world_with(*manifests: dict[str, object]) -> World:
    world = cluster(priority_admission=False)
    for manifest in manifests:
        answer = world.call(writes.create(manifest))
        assert answer.ok, answer.body
    world.quiesce()
    return world


def fleet() -> list[dict[str, object]]:
    """One large node in zone a, and a small one in b that only spreading would choose."""
    return [node_manifest("big", cpu="64", labels={ZONE: "a"}), node_manifest("small", cpu="8", labels={ZONE: "b"})]


def webs(count: int) -> list[dict[str, object]]:
    return [pod_manifest(f"web-{i}", cpu="1", labels={"app": "web"}) for i in range(count)]


def test_pods_of_a_service_are_spread_and_others_are_not():
    assert zones(world_with(*fleet(), *webs(6)))["b"] == 0
    assert zones(world_with(*fleet(), service(), *webs(6)))["b"] > 0


def test_a_service_that_comes_later_is_followed_by_the_pods_that_wait():
    world = world_with(*webs(6))
    assert world.call(writes.create(service())).ok
    for node in fleet():
        assert world.call(writes.create(node)).ok
    world.quiesce()
    assert zones(world)["b"] > 0


def test_the_cache_is_the_one_of_a_scheduler_that_starts_now():
    world = world_with(*webs(3))
    assert world.call(writes.create(service())).ok
    world.settle()
    known = world.machine().cache.fingerprint()
    world.restart()
    world.settle()
    assert world.machine().cache.fingerprint() == known
    assert world.call(Request("DELETE", catalog.SERVICE.path("default", "web"))).ok
    world.settle()
    (cls,) = {pod.cls for pod in world.machine().cache.pods.values()}
    assert cls.demands is None


def test_nodes_without_the_labels_are_no_worse_for_a_default():
    bare = node_manifest("bare", cpu="64")
    bare["metadata"]["labels"] = {}
    world = world_with(node_manifest("zoned", cpu="8", labels={ZONE: "a"}), bare, service(), *webs(4))
    pods = world.call(Request("GET", catalog.POD.path("default"))).body["items"]
    assert Counter(pod["spec"]["nodeName"] for pod in pods)["bare"] > 0


def test_with_an_empty_list_of_defaults_nothing_is_watched_for_them():
    assert "services" in Scheduler(default_profile()).resources
    assert "services" not in Scheduler(replace(default_profile(), spread=())).resources
