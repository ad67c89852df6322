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
    """int64[C]"""
    copies: np.ndarray
    """int64[T]"""
    spare: np.ndarray
    """int64[L]"""
    rows: list[np.ndarray]
    """For each kind, the patterns that were still possible one level up."""
    children: list[tuple[int, int]] = field(default_factory=list)
    """(kind, pattern), best last"""


class Search:
    """Looks for a placement of all members but `drop`, whichever. Complete if `prepare` says so."""

    def __init__(self, problem: Problem, drop: int) -> None:
        self.problem = problem
        self.drop = drop
        self.budget: Budget = budget_of(problem, reaches(problem), drop)
        self.spent = 0
        self._dead: set[bytes] = set()
        self._tables: list[Patterns] = []
        self._prices: list[np.ndarray] = []

    @property
    def hopeless(self) -> bool:
        """The sums alone prove that it cannot be done."""
        return bool((self.budget.spare < 0).any())

    def prepare(self, limit: int) -> bool:
        """Lists the fillings of every kind. False, and no use to go on: there are too many of them."""
        if len(self.problem.nodes) > MAX_KINDS:
            return False
        for kind in range(len(self.problem.nodes)):
            table = fill(self.problem, kind, self.budget)
            self.spent += table.cost
            if not table.complete or self.spent > limit:
                return False
            self._tables.append(table)
        return True

    def run(self, limit: int) -> Found:
        """Restarts with another order of the children and a longer leash, until found, proven or spent."""
        leash, attempt = _FIRST_LEASH, 0
        while self.spent < limit:
            self._set_prices(attempt)
            stop = min(limit, self.spent + leash)
            fillings = self._descend(stop)
            if fillings is not None:
                return Found(Outcome.FOUND, self.spent, fillings)
            if self.spent < stop:
                return Found(Outcome.IMPOSSIBLE, self.spent)
            leash, attempt = leash * 2, attempt + 1
        return Found(Outcome.STOPPED, self.spent)

    def _set_prices(self, attempt: int) -> None:
        self._prices = [
            prices(self.problem, self.budget, table, attempt * 977 + kind) for kind, table in enumerate(self._tables)
        ]

    def _root(self) -> _State:
        rows = [np.arange(len(table.counts)) for table in self._tables]
        return _State(self.problem.counts.copy(), self.problem.copies, self.budget.spare.copy(), rows)

    def _descend(self, stop: int) -> tuple[Filling, ...] | None:
        """Depth first; None when all is tried (`spent < stop`) or the leash ends."""
        root = self._root()
        if int(root.left.sum()) <= self.drop:
            return ()
        if not self._expand(root):
            return None
        stack = [root]
        path: list[Filling] = []
        while stack:
            state = stack[-1]
            if not state.children:
                self._dead.add(_key(state))
                stack.pop()
                del path[-1:]
                continue
            kind, row = state.children.pop()
            filling = (kind, self._tables[kind].counts[row])
            child = self._apply(state, kind, row)
            if int(child.left.sum()) <= self.drop:
                return (*path, filling)
            if _key(child) in self._dead:
                continue
            if self.spent >= stop:
                return None
            if self._expand(child):
                stack.append(child)
                path.append(filling)
            else:
                self._dead.add(_key(child))
        return None

    def _apply(self, state: _State, kind: int, row: int) -> _State:
        table = self._tables[kind]
        copies = state.copies.copy()
        copies[kind] -= 1
        return _State(state.left - table.counts[row], copies, state.spare - table.waste[row], state.rows)

    def _expand(self, state: _State) -> bool:
        """Finds the children of a state: the decision with the fewest ways out. False: it is a dead end."""
        kinds = np.flatnonzero(state.copies).tolist()
        state.rows = list(state.rows)
        full: dict[int, np.ndarray] = {}
        most = np.zeros(len(state.left), dtype=np.int64)
        ways = np.zeros(len(state.left), dtype=np.int64)
        cells = 0
        for kind in kinds:
            table, rows = self._tables[kind], state.rows[kind]
            cells += len(rows) * (len(state.left) + 8 * len(state.spare))
            counts = table.counts[rows]
            possible = (counts <= state.left).all(axis=1) & (table.waste[rows] <= state.spare).all(axis=1)
            rows, counts = rows[possible], counts[possible]
            if not len(rows):
                kinds = []
                break
            state.rows[kind] = rows
            maximal = ~(table.takes[rows] & (counts < state.left)).any(axis=1)
            full[kind] = rows[maximal]
            most += counts.max(axis=0).astype(np.int64) * state.copies[kind]
            ways += np.count_nonzero(counts[maximal], axis=0)
        self.spent += 1 + cells // CELLS_PER_EXPANSION
        if not kinds or int(np.maximum(state.left - most, 0).sum()) > self.drop:
            return False
        state.children = self._children(state, kinds, full, ways)
        return bool(state.children)

    def _children(
        self, state: _State, kinds: list[int], full: dict[int, np.ndarray], ways: np.ndarray
    ) -> list[tuple[int, int]]:
        """All fillings of one kind; or, if nothing may be dropped and they are fewer, all that take one class."""
        kind = min(kinds, key=lambda k: (len(full[k]), k))
        pairs = [(kind, row) for row in full[kind].tolist()]
        waiting = np.flatnonzero(state.left)
        if self.drop == 0:
            cls = int(waiting[ways[waiting].argmin()])
            if int(ways[cls]) < len(pairs):
                taking = ((k, full[k][self._tables[k].counts[full[k], cls] > 0]) for k in kinds)
                pairs = [(k, row) for k, rows in taking for row in rows.tolist()]
        pairs.sort(key=lambda pair: (-int(self._prices[pair[0]][pair[1]]), -pair[0], -pair[1]))
        return pairs


def _key(state: _State) -> bytes:
    return state.left.tobytes() + state.copies.tobytes()


def prices(problem: Problem, budget: Budget, table: Patterns, attempt: int) -> np.ndarray:
    """int64[P]: the cheapest filling is tried first. Attempts weigh waste against large pods differently."""
    share = np.maximum(budget.spare, 0) + 1 + np.maximum(budget.spare, 0) // 8
    waste = (table.waste * 1000 // share).sum(axis=1)
    size = (problem.amounts * 10_000 // np.maximum(problem.free.max(axis=0, initial=1), 1)).sum(axis=1)
    large = table.counts.astype(np.int64) @ (size * size // 10_000)
    turn = attempt // 977
    price: np.ndarray = (waste, -large, waste * 4 - large)[turn % 3]
    if turn < 3 or not len(price):
        return price
    noise = (np.arange(len(price), dtype=np.int64) * 2_654_435_761 + attempt * 40_503) % 1_000_003
    return price + noise * (int(np.ptp(price)) // 4 + 1) // 1_000_003
