"""How many constrained groups the domains of a key can hold: groups as pods, domains as nodes, a packing problem.

What a group takes at least of everything that is counted is set against the sums over each domain: slots of every
class, room of every resource, and how many domains on the next level below could hold a group of that size. Where the
groups do not even fit in by these sums there is no placement, and nobody has to try who goes where.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from muster.engine.dive import find
from muster.engine.goals import Goal
from muster.engine.problem import Problem, distinct_rows, most_placeable
from muster.engine.search import Outcome
from muster.engine.trial import UNLIMITED, Trial
from muster.model.topology import Domains, Placement, domains_of

LOOK = 128
"""Expansions that one such problem may cost; beyond that it says nothing."""
MOST_DOMAINS = 256
"""Of so many domains at most the levels below are counted."""

Options = Callable[[Goal, Placement | None], Sequence[Placement]]


class _Below(NamedTuple):
    """What is counted on a level below: groups on this key that take at least so much."""

    key: str
    least: bytes


class Counting:
    """The sums of one hierarchy, over room as it was before anything of it was placed."""

    def __init__(self, trial: Trial, slots: Mapping[int, np.ndarray], room: np.ndarray) -> None:
        self._trial = trial
        self._classes = tuple(slots)
        self._columns = np.vstack([room, *slots.values()])
        """int64[L, N]: all that is counted, by node."""
        self._least: dict[int, np.ndarray] = {}
        self._sums: dict[tuple[str, Placement | None], np.ndarray] = {}
        self.spent = 0

    # -- what a group takes

    def least(self, goal: Goal) -> np.ndarray:
        """int64[L]: what it takes at least of everything counted."""
        known = self._least.get(goal.index)
        if known is None:
            known = self._least[goal.index] = self._least_of(goal)
        return known

    def _least_of(self, goal: Goal) -> np.ndarray:
        if goal.done:
            return np.zeros(len(self._columns), dtype=np.int64)
        if not goal.is_leaf:
            below = np.sort(np.stack([self.least(child) for child in goal.children if not child.done]), axis=0)
            fewest: np.ndarray = below[: goal.need].sum(axis=0)
            return fewest
        sizes = np.array([len(some) for some in goal.members])
        amounts = self._trial.ledger.amounts[[some.cls for some in goal.members]]
        each = np.sort(np.repeat(amounts, np.minimum(sizes, goal.need), axis=0), axis=0)
        beyond = int(sizes.sum()) - goal.need
        count = dict.fromkeys(self._classes, 0)
        for some in goal.members:
            count[some.cls] = max(len(some) - beyond, 0)
        return np.concatenate((each[: goal.need].sum(axis=0), np.array(list(count.values()), dtype=np.int64)))

    # -- whether the children of a group have room

    def allows(self, goal: Goal, where: Placement | None, options: Options) -> bool:
        """Whether enough children may be satisfied together in this placement, as far as sums tell."""
        able = [child for child in goal.children if not child.done and (child.key is None or options(child, where))]
        if goal.need == len(able):
            every = [item for child in able for item in _items(child)]
            sets = [(every, 0)]
        else:
            single = [items[0] for child in able if len(items := _items(child)) == 1]
            sets = [(single, len(able) - goal.need)]
        for items, spare in sets:
            for key in dict.fromkeys(item.key for item in items):
                mine = [item for item in items if item.key == key]
                if len(mine) - spare > 1 and not self._fit(mine, len(mine) - spare, where, options):
                    return False
        return True

    def _fit(self, items: Sequence[Goal], target: int, where: Placement | None, options: Options) -> bool:
        """Whether so many of these groups, all on one key, may go into its domains."""
        key = items[0].key
        assert key is not None
        domains = domains_of(self._trial.snapshot.nodes, key, where)
        problem = self._problem(items, domains, options)
        if int(problem.counts.sum()) < target or most_placeable(problem) < target:
            return False
        found = find(problem, target, LOOK)
        self.spent += found.expansions
        return found.outcome is not Outcome.IMPOSSIBLE

    def _problem(self, items: Sequence[Goal], domains: Domains, options: Options) -> Problem:
        below = self._below(items, domains)
        asked = np.stack([np.concatenate((self.least(item), self._inside(item, below))) for item in items])
        room = np.vstack([self._sums_of(domains), *(self._held(domains, what) for what in below)])
        may = np.zeros((len(items), len(domains)), dtype=bool)
        for i, item in enumerate(items):
            may[i, [domains.place[domain.value] for domain in options(item, domains.parent)]] = True
        first, which = distinct_rows(np.hstack((asked, may)))
        counts = np.bincount(which, minlength=len(first))
        amounts, may = asked[first], may[first]
        rows = np.flatnonzero(amounts.any(axis=0))
        amounts = amounts[:, rows]
        free = np.minimum(room[rows].T, counts @ amounts)
        allowed = may.T & (free[:, None] >= amounts[None]).all(axis=2)
        useful = np.flatnonzero(allowed.any(axis=1))
        free, allowed = free[useful], allowed[useful]
        kinds, kind = distinct_rows(np.hstack((free, allowed)))
        counts = np.where(allowed.any(axis=0), counts, 0)
        nodes = tuple(useful[kind == t] for t in range(len(kinds)))
        return Problem(amounts, counts, free[kinds], allowed[kinds], nodes)

    def _sums_of(self, domains: Domains) -> np.ndarray:
        """int64[L, D]"""
        name = (domains.key, domains.parent)
        known = self._sums.get(name)
        if known is None:
            known = self._sums[name] = domains.sums(self._trial.inside(self._columns, domains.parent))
        return known

    # -- one level further down

    def _below(self, items: Sequence[Goal], domains: Domains) -> list[_Below]:
        """The sizes of groups on keys below; none where they are all alike in all that is counted already."""
        if len(domains) > MOST_DOMAINS:
            return []
        inner = [under for item in items for under in _under(item)]
        return list(dict.fromkeys(_Below(under.key or "", self.least(under).tobytes()) for under in inner))

    def _inside(self, item: Goal, below: Sequence[_Below]) -> np.ndarray:
        """int64[B]: how many groups of at least each of these sizes it has inside."""
        found = np.zeros(len(below), dtype=np.int64)
        for b, what in enumerate(below):
            least = np.frombuffer(what.least, np.int64)
            found[b] = sum(u.key == what.key and bool((self.least(u) >= least).all()) for u in _under(item))
        return found

    def _held(self, domains: Domains, what: _Below) -> np.ndarray:
        """int64[1, D]: how many groups of this size the inner domains of each domain hold."""
        least = np.frombuffer(what.least, np.int64)
        rows = np.flatnonzero(least)
        held = np.zeros((1, len(domains)), dtype=np.int64)
        for d in range(len(domains)):
            inner = domains_of(self._trial.snapshot.nodes, what.key, domains[d])
            held[0, d] = (self._sums_of(inner)[rows] // least[rows, None]).min(axis=0, initial=UNLIMITED).sum()
        return held


def _items(goal: Goal) -> list[Goal]:
    """The constrained groups that have to find a domain for this one to be satisfied, as far as that is certain."""
    if goal.key is not None:
        return [goal]
    return _under(goal)


def _under(goal: Goal) -> list[Goal]:
    """The constrained groups next below that a group cannot do without."""
    able = [child for child in goal.children if not child.done]
    if goal.done or goal.need < len(able):
        return []
    return [item for child in able for item in _items(child)]
