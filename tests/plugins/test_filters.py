"""Each filter on nodes that differ in one thing, and the laws that hold for every plugin."""

import pytest

from muster.engine.decide import decide
from muster.engine.feasibility import feasible_nodes, static_rejections
from muster.model.diagnosis import Reason
from muster.model.records import HostPort
from muster.plugins import BUILT_IN, default_profile
from muster.testing import builders
from muster.testing.builders import pod_class, taint, term, tolerate
from muster.testing.laws import check_plugin

PROFILE = default_profile()


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_keeps_the_laws(name):
    check_plugin(BUILT_IN[name]())


def suits(nodes, cls):
    """Names of the nodes that pass every static filter."""
    snapshot = builders.snapshot(nodes)
    passes = feasible_nodes(snapshot.nodes, cls, PROFILE).passes
    return {name for name, ok in zip(snapshot.nodes.names, passes, strict=True) if ok}


ZONES = [
    builders.node("a", labels={"zone": "a", "gen": "3"}),
    builders.node("b", labels={"zone": "b", "gen": "12"}),
    builders.node("none", labels={"gen": "new"}),
]


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (("zone", "In", ("a", "c")), {"a"}),
        (("zone", "NotIn", ("a",)), {"b", "none"}),
        (("zone", "Exists", ()), {"a", "b"}),
        (("zone", "DoesNotExist", ()), {"none"}),
        (("gen", "Gt", ("3",)), {"b"}),
        (("gen", "Lt", ("12",)), {"a"}),
        (("gen", "Gt", ("few",)), set()),
        ((None, "In", ("b", "gone")), {"b"}),
        ((None, "NotIn", ("b",)), {"a", "none"}),
    ],
)
def test_operators_of_node_affinity(requirement, expected):
    assert suits(ZONES, pod_class(required=[term(requirement)])) == expected


def test_terms_are_alternatives_and_requirements_of_a_term_all_hold():
    both = term(("zone", "Exists", ()), ("gen", "Gt", ("5",)))
    assert suits(ZONES, pod_class(required=[both])) == {"b"}
    assert suits(ZONES, pod_class(required=[both, term((None, "In", ("none",)))])) == {"b", "none"}


def test_an_empty_term_and_no_terms_match_nothing():
    assert suits(ZONES, pod_class(required=[term()])) == set()
    assert suits(ZONES, pod_class(required=[])) == set()


def test_selector_and_affinity_must_both_hold():
    cls = pod_class(selector={"zone": "a"}, required=[term(("gen", "In", ("12",)))])
    assert suits(ZONES, cls) == set()


TAINTED = [
    builders.node("free"),
    builders.node("train", taints=[taint("team", "train")]),
    builders.node("evict", taints=[taint("team", "serve", "NoExecute")]),
    builders.node("soft", taints=[taint("team", "x", "PreferNoSchedule")]),
    builders.node("slow", taints=[taint("grade", "700")]),
    builders.node("cordoned", unschedulable=True),
]


@pytest.mark.parametrize(
    ("toleration", "also"),
    [
        (None, set()),
        (tolerate("team", "train"), {"train"}),
        (tolerate("team"), {"train", "evict"}),
        (tolerate("team", effect="NoExecute"), {"evict"}),
        (tolerate("grade", "800")._replace(operator="Lt"), {"slow"}),
        (tolerate("grade", "800")._replace(operator="Gt"), set()),
        (tolerate("grade", "007")._replace(operator="Gt"), set()),
        (tolerate("node.kubernetes.io/unschedulable", effect="NoSchedule"), {"cordoned"}),
        (tolerate(), {"train", "evict", "slow", "cordoned"}),
    ],
)
def test_what_a_toleration_opens(toleration, also):
    assert suits(TAINTED, pod_class(tolerations=[toleration] if toleration else [])) == {"free", "soft"} | also


def test_a_node_counts_under_the_first_filter_that_refuses_it():
    nodes = [
        builders.node("n1", unschedulable=True, taints=[taint("team", "train")]),
        builders.node("n2", taints=[taint("team", "train"), taint("other")]),
    ]
    snapshot = builders.snapshot(nodes)
    found = list(static_rejections(snapshot.nodes, pod_class(selector={"zone": "a"}), PROFILE))
    assert found == [(Reason.NODE_UNSCHEDULABLE, "", 1), (Reason.NODE_TAINTED, "team=train:NoSchedule", 1)]


ANY, ONE, TWO = (HostPort("TCP", 80, ip) for ip in ("0.0.0.0", "10.0.0.1", "10.0.0.2"))


@pytest.mark.parametrize("bound_first", [True, False])
@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [
        ([ANY], [ANY], True),
        ([ANY], [ONE], True),
        ([ONE], [ANY], True),
        ([ONE], [ONE], True),
        ([ONE], [TWO], False),
        ([ANY], [HostPort("UDP", 80, "0.0.0.0")], False),
        ([ANY], [HostPort("TCP", 81, "0.0.0.0"), ONE], True),
        ([HostPort("TCP", 80, "")], [ONE], True),
    ],
)
def test_ports_clash_by_protocol_port_and_address(first, second, clash, bound_first):
    earlier = builders.pod("p1", ports=first, node="n" if bound_first else None)
    later = builders.entry(builders.pod("p2", ports=second))
    snapshot = builders.snapshot([builders.node("n")], [earlier] if bound_first else [])
    heads = [later] if bound_first else [builders.entry(earlier), later]
    assert (not decide(snapshot, heads, PROFILE, now=0).plans[-1].binds) is clash


def test_a_pod_on_every_address_and_one_of_them_does_not_clash_with_itself():
    head = builders.entry(builders.pod("p", ports=[ANY, ONE]))
    assert decide(builders.snapshot([builders.node("n")]), [head], PROFILE, now=0).plans[0].binds


@pytest.mark.parametrize(
    ("node", "pod", "fits"),
    [
        ({"pods": 0}, {}, False),
        ({"cpu": 0}, {}, True),
        ({"cpu": 1000}, {"cpu": 1000}, True),
        ({"cpu": 1000}, {"cpu": 1001}, False),
        ({}, {"more": {"example.com/unheard-of": 1}}, False),
        ({"gpus": 2}, {"gpus": 2}, True),
    ],
)
def test_a_pod_fits_where_nothing_it_asks_for_is_short(node, pod, fits):
    decision = decide(
        builders.snapshot([builders.node("n", **node)]), [builders.entry(builders.pod("p", **pod))], PROFILE, now=0
    )
    assert bool(decision.plans[0].binds) is fits


def test_a_pod_that_asks_for_nothing_fits_on_an_overcommitted_node():
    over = builders.pod("b", cpu=9000, node="n")
    decision = decide(
        builders.snapshot([builders.node("n", cpu=4000)], [over]), [builders.entry(builders.pod("p"))], PROFILE, now=0
    )
    assert decision.plans[0].binds
