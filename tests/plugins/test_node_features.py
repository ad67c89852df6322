"""Declared features of nodes (KEP-5328): who needs what, which nodes have it, what is said, and what wakes."""

import pytest

from muster.api import catalog, writes
from muster.api.calls import Request
from muster.api.gates import FeatureGates
from muster.api.object import Object
from muster.engine.decide import decide
from muster.engine.feasibility import feasible_nodes, static_rejections
from muster.model import wording
from muster.model.diagnosis import Reason, Rejection
from muster.plugins import default_profile
from muster.scheduler.ingest import Ingest
from muster.sim.cluster import cluster
from muster.testing import builders
from muster.testing.builders import pod_class, pod_manifest

PROFILE = default_profile()
RULE = {"restartPolicyRules": [{"action": "RestartAllContainers"}]}
NODES = [
    builders.node("none"),
    builders.node("old", features=["A"]),
    builders.node("new", features=["B", "A"]),
    builders.node("strange", features=["C"]),
]


def suits(cls):
    nodes = builders.snapshot(NODES).nodes
    return {name for name, ok in zip(nodes.names, feasible_nodes(nodes, cls, PROFILE).passes, strict=True) if ok}


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ((), {"none", "old", "new", "strange"}),
        (("A",), {"old", "new"}),
        (("A", "B"), {"new"}),
        (("C",), {"strange"}),
        (("A", "C"), set()),
    ],
)
def test_a_node_must_declare_everything_that_is_needed(features, expected):
    assert suits(pod_class(features=features)) == expected


def test_a_rejection_names_what_is_missing():
    nodes = builders.snapshot(NODES).nodes
    found = set(static_rejections(nodes, pod_class(features=("A", "B")), PROFILE))
    assert found == {(Reason.NODE_FEATURES, "A, B", 2), (Reason.NODE_FEATURES, "B", 1)}


def test_the_remedy_is_a_node_that_declares_the_one_missing_feature():
    cls = pod_class(cpu=1000, features=("A",))
    entry = builders.entry(builders.pod("p", cls))
    decision = decide(builders.snapshot([builders.node("n1"), builders.node("n2", cpu=500)]), [entry], PROFILE, now=0)
    (diagnosis,) = decision.diagnoses
    assert diagnosis.rejections == (Rejection(Reason.NODE_FEATURES, 2, "A"),)
    assert [wording.remedy_phrase(r) for r in diagnosis.remedies] == ["have 1 node declare the feature A"]


def needs(manifest, **options):
    manifest["metadata"] |= {"uid": "u", "namespace": "default"}
    return Ingest(**options).pod(Object(manifest)).cls.features


@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_a_rule_that_restarts_all_containers_needs_a_feature(field):
    manifest = pod_manifest("p")
    (container,) = manifest["spec"]["containers"]
    manifest["spec"][field] = [container | RULE]
    assert needs(manifest) == ("RestartAllContainersOnContainerExits",)
    assert needs(manifest, features=False) == ()


def test_other_rules_need_nothing():
    manifest = pod_manifest("p")
    manifest["spec"]["containers"][0]["restartPolicyRules"] = [{"action": "Restart"}]
    assert needs(manifest) == ()


@pytest.mark.parametrize(
    ("network", "users", "expected"),
    [
        (True, False, ("UserNamespacesHostNetworkSupport",)),
        (True, True, ()),
        (True, None, ()),
        (False, False, ()),
    ],
)
def test_a_user_namespace_on_the_hosts_network_needs_a_feature(network, users, expected):
    told = {} if users is None else {"hostUsers": users}
    assert needs(pod_manifest("p", hostNetwork=network, **told)) == expected


def test_pods_that_differ_in_what_they_need_are_of_different_classes():
    ingest = Ingest()
    plain, host = pod_manifest("a", hostNetwork=True), pod_manifest("b", hostNetwork=True, hostUsers=False)
    for manifest in (plain, host):
        manifest["metadata"] |= {"uid": manifest["metadata"]["name"], "namespace": "default"}
    assert ingest.pod(Object(plain)).cls is not ingest.pod(Object(host)).cls


def seen(world, plural, name):
    kind = catalog.by_resource(plural)
    return world.call(Request("GET", kind.path("default" if kind.namespaced else None, name))).body


def in_world(gates):
    world = cluster(gates)
    node = builders.node_manifest("n1")
    node["status"]["declaredFeatures"] = ["UserNamespacesHostNetworkSupport"]
    for manifest in (node, builders.node_manifest("n2"), pod_manifest("p", hostNetwork=True, hostUsers=False)):
        assert world.call(writes.create(manifest)).ok
    world.quiesce()
    return world


def test_with_the_gate_off_nodes_declare_nothing_and_pods_need_nothing():
    world = in_world(FeatureGates.parse("NodeDeclaredFeatures=false,UserNamespacesHostNetworkSupport=true"))
    assert "declaredFeatures" not in seen(world, "nodes", "n1")["status"]
    assert seen(world, "pods", "p")["spec"]["nodeName"] in ("n1", "n2")


def test_with_the_gate_on_the_pod_goes_where_the_feature_is():
    world = in_world(FeatureGates.of("UserNamespacesHostNetworkSupport"))
    assert seen(world, "nodes", "n1")["status"]["declaredFeatures"] == ["UserNamespacesHostNetworkSupport"]
    assert seen(world, "pods", "p")["spec"]["nodeName"] == "n1"
