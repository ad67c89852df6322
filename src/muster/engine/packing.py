"""The minimums of several leaves, each in its own placement, onto nodes: quickly if that works, else exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from muster.engine.dive import find
from muster.engine.goals import Goal
from muster.engine.problem import Problem, distinct_rows
from muster.engine.search import Outcome
from muster.engine.spots import Spot, place_some
from muster.engine.trial import Trial
from muster.model.topology import Placement

QUICK = 16
"""What the members of one leaf may cost while leaves are placed one after the other."""


class Wanted(Protocol):
    """So many members of a leaf in a placement."""

    @property
    def goal(self) -> Goal: ...
    @property
    def placement(self) -> Placement | None: ...
    @property
    def counts(self) -> tuple[int, ...] | None: ...


class Packing:
    """One such problem; what is placed is on the ledger of the whole cluster."""

    def __init__(self, trial: Trial, limit: int) -> None:
        self._trial, self._limit = trial, limit
        self.spent = 0
        self.proven = True
        """Where nothing was found: there is nothing."""

    def place(self, wanted: Sequence[Wanted]) -> list[Spot] | None:
        """All of these members, or None and nothing is placed."""
        asking = [one for one in wanted if one.counts and any(one.counts)]
        for by_size in (False, True):
            spots = self._one_by_one(asking, by_size)
            if spots is not None:
                return spots
            if len(asking) == 1:
                break
        if any(self._trial.depends(some.cls) for one in asking for some in one.goal.members):
            self.proven = False
            return None
        return self._exactly(asking)

    def _one_by_one(self, asking: Sequence[Wanted], by_size: bool) -> list[Spot] | None:
        """The narrowest placement first, or the largest pods."""
        trial, spots, start = self._trial, list[Spot](), self._trial.ledger.checkpoint()

        def order(one: Wanted) -> tuple[int, int, int]:
            width = len(trial) if one.placement is None else len(one.placement.nodes)
            size = max(int(trial.ledger.amounts[some.cls].sum()) for some in one.goal.members)
            return (-size, width, one.goal.index) if by_size else (width, -size, one.goal.index)

        for one in sorted(asking, key=order):
            assert one.counts is not None
            world = trial if one.placement is None else trial.part(one.placement)
            spot = place_some(world, one.goal, one.counts, (0,) * len(one.counts), QUICK)
            if spot.counts != one.counts:
                if world is not trial:
                    world.ledger.rollback(0)
                trial.ledger.rollback(start)
                return None
            if world is not trial:
                trial.adopt(world)
            spots.append(spot)
        return spots

    def _exactly(self, asking: Sequence[Wanted]) -> list[Spot] | None:
        """As one group of unlike pods, each of which may go to the nodes of its own placement only."""
        items = [(one, i) for one in asking for i, n in enumerate(one.counts or ()) if n]
        problem = self._problem(items)
        if problem is None:
            return None
        found = find(problem, int(problem.counts.sum()), self._limit)
        self.spent += found.expansions
        if found.outcome is not Outcome.FOUND:
            self.proven = found.outcome is Outcome.IMPOSSIBLE
            return None
        where: list[list[tuple[int, int, int]]] = [[] for _ in items]
        used = [0] * len(problem.nodes)
        for kind, filling in found.fillings:
            node = int(problem.nodes[kind][used[kind]])
            used[kind] += 1
            for item in np.flatnonzero(filling).tolist():
                one, i = items[item]
                where[item].append((one.goal.members[i].cls, node, int(filling[item])))
        spots = []
        for (one, i), given in zip(items, where, strict=True):
            counts = [0] * len(one.counts or ())
            counts[i] = sum(count for _, _, count in given)
            spots.append(Spot(one.goal, tuple(counts), tuple(given)))
            for cls, node, count in given:
                self._trial.ledger.place(cls, node, count)
        return spots

    def _problem(self, items: Sequence[tuple[Wanted, int]]) -> Problem | None:
        """None: some of them have no room at all."""
        trial = self._trial
        sizes = np.array([(one.counts or ())[i] for one, i in items], dtype=np.int64)
        classes = [one.goal.members[i].cls for one, i in items]
        slots = np.stack([trial.state(cls).slots for cls in classes], axis=1)
        for at, (one, _) in enumerate(items):
            if one.placement is not None:
                inside = np.zeros(len(trial), dtype=bool)
                inside[one.placement.nodes] = True
                slots[:, at] *= inside
        slots = np.minimum(slots, sizes)
        if (slots.sum(axis=0) < sizes).any():
            return None
        amounts = trial.ledger.amounts[classes]
        rows = np.flatnonzero(amounts.any(axis=0))
        amounts = amounts[:, rows]
        useful = np.flatnonzero(slots.any(axis=1))
        slots = slots[useful]
        cells = np.ix_(rows, useful)
        room = (trial.ledger.capacity[cells] - trial.ledger.used[cells]).T
        free = np.clip(room, 0, slots @ amounts)
        kinds, kind = distinct_rows(np.hstack((free, slots > 0)))
        nodes = tuple(useful[kind == t] for t in range(len(kinds)))
        return Problem(amounts, sizes, free[kinds], slots[kinds] > 0, nodes)
