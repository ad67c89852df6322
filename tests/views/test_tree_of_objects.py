"""A hierarchy as the objects in the API show it, and the text that is made of it."""

import pytest

from muster.cli.trees import text
from muster.testing.builders import composite_manifest, gang_manifest, node_manifest, pod_manifest, workload_ref
from muster.views.tree import Objects, forest, tree

ZONE, RACK = "topology.kubernetes.io/zone", "topology.muster.dev/rack"
NODES = [
    node_manifest(f"{zone}-{rack}-{n}", labels={ZONE: zone, RACK: f"{zone}-{rack}"})
    for zone in ("a", "b")
    for rack in ("r1", "r2")
    for n in (1, 2)
]


def topology(key):
    return {"schedulingConstraints": {"topology": [{"key": key}]}}


def composite(name, minimum, parent=None, **spec):
    link = {"parentCompositePodGroupName": parent} if parent else {}
    return composite_manifest(name, minimum, **link, **spec)


def leaf(name, minimum, parent=None, **spec):
    link = {"parentCompositePodGroupName": parent, "workloadRef": workload_ref("w")} if parent else {}
    return gang_manifest(name, minimum, **link, **spec)


def pods(group, *nodes):
    placed = [{"nodeName": node} if node else {} for node in nodes]
    return [pod_manifest(f"{group}-{i}", group=group, **where) for i, where in enumerate(placed)]


@pytest.fixture
def served():
    return Objects(
        [composite("root", 2, **topology(ZONE))],
        [leaf("pre", 2, "root", **topology(RACK)), leaf("dec", 3, "root", **topology(RACK)), leaf("other", 1)],
        [*pods("pre", "a-r1-1", "a-r1-2"), *pods("dec", "a-r2-1", "a-r2-1", None), *pods("other", "b-r1-1")],
        NODES,
    )


def test_each_level_has_its_domain_and_counts(served):
    found = tree(served, "CompositePodGroup", "root")
    assert [(b.depth, b.name, b.there, b.known, b.domains, b.satisfied) for b in found] == [
        (0, "root", 1, 2, ("a",), False),
        (1, "dec", 2, 3, ("a-r2",), False),
        (1, "pre", 2, 2, ("a-r1",), True),
    ]
    assert found[1].waiting == ("dec-2",)
    assert found[2].hosts == (("a-r1-1", ("pre-0",)), ("a-r1-2", ("pre-1",)))


def test_a_subtree_and_a_flat_group_are_trees_too(served):
    assert [b.name for b in tree(served, "PodGroup", "pre")] == ["pre"]
    assert [b.domains for b in tree(served, "PodGroup", "other")] == [()]
    assert tree(served, "PodGroup", "root") == ()


def test_the_text_is_a_table_with_what_waits_at_the_end_of_its_group(served):
    assert text(tree(served, "CompositePodGroup", "root")).splitlines() == [
        "GROUP              NEEDS     HAS     WHERE",
        "root               2 groups  1 of 2  zone a",
        "  dec              3 pods    2 of 3  rack a-r2",
        "    a-r2-1                   2       dec-0..1",
        "    (no node yet)            1       dec-2",
        "  pre              2 pods    2 of 2  rack a-r1",
        "    a-r1-1                   1       pre-0",
        "    a-r1-2                   1       pre-1",
    ]


def test_a_group_that_is_apart_says_all_its_domains_and_a_missing_label(served):
    bare = served._replace(
        groups=[leaf("pre", 2, "root", **topology(RACK))],
        pods=pods("pre", "a-r1-1", "b-r1-1", "bare"),
        nodes=[*NODES, node_manifest("bare")],
    )
    lines = text(tree(bare, "PodGroup", "pre")).splitlines()
    assert lines[1].endswith("rack (no label), a-r1, b-r1")


def test_a_group_with_nothing_placed_has_no_domain_yet(served):
    empty = served._replace(pods=[])
    assert text(tree(empty, "CompositePodGroup", "root")).splitlines()[1].endswith("no zone yet")


def test_cycles_and_missing_parents_are_shown_once_and_named():
    objects = Objects(
        [composite("x", 1, "y"), composite("y", 1, "x"), composite("lost", 1, "gone")],
        [leaf("p", 1, "x")],
        [],
        [],
    )
    found = forest(objects)
    assert [(b.name, b.trouble) for b in found if b.depth == 0] == [
        ("lost", "its parent gone does not exist"),
        ("x", "its parents form a cycle"),
    ]
    assert sorted(b.name for b in found) == ["lost", "p", "x", "y"]


def test_failed_and_terminating_pods_do_not_count(served):
    failed, leaving, *rest = pods("pre", "a-r1-1", "a-r1-1", "a-r1-2")
    failed["status"] = {"phase": "Failed"}
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    (only,) = tree(served._replace(pods=[failed, leaving, *rest]), "PodGroup", "pre")
    assert only.hosts == (("a-r1-2", ("pre-2",)),)


def test_ranks_are_in_order_and_long_lists_are_folded():
    members = pods("g", *["n1"] * 12)
    odd = [pod_manifest(f"name-{'x' * i}", group="g", nodeName="n2") for i in range(1, 12)]
    branches = tree(Objects([], [leaf("g", 1)], members[::-1] + odd, []), "PodGroup", "g")
    lines = text(branches).splitlines()
    assert any(line.endswith("g-0..11") for line in lines)
    assert max(map(len, lines)) <= 79
    assert sum(line.count("name-") for line in lines) == 11
