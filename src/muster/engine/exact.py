"""The end of the search: which fillings, how often, by linear programs over lists of fillings.

A linear program says how far fillings get that may be taken in part. If even that leaves too many members out and the
list is complete, there is no placement, and whole numbers prove it. Otherwise a filling that it takes whole, or almost,
is fixed and the rest asked about again; where that leads nowhere, some steps are taken back. Once much is fixed, the
rest gets a list of its own, which can be wider. A complete list that dives through in vain goes to the integer solver.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from muster.engine.fillings import Pool, pools
from muster.engine.pairs import by_pairs
from muster.engine.patterns import budget_of
from muster.engine.problem import Problem, reaches, shrunk
from muster.engine.relaxation import Relaxation
from muster.engine.search import Filling, Found, Outcome

_NEARLY = 1e-6
_STEPS_BACK = 12, 5
"""Times a dive through the first list, or that of a rest, goes back before it is given up: one step, two, four, …"""
_FOR_INTEGERS = 6_000
"""Fillings beyond which the integer solver is not asked."""
_REST = 10, 6
"""A list is made anew for the rest when no more than six tenths of its members are left."""
_PAIRS_SHARE = 4, 5
"""So much of what is left may be spent on the search by pairs."""
_PAIRS_MOST = 4_000
"""Beyond that other lists promise more."""
_LISTING_SHARE = 4
"""Making a list may cost one in so many of the expansions that are left."""


def solve(problem: Problem, target: int, expansions: int, known: Pool | None = None, *, listing: bool = True) -> Found:
    """A placement of `target` members, whichever, or a proof that there is none; stops after so many expansions.

    `known`: the complete list of fillings, if there is one already; `listing` False: there is no use in making one.
    """
    solver = _Solver(int(problem.counts.sum()) - target, expansions, known, listing)
    fillings = solver.place(problem, whole=True)
    if fillings is not None and _holds(problem, fillings, target):
        return Found(Outcome.FOUND, solver.spent, fillings)
    return Found(Outcome.IMPOSSIBLE if solver.proven else Outcome.STOPPED, solver.spent)


def _holds(problem: Problem, fillings: tuple[Filling, ...], target: int) -> bool:
    """Checked in whole numbers: every filling fits its node, and together they are members and nodes that exist."""
    kind = np.array([kind for kind, _ in fillings], dtype=np.int64)
    counts = np.array([counts for _, counts in fillings], dtype=np.int64).reshape(len(kind), len(problem.counts))
    fits = bool((counts @ problem.amounts <= problem.free[kind]).all())
    fits &= not bool((counts > 0)[~problem.allowed[kind]].any())
    fits &= bool((np.bincount(kind, minlength=len(problem.nodes)) <= problem.copies).all())
    return fits and bool((counts.sum(axis=0) <= problem.counts).all()) and int(counts.sum()) >= target


class _Solver:
    def __init__(self, drop: int, limit: int, known: Pool | None, listing: bool) -> None:
        self._known, self._listing = known, listing
        self.drop = drop
        self.limit = limit
        self.spent = 0
        self.proven = False

    def place(self, problem: Problem, whole: bool = False) -> tuple[Filling, ...] | None:
        """Fillings that leave no more than `drop` members out. `whole`: what is proven here is proven of everything."""
        budget = budget_of(problem, reaches(problem), self.drop)
        self.spent += 1
        if (budget.spare < 0).any():
            self.proven |= whole
            return None
        known = self._known if whole else None
        listing = (self.limit - self.spent) // _LISTING_SHARE if self._listing or not whole else 0
        for pool in pools(problem, budget, listing) if known is None else (known,):
            self.spent += pool.cost
            if self.spent >= self.limit:
                return None
            fillings = self._by_pairs(problem, pool) if pool.lasting else None
            fillings = fillings or _Dive(self, problem, pool, whole).run()
            if fillings is None and pool.complete and whole and not self.proven:
                fillings = self._by_integers(problem, pool)
            if fillings is not None or self.proven or self.spent >= self.limit:
                return fillings
        return None

    def _by_integers(self, problem: Problem, pool: Pool) -> tuple[Filling, ...] | None:
        """The integer solver over a complete list."""
        if len(pool.kind) > _FOR_INTEGERS or self.spent >= self.limit:
            return None
        relaxation = Relaxation(pool, problem.counts, problem.copies)
        answer = relaxation.choose(problem.counts, self.drop, self.limit - self.spent)
        self.spent += answer.spent
        self.proven = answer.impossible
        return None if answer.often is None else _taken(problem, pool, answer.often)

    def _by_pairs(self, problem: Problem, pool: Pool) -> tuple[Filling, ...] | None:
        """A list that lasts is searched as a whole, as long as others could still be."""
        relaxation = Relaxation(pool, problem.counts, problem.copies)
        share = min((self.limit - self.spent) * _PAIRS_SHARE[0] // _PAIRS_SHARE[1], _PAIRS_MOST)
        often = by_pairs(relaxation, problem.counts, self.drop, share)
        self.spent += relaxation.spent
        return None if often is None else _taken(problem, pool, often)


def _taken(problem: Problem, pool: Pool, often: np.ndarray) -> tuple[Filling, ...]:
    """These fillings, each so often; of a class no more than there are."""
    left, fillings = problem.counts, []
    for row in np.flatnonzero(often).tolist():
        for _ in range(int(often[row])):
            took = np.minimum(pool.counts[row], left)
            left = left - took
            fillings.append((int(pool.kind[row]), took))
    return tuple(fillings)


@dataclass(frozen=True, slots=True)
class _Step:
    """How things stood before a column was fixed."""

    left: np.ndarray
    copies: np.ndarray
    done: int
    column: int
    barred: int


class _Dive:
    """Through one list of fillings, fixing and taking back."""

    def __init__(self, solver: _Solver, problem: Problem, pool: Pool, whole: bool) -> None:
        self._solver, self._problem, self._pool, self._whole = solver, problem, pool, whole
        self._relaxation = Relaxation(pool, problem.counts, problem.copies)
        self._left, self._copies = problem.counts, problem.copies
        self._done: list[Filling] = []
        self._trail: list[_Step] = []
        self._barred: list[int] = []
        self._back = 0

    def run(self) -> tuple[Filling, ...] | None:
        solver, drop = self._solver, self._solver.drop
        while int(self._left.sum()) > drop:
            taken = self._ask()
            if taken is not None and self._is_time_for_the_rest():
                fillings = self._rest()
                if fillings is not None:
                    return (*self._done, *fillings)
                taken = None
            if taken is not None:
                self._fix(taken)
            elif solver.spent >= solver.limit or not self._take_back():
                return None
        return tuple(self._done)

    def _ask(self) -> np.ndarray | None:
        """How often each column is taken; None where too many members would be left out, or the budget is spent."""
        solver, relaxation = self._solver, self._relaxation
        before = relaxation.spent
        answer = relaxation.solve(before + solver.limit - solver.spent)
        solver.spent += relaxation.spent - before
        if answer is None:
            return None
        out, taken = answer
        if out <= solver.drop + _NEARLY:
            return taken
        if self._whole and not self._trail and not self._barred:
            solver.proven = relaxation.proves(self._left, self._copies, solver.drop)
        return None

    def _is_time_for_the_rest(self) -> bool:
        begun, enough = _REST
        if self._pool.complete or self._pool.lasting:
            return False
        return int(self._left.sum()) * begun <= int(self._problem.counts.sum()) * enough

    def _rest(self) -> tuple[Filling, ...] | None:
        """Places what is left by a list of its own."""
        nodes = tuple(some[: self._copies[k]] for k, some in enumerate(self._problem.nodes))
        every = np.arange(len(self._copies)), np.arange(len(self._left))
        rest, kinds, classes = shrunk(replace(self._problem, counts=self._left, nodes=nodes), *every)
        fillings = self._solver.place(rest) if len(rest.nodes) else None
        if fillings is None:
            return None
        placed = []
        for kind, some in fillings:
            counts = np.zeros(len(self._left), dtype=np.int64)
            counts[classes] = some
            placed.append((int(kinds[kind]), counts))
        return tuple(placed)

    def _fix(self, taken: np.ndarray) -> None:
        """Keeps what is taken whole; if nothing is, the filling that is taken most."""
        columns = np.flatnonzero(taken > 1 - _NEARLY)
        columns = columns if len(columns) else np.array([taken.argmax()])
        step = _Step(self._left, self._copies.copy(), len(self._done), int(columns[0]), len(self._barred))
        self._trail.append(step)
        for column in columns.tolist():
            row = self._relaxation.columns[column]
            kind = int(self._pool.kind[row])
            for _ in range(max(int(taken[column] + _NEARLY), 1)):
                took = np.minimum(self._pool.counts[row], self._left)
                if took.any() and self._copies[kind]:
                    self._left = self._left - took
                    self._copies[kind] -= 1
                    self._done.append((kind, took))
        self._relaxation.limit(self._left, self._copies)

    def _take_back(self) -> bool:
        """Returns to before the last step, the last two, four, …, and does without what was fixed there first."""
        if not self._trail or self._back == _STEPS_BACK[not self._whole]:
            return False
        place = max(len(self._trail) - (1 << self._back), 0)
        self._back += 1
        step = self._trail[place]
        del self._trail[place:], self._done[step.done :]
        if self._barred[step.barred :]:
            self._relaxation.bar(self._barred[step.barred :], np.inf)
        self._barred[step.barred :] = [step.column]
        self._relaxation.bar([step.column], 0)
        self._left, self._copies = step.left, step.copies.copy()
        self._relaxation.limit(self._left, self._copies)
        return True
