"""Whether a group is placed does not hang on names, on any order, or on there being one node more."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from muster.engine.decide import decide
from muster.model.keys import Key
from muster.model.records import GroupNode, PodRecord, QueueEntry
from muster.plugins import default_profile
from muster.testing import builders
from muster.testing.mixed import Mixed, mixed

PROFILE = default_profile()


def is_placed(instance: Mixed) -> bool:
    return bool(decide(instance.snapshot, [instance.entry], PROFILE, now=0).plans[0].binds)


def turned(instance: Mixed, random: Random) -> Mixed:
    """The same with nodes and members in another order and under other names."""
    world, entry = instance.world, instance.entry
    names = [node.name for node in world.nodes]
    new = dict(zip(names, random.sample(names, len(names)), strict=True))
    nodes = [replace(n, name=new[n.name], labels={**n.labels, builders.HOSTNAME: new[n.name]}) for n in world.nodes]

    def moved(pods: tuple[PodRecord, ...]) -> tuple[PodRecord, ...]:
        return tuple(replace(pod, node=new[pod.node or ""]) for pod in pods)

    def mixed_up(pods: tuple[PodRecord, ...]) -> tuple[PodRecord, ...]:
        names = random.sample([pod.key.name for pod in pods], len(pods))
        renamed = [replace(p, key=Key(p.key.namespace, name)) for p, name in zip(pods, names, strict=True)]
        return tuple(random.sample(renamed, len(renamed)))

    def below(tree: GroupNode) -> GroupNode:
        children = tuple(map(below, random.sample(tree.children, len(tree.children))))
        return replace(tree, children=children, pending=mixed_up(tree.pending), bound=moved(tree.bound))

    if entry.tree is not None:
        other: QueueEntry = builders.hierarchy(below(entry.tree))
    else:
        other = replace(entry, pods=mixed_up(entry.pods), bound=moved(entry.bound))
    there = [replace(pod, node=new[pod.node or ""]) for pod in world.bound]
    return replace(instance, world=replace(world, nodes=random.sample(nodes, len(nodes)), bound=there), entry=other)


def with_one_more_node(instance: Mixed, random: Random) -> Mixed:
    model = random.choice(instance.world.nodes)
    another = replace(model, name="another", labels={**model.labels, builders.HOSTNAME: "another"})
    return replace(instance, world=replace(instance.world, nodes=[*instance.world.nodes, another]))


def spreads(instance: Mixed) -> bool:
    """Whether an empty domain more could make it harder."""
    demands = [pod.cls.demands for pod in instance.entry.pods if pod.cls.demands is not None]
    return any(constraint.hard for one in demands for constraint in one.spread)


def faults(seeds: range) -> list[str]:
    wrong = []
    for seed in seeds:
        instance, random = mixed(seed), Random(seed)
        placed = is_placed(instance)
        if is_placed(turned(instance, random)) is not placed:
            wrong.append(f"{instance.name}: placed {placed}, and not so in another order")
        if placed and not spreads(instance) and not is_placed(with_one_more_node(instance, random)):
            wrong.append(f"{instance.name}: not placed with one more node")
    return wrong


def test_neither_names_nor_order_nor_one_more_node_keep_a_group_from_being_placed() -> None:
    assert faults(range(120)) == []


@pytest.mark.soak
def test_neither_names_nor_order_nor_one_more_node_keep_a_group_from_being_placed_soak() -> None:
    assert faults(range(120, 3000)) == []
