"""Running groups below their minimum: they go before new ones of their priority, with what they lack (M12)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from muster.model.keys import Key
from muster.model.plan import Bind, Plan
from muster.model.records import CompositeRecord, EntryKey, EntryKind, GroupRecord, QueueEntry
from muster.scheduler.cache import Cache, Members
from muster.scheduler.forest import DEEPEST

_NOBODY = Members()
_NOTHING: Mapping[Key, int] = {}


class _State(NamedTuple):
    """A group with what runs of it: anything, its minimum, and whether a group in it runs without its minimum."""

    runs: bool
    satisfied: bool
    broken: bool


def is_broken(cache: Cache, key: EntryKey) -> bool:
    """Whether it runs, or in a hierarchy a group of it does, without having its minimum."""
    if key.kind is EntryKind.POD_GROUP:
        group = cache.groups.get(key.key)
        return group is not None and _leaf(cache, group).broken
    if key.kind is EntryKind.COMPOSITE:
        root = cache.forest.composites.get(key.key)
        runs = any(cache.members.get(leaf, _NOBODY).running for leaf in cache.forest.leaves(key.key))
        return runs and root is not None and _composite(cache, root, 1).broken
    return False


def deficit(cache: Cache, key: EntryKey) -> int | None:
    """How many pods a broken flat group may place now if it has more pending than it lacks."""
    if key.kind is not EntryKind.POD_GROUP or not is_broken(cache, key):
        return None
    lacking = _lacking(cache, cache.groups[key.key])
    return lacking if lacking < len(cache.members[key.key].pending) else None


def has_surplus(cache: Cache, key: EntryKey) -> bool:
    """Whether a broken group has more pending than it lacks; of a hierarchy that is not known before it is decided."""
    if key.kind is EntryKind.COMPOSITE:
        return is_broken(cache, key)
    return deficit(cache, key) is not None


def only_deficit(cache: Cache, head: QueueEntry, plan: Plan) -> Plan:
    """Of the plan for a broken group what brings it back to its minimum; other plans as they are.

    So are those whose pods may open nodes to each other: a part of them need not hold by itself. Where nothing of a
    hierarchy's plan mends what is broken, it is taken as a whole.
    """
    if plan.mutual or not is_broken(cache, head.key):
        return plan
    if head.tree is None:
        allowed = deficit(cache, head.key)
        return plan if allowed is None else _cut(plan, plan.binds[:allowed])
    groups = {pod.uid: Key(pod.key.namespace, pod.group or "") for pod in head.pods}
    placed = Counter(groups[step.uid] for step in plan.binds)
    keep = _needed(cache, cache.forest.composites[head.key.key], 1, placed)
    steps: list[Bind] = []
    for step in plan.binds:
        if keep[groups[step.uid]] > 0:
            keep[groups[step.uid]] -= 1
            steps.append(step)
    return _cut(plan, tuple(steps)) if steps else plan


def _cut(plan: Plan, steps: tuple[Bind, ...]) -> Plan:
    return plan if len(steps) == len(plan.binds) else replace(plan, steps=steps)


def _lacking(cache: Cache, group: GroupRecord, placed: int = 0) -> int:
    members = cache.members.get(group.key, _NOBODY)
    return max(group.min_count - len(members.running) - len(members.succeeded) - placed, 0)


def _leaf(cache: Cache, group: GroupRecord, placed: int = 0) -> _State:
    runs, satisfied = bool(cache.members.get(group.key, _NOBODY).running), not _lacking(cache, group, placed)
    return _State(runs, satisfied, runs and not satisfied)


def _composite(cache: Cache, record: CompositeRecord, level: int, placed: Mapping[Key, int] = _NOTHING) -> _State:
    below = [_state(cache, child, level + 1, placed) for child in _children(cache, record, level)]
    runs, satisfied = any(it.runs for it in below), sum(it.satisfied for it in below) >= record.min_count
    return _State(runs, satisfied, any(it.broken for it in below) or (runs and not satisfied))


def _state(cache: Cache, child: CompositeRecord | GroupRecord, level: int, placed: Mapping[Key, int]) -> _State:
    if isinstance(child, GroupRecord):
        return _leaf(cache, child, placed.get(child.key, 0))
    return _composite(cache, child, level, placed)


def _children(cache: Cache, record: CompositeRecord, level: int) -> list[CompositeRecord | GroupRecord]:
    every = cache.forest.children(record.key)
    return [child for child in every if isinstance(child, GroupRecord) or level + 1 < DEEPEST]


def _needed(cache: Cache, group: CompositeRecord | GroupRecord, level: int, placed: Mapping[Key, int]) -> Counter[Key]:
    """By PodGroup, how many of the placed pods bring a group to its minimum: those that run first, then others."""
    if isinstance(group, GroupRecord):
        return Counter({group.key: min(_lacking(cache, group), placed.get(group.key, 0))})
    found: Counter[Key] = Counter()
    mended: list[CompositeRecord | GroupRecord] = []
    others: list[CompositeRecord | GroupRecord] = []
    satisfied = 0
    for child in _children(cache, group, level):
        now, then = _state(cache, child, level + 1, _NOTHING), _state(cache, child, level + 1, placed)
        satisfied += now.satisfied
        if now.broken and then.satisfied:
            mended.append(child)
            satisfied += not now.satisfied
        elif then.satisfied and not now.satisfied:
            others.append(child)
    for child in (*mended, *others[: max(group.min_count - satisfied, 0)]):
        found.update(_needed(cache, child, level + 1, placed))
    return found
