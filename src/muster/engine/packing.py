"""The minimums of several leaves, each in its own placement, onto nodes: quickly if that works, else exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from muster.engine.dive import find
from muster.engine.goals import Goal
from muster.engine.mingle import Item, mingle
from muster.engine.problem import Problem, distinct_rows
from muster.engine.search import Found, Outcome
from muster.engine.spots import Spot, place_some, replay
from muster.engine.trial import Trial
from muster.model.topology import Placement

QUICK = 16
"""What the members of one leaf may cost while leaves are placed one after the other."""
BLIND_SHARE = 4
"""One in so many expansions goes to packing members as if they did not look at each other."""
LOOK = 64
"""What it may cost to see that a lot has no room."""


class Wanted(Protocol):
    """So many members of a leaf in a placement."""

    @property
    def goal(self) -> Goal: ...
    @property
    def placement(self) -> Placement | None: ...
    @property
    def counts(self) -> tuple[int, ...] | None: ...
    @property
    def loose(self) -> bool:
        """Whether other members of the leaf do as well, and more of them: `counts` is but one way to its minimum."""
        ...


class Packing:
    """One hierarchy's such problems; what is placed is on the ledger of the whole cluster.

    Leaves in placements that share no nodes have nothing to do with each other: each lot is placed by itself, and what
    came of it is remembered.
    """

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._known: dict[object, list[Spot] | None] = {}
        """By who is where: where they go; None: there is no way."""
        self._open: set[object] = set()
        """Of these a first look has not told."""
        self.spent = 0
        self.proven = True
        """Where nothing was found at last: there is nothing."""

    def place(self, wanted: Sequence[Wanted], limit: int) -> list[Spot] | None:
        """All of these members, or None and nothing is placed; about `limit` expansions may be spent."""
        asking = [one for one in wanted if one.counts and (one.loose or any(one.counts))]
        lots = [asking] if self._depend(asking) else _apart(asking)
        start, stop, spots = self._trial.ledger.checkpoint(), self.spent + limit, list[Spot]()
        for lot in sorted(lots, key=lambda lot: _name(lot) in self._open):
            some = self._lot(lot, max(stop - self.spent, 1))
            if some is None:
                self._trial.ledger.rollback(start)
                return None
            spots += some
        return spots

    def may_fit(self, wanted: Sequence[Wanted]) -> bool:
        """A short look at a lot, or a part of one. False: there is no way. Nothing is placed."""
        asking = [one for one in wanted if one.counts and any(one.counts)]
        name = _name(asking)
        if name in self._known or name in self._open:
            return self._known.get(name, []) is not None
        classes = {some.cls for one in asking for some, n in zip(one.goal.members, one.counts or (), strict=True) if n}
        if len(classes) < 2 or self._depend(asking):
            return True  # The sums say all that there is to say, or less can be said than that.
        start = self._trial.ledger.checkpoint()
        found = self._lot(asking, LOOK) is not None or not self.proven
        self._trial.ledger.rollback(start)
        return found

    def _depend(self, asking: Sequence[Wanted]) -> bool:
        return any(self._trial.depends(some.cls) for one in asking for some in one.goal.members)

    def _lot(self, asking: Sequence[Wanted], limit: int) -> list[Spot] | None:
        name = _name(asking)
        if name not in self._known:
            self.proven = True
            found = self._find(asking, limit)
            if found is None and not self.proven:
                self._open.add(name)
                return None
            self._known[name] = found
            return found
        known = self._known[name]
        self.proven = True
        if known is not None:
            replay(self._trial, known)
        return known

    def _find(self, asking: Sequence[Wanted], limit: int) -> list[Spot] | None:
        for by_size in (False, True):
            spots = self._one_by_one(asking, by_size)
            if spots is not None:
                return spots
            if len(asking) == 1:
                break
        if self._depend(asking):
            return self._mingled(asking, limit)
        return self._exactly(asking, limit)

    def _mingled(self, asking: Sequence[Wanted], limit: int) -> list[Spot] | None:
        """Members of all leaves in any order, since they open or close nodes to each other."""
        blind = self._blindly(asking, limit // BLIND_SHARE)
        if blind is not None:
            return blind or None
        shares, needs = _shares(asking)
        items = [share.item for share in shares]
        found = mingle(self._trial, items, needs, limit)
        self.spent += found.work
        if found.steps is None:
            self.proven = found.proven
            return None
        where: dict[tuple[int, int], Counter[int]] = {}
        for at, node in found.steps:
            who = next(who for who, left in shares[at].of.items() if left)
            shares[at].of[who] -= 1
            where.setdefault(who, Counter())[node] += 1
        spots = []
        for o, one in enumerate(asking):
            mine = [where.get((o, i), Counter[int]()) for i in range(len(one.goal.members))]
            cells = tuple(
                (some.cls, node, count)
                for some, nodes in zip(one.goal.members, mine, strict=True)
                for node, count in nodes.items()
            )
            spots.append(Spot(one.goal, tuple(nodes.total() for nodes in mine), cells))
        return spots

    def _blindly(self, asking: Sequence[Wanted], limit: int) -> list[Spot] | None:
        """A packing that knows nothing of neighbours, if there is an order for it.

        Empty: there is not enough room even so. None: nothing is said, and nothing is placed.
        """
        items = [(one, i, n) for one in asking for i, n in enumerate(_least(one)) if n]
        if not items:
            return None
        problem = self._problem([(one, i) for one, i, _ in items], np.array([n for _, _, n in items], dtype=np.int64))
        if problem is None:
            return []
        found = find(problem, int(problem.counts.sum()), max(limit, 1))
        self.spent += found.expansions
        if found.outcome is not Outcome.FOUND or any(sum(_least(one)) < one.goal.need for one in asking if one.loose):
            return [] if found.outcome is Outcome.IMPOSSIBLE else None
        where = _where(problem, found)
        start, left = self._trial.ledger.checkpoint(), [(i, *spot) for i, spots in enumerate(where) for spot in spots]
        while left:
            closed: list[tuple[int, int, int]] = []
            for i, node, count in left:
                one, c, _ = items[i]
                while count and self._trial.fits(one.goal.members[c].cls, node):
                    self._trial.ledger.place(one.goal.members[c].cls, node)
                    count -= 1
                closed += [(i, node, count)] if count else []
            if sum(count for *_, count in closed) == sum(count for *_, count in left):
                self._trial.ledger.rollback(start)
                return None
            left = closed
        return _spots([(one, i) for one, i, _ in items], where)

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

    def _exactly(self, asking: Sequence[Wanted], limit: int) -> list[Spot] | None:
        """As one group of unlike pods, each of which may go to the nodes of its own placement only."""
        items = [(one, i) for one in asking for i, n in enumerate(one.counts or ()) if n]
        problem = self._problem(items, np.array([(one.counts or ())[i] for one, i in items], dtype=np.int64))
        if problem is None:
            return None
        found = find(problem, int(problem.counts.sum()), limit)
        self.spent += found.expansions
        if found.outcome is not Outcome.FOUND:
            self.proven = found.outcome is Outcome.IMPOSSIBLE
            return None
        spots = _spots(items, _where(problem, found))
        replay(self._trial, spots)
        return spots

    def _problem(self, items: Sequence[tuple[Wanted, int]], sizes: np.ndarray) -> Problem | None:
        """So many of each class of a leaf. None: some of them have no room at all."""
        trial = self._trial
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


@dataclass(slots=True)
class _Shared:
    """Members that are alike to the search, and of whom they are: (leaf, class of the leaf) -> how many."""

    item: Item
    of: dict[tuple[int, int], int]


def _shares(asking: Sequence[Wanted]) -> tuple[list[_Shared], list[int]]:
    """The items of these leaves and what each party needs. Where all of a leaf's members are to be placed anyway, its
    alike members are one party with those of other such leaves in the same placement."""
    shares: list[_Shared] = []
    needs: list[int] = []
    merged: dict[tuple[int, Placement | None], _Shared] = {}
    for o, one in enumerate(asking):
        sizes = [len(some) for some in one.goal.members] if one.loose else list(one.counts or ())
        need = one.goal.need if one.loose else sum(sizes)
        free = need < sum(sizes)
        if free:
            needs.append(need)
        for i, (some, size) in enumerate(zip(one.goal.members, sizes, strict=True)):
            if not size:
                continue
            known = None if free else merged.get((some.cls, one.placement))
            if known is not None:
                known.of[o, i] = size
                known.item = known.item._replace(size=known.item.size + size)
                needs[known.item.party] += size
                continue
            if not free:
                needs.append(size)
            shares.append(_Shared(Item(len(needs) - 1, some.cls, size, one.placement), {(o, i): size}))
            if not free:
                merged[some.cls, one.placement] = shares[-1]
    return shares, needs


def _where(problem: Problem, found: Found) -> list[list[tuple[int, int]]]:
    """(node, how many) for each class of a problem."""
    where: list[list[tuple[int, int]]] = [[] for _ in problem.counts]
    used = [0] * len(problem.nodes)
    for kind, filling in found.fillings:
        node = int(problem.nodes[kind][used[kind]])
        used[kind] += 1
        for i in np.flatnonzero(filling).tolist():
            where[i].append((node, int(filling[i])))
    return where


def _spots(items: Sequence[tuple[Wanted, int]], where: Sequence[Sequence[tuple[int, int]]]) -> list[Spot]:
    """One for each class of a leaf."""
    spots = []
    for (one, i), given in zip(items, where, strict=True):
        counts = [0] * len(one.goal.members)
        counts[i] = sum(count for _, count in given)
        cls = one.goal.members[i].cls
        spots.append(Spot(one.goal, tuple(counts), tuple((cls, node, count) for node, count in given)))
    return spots


def _least(one: Wanted) -> Sequence[int]:
    """How many of each class there are in every way to the minimum."""
    if not one.loose:
        return one.counts or ()
    beyond = sum(len(some) for some in one.goal.members) - one.goal.need
    return [max(len(some) - beyond, 0) for some in one.goal.members]


def _name(asking: Sequence[Wanted]) -> object:
    return frozenset((one.goal.index, id(one.placement), one.counts) for one in asking)


def _apart(asking: Sequence[Wanted]) -> list[list[Wanted]]:
    """Lots of which no two share a node."""
    lots: list[tuple[set[int] | None, list[Wanted]]] = []
    for one in asking:
        nodes = None if one.placement is None else set(one.placement.nodes.tolist())
        members = [one]
        for lot in list(lots):
            if nodes is None or lot[0] is None or not nodes.isdisjoint(lot[0]):
                lots.remove(lot)
                nodes = None if nodes is None or lot[0] is None else nodes | lot[0]
                members = lot[1] + members
        lots.append((nodes, members))
    return [members for _, members in lots]
