"""Hierarchies of groups as one decision."""

from __future__ import annotations

from muster.engine.decide import decide
from muster.engine.work import Work
from muster.model.diagnosis import Diagnosis, Reason, Verdict
from muster.model.plan import Bind
from muster.model.records import GroupNode, NodeRecord, PodRecord
from muster.model.wording import outcome_message, pod_message, verdict
from muster.plugins import default_profile
from muster.testing import builders as make

PROFILE = default_profile()


def leaf(name: str, size: int, minimum: int | None = None, *, key: str | None = None, cpu: int = 1000, **pods):
    members = tuple(make.pod(f"{name}-{n}", cpu=cpu, group=name, **pods) for n in range(size))
    return GroupNode(make.group(name, minimum, parent="root", topology_key=key), (), members)


def tree(minimum: int | None, *children: GroupNode, name: str = "root", key: str | None = None) -> GroupNode:
    return GroupNode(make.composite(name, minimum, topology_key=key), children)


def racks(*cpus: int) -> tuple[NodeRecord, ...]:
    """One node in each rack, of so many cores."""
    return tuple(make.node(f"n{i}", cpu=cpu * 1000, labels={"rack": f"r{i}"}) for i, cpu in enumerate(cpus))


def decided(nodes, root: GroupNode, bound: tuple[PodRecord, ...] = (), **budget) -> tuple[dict[str, str], Diagnosis]:
    found = decide(make.snapshot(nodes, bound), [make.hierarchy(root)], PROFILE, now=0, budget=Work(**budget))
    return where(found.plans[0].binds), found.diagnoses[0]


def where(binds: tuple[Bind, ...]) -> dict[str, str]:
    return {bind.pod.name: bind.node for bind in binds}


def test_nothing_of_a_tree_is_bound_while_its_minimum_does_not_fit() -> None:
    binds, diagnosis = decided(racks(4), tree(2, leaf("a", 3, 3), leaf("b", 2, 2)))
    assert binds == {}
    assert diagnosis.verdict is Verdict.UNSCHEDULABLE
    assert diagnosis.proven
    assert [(g.key.name, g.satisfied) for g in diagnosis.groups] == [("root", False), ("a", True), ("b", False)]


def test_no_child_takes_what_a_siblings_minimum_needs() -> None:
    binds, _ = decided(racks(4), tree(2, leaf("a", 3, 1), leaf("b", 2, 2)))
    assert sorted(binds) == ["a-0", "a-1", "b-0", "b-1"]


def test_k_of_n_children_are_chosen_so_that_most_members_are_placed() -> None:
    binds, _ = decided(racks(5), tree(1, leaf("a", 2, 2), leaf("b", 5, 5), leaf("c", 2, 2)))
    assert sorted(binds) == ["b-0", "b-1", "b-2", "b-3", "b-4"]


def test_the_domain_of_an_earlier_child_is_chosen_anew_where_a_later_one_needs_it() -> None:
    pair = tree(2, leaf("a", 2, 2, key="rack"), leaf("b", 3, 3, key="rack"))
    binds, _ = decided(racks(3, 4), pair)
    assert {binds["a-0"], binds["a-1"]}.isdisjoint({binds["b-0"], binds["b-1"], binds["b-2"]})
    assert len(binds) == 5


def test_a_child_stays_in_the_domain_of_its_parent() -> None:
    nodes = [
        make.node("n1", cpu=2000, labels={"zone": "a", "rack": "r1"}),
        make.node("n2", cpu=2000, labels={"zone": "a", "rack": "r2"}),
        make.node("n3", cpu=3000, labels={"zone": "b", "rack": "r1"}),
    ]
    binds, diagnosis = decided(nodes, tree(2, leaf("a", 2, 2, key="rack"), leaf("b", 2, 2, key="rack"), key="zone"))
    assert set(binds.values()) == {"n1", "n2"}
    assert diagnosis.verdict is Verdict.SCHEDULED


def test_running_members_of_any_descendant_pin_the_domains_above_them() -> None:
    nodes = racks(4, 4)
    running = make.pod("a-r", cpu=1000, group="a", node="n1")
    root = tree(1, GroupNode(make.group("a", 1, parent="root"), (), (), (running,)), leaf("b", 2, 2), key="rack")
    binds, _ = decided(nodes, root, (running,))
    assert set(binds.values()) == {"n1"}


def test_members_that_run_in_two_domains_are_an_error_of_the_whole_tree() -> None:
    running = tuple(make.pod(f"a-{n}", cpu=1000, group="a", node=f"n{n}") for n in range(2))
    root = tree(1, GroupNode(make.group("a", 1, parent="root"), (), (), running), leaf("b", 1, 1), key="rack")
    binds, diagnosis = decided(racks(4, 4), root, running)
    assert binds == {}
    assert diagnosis.verdict is Verdict.ERROR
    assert [rejection.reason for rejection in diagnosis.rejections] == [Reason.DOMAIN_SPLIT]


def test_a_failed_child_of_a_satisfied_parent_waits_alone() -> None:
    binds, diagnosis = decided(racks(4), tree(1, leaf("a", 2, 2), leaf("b", 3, 3)))
    assert len(binds) == 3  # b has more members
    assert {pod.name for pod in diagnosis.pods} == {"a-0", "a-1"}
    assert diagnosis.verdict is Verdict.SCHEDULED


def test_nothing_is_bound_below_a_parent_that_is_not_satisfied() -> None:
    sub = tree(2, leaf("a", 1, 1), leaf("b", 9, 9), name="sub")
    binds, _ = decided(racks(4), tree(1, sub, leaf("c", 1, 1)))
    assert sorted(binds) == ["c-0"]


def test_children_without_quorum_cost_no_work() -> None:
    empty = [leaf(f"e{n}", 0, 1) for n in range(50)]
    binds, _ = decided(racks(4), tree(1, *empty, leaf("a", 1, 1)))
    assert sorted(binds) == ["a-0"]


def test_the_members_of_a_tree_are_compared_with_its_root() -> None:
    odd = leaf("b", 1, 1, priority=5)
    binds, diagnosis = decided(racks(4), tree(1, leaf("a", 1, 1), odd))
    assert binds == {}
    assert diagnosis.verdict is Verdict.ERROR
    assert [rejection.reason for rejection in diagnosis.rejections] == [Reason.PRIORITY_MISMATCH]


def test_identical_domains_are_tried_once() -> None:
    """Each of many racks takes one of the leaves, and no rack takes the last one: proven without trying all ways."""
    leaves = [leaf(f"a{n}", 2, 2, key="rack") for n in range(4)]
    root = tree(5, *leaves, leaf("z", 3, 3, key="rack"))
    found = decide(make.snapshot(racks(*[2] * 40)), [make.hierarchy(root)], PROFILE, now=0, budget=Work(200))
    assert found.plans[0].binds == ()
    assert found.diagnoses[0].proven


def test_a_deep_tree_of_many_leaves_needs_no_deep_stack() -> None:
    leaves = [leaf(f"a{n:03}", 1, 1) for n in range(400)]
    binds, diagnosis = decided(racks(100, 100, 100, 99), tree(400, *leaves))
    assert binds == {}
    assert diagnosis.verdict is Verdict.UNSCHEDULABLE


def test_a_tree_says_which_child_fails_and_why() -> None:
    sub1 = tree(2, leaf("a", 2, 2), leaf("b", 2, 2, cpu=100_000), name="sub1")
    sub2 = tree(1, leaf("c", 2, 2), name="sub2")
    binds, diagnosis = decided(racks(8), tree(2, sub1, sub2))
    assert binds == {}
    told = {outcome.key.name: outcome_message(diagnosis, outcome) for outcome in diagnosis.groups}
    before = "0/1 placements are available, first placement status: "
    assert told["root"] == before + (
        "minGroupCount (2) cannot be satisfied: 1 scheduled, 1 remaining (sub1 cannot be placed)"
    )
    assert told["a"].startswith('parent composite pod group "sub1" is unschedulable: ' + before)
    assert told["b"] == before + "minCount (2) cannot be satisfied: 0 scheduled, 2 remaining"
    assert told["c"].startswith('ancestor composite pod group "root" is unschedulable: ' + before)
    pods = {pod.name: pod_message(diagnosis, pod) for pod in diagnosis.pods}
    assert pods["b-0"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert pods["a-0"] == told["a"]
    said = verdict(diagnosis)
    assert "it needs 2 groups at once, 1 can be placed, 1 short; " in said
    assert "PodGroup b: it needs 2 members at once, 0 can be" in said


def test_a_label_that_no_node_has_is_named() -> None:
    _, diagnosis = decided(racks(8), tree(1, leaf("a", 1, 1, key="nowhere")))
    (pod,) = diagnosis.pods
    assert pod_message(diagnosis, pod) == '0/0 placements are available: no node has the label "nowhere"'
    assert 'no node has the label "nowhere"' in verdict(diagnosis)


def test_the_same_tree_is_decided_alike_again() -> None:
    root = tree(2, leaf("a", 3, 1, key="rack"), leaf("b", 3, 2, key="rack"), leaf("c", 2, 2))
    assert decided(racks(3, 3, 3), root)[0] == decided(racks(3, 3, 3), root)[0]


def test_every_child_that_fails_says_what_it_lacks_and_the_verdict_names_them_in_short() -> None:
    giants = tuple(leaf(name, 2, 2, cpu=7000) for name in "bcdef")
    _, diagnosis = decided(racks(4, 6), tree(6, leaf("a", 1, 1), *giants))
    lacks = {g.key.name: g.shortfall for g in diagnosis.groups if g.shortfall is not None}
    assert set(lacks) == set("bcdef")
    assert {(lack.resource, lack.asked, lack.most) for lack in lacks.values()} == {("cpu", 7000, 6000)}
    text = verdict(diagnosis)
    assert "PodGroup b:" in text
    assert "; nor can c (holds 0 of 2, each asks for 7 cpu, and no node that it may use has more than 6)" in text
    assert "e (holds 0 of 2" in text and "or 1 more" in text and "f (" not in text


def test_a_child_that_fails_alone_is_named_once() -> None:
    _, diagnosis = decided(racks(4), tree(2, leaf("a", 3, 3), leaf("b", 2, 2)))
    assert "nor can" not in verdict(diagnosis)
