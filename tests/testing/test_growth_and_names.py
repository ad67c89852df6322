"""One group alone: another node never costs its placement, and order and names of pods and nodes do not matter (M1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_company_against_engine import Question, questions
from test_trees_against_oracle import Instance as Tree

from muster.engine.decide import decide
from muster.engine.work import Work
from muster.model.records import GroupNode, NodeRecord, PodRecord, QueueEntry
from muster.plugins import default_profile
from muster.testing import builders, company
from muster.testing.strategies import instances

PROFILE = default_profile()
BUDGET = Work(200_000)
QUICK = settings(max_examples=60, deadline=None, derandomize=True)
SOAK = settings(max_examples=1500, deadline=None, print_blob=True)
LEVELS = ("zone", "rack")


class Case(NamedTuple):
    """One group that is pending in a cluster."""

    nodes: tuple[NodeRecord, ...]
    bound: tuple[PodRecord, ...]
    entry: QueueEntry
    spaces: Mapping[str, Mapping[str, str]] = {}

    @property
    def is_placed(self) -> bool:
        known = {name for pod in self.entry.pods for name, _ in pod.cls.requests}
        snapshot = builders.snapshot(
            self.nodes, self.bound, known=known, pending=self.entry.pods, spaces=self.spaces, levels=LEVELS
        )
        return bool(decide(snapshot, [self.entry], PROFILE, now=0, budget=BUDGET).plans[0].binds)

    def with_node(self, node: NodeRecord) -> Case:
        return self._replace(nodes=(*self.nodes, node))

    def shuffled(self, random: Random) -> Case:
        """Nodes and pods in another order, with their names dealt out anew."""
        names = _dealt([node.name for node in self.nodes], random)
        called = _dealt([pod.key.name for pod in self.entry.pods], random)

        def moved(pods: Iterable[PodRecord]) -> tuple[PodRecord, ...]:
            return tuple(replace(pod, node=names.get(pod.node or "", pod.node)) for pod in pods)

        def others(pods: Sequence[PodRecord]) -> tuple[PodRecord, ...]:
            mixed = random.sample(list(pods), len(pods))
            return tuple(replace(pod, key=pod.key._replace(name=called[pod.key.name])) for pod in mixed)

        def tree(node: GroupNode) -> GroupNode:
            children = tuple(tree(child) for child in random.sample(node.children, len(node.children)))
            return replace(node, children=children, pending=others(node.pending), bound=moved(node.bound))

        nodes = [
            replace(node, name=names[node.name], labels={**node.labels, builders.HOSTNAME: names[node.name]})
            for node in random.sample(self.nodes, len(self.nodes))
        ]
        if self.entry.tree is not None:
            entry = builders.hierarchy(tree(self.entry.tree))
        else:
            entry = replace(self.entry, pods=others(self.entry.pods), bound=moved(self.entry.bound))
        return self._replace(nodes=tuple(nodes), bound=moved(self.bound), entry=entry)


def _dealt(names: list[str], random: Random) -> dict[str, str]:
    return dict(zip(names, random.sample(names, len(names)), strict=True))


@st.composite
def flat(draw: st.DrawFn) -> Case:
    """Like and unlike members, with a topology constraint or without."""
    found = draw(instances(heads=1, by_name=False).filter(lambda one: len(one.nodes) and len(one.heads)))
    entry = found.heads[0]
    nodes = [replace(node, labels={**node.labels, **draw(st.sampled_from(_PLACES))}) for node in found.nodes]
    if entry.group is not None:
        key = draw(st.sampled_from((None, "zone", "rack")))
        entry = replace(entry, group=replace(entry.group, topology_key=key))
    return Case(tuple(nodes), found.bound, entry)


_PLACES = ({"zone": "a", "rack": "a1"}, {"zone": "a", "rack": "a2"}, {"zone": "b", "rack": "b1"}, {"rack": "c"}, {})


@st.composite
def trees(draw: st.DrawFn) -> Case:
    found = Tree(draw(st.integers(0, 100_000)))
    return Case(tuple(found.nodes), tuple(found.bound), found.entry)


@st.composite
def dependent(draw: st.DrawFn) -> Case:
    """Members that look at each other."""
    asked: Question = draw(questions())
    world: company.World = asked.world
    return Case(tuple(world.nodes), tuple(world.bound), asked.entry, world.spaces)


def _has_spread(case: Case) -> bool:
    return any(pod.cls.demands is not None and pod.cls.demands.spread for pod in case.entry.pods)


ALL: Mapping[str, Callable[[], st.SearchStrategy[Case]]] = {"flat": flat, "tree": trees, "dependent": dependent}


def growth(case: Case, random: Random) -> None:
    like = random.choice(case.nodes)
    labels = {**random.choice(case.nodes).labels, builders.HOSTNAME: "extra"}
    new = replace(like, name="extra", uid="uid-extra", labels=labels)
    if case.is_placed and not _has_spread(case):
        assert case.with_node(new).is_placed


def names(case: Case, random: Random) -> None:
    assert case.shuffled(random).is_placed == case.is_placed


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("law", [growth, names])
def test_neither_another_node_nor_order_or_names_cost_a_placement(law, kind):
    @QUICK
    @given(ALL[kind](), st.randoms(use_true_random=False))
    def holds(case, random):
        if case.entry.pods:
            law(case, random)

    holds()


@pytest.mark.soak
@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("law", [growth, names])
def test_the_same_at_length(law, kind):
    @SOAK
    @given(ALL[kind](), st.randoms(use_true_random=False))
    def holds(case, random):
        if case.entry.pods:
            law(case, random)

    holds()
