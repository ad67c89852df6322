"""The oracle for mixed instances against trying every assignment in every order."""

from itertools import product

import pytest

from muster.model.plan import Bind
from muster.testing import company, oracle, trees
from muster.testing.crowd import crowd_of
from muster.testing.mixed import Mixed, mixed
from muster.testing.solver import most, solve
from muster.testing.truth import unsound
from muster.testing.turns import most_in_turn


def tiny(seed: int) -> Mixed:
    return mixed(seed, most_nodes=3, most_pods=4)


def possible(instance: Mixed) -> bool:
    """Whether any assignment of members, or of some of them, keeps every rule."""
    entry, names = instance.entry, [None, *(node.name for node in instance.world.nodes)]
    view = instance.snapshot
    for nodes in product(names, repeat=len(entry.pods)):
        binds = [Bind(pod.key, pod.uid, node) for pod, node in zip(entry.pods, nodes, strict=True) if node]
        if not binds or (entry.tree is None and len(binds) < entry.needed):
            continue
        wrong = oracle.violations if entry.tree is None else trees.tree_violations
        if company.is_possible(instance.world, entry, binds) and not wrong(view, entry, binds):
            return True
    return False


def compared(seeds: range) -> None:
    both, unknown = [0, 0], []
    for seed in seeds:
        instance = tiny(seed)
        found, true = solve(instance.world, instance.entry), possible(instance)
        assert found.possible in (true, None), instance.name
        both[true] += 1
        if found.possible is None:
            unknown.append(instance.name)
    assert min(both) > len(seeds) // 8, both
    assert len(unknown) <= len(seeds) // 500, unknown


def test_what_the_solver_finds_is_what_trying_everything_finds() -> None:
    compared(range(180))


@pytest.mark.soak
def test_what_the_solver_finds_is_what_trying_everything_finds_soak() -> None:
    compared(range(180, 6000))


def test_placements_that_the_solver_finds_keep_every_rule() -> None:
    for seed in range(240):
        instance = mixed(seed)
        found = solve(instance.world, instance.entry)
        waiting = {r: list(role.pods) for r, role in enumerate(crowd_of(instance.world, instance.entry).roles)}
        binds = []
        for (r, n), count in found.placement.items():
            for _ in range(count):
                pod = waiting[r].pop()
                binds.append(Bind(pod.key, pod.uid, instance.world.nodes[n].name))
        assert list(unsound(instance, binds)) == [], instance.name


def test_the_most_members_are_those_that_trying_everything_places() -> None:
    exact = 0
    for seed in range(240):
        instance = tiny(seed)
        if instance.entry.tree is not None or instance.entry.group.topology_key is not None:
            continue
        tried, bound = most_in_turn(crowd_of(instance.world, instance.entry)), most(instance.world, instance.entry)
        assert tried == company.most(instance.world, instance.entry) <= bound, instance.name
        exact += tried == bound
    assert exact > 60


def test_instances_are_the_same_from_the_same_seed_and_within_their_limits() -> None:
    for seed in range(120):
        instance = mixed(seed)
        assert instance == mixed(seed)
        assert 2 <= len(instance.world.nodes) <= 12
        assert len(instance.entry.pods) <= 30
