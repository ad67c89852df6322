"""Hierarchies whose leaves look at each other: by affinity, anti-affinity, spread and host ports."""

from __future__ import annotations

import pytest

from muster.engine.decide import decide
from muster.engine.work import Work
from muster.model.diagnosis import Diagnosis, Verdict
from muster.model.neighbours import LabelRequirement, PodDemands, PodSelector, PodTerm, SpreadConstraint
from muster.model.records import GroupNode, NodeRecord
from muster.plugins import default_profile
from muster.testing import builders as make

PROFILE = default_profile()
RACK, HOST = "rack", make.HOSTNAME


def apps(*names: str) -> PodSelector:
    return PodSelector((LabelRequirement("app", "In", names),), ("default",))


def near(*names: str, key: str = HOST) -> PodDemands:
    return PodDemands(affinity=tuple(PodTerm(apps(name), key) for name in names))


def apart(*names: str, key: str = HOST) -> PodDemands:
    return PodDemands(anti_affinity=(PodTerm(apps(*names), key),))


def leaf(name: str, *pods: tuple[str, PodDemands | None], minimum: int | None = None, key: str | None = None, **fields):
    """Members by (app, demands)."""
    members = tuple(
        make.pod(
            f"{name}-{n}",
            make.pod_class(demands=demands, **{"cpu": 1000, **fields}),
            group=name,
            labels={"app": app},
        )
        for n, (app, demands) in enumerate(pods)
    )
    return GroupNode(make.group(name, minimum or len(pods), parent="root", topology_key=key), (), members)


def tree(minimum: int, *children: GroupNode, name: str = "root", key: str | None = None) -> GroupNode:
    return GroupNode(make.composite(name, minimum, topology_key=key), children)


def racks(*cpus: int, nodes: int = 1) -> list[NodeRecord]:
    return [
        make.node(f"r{r}n{n}", cpu=cpu * 1000, labels={RACK: f"r{r}"})
        for r, cpu in enumerate(cpus)
        for n in range(nodes)
    ]


def decided(nodes, root: GroupNode, *, bound=(), expansions: int = 1_250) -> tuple[dict[str, str], Diagnosis]:
    entry = make.hierarchy(root)
    snapshot = make.snapshot(nodes, bound, pending=entry.pods)
    found = decide(snapshot, [entry], PROFILE, now=0, budget=Work(expansions))
    return {bind.pod.name: bind.node for bind in found.plans[0].binds}, found.diagnoses[0]


@pytest.mark.parametrize("affine_first", [True, False])
def test_a_leaf_that_wants_to_be_near_a_sibling_is_placed_whichever_comes_first(affine_first: bool) -> None:
    affine, wanted = leaf("a", ("a", near("b"))), leaf("b", ("b", None))
    binds, _ = decided(racks(4, 4), tree(2, *((affine, wanted) if affine_first else (wanted, affine))))
    assert len(binds) == 2
    assert binds["a-0"] == binds["b-0"]


def test_leaves_whose_members_want_each_other_in_turn_are_interleaved() -> None:
    """b-0 opens to a-1, which opens to b-1: neither leaf can be placed as a whole before the other."""
    first = leaf("a", ("a0", near("b0")), ("a1", near("b1")))
    second = leaf("b", ("b0", None), ("b1", near("a0")))
    binds, _ = decided(racks(1, 8), tree(2, first, second))
    assert set(binds.values()) == {"r1n0"}
    assert len(binds) == 4


def test_a_member_beyond_a_siblings_minimum_is_placed_where_it_opens_the_way() -> None:
    both = leaf("a", ("x", None), ("y", None), minimum=1)
    binds, _ = decided(racks(4), tree(3, leaf("b", ("b", near("x"))), both, leaf("c", ("c", near("y")))))
    assert sorted(binds) == ["a-0", "a-1", "b-0", "c-0"]


def test_leaves_that_keep_out_of_each_others_racks_find_the_only_way() -> None:
    """The small leaf scores best where the large one has to be."""
    small = leaf("a", *[("a", apart("b", key=RACK))] * 2, key=RACK)
    large = leaf("b", *[("b", apart("a", key=RACK))] * 3, key=RACK)
    binds, _ = decided(racks(3, 2), tree(2, small, large))
    assert binds == {"a-0": "r1n0", "a-1": "r1n0", "b-0": "r0n0", "b-1": "r0n0", "b-2": "r0n0"}


def test_one_rack_too_few_for_leaves_that_keep_apart_is_a_proof() -> None:
    leaves = [leaf(f"a{n}", ("w", apart("w", key=RACK))) for n in range(4)]
    binds, diagnosis = decided(racks(4, 4, 4), tree(4, *leaves))
    assert binds == {}
    assert (diagnosis.verdict, diagnosis.proven) == (Verdict.UNSCHEDULABLE, True)
    binds, _ = decided(racks(4, 4, 4, 4), tree(4, *leaves))
    assert len(set(binds.values())) == 4


def test_an_affinity_to_a_sibling_that_cannot_come_near_is_a_proof() -> None:
    affine, wanted = leaf("a", ("a", near("b", key=RACK)), cpu=3000), leaf("b", ("b", None), cpu=3000)
    binds, diagnosis = decided(racks(4, 4), tree(2, affine, wanted))
    assert binds == {}
    assert diagnosis.proven


def test_leaves_spread_evenly_over_racks_together() -> None:
    even = PodDemands(spread=(SpreadConstraint(apps("w"), RACK, 1, hard=True),))
    leaves = [leaf(f"a{n}", *[("w", even)] * 2) for n in range(3)]
    binds, _ = decided(racks(4, 4, 4), tree(3, *leaves))
    assert sorted(binds.values()) == ["r0n0"] * 2 + ["r1n0"] * 2 + ["r2n0"] * 2
    binds, diagnosis = decided(racks(4, 4, 1), tree(3, *leaves))
    assert binds == {}
    assert diagnosis.proven


def test_leaves_with_one_host_port_need_a_node_each() -> None:
    leaves = [leaf(f"a{n}", ("w", None), ("w", None), ports=(80,)) for n in range(2)]
    assert len(set(decided(racks(4, 4, 4, 4), tree(2, *leaves))[0].values())) == 4
    binds, diagnosis = decided(racks(9, 9, 9), tree(2, *leaves))
    assert binds == {}
    assert diagnosis.proven


def test_what_ends_with_the_budget_is_not_called_impossible() -> None:
    kinds = [f"k{n}" for n in range(7)]
    leaves = [leaf(name, (name, near(kinds[n - 1], key=RACK)), cpu=1000 + 100 * n) for n, name in enumerate(kinds)]
    nodes = [make.node(f"n{n}", cpu=1000 + 77 * n, labels={RACK: f"r{n // 5}"}) for n in range(30)]
    _, diagnosis = decided(nodes, tree(7, *leaves), expansions=2)
    assert not diagnosis.proven or diagnosis.verdict is Verdict.SCHEDULED


def test_a_plan_relies_on_the_pods_of_other_nodes_where_leaves_look_at_each_other() -> None:
    entry = make.hierarchy(tree(2, leaf("a", ("a", near("b"))), leaf("b", ("b", None))))
    snapshot = make.snapshot(racks(4), pending=entry.pods)
    plan = decide(snapshot, [entry], PROFILE, now=0).plans[0]
    assert plan.neighbours == snapshot.neighbours.version
