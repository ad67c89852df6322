"""A hierarchy of goals as one program, and what came of it in terms of leaves, placements and spots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from muster.engine.goals import Goal
from muster.engine.placement import Refusal
from muster.engine.spots import Spot
from muster.engine.trial import Trial
from muster.engine.whole import Drawn, Part
from muster.model.topology import Placement, domains_of


class Drawing:
    """The question about a hierarchy. `root` is what is to be drawn."""

    def __init__(self, trial: Trial, goal: Goal) -> None:
        self._trial, self._goal = trial, goal
        self._part: dict[Goal, Part] = {}
        self._values: dict[Goal, list[str]] = {}
        self.root = self._part_of(goal)

    def _part_of(self, goal: Goal) -> Part:
        children = tuple(self._part_of(child) for child in goal.children)
        members = tuple((some.cls, len(some)) for some in goal.members) if goal.is_leaf else ()
        domains = None
        if goal.key is not None:
            found = goal.domains(self._trial)
            among = [] if isinstance(found, Refusal) else [found.domains[d] for d in found.among.tolist()]
            self._values[goal] = [placement.value for placement in among]
            domains = [placement.nodes for placement in among]
        part = self._part[goal] = Part(goal.need, children, members, domains)
        return part

    def spots(self, drawn: Drawn) -> list[Spot]:
        """What was placed, leaf by leaf."""
        found = []
        for leaf in self._goal.leaves():
            cells = [cell for cell in drawn.cells if cell.leaf is self._part[leaf]]
            if cells:
                where = tuple((cell.cls, cell.node, cell.many) for cell in cells)
                found.append(Spot(leaf, self._counts(drawn, leaf), where))
        return found

    def _counts(self, drawn: Drawn, leaf: Goal) -> tuple[int, ...]:
        counts = [0] * len(leaf.members)
        for cell in drawn.cells:
            if cell.leaf is self._part[leaf]:
                counts[cell.i] += cell.many
        return tuple(counts)

    def results(self, drawn: Drawn) -> Iterator[Result]:
        """Every leaf that was satisfied, and every group that was left out, as a whole."""
        return self._below(drawn, self._goal, None)

    def _below(self, drawn: Drawn, goal: Goal, where: Placement | None) -> Iterator[Result]:
        part = self._part[goal]
        placed = any(cell.leaf in part.all() for cell in drawn.cells)
        if part not in drawn.satisfied or not (placed or goal.need):
            yield Result(goal, where, None)
            return
        if goal.key is not None and part in drawn.domains:
            domains = domains_of(self._trial.snapshot.nodes, goal.key, where)
            where = domains[domains.place[self._values[goal][drawn.domains[part]]]]
        if goal.is_leaf:
            yield Result(goal, where, self._counts(drawn, goal))
        for child in goal.children:
            yield from self._below(drawn, child, where)


class Result(NamedTuple):
    """What a leaf got in a placement; of a group that was left out there are no counts."""

    goal: Goal
    placement: Placement | None
    counts: tuple[int, ...] | None
