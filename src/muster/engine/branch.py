"""Complete search through a hierarchy: which children, and which domain for each constrained group.

Depth first over (group, domain) with the bounds of `room`; only minimums are placed, so that no group takes what
another one's minimum needs (M2). Where all is chosen, `packing` puts the members onto nodes. What is over is given out
after that; the search goes on for a while for a choice that takes more members (M3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from muster.engine.attempt import attempt
from muster.engine.drawing import Drawing
from muster.engine.gang import IMPROVING_SHARE
from muster.engine.goals import Goal
from muster.engine.packing import Packing
from muster.engine.room import Demand, Room
from muster.engine.search import Outcome
from muster.engine.spots import Spot, counts_of, place_some, total
from muster.engine.trial import Trial
from muster.engine.whole import draw
from muster.model.topology import Placement

DRAWING_SHARE = 4
"""One in so many expansions is for asking about everything at once."""
LEASH = 8
"""One in so many expansions is for one way to choose children and domains, until all have been looked at."""


class Share(NamedTuple):
    """A leaf's minimum (`counts` by class) in a placement; a child that was left out has no counts."""

    goal: Goal
    placement: Placement | None
    counts: tuple[int, ...] | None
    loose: bool = False
    """Other members do as well, and more may be needed by those who look at them: `counts` is one way of many."""

    @property
    def demand(self) -> Demand:
        """What it takes at least."""
        if not self.counts:
            return ()
        if self.loose:
            beyond = sum(len(some) for some in self.goal.members) - self.goal.need
            least = ((some.cls, len(some) - beyond) for some in self.goal.members)
            return tuple((cls, n) for cls, n in least if n > 0)
        return tuple((some.cls, n) for some, n in zip(self.goal.members, self.counts, strict=True) if n)


class _Task(NamedTuple):
    """Something to be chosen. `child` >= 0: whether that child is taken, `taken` having been so before."""

    goal: Goal
    placement: Placement | None
    settled: bool = False
    """Its domain is chosen, or it needs none."""
    child: int = 0
    taken: int = 0

    @property
    def name(self) -> tuple[int, int, bool, int, int]:
        return (self.goal.index, id(self.placement), self.settled, self.child, self.taken)


class _Move(NamedTuple):
    tasks: tuple[_Task, ...]
    share: Share | None = None


@dataclass(slots=True)
class _Frame:
    moves: Iterator[_Move]
    share: Share | None
    name: object
    found: int
    """Placements found before it was entered."""


class Branch:
    """One search. `best` is the placement with most members found so far; nothing stays on the ledger."""

    def __init__(self, trial: Trial, root: Goal, limit: int, best: list[Spot] | None = None) -> None:
        self._trial, self._root, self._limit = trial, root, limit
        self.room = Room(trial, root)
        self.best = best
        self.spent = 0
        self.proven = True
        """False: something was left unsearched."""
        self._found = 0
        self._shares: list[Share] = []
        self._loads: dict[Placement | None, dict[int, int]] = {}
        self._dead: set[object] = set()
        self._sparing = False
        self._stop = limit
        self._leash = limit
        self._most = self.room.most(root, None)
        self._packing = Packing(trial)
        self._loose = any(trial.depends(some.cls) for leaf in root.leaves() for some in leaf.members)

    def run(self) -> None:
        """First with as many children as can be, then, if nothing was found, with as few as must be.

        One question to `packing` may not use up the budget before others have been asked; what stays open is asked
        again at the end.
        """
        possible = self.room.has_option(self._root, None)
        self.spent += 1 + self.room.counting.spent
        if not possible:
            return
        if self._is_best_possible():
            return
        if self.best is not None:
            self._stop = max(self._limit // IMPROVING_SHARE, 1)
        self._leash = max(self._limit // LEASH, 1)
        if self._loose and self.best is None:
            ended = self._search(self._leash)
            if (self.best is None and not (ended and self.proven)) and self._draw():
                return
        ended = self._search(self._limit // 2)
        if not ended and self.best is None:
            ended = self._again(sparing=True)
        if ended and not self.proven and self.best is None:
            self._leash = self._limit
            self._again(sparing=False)
        self.proven = self.proven and self.spent < self._limit

    def _draw(self) -> bool:
        """Asks about children, domains and nodes at once; whether that settles it."""
        drawing, start = Drawing(self._trial, self._root), self._trial.ledger.checkpoint()
        drawn = draw(self._trial, drawing.root, max(self._limit // DRAWING_SHARE, 1))
        self.spent += drawn.spent
        if drawn.outcome is Outcome.STOPPED:
            return False
        self.proven = True
        if drawn.outcome is Outcome.FOUND:
            spots = drawing.spots(drawn)
            self._shares = [Share(*some, self._loose) for some in drawing.results(drawn)]
            self._fill(spots)
            self._shares = []
            self.best = spots
        self._trial.ledger.rollback(start)
        return True

    def _again(self, *, sparing: bool) -> bool:
        self._sparing = sparing
        self._dead.clear()
        self.proven = True
        return self._search(self._limit)

    def _search(self, limit: int) -> bool:
        """Whether it came to its end."""
        start = (_Task(self._root, None),)
        stack = [self._frame(start, None)]
        while stack:
            if self.spent >= min(limit, self._stop):
                break
            frame = stack[-1]
            move = next(frame.moves, None)
            if move is None:
                stack.pop()
                if self._found == frame.found:
                    self._dead.add(frame.name)
                self._take_back(frame.share)
                continue
            self.spent += 1
            if not self._put(move.share):
                continue
            if move.tasks:
                entered = self._frame(move.tasks, move.share)
                if entered.name not in self._dead:
                    stack.append(entered)
                    continue
            elif self._complete():
                break
            self._take_back(move.share)
        ended = not stack
        self._shares.clear()
        self._loads.clear()
        return ended or self._is_best_possible()

    def _is_best_possible(self) -> bool:
        return self.best is not None and total(self.best) >= self._most

    # -- what has been chosen

    def _put(self, share: Share | None) -> bool:
        """Takes a choice in, if the sums still allow it in every placement around it."""
        if share is None:
            return True
        self._shares.append(share)
        demand, where = share.demand, share.placement
        touched: list[Placement | None] = []
        while True:
            load = self._loads.setdefault(where, {})
            for cls, count in demand:
                load[cls] = load.get(cls, 0) + count
            touched.append(where)
            if where is None:
                break
            where = where.parent
        if not demand:
            return True
        if all(self.room.holds(tuple(self._loads[w].items()), w) for w in touched) and self._may_fit(share):
            return True
        self._take_back(share)
        return False

    def _may_fit(self, share: Share) -> bool:
        """Whether all that is in the domain chosen for a leaf may fit there, beyond what the sums say."""
        where = share.placement
        if share.goal.key is None or where is None:
            return True
        before = self._packing.spent
        fits = self._packing.may_fit([other for other in self._shares if other.placement is where])
        self.spent += self._packing.spent - before
        return fits

    def _take_back(self, share: Share | None) -> None:
        if share is None:
            return
        self._shares.pop()
        where = share.placement
        while True:
            load = self._loads[where]
            for cls, count in share.demand:
                load[cls] -= count
                if not load[cls]:
                    del load[cls]
            if where is None:
                return
            where = where.parent

    def _frame(self, tasks: tuple[_Task, ...], share: Share | None) -> _Frame:
        at = min(range(len(tasks)), key=lambda i: self._rank(tasks[i]))
        task, rest = tasks[at], tasks[:at] + tasks[at + 1 :]
        loads = frozenset((id(w), frozenset(load.items())) for w, load in self._loads.items() if load)
        loose = frozenset(Counter((s.goal.index, id(s.placement)) for s in self._shares if s.loose).items())
        name = (frozenset(task.name for task in tasks), loads, loose)
        return _Frame(self._moves(task, rest), share, name, self._found)

    def _rank(self, task: _Task) -> tuple[int, int]:
        """What leaves least choice comes first."""
        if task.settled or task.goal.key is None:
            return (0 if task.goal.is_leaf else 1, task.goal.index)
        return (1 + len(self.room.options(task.goal, task.placement)), task.goal.index)

    # -- what can be chosen

    def _moves(self, task: _Task, rest: tuple[_Task, ...]) -> Iterator[_Move]:
        if not task.settled and task.goal.key is not None:
            return self._into_domains(task, rest)
        if task.goal.is_leaf:
            return self._with_members(task, rest)
        return self._with_children(task, rest)

    def _into_domains(self, task: _Task, rest: tuple[_Task, ...]) -> Iterator[_Move]:
        seen: set[object] = set()
        for domain in self.room.options(task.goal, task.placement):
            if not self._is_used(domain, rest):
                likeness = self.room.likeness(task.goal, domain)
                if likeness in seen:
                    continue
                seen.add(likeness)
            yield _Move((*rest, _Task(task.goal, domain, True)))

    def _is_used(self, domain: Placement, rest: tuple[_Task, ...]) -> bool:
        """Whether anything is chosen that lies inside the domain, or in a part of it."""
        chosen = dict.fromkeys(w for w, load in self._loads.items() if w is not None and load)
        chosen.update(dict.fromkeys(task.placement for task in rest if task.placement is not None))
        return any(where is domain or _overlap(where, domain) for where in chosen if where is not None)

    def _with_children(self, task: _Task, rest: tuple[_Task, ...]) -> Iterator[_Move]:
        goal, where = task.goal, task.placement
        if task.child == len(goal.children):
            yield _Move(rest)
            return
        child = goal.children[task.child]
        following = task._replace(settled=True, child=task.child + 1)
        with_it = _Move((*rest, following._replace(taken=task.taken + (not child.done)), _Task(child, where)))
        left = sum(not other.done for other in goal.children[task.child + 1 :])
        may_skip = task.taken + left >= goal.need
        without = _Move((*rest, following), Share(child, where, None))
        if child.done:
            yield with_it if child.wanted and self.room.has_option(child, where) else _Move((*rest, following))
        elif not self.room.has_option(child, where):
            if may_skip:
                yield without
        elif self._sparing and task.taken >= goal.need:
            yield without
            yield with_it
        else:
            yield with_it
            if may_skip:
                yield without

    def _with_members(self, task: _Task, rest: tuple[_Task, ...]) -> Iterator[_Move]:
        goal = task.goal
        for counts in _ways([len(some) for some in goal.members], goal.need):
            yield _Move(rest, Share(goal, task.placement, counts, self._loose))
            if self._loose:
                return

    # -- everything is chosen

    def _complete(self) -> bool:
        """Places the minimums and then what is over; whether nothing better can be found."""
        start = self._trial.ledger.checkpoint()
        packing, before = self._packing, self._packing.spent
        wanted = [share for share in self._shares if share.counts is not None]
        spots = packing.place(wanted, max(min(self._limit - self.spent, self._leash), 1))
        self.spent += packing.spent - before
        if spots is None:
            self.proven = self.proven and packing.proven
            return False
        self._fill(spots)
        self._trial.ledger.rollback(start)
        if not total(spots):
            return False
        self._found += 1
        if self.best is None or total(spots) > total(self.best):
            self.best = spots
            self._stop = min(self._stop, self.spent + max(self._limit // IMPROVING_SHARE, 1))
        return self._is_best_possible()

    def _fill(self, spots: list[Spot]) -> None:
        """Gives what is over to the groups that were left out, then to further members."""
        before = -1
        while total(spots) > before:
            before = total(spots)
            for share in self._shares:
                if share.counts is None and not any(any(counts_of(leaf, spots)) for leaf in share.goal.leaves()):
                    self._left_out(share, spots)
            for share in self._shares:
                if share.counts is not None and share.goal.members:
                    self._rest_of(share, spots)
            if not self._loose:
                return

    def _rest_of(self, share: Share, spots: list[Spot]) -> None:
        there = counts_of(share.goal, spots)
        left = [len(some) - n for some, n in zip(share.goal.members, there, strict=True)]
        if any(left):
            world = self._world(share.placement)
            spots.append(place_some(world, share.goal, left, there, 1))
            self._adopt(world)

    def _left_out(self, share: Share, spots: list[Spot]) -> None:
        world, more = self._world(share.placement), list[Spot]()
        if attempt(world, share.goal, 1, more):
            self._adopt(world)
            spots += more

    def _world(self, placement: Placement | None) -> Trial:
        return self._trial if placement is None else self._trial.part(placement)

    def _adopt(self, world: Trial) -> None:
        if world is not self._trial:
            self._trial.adopt(world)


def _overlap(where: Placement, domain: Placement) -> bool:
    """Whether a placement shares nodes with a domain without being one of those around it."""
    around = domain.parent
    while around is not None:
        if around is where:
            return False
        around = around.parent
    return bool(np.isin(where.nodes, domain.nodes, assume_unique=True).any())


def _ways(sizes: list[int], need: int) -> Iterator[tuple[int, ...]]:
    """Every way to take `need` of classes of these sizes; the first classes first."""
    if not sizes:
        if not need:
            yield ()
        return
    least = max(need - sum(sizes[1:]), 0)
    for count in range(min(sizes[0], need), least - 1, -1):
        for more in _ways(sizes[1:], need - count):
            yield (count, *more)
