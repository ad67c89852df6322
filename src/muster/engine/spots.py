"""Where the members of a hierarchy's leaves go: what is on the ledger for them, leaf by leaf."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from muster.engine.gang import place_group
from muster.engine.goals import Goal
from muster.engine.ledger import Assignment
from muster.engine.members import Members
from muster.engine.trial import Trial


class Spot(NamedTuple):
    """Some members of one leaf: `counts` by class, and (class, node of the whole cluster, how many) for them."""

    goal: Goal
    counts: tuple[int, ...]
    where: tuple[tuple[int, int, int], ...]

    @property
    def total(self) -> int:
        return sum(self.counts)


def total(spots: Iterable[Spot]) -> int:
    """How many pods that is."""
    return sum(spot.total for spot in spots)


def counts_of(goal: Goal, spots: Iterable[Spot]) -> tuple[int, ...]:
    """By class, how many members of a leaf are placed."""
    counts = np.zeros(len(goal.members), dtype=np.int64)
    for spot in spots:
        if spot.goal is goal:
            counts += spot.counts
    return tuple(counts.tolist())


def spot_since(world: Trial, checkpoint: int, goal: Goal, counts: Sequence[int]) -> Spot:
    """What a leaf got in this world since the checkpoint."""
    return Spot(goal, tuple(counts), tuple(_globally(world, world.ledger.since(checkpoint))))


def _globally(world: Trial, assignments: Iterable[Assignment]) -> Iterable[tuple[int, int, int]]:
    for cls, nodes, counts in assignments:
        inside = np.atleast_1d(np.asarray(nodes))
        whole = inside if world.placement is None else world.placement.nodes[inside]
        many = np.broadcast_to(np.asarray(counts), inside.shape)
        for node, count in zip(whole.tolist(), many.tolist(), strict=True):
            yield cls, node, count


def replay(trial: Trial, spots: Iterable[Spot]) -> None:
    """Places on the whole cluster what was placed before."""
    for spot in spots:
        for cls, node, count in spot.where:
            trial.ledger.place(cls, node, count)


def some_of(goal: Goal, counts: Sequence[int], after: Sequence[int]) -> list[Members]:
    """`counts` members of each class of a leaf, behind the first `after`; only classes of which there are any."""
    return [
        Members(some.cls, some.pods[start : start + count], some.places[start : start + count])
        for some, count, start in zip(goal.members, counts, after, strict=True)
        if count
    ]


def place_some(world: Trial, goal: Goal, counts: Sequence[int], after: Sequence[int], expansions: int) -> Spot:
    """Places as many as can be of these members of a leaf in this world."""
    members = some_of(goal, counts, after)
    if not members:
        return Spot(goal, (0,) * len(counts), ())
    checkpoint = world.ledger.checkpoint()
    placed = place_group(world, members, sum(counts), expansions, goal.levels, goal.node.bound)
    given = iter(placed.counts)
    return spot_since(world, checkpoint, goal, [next(given) if count else 0 for count in counts])
