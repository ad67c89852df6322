"""Hierarchies of groups as they are in the cache now: their members, and whether they have what they need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from muster.model.keys import Key
from muster.model.records import CompositeRecord, GroupNode, GroupRecord, PodRecord
from muster.scheduler.cache import Cache, Members
from muster.scheduler.forest import DEEPEST

_NOBODY = Members()
_NONE: Mapping[Key, int] = {}


def member_order(record: PodRecord) -> tuple[int, int, int, Key]:
    """Siblings of one age by completion index, so that number 10 does not stand before number 2."""
    return (-record.priority, record.created, record.rank or 0, record.key)


def tree_of(cache: Cache, root: Key) -> GroupNode:
    """The hierarchy with its pending and running members."""
    return _composite(cache, cache.forest.composites[root], 1)


def _composite(cache: Cache, record: CompositeRecord, level: int) -> GroupNode:
    below: list[GroupNode] = []
    for child in cache.forest.children(record.key):
        if isinstance(child, GroupRecord):
            below.append(_leaf(cache, child))
        elif level + 1 < DEEPEST:
            below.append(_composite(cache, child, level + 1))
    return GroupNode(record, tuple(below))


def _leaf(cache: Cache, record: GroupRecord) -> GroupNode:
    members = cache.members.get(record.key, _NOBODY)
    return GroupNode(
        record,
        (),
        _in_order(members.pending.values()),
        tuple(
            record if record.node else replace(record, node=cache.assumed[record.uid])
            for record in _in_order(members.running.values())
        ),
        len(members.succeeded),
    )


def _in_order(pods: Iterable[PodRecord]) -> tuple[PodRecord, ...]:
    return tuple(sorted(pods, key=member_order))


def nodes_of(tree: GroupNode) -> Iterator[GroupNode]:
    """Every group, parents before children."""
    yield tree
    for child in tree.children:
        yield from nodes_of(child)


def is_satisfied(tree: GroupNode, placed: Mapping[Key, int] = _NONE) -> bool:
    """Whether a group has its minimum with what runs, is done, and would be `placed` (by PodGroup)."""
    if tree.is_leaf:
        there = len(tree.bound) + tree.succeeded + placed.get(tree.record.key, 0)
        return there >= tree.record.min_count
    return sum(is_satisfied(child, placed) for child in tree.children) >= tree.record.min_count


def lets(tree: GroupNode, placed: Mapping[Key, int]) -> bool:
    """Whether these pods may be bound: every group on the way to them is satisfied."""
    if not any(leaf.record.key in placed for leaf in tree.leaves()):
        return True
    return is_satisfied(tree, placed) and all(lets(child, placed) for child in tree.children)
