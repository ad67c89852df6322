"""Depth-first search for groups of unlike pods: node by node, each filled as far as it goes (bin completion).

In any placement, a pod that would also fit on a node that is being filled can be moved there; so only fillings that
take no further member need to be tried, and a node is looked at once. What a filling leaves unused is held against a
budget of waste per resource, and per set of nodes that some class depends on: in a tight group almost every filling
breaks it at once. Kinds of equal nodes, and a memo of dead ends, keep alike branches from being tried twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from muster.engine.patterns import CELLS_PER_EXPANSION, Budget, Patterns, budget_of, fill
from muster.engine.problem import Problem, reaches

MAX_KINDS = 64
_FIRST_LEASH = 64


class Outcome(Enum):
    FOUND = "found"
    IMPOSSIBLE = "proven impossible"
    STOPPED = "budget spent"


Filling = tuple[int, np.ndarray]
"""(kind, int[C] pods of each class) for one node of the kind."""


@dataclass(frozen=True, slots=True)
class Found:
    """The outcome, what it cost, and where it found a placement: one filling for each node that is used."""

    outcome: Outcome
    expansions: int
    fillings: tuple[Filling, ...] = ()


@dataclass(slots=True)
class _State:
    """A node of the search tree: what is still to be placed, and where."""

    left: np.ndarray
    """int[C]"""
    copies: np.ndarray
    """int64[T]"""
    spare: np.ndarray
    """int64[L]"""
    rows: np.ndarray
    """The fillings that were still possible one level up, by kind."""
    children: list[int] = field(default_factory=list)
    """Fillings, best last"""


class Search:
    """Looks for a placement of all members but `drop`, whichever. Complete if `prepare` says so."""

    def __init__(self, problem: Problem, drop: int) -> None:
        self.problem = problem
        self.drop = drop
        self.budget: Budget = budget_of(problem, reaches(problem), drop)
        self.spent = 0
        self._dead: set[bytes] = set()

    @property
    def hopeless(self) -> bool:
        """The sums alone prove that it cannot be done."""
        return bool((self.budget.spare < 0).any())

    def prepare(self, limit: int) -> bool:
        """Lists the fillings of every kind. False, and no use to go on: there are too many of them."""
        if not 0 < len(self.problem.nodes) <= MAX_KINDS:
            return False
        tables: list[Patterns] = []
        for kind in range(len(self.problem.nodes)):
            table = fill(self.problem, kind, self.budget)
            self.spent += table.cost
            if not table.complete or self.spent > limit:
                return False
            tables.append(table)
        # One table for all kinds, a filling a row: a state is looked at in a few operations, however many kinds.
        self._kind = np.repeat(np.arange(len(tables)), [len(table.counts) for table in tables])
        self._counts = np.concatenate([table.counts for table in tables])
        self._waste = np.concatenate([table.waste for table in tables])
        self._takes = np.concatenate([table.takes for table in tables])
        return True

    def largest(self) -> tuple[np.ndarray, np.ndarray]:
        """(int[P] kind, int[P, C] counts) of the fillings that are part of no other, once they are listed."""
        rows = np.flatnonzero(~(self._takes & (self._counts < self.problem.counts)).any(axis=1))
        return self._kind[rows], self._counts[rows]

    def run(self, limit: int) -> Found:
        """Restarts with another order of the children and a longer leash, until found, proven or spent."""
        leash, attempt = _FIRST_LEASH, 0
        while self.spent < limit:
            self._price = prices(self.problem, self.budget, self._counts, self._waste, attempt)
            stop = min(limit, self.spent + leash)
            rows = self._descend(stop)
            if rows is not None:
                fillings = tuple((int(self._kind[row]), self._counts[row].astype(np.int64)) for row in rows)
                return Found(Outcome.FOUND, self.spent, fillings)
            if self.spent < stop:
                return Found(Outcome.IMPOSSIBLE, self.spent)
            leash, attempt = leash * 2, attempt + 1
        return Found(Outcome.STOPPED, self.spent)

    def _descend(self, stop: int) -> list[int] | None:
        """Depth first; None when all is tried (`spent < stop`) or the leash ends."""
        left = self.problem.counts.astype(self._counts.dtype)
        root = _State(left, self.problem.copies, self.budget.spare, np.arange(len(self._kind)))
        if int(left.sum()) <= self.drop:
            return []
        if not self._expand(root):
            return None
        stack = [root]
        path: list[int] = []
        while stack:
            state = stack[-1]
            if not state.children:
                self._dead.add(_key(state))
                stack.pop()
                del path[-1:]
                continue
            row = state.children.pop()
            child = self._apply(state, row)
            if int(child.left.sum()) <= self.drop:
                return [*path, row]
            if _key(child) in self._dead:
                continue
            if self.spent >= stop:
                return None
            if self._expand(child):
                stack.append(child)
                path.append(row)
            else:
                self._dead.add(_key(child))
        return None

    def _apply(self, state: _State, row: int) -> _State:
        copies = state.copies.copy()
        copies[self._kind[row]] -= 1
        return _State(state.left - self._counts[row], copies, state.spare - self._waste[row], state.rows)

    def _expand(self, state: _State) -> bool:
        """Finds the children of a state: the decision with the fewest ways out. False: it is a dead end."""
        rows = state.rows
        self.spent += 1 + len(rows) * (len(state.left) + 8 * len(state.spare)) // CELLS_PER_EXPANSION
        counts = self._counts[rows]
        possible = (counts <= state.left).all(axis=1) & (self._waste[rows] <= state.spare).all(axis=1)
        possible &= state.copies[self._kind[rows]] > 0
        state.rows = rows = rows[possible]
        counts, kind = counts[possible], self._kind[rows]
        ways = np.bincount(kind, minlength=len(state.copies))
        if ((ways == 0) & (state.copies > 0)).any():
            return False  # A node that cannot be filled without wasting too much.
        starts = np.flatnonzero(np.diff(kind, prepend=-1))
        most = (np.maximum.reduceat(counts, starts, axis=0) * state.copies[kind[starts], None]).sum(axis=0)
        if int(np.maximum(state.left - most, 0).sum()) > self.drop:
            return False
        full = rows[~(self._takes[rows] & (counts < state.left)).any(axis=1)]
        state.children = self._children(state, full)
        return bool(state.children)

    def _children(self, state: _State, full: np.ndarray) -> list[int]:
        """All fillings of one kind; or, if nothing may be dropped and they are fewer, all that take one class."""
        kinds = np.flatnonzero(state.copies)
        ways = np.bincount(self._kind[full], minlength=len(state.copies))[kinds]
        chosen = self._kind[full] == kinds[ways.argmin()]
        if self.drop == 0:
            taking = self._counts[full] > 0
            waiting = np.flatnonzero(state.left)
            ways_of_class = np.count_nonzero(taking[:, waiting], axis=0)
            if int(ways_of_class.min()) < int(ways.min()):
                chosen = taking[:, waiting[ways_of_class.argmin()]]
        rows = full[chosen]
        order: list[int] = rows[np.lexsort((-rows, -self._price[rows]))].tolist()
        return order


def _key(state: _State) -> bytes:
    return state.left.tobytes() + state.copies.tobytes()


def prices(problem: Problem, budget: Budget, counts: np.ndarray, waste: np.ndarray, turn: int) -> np.ndarray:
    """int64[P]: the cheapest filling is tried first. Turns weigh waste against large pods differently."""
    share = np.maximum(budget.spare, 0) + 1 + np.maximum(budget.spare, 0) // 8
    wasted = (waste * 1000 // share).sum(axis=1)
    size = (problem.amounts * 10_000 // np.maximum(problem.free.max(axis=0, initial=1), 1)).sum(axis=1)
    large = counts.astype(np.int64) @ (size * size // 10_000)
    price: np.ndarray = (wasted, -large, wasted * 4 - large)[turn % 3]
    if turn < 3 or not len(price):
        return price
    noise = (np.arange(len(price), dtype=np.int64) * 2_654_435_761 + turn * 39_573_491) % 1_000_003
    return price + noise * (int(np.ptp(price)) // 4 + 1) // 1_000_003
