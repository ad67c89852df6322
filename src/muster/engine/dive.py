"""For groups too varied to list all fillings: fill some nodes as well as can be, then search the rest completely."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from muster.engine.exact import solve
from muster.engine.fillings import Pool
from muster.engine.patterns import Patterns, budget_of, fill
from muster.engine.problem import Problem, reaches, shrunk
from muster.engine.search import Filling, Found, Outcome, Search, prices

SMALL = 28
"""So many classes or fewer are left: all fillings of all kinds can be listed."""
_ROWS = 2_048
_KINDS_COMPARED = 3
_KINDS_PER_EXPANSION = 256
_SEARCH_FIRST = 16
"""The search gets one in so many expansions before linear programs are asked."""
_ENDGAME = 4
"""An end game may spend one in so many of the expansions that are left."""


def find(problem: Problem, target: int, expansions: int) -> Found:
    """A placement of `target` members, whichever, or a proof that there is none.

    Stops after so many expansions: one for each state looked at, and one for some ten thousand numbers compared.
    """
    drop = int(problem.counts.sum()) - target
    search = Search(problem, drop)
    if search.hopeless:
        return Found(Outcome.IMPOSSIBLE, 1)
    few = len(problem.counts) <= 2 * SMALL
    listed = few and search.prepare(expansions // 4)
    if listed:
        found = search.run(search.spent + expansions // _SEARCH_FIRST)
        if found.outcome is not Outcome.STOPPED:
            return found
    known = Pool(*search.largest(), complete=True, cost=0) if listed else None
    found = solve(problem, target, expansions - search.spent, known, listing=not few)
    spent = search.spent + found.expansions
    if found.outcome is not Outcome.STOPPED or spent >= expansions:
        return Found(found.outcome, spent, found.fillings)
    if not listed:
        return _Dive(problem, drop, spent).run(expansions)
    search.spent = spent
    return search.run(expansions)


class _Dive:
    """Again and again, with other preferences: the hardest class first, on the best filling of a node that takes it."""

    def __init__(self, problem: Problem, drop: int, spent: int) -> None:
        self._problem = problem
        self._drop = drop
        self._spent = spent

    def run(self, limit: int) -> Found:
        attempt = 0
        while self._spent < limit:
            self._spent += 1
            fillings = self._once(attempt, limit)
            if fillings is not None:
                return Found(Outcome.FOUND, self._spent, fillings)
            attempt += 1
        return Found(Outcome.STOPPED, self._spent)

    def _once(self, attempt: int, limit: int) -> tuple[Filling, ...] | None:
        kinds = np.arange(len(self._problem.nodes))
        classes = np.flatnonzero(self._problem.counts)
        rest = self._problem
        done: list[Filling] = []
        while self._spent < limit:
            rest, kinds, classes = shrunk(rest, kinds, classes)
            self._spent += len(rest.nodes) // _KINDS_PER_EXPANSION
            if int(rest.counts.sum()) <= self._drop:
                return tuple(done)
            if not len(rest.nodes):
                return None
            if len(rest.counts) <= SMALL and len(rest.nodes) <= SMALL:
                end = self._end_game(rest, limit)
                if end is not None and end.outcome is Outcome.FOUND:
                    return (*done, *(self._whole(filling, kinds, classes) for filling in end.fillings))
                if end is not None and self._drop == 0:
                    return None
            step = self._step(rest, attempt + len(done), limit)
            if step is None:
                return None
            done.append(self._whole(step, kinds, classes))
            rest = _after(rest, step)
        return None

    def _whole(self, filling: Filling, kinds: np.ndarray, classes: np.ndarray) -> Filling:
        """A filling of a shrunk problem in the terms of the whole one."""
        counts = np.zeros(len(self._problem.counts), dtype=np.int64)
        counts[classes] = filling[1]
        return int(kinds[filling[0]]), counts

    def _end_game(self, rest: Problem, limit: int) -> Found | None:
        """Searches what is left completely; None if that is still too varied."""
        share = max((limit - self._spent) // _ENDGAME, 1)
        search = Search(rest, self._drop)
        self._spent += 1
        if search.hopeless:
            return Found(Outcome.IMPOSSIBLE, 0)
        if not search.prepare(share):
            self._spent += search.spent
            return None
        found = search.run(share)
        self._spent += found.expansions
        return found

    def _step(self, rest: Problem, turn: int, limit: int) -> Filling | None:
        """The cheapest filling, on one of the tightest kinds that the hardest class fits on, that takes it."""
        budget = budget_of(rest, reaches(rest), self._drop)
        if (budget.spare < 0).any():
            return None
        size = (rest.amounts * 1000 // np.maximum(rest.free.max(axis=0), 1)).max(axis=1)
        able = rest.allowed.any(axis=0)
        if not able.any():
            return None
        hardest = int(np.argsort(-np.where(able, size, -1), kind="stable")[0])
        room = (rest.free * 1000 // np.maximum(rest.free.max(axis=0), 1)).sum(axis=1)
        tightest = [k for k in np.argsort(room, kind="stable").tolist() if rest.allowed[k, hardest]]
        best: tuple[int, Filling] | None = None
        for kind in (tightest[turn % len(tightest) :] + tightest)[:_KINDS_COMPARED]:
            if self._spent >= limit and best is not None:
                break
            table: Patterns = fill(rest, kind, budget, hardest, _ROWS)
            self._spent += table.cost
            if len(table.counts):
                price = prices(rest, budget, table.counts, table.waste, turn)
                row = int(price.argmin())
                if best is None or int(price[row]) < best[0]:
                    best = (int(price[row]), (kind, table.counts[row]))
        return None if best is None else best[1]


def _after(problem: Problem, filling: Filling) -> Problem:
    """What is left once a node is filled like this."""
    kind, counts = filling
    nodes = tuple(some[1:] if k == kind else some for k, some in enumerate(problem.nodes))
    return replace(problem, counts=problem.counts - counts, nodes=nodes)
