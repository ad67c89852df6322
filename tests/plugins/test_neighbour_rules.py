"""What kube-scheduler's PodTopologySpread and InterPodAffinity allow and prefer, rule by rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from muster.engine.kinds import Kinds
from muster.plugins.pod_affinity import PodAffinity
from muster.plugins.topology_spread import TopologySpread
from muster.testing.builders import node_manifest, pod_manifest
from synchronous import Driver

WEB, DB, ANY = {"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "db"}}, {}
HOST = "kubernetes.io/hostname"
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
ZONES = {"a1": {"zone": "a"}, "a2": {"zone": "a"}, "b1": {"zone": "b"}, "c1": {"zone": "c"}, "x1": {}}
"""Three zones, the first of two nodes, and a node in none."""


def cluster(nodes: dict[str, dict[str, str]], *others: dict[str, Any], **node: Any) -> Driver:
    driver = Driver()
    driver.create(*(node_manifest(name, labels={HOST: name, **labels}) for name, labels in nodes.items()))
    for name, changes in node.items():
        driver.change("Node", name, lambda raw, changes=changes: raw["spec"].update(changes))
    driver.create(*others)
    return driver


def at(node: str, app: str = "web", count: int = 1, *, namespace: str = "default", **spec: Any) -> list[dict[str, Any]]:
    """Running pods."""
    made = [
        pod_manifest(f"{app}-{node}-{i}-{namespace}", labels={"app": app}, nodeName=node, **spec) for i in range(count)
    ]
    for manifest in made:
        manifest["metadata"]["namespace"] = namespace
    return made


def asked(driver: Driver, pod: dict[str, Any], plugin: Any) -> tuple[Any, Any, Any]:
    """The snapshot in which a pod would be decided, its class there, and what the plugin relates."""
    driver.held = []
    driver.create(pod)
    effect = driver.held[0]
    (record,) = effect.heads[0].pods
    kind = Kinds(effect.snapshot, [record]).of(record)
    return effect.snapshot, kind, plugin.relate(effect.snapshot, [kind])


def open_nodes(driver: Driver, pod: dict[str, Any], plugin: Any) -> set[str]:
    snapshot, kind, relations = asked(driver, pod, plugin)
    free = np.ones(len(snapshot.nodes), dtype=bool)
    if 0 in relations.rules and relations.rules[0].filters:
        for _, rejected in relations.rules[0].rejected([counter.counts for counter in relations.counters]):
            free &= ~rejected
    if isinstance(plugin, PodAffinity):
        rows = plugin.rows(snapshot, [kind])
        free &= (rows.used + rows.amounts[0][:, None] <= rows.capacity).all(axis=0)
    return {name for name, place in snapshot.nodes.index.items() if free[place]}


def scores(driver: Driver, pod: dict[str, Any], plugin: Any, feasible: set[str] | None = None) -> dict[str, int]:
    snapshot, _, relations = asked(driver, pod, plugin)
    index = snapshot.nodes.index
    among = np.array([feasible is None or name in feasible for name in index])
    if 0 not in relations.rules or not relations.rules[0].scores:
        return dict.fromkeys(index, 0)
    found = relations.rules[0].score([counter.counts for counter in relations.counters], among)
    return {name: int(found[place]) for name, place in index.items() if among[place]}


def constraint(skew: int = 1, key: str = "zone", when: str = HARD, selector: Any = WEB, **more: Any) -> dict[str, Any]:
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector, **more}


def spread(*constraints: dict[str, Any], app: str = "web", **spec: Any) -> dict[str, Any]:
    return pod_manifest("p", labels={"app": app}, topologySpreadConstraints=list(constraints), **spec)


NOWHERE = {"matchLabels": {"app": "nobody"}}
IN_A_OR_B = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]
    }
}
FILTERS = {
    "no pods yet: every domain will do, a node without the key will not": ([], [constraint()], {}, "a1 a2 b1 c1"),
    "the emptier domains": (at("a1") + at("b1"), [constraint()], {}, "c1"),
    "a larger skew": (at("a1", count=2) + at("b1"), [constraint(2)], {}, "b1 c1"),
    "pods of all nodes of a domain count": (at("a1") + at("a2") + at("b1") + at("c1"), [constraint()], {}, "b1 c1"),
    "pods on a node without the key do not count": (at("x1", count=5), [constraint()], {}, "a1 a2 b1 c1"),
    "a pod that its selector does not mean adds nothing": (
        at("a1") + at("b1"),
        [constraint()],
        {"app": "db"},
        "a1 a2 b1 c1",
    ),
    "more than the skew is refused to such a pod too": (at("a1", count=2), [constraint()], {"app": "db"}, "b1 c1"),
    "no selector means nobody": (at("a1", count=5), [constraint(selector=None)], {}, "a1 a2 b1 c1"),
    "an empty selector means all of the namespace": (
        at("a1", "db") + at("b1", "x"),
        [constraint(selector=ANY)],
        {},
        "c1",
    ),
    "other namespaces do not count": (at("a1", count=5, namespace="other"), [constraint()], {}, "a1 a2 b1 c1"),
    "too few domains: the least is nobody": (at("a1") + at("b1") + at("c1"), [constraint(minDomains=4)], {}, ""),
    "enough domains": (at("a1") + at("b1") + at("c1"), [constraint(minDomains=3)], {}, "a1 a2 b1 c1"),
    "too few domains and a skew that allows one": (at("a1"), [constraint(minDomains=9)], {}, "b1 c1"),
    "the host is a domain like others": (at("a1") + at("a2") + at("x1") + at("b1"), [constraint(key=HOST)], {}, "c1"),
    "two constraints must both hold": (at("a1") + at("b1") + at("c1"), [constraint(), constraint(key=HOST)], {}, "a2"),
    "a node lacking one key counts for none of them": (
        at("x1", count=3),
        [constraint(selector=ANY), constraint(key=HOST, selector=ANY)],
        {},
        "a1 a2 b1 c1",
    ),
    "two constraints at odds": (
        at("a2") + at("b1", "db") + at("c1", "db"),
        [constraint(), constraint(key="zone", selector=DB, when=SOFT)],
        {},
        "b1 c1",
    ),
    "soft ones refuse nobody": (at("a1", count=9), [constraint(when=SOFT)], {}, "a1 a2 b1 c1 x1"),
    "domains that the node affinity rules out do not count": (
        at("a1") + at("b1"),
        [constraint()],
        {"affinity": {"nodeAffinity": IN_A_OR_B}},
        "a1 a2 b1 c1",
    ),
    "but do if it is ignored": (
        at("a1") + at("b1"),
        [constraint(nodeAffinityPolicy="Ignore")],
        {"affinity": {"nodeAffinity": IN_A_OR_B}},
        "c1",
    ),
    "domains that the node selector rules out do not count": (
        at("a1"),
        [constraint()],
        {"nodeSelector": {"zone": "a"}},
        "a1 a2 b1 c1",
    ),
}


@pytest.mark.parametrize("case", FILTERS)
def test_where_hard_constraints_let_a_pod_go(case: str) -> None:
    running, constraints, pod, expected = FILTERS[case]
    assert open_nodes(cluster(ZONES, *running), spread(*constraints, **pod), TopologySpread()) == set(expected.split())


TAINT = {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}
TOLERATION = {"tolerations": [{"key": "k", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("policy", "pod", "expected"),
    [
        ({}, {}, "c1"),
        ({"nodeTaintsPolicy": "Ignore"}, {}, "c1"),
        ({"nodeTaintsPolicy": "Honor"}, {}, "a1 a2 b1 c1"),
        ({"nodeTaintsPolicy": "Honor"}, TOLERATION, "c1"),
    ],
)
def test_domains_of_tainted_nodes_count_unless_taints_are_honoured(policy: Any, pod: Any, expected: str) -> None:
    driver = cluster(ZONES, *at("a1"), *at("b1"), c1=TAINT)
    assert open_nodes(driver, spread(constraint(**policy), **pod), TopologySpread()) == set(expected.split())


def test_terminating_pods_do_not_count() -> None:
    driver = cluster(ZONES, *at("a1"), *at("b1"))
    driver.change(
        "Pod", "web-a1-0-default", lambda raw: raw["metadata"].update(deletionTimestamp="2026-01-01T00:00:09Z")
    )
    assert open_nodes(driver, spread(constraint()), TopologySpread()) == {"a1", "a2", "c1"}


SPREAD_SCORES = {
    "nobody there: all are best": ([], [constraint(when=SOFT)], None, "a1=100 a2=100 b1=100 c1=100 x1=0"),
    # ln(3 + 2) = 1.61: two pods are 3, one is 2 and none is 0 in whole pods.
    "the fewer the better, in whole pods": (
        at("a1", count=2) + at("b1"),
        [constraint(when=SOFT)],
        "a1 a2 b1 c1",
        "a1=0 a2=0 b1=33 c1=100",
    ),
    # The same and 4 more on both sides for the skew: 7, 6 and 4.
    "a skew waters differences down": (
        at("a1", count=2) + at("b1"),
        [constraint(5, when=SOFT)],
        "a1 b1 c1",
        "a1=57 b1=71 c1=100",
    ),
    # Of hosts the feasible ones count: ln(2 + 2) = 1.39.
    "of hosts those that are feasible": (
        at("a1", count=3) + at("b1"),
        [constraint(key=HOST, when=SOFT)],
        "a1 b1",
        "a1=25 b1=100",
    ),
    # ln(5) and ln(6): a1 3.40, a2 1.61, b1 0.
    "several add up": (
        at("a1"),
        [constraint(when=SOFT), constraint(key=HOST, when=SOFT)],
        "a1 a2 b1 c1",
        "a1=0 a2=33 b1=100 c1=100",
    ),
    "hard ones do not score": (at("a1"), [constraint()], None, "a1=0 a2=0 b1=0 c1=0 x1=0"),
    "nodes that the node affinity policy leaves out do not count": (
        at("x1"),
        [constraint(when=SOFT)],
        "a1 b1",
        "a1=100 b1=100",
    ),
}


def told(found: dict[str, int]) -> str:
    return " ".join(f"{name}={found[name]}" for name in sorted(found))


@pytest.mark.parametrize("case", SPREAD_SCORES)
def test_what_soft_constraints_prefer(case: str) -> None:
    running, constraints, feasible, expected = SPREAD_SCORES[case]
    found = scores(cluster(ZONES, *running), spread(*constraints), TopologySpread(), feasible and set(feasible.split()))
    assert told(found) == expected


def term(selector: Any = WEB, key: str = "zone", **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": selector, **more}


def required(kind: str, *terms: dict[str, Any]) -> dict[str, Any]:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def preferred(kind: str, weight: int, one: dict[str, Any]) -> dict[str, Any]:
    wish = {"weight": weight, "podAffinityTerm": one}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return required("podAffinity", *terms)


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return required("podAntiAffinity", *terms)


TEAM_A = {"matchLabels": {"team": "a"}}
VERSION = {"matchExpressions": [{"key": "version", "operator": "Exists"}]}
EVERYWHERE = "a1 a2 b1 c1 x1"
AFFINITY = {
    "near: the whole domain": (at("a1"), near(term()), "db", "a1 a2"),
    "near by host: the node": (at("a1"), near(term(key=HOST)), "db", "a1"),
    "near nobody there": ([], near(term()), "db", ""),
    "the first of its kind goes wherever the key is": ([], near(term()), "web", "a1 a2 b1 c1"),
    "the first of two terms that mean it": ([], near(term(), term(key=HOST)), "web", "a1 a2 b1 c1"),
    "it must be meant by all terms to be the first": ([], near(term(), term(DB)), "web", ""),
    "the second of its kind is no first": (at("b1"), near(term()), "web", "b1"),
    "one who matches beside a node without the key leaves it the first": (at("x1"), near(term()), "web", "a1 a2 b1 c1"),
    "one pod must match all terms": (at("a1") + at("a1", "db"), near(term(), term(DB)), "x", ""),
    "terms of two keys": (at("a1"), near(term(), term(key=HOST)), "db", "a1"),
    "apart: not the whole domain": (at("a1"), apart(term()), "db", "b1 c1 x1"),
    "apart by host": (at("a1"), apart(term(key=HOST)), "db", "a2 b1 c1 x1"),
    "one term is enough to keep out": (at("a1") + at("b1", "db"), apart(term(), term(DB)), "x", "c1 x1"),
    "apart from its own kind": (at("a1"), apart(term()), "web", "b1 c1 x1"),
    "near and apart": (at("a1") + at("b1") + at("a2", "db"), {**near(term()), **apart(term(DB))}, "x", "b1"),
    "running pods keep it out": (at("a1", "db", affinity=apart(term())), {}, "web", "b1 c1 x1"),
    "running pods keep it out by host": (at("a1", "db", affinity=apart(term(key=HOST))), {}, "web", "a2 b1 c1 x1"),
    "running pods that do not mean it do not": (at("a1", "db", affinity=apart(term())), {}, "x", EVERYWHERE),
    "running pods on a node without the key do not": (at("x1", "db", affinity=apart(term())), {}, "web", EVERYWHERE),
    "running pods in another namespace mean their own": (
        at("a1", "db", namespace="other", affinity=apart(term())),
        {},
        "web",
        EVERYWHERE,
    ),
    "running pods that name the namespace": (
        at("a1", "db", namespace="other", affinity=apart(term(namespaces=["default"]))),
        {},
        "web",
        "b1 c1 x1",
    ),
    "running pods that select the namespace": (
        at("a1", "db", namespace="other", affinity=apart(term(namespaceSelector=TEAM_A))),
        {},
        "web",
        "b1 c1 x1",
    ),
    "no selector means nobody": (at("a1"), apart(term(None)), "web", EVERYWHERE),
    "near nobody: no selector, and not itself": ([], near(term(None)), "web", ""),
    "an empty selector means all": (at("a1", "db"), apart(term(ANY)), "x", "b1 c1 x1"),
    "its own namespace": (at("a1", namespace="other"), apart(term()), "db", EVERYWHERE),
    "named namespaces": (at("a1", namespace="other") + at("b1"), apart(term(namespaces=["other"])), "db", "b1 c1 x1"),
    "an empty namespace selector means all": (
        at("a1", namespace="other") + at("b1"),
        apart(term(namespaceSelector={})),
        "db",
        "c1 x1",
    ),
    "namespaces by label": (
        at("a1", namespace="other") + at("b1"),
        apart(term(namespaceSelector=TEAM_A)),
        "db",
        "a1 a2 c1 x1",
    ),
    "named and selected namespaces": (
        at("a1", namespace="other") + at("b1"),
        apart(term(namespaces=["other"], namespaceSelector=TEAM_A)),
        "db",
        "c1 x1",
    ),
    "preferred terms refuse nobody": (at("a1"), preferred("podAntiAffinity", 100, term()), "db", EVERYWHERE),
}
SPACES = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "a"}}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other", "labels": {"team": "b"}}},
)


@pytest.mark.parametrize("case", AFFINITY)
def test_where_affinity_lets_a_pod_go(case: str) -> None:
    running, affinity, app, expected = AFFINITY[case]
    pod = pod_manifest("p", labels={"app": app}, affinity=affinity)
    assert open_nodes(cluster(ZONES, *SPACES, *running), pod, PodAffinity()) == set(expected.split())


def test_a_namespace_that_is_relabelled_is_meant_from_then_on() -> None:
    pod = pod_manifest("p", labels={"app": "db"}, affinity=apart(term(namespaceSelector=TEAM_A)))
    driver = cluster(ZONES, *SPACES, *at("a1", namespace="other"))
    driver.change("Namespace", "other", lambda raw: raw["metadata"].update(labels={"team": "a"}))
    assert open_nodes(driver, pod, PodAffinity()) == {"b1", "c1", "x1"}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"matchLabelKeys": ["version"]}, "b1 c1 x1"),
        ({"mismatchLabelKeys": ["version"]}, "a1 a2 c1 x1"),
        ({"matchLabelKeys": ["lacking"]}, "c1 x1"),
    ],
)
def test_label_keys_narrow_whom_a_term_means(keys: Any, expected: str) -> None:
    one, other = at("a1")[0], at("b1")[0]
    one["metadata"]["labels"] = {"app": "web", "version": "1"}
    other["metadata"]["labels"] = {"app": "web", "version": "2"}
    pod = pod_manifest("p", labels={"app": "db", "version": "1"}, affinity=apart(term(**keys)))
    assert open_nodes(cluster(ZONES, one, other), pod, PodAffinity()) == set(expected.split())


HARD_5, NO_HARD, OWN = PodAffinity(hard_weight=5), PodAffinity(hard_weight=0), PodAffinity(only_own_preferences=True)
WISH, AVOID = preferred("podAffinity", 10, term()), preferred("podAntiAffinity", 10, term())
ALL_ZERO = "a1=0 a2=0 b1=0 c1=0 x1=0"
AFFINITY_SCORES = {
    "wishes": (PodAffinity(), at("a1", count=2) + at("b1"), WISH, "db", "a1=100 a2=100 b1=50 c1=0 x1=0"),
    "aversions": (PodAffinity(), at("a1", count=2) + at("b1"), AVOID, "db", "a1=0 a2=0 b1=50 c1=100 x1=100"),
    "nobody meant": (PodAffinity(), at("a1", "db"), WISH, "x", ALL_ZERO),
    "wishes of running pods": (PodAffinity(), at("a1", "db", affinity=WISH), {}, "web", "a1=100 a2=100 b1=0 c1=0 x1=0"),
    "aversions of running pods": (
        PodAffinity(),
        at("a1", "db", affinity=AVOID),
        {},
        "web",
        "a1=0 a2=0 b1=100 c1=100 x1=100",
    ),
    "required affinity of running pods draws": (
        PodAffinity(),
        at("a1", affinity=near(term())),
        {},
        "web",
        "a1=100 a2=100 b1=0 c1=0 x1=0",
    ),
    "by 1 against a wish of 10": (
        PodAffinity(),
        at("a1", affinity=near(term())) + at("b1", "db", affinity=WISH),
        {},
        "web",
        "a1=10 a2=10 b1=100 c1=0 x1=0",
    ),
    "by what the profile says": (
        HARD_5,
        at("a1", affinity=near(term())) + at("b1", "db", affinity=WISH),
        {},
        "web",
        "a1=50 a2=50 b1=100 c1=0 x1=0",
    ),
    "or not at all": (NO_HARD, at("a1", affinity=near(term())), {}, "web", ALL_ZERO),
    "wishes of running pods may be ignored": (OWN, at("a1", "db", affinity=WISH), {}, "web", ALL_ZERO),
    "but not by a pod with wishes": (
        OWN,
        at("a1", "db", affinity=WISH),
        preferred("podAffinity", 10, term(NOWHERE)),
        "web",
        "a1=100 a2=100 b1=0 c1=0 x1=0",
    ),
}


@pytest.mark.parametrize("case", AFFINITY_SCORES)
def test_what_affinity_prefers(case: str) -> None:
    plugin, running, affinity, app, expected = AFFINITY_SCORES[case]
    pod = pod_manifest("p", labels={"app": app}, affinity=affinity)
    assert told(scores(cluster(ZONES, *running), pod, plugin)) == expected
