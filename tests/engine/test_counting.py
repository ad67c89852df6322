"""Hierarchies with more constrained groups than domains, or just as many."""

from __future__ import annotations

import pytest

from muster.engine.decide import decide
from muster.engine.work import Work
from muster.model.diagnosis import Diagnosis, Verdict
from muster.model.records import GroupNode, NodeRecord
from muster.plugins import default_profile
from muster.testing import builders as make

PROFILE = default_profile()


def leaf(name: str, size: int, *, key: str | None = "rack", cpu: int = 1000, minimum: int | None = None, **pods):
    members = tuple(make.pod(f"{name}-{n}", cpu=cpu, group=name, **pods) for n in range(size))
    return GroupNode(make.group(name, minimum or size, parent="root", topology_key=key), (), members)


def tree(minimum: int, *children: GroupNode, name: str = "root", key: str | None = None) -> GroupNode:
    return GroupNode(make.composite(name, minimum, topology_key=key), children)


def racks(count: int, cpu: int = 2, nodes: int = 2, zones: int = 1, first: int = 0) -> list[NodeRecord]:
    return [
        make.node(f"r{r}n{n}", cpu=cpu * 1000, labels={"rack": f"r{r}", "zone": f"z{r % zones}"})
        for r in range(first, first + count)
        for n in range(nodes)
    ]


def decided(nodes, root: GroupNode, expansions: int = 400) -> tuple[dict[str, str], Diagnosis]:
    found = decide(make.snapshot(nodes), [make.hierarchy(root)], PROFILE, now=0, budget=Work(expansions))
    return {bind.pod.name: bind.node for bind in found.plans[0].binds}, found.diagnoses[0]


@pytest.mark.parametrize("size", [3, 4], ids=["most of a rack", "all of a rack"])
def test_a_rack_for_each_of_fifty_leaves_is_found_and_for_one_more_proven_impossible(size: int) -> None:
    leaves = [leaf(f"a{n:02}", size) for n in range(51)]
    binds, _ = decided(racks(50), tree(50, *leaves[:50]))
    assert len(binds) == 50 * size
    binds, diagnosis = decided(racks(50), tree(51, *leaves))
    assert binds == {}
    assert (diagnosis.verdict, diagnosis.proven) == (Verdict.UNSCHEDULABLE, True)


def test_fifty_of_sixty_leaves_for_fifty_racks() -> None:
    leaves = [leaf(f"a{n:02}", 3) for n in range(60)]
    assert len(decided(racks(50), tree(50, *leaves))[0]) == 150
    binds, diagnosis = decided(racks(49), tree(50, *leaves))
    assert binds == {}
    assert diagnosis.proven


def test_unlike_leaves_for_unlike_racks() -> None:
    """Sizes 3 to 22 onto racks of 3 to 22 in another order; then with the largest rack a slot too small."""
    leaves = [leaf(f"a{n:02}", 3 + n * 7 % 20) for n in range(20)]
    nodes = [make.node(f"n{n}", cpu=(3 + n * 3 % 20) * 1000, labels={"rack": f"r{n}"}) for n in range(20)]
    binds, _ = decided(nodes, tree(20, *leaves))
    assert len(binds) == sum(3 + n for n in range(20))
    smaller = [make.node("n13", cpu=21_000, labels={"rack": "r13"}) if node.name == "n13" else node for node in nodes]
    assert 3 + 13 * 3 % 20 == 22
    binds, diagnosis = decided(smaller, tree(20, *leaves))
    assert binds == {}
    assert diagnosis.proven


def test_leaves_that_only_some_racks_may_hold_are_matched() -> None:
    """Ten leaves may use five racks only: no sum over the whole cluster says so."""
    bound = [leaf(f"b{n}", 2, selector={"kind": "fast"}) for n in range(6)]
    free = [leaf(f"f{n}", 2) for n in range(4)]
    fast = [make.node(f"f{n}", cpu=3000, labels={"rack": f"f{n}", "kind": "fast"}) for n in range(5)]
    slow = [make.node(f"s{n}", cpu=3000, labels={"rack": f"s{n}"}) for n in range(9)]
    binds, diagnosis = decided([*fast, *slow], tree(10, *bound, *free))
    assert binds == {}
    assert diagnosis.proven
    binds, _ = decided([*fast, *slow], tree(9, *bound, *free))
    assert len(binds) == 18


def test_racks_are_counted_inside_the_zones_of_the_groups_between() -> None:
    """Each middle group needs three racks of one zone; two zones of five racks hold one each, not two."""
    middle = [tree(3, *[leaf(f"m{m}a{n}", 3) for n in range(3)], name=f"m{m}", key="zone") for m in range(3)]
    binds, diagnosis = decided(racks(10, zones=2), tree(3, *middle))
    assert binds == {}
    assert diagnosis.proven
    binds, _ = decided(racks(18, zones=2), tree(3, *middle))
    assert len(binds) == 27


def test_groups_without_a_constraint_between_are_looked_through() -> None:
    middle = [tree(2, leaf(f"m{m}a", 3), leaf(f"m{m}b", 3), name=f"m{m}") for m in range(16)]
    assert len(decided(racks(32), tree(16, *middle))[0]) == 96
    binds, diagnosis = decided(racks(31), tree(16, *middle))
    assert binds == {}
    assert diagnosis.proven
