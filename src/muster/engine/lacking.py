"""What a hierarchy that was not placed cannot do without and does not have: slots for one class, somewhere.

A bound and no guess: until so many slots more are there, no attempt can succeed, so nobody need try (M4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from muster.engine.goals import Goal
from muster.engine.spots import Spot, counts_of
from muster.engine.trial import Trial
from muster.model.diagnosis import Awaited
from muster.model.records import PodClass
from muster.model.topology import domains_of


def awaited(trial: Trial, root: Goal) -> Awaited | None:
    """The largest such lack, with nothing of the hierarchy on the ledger; None: there is room for each class alone."""
    found = [lack for goal in _mandatory(root) for lack in _lacks(trial, goal)]
    return max(found, key=lambda lack: lack.slots, default=None)


def awaited_by_rest(trial: Trial, root: Goal, spots: Sequence[Spot]) -> Awaited | None:
    """A slot in the one domain where all that is left of a running hierarchy has to go; None: there is none such."""
    found: dict[tuple[PodClass, str, str], None] = {}
    for leaf, around in _with_constraint(root, None):
        for some, count in zip(leaf.members, counts_of(leaf, spots), strict=True):
            if count < len(some):
                value = "" if around is None else _pinned(trial, around, spots)
                if around is None or not value or not leaf.possible:
                    return None
                found[some.pods[0].cls, around.key or "", value] = None
    if len(found) != 1:
        return None
    ((pod_class, key, value),) = found
    return Awaited(pod_class, 1, 1, key, ((value, 1),), value)


def _with_constraint(goal: Goal, around: Goal | None) -> Iterator[tuple[Goal, Goal | None]]:
    """Every leaf that may be tried, with the nearest constrained group that it is in or is."""
    nearest = goal if goal.key is not None else around
    if goal.is_leaf:
        yield goal, nearest
    for child in goal.children:
        yield from _with_constraint(child, nearest)


def _mandatory(goal: Goal) -> Iterator[Goal]:
    """It and the groups below it without which it cannot be satisfied."""
    if goal.done or not goal.possible:
        return
    yield goal
    able = [child for child in goal.children if not child.done]
    if goal.need == len(able):
        for child in able:
            yield from _mandatory(child)


def _least(goal: Goal) -> Mapping[int, int]:
    """By class, how many pods it takes at least for it to be satisfied."""
    if goal.is_leaf:
        beyond = sum(len(some) for some in goal.members) - goal.need
        return {some.cls: len(some) - beyond for some in goal.members if len(some) > beyond}
    below = [_least(child) for child in goal.children if not child.done]
    fewest = {cls: sum(sorted(one.get(cls, 0) for one in below)[: goal.need]) for cls in set().union(*below)}
    return {cls: fewest[cls] for cls in sorted(fewest) if fewest[cls]}


def _lacks(trial: Trial, goal: Goal) -> Iterator[Awaited]:
    """Classes of which the whole cluster, or every domain that a constrained group may use, has too few slots."""
    if goal.key is None and goal.depth:
        return  # It shares a domain, or the cluster, with its parent, which is asked for no less.
    for cls, count in _least(goal).items():
        slots, domain = trial.state(cls).slots, ""
        deficits: tuple[tuple[str, int], ...] = ()
        lacking = count - int(slots.sum())
        if goal.key is not None:
            # Equal values under different parents count as one domain here: that makes the bound weaker, not wrong.
            domains = domains_of(trial.snapshot.nodes, goal.key)
            sums = dict(zip(domains.values, domains.sums(slots).tolist(), strict=True))
            domain = _pinned(trial, goal)
            deficits = tuple((value, count - sums[value]) for value in ([domain] if domain else sums) if value in sums)
            lacking = min((missing for _, missing in deficits), default=count)
        if lacking > 0:
            yield Awaited(_class_of(goal, cls), lacking, count, goal.key or "", deficits, domain)


def _class_of(goal: Goal, cls: int) -> PodClass:
    return next(some.pods[0].cls for leaf in goal.leaves() for some in leaf.members if some.cls == cls)


def _pinned(trial: Trial, goal: Goal, spots: Sequence[Spot] = ()) -> str:
    """The domain of its members that run or are placed; "" where there are none."""
    assert goal.key is not None and goal.entry is not None
    nodes, leaves = trial.snapshot.nodes, set(goal.leaves())
    held = (nodes.index.get(pod.node) for pod in goal.entry.bound if pod.node)
    placed = (node for spot in spots if spot.goal in leaves for _, node, _ in spot.where)
    return next((nodes.records[n].labels.get(goal.key, "") for n in (*held, *placed) if n is not None), "")
