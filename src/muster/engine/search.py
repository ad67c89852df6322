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

from muster.engine.patterns import Budget, Patterns, budget_of, fill
from muster.engine.problem import Problem, reaches
from muster.engine.work import Work as Work

MAX_KINDS = 64
_ROWS_PER_EXPANSION = 4096
_FIRST_LEASH = 64


class Outcome(Enum):
    FOUND = "found"
    IMPOSSIBLE = "proven impossible"
    STOPPED = "budget spent"


@dataclass(slots=True)
class Found:
    """The outcome, what it cost, and where it found a placement: (kind, count per class) for single nodes."""

    outcome: Outcome
    expansions: int
    fillings: tuple[tuple[int, np.ndarray], ...] = ()


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


def find(problem: Problem, target: int, expansions: int) -> Found:
    """A placement of `target` members, whichever.

    Stops after so many expansions: one for each state looked at, and one for some thousand patterns made or compared.
    """
    return _Search(problem, int(problem.counts.sum()) - target).run(expansions)


class _Search:
    def __init__(self, problem: Problem, drop: int) -> None:
        self.problem = problem
        self.drop = drop
        self.budget: Budget = budget_of(problem, reaches(problem), drop)
        self.dead: set[bytes] = set()
        self.spent = 0
        self.complete = True
        self.tables: list[Patterns] = []
        self.order: list[np.ndarray] = []

    def run(self, limit: int) -> Found:
        """Restarts with another order of the children and a longer leash, until found, proven or spent."""
        if (self.budget.spare < 0).any():
            return Found(Outcome.IMPOSSIBLE, 1)
        root = self._root()
        leash, attempt = _FIRST_LEASH, 0
        while self.spent < limit:
            self._set_order(attempt)
            stop = min(limit, self.spent + leash)
            path = self._descend(self._copy(root), stop)
            if path is not None:
                return Found(Outcome.FOUND, self.spent, path)
            if self.spent < stop:
                return Found(Outcome.IMPOSSIBLE if self.complete else Outcome.STOPPED, self.spent)
            leash, attempt = leash * 2, attempt + 1
        return Found(Outcome.STOPPED, self.spent)

    def _root(self) -> _State:
        kinds = len(self.problem.free)
        if kinds > MAX_KINDS:
            self.complete = False
        copies = self.problem.copies
        copies[MAX_KINDS:] = 0
        for kind in range(min(kinds, MAX_KINDS)):
            table = fill(self.problem, kind, self.budget)
            self.complete &= table.complete
            self.spent += 1 + len(table.counts) // _ROWS_PER_EXPANSION
            self.tables.append(table)
        rows = [np.arange(len(table.counts)) for table in self.tables]
        return _State(self.problem.counts.copy(), copies, self.budget.spare.copy(), rows)

    @staticmethod
    def _copy(state: _State) -> _State:
        return _State(state.left, state.copies, state.spare, state.rows)

    def _set_order(self, attempt: int) -> None:
        """For each kind, a price per pattern; the lowest is tried first. Attempts weigh waste and size differently."""
        share = np.maximum(self.budget.spare, 0) + 1 + self.budget.spare // 8
        size = (self.problem.amounts * 10_000 // np.maximum(self.problem.free.max(axis=0), 1)).sum(axis=1)
        self.order = []
        for kind, table in enumerate(self.tables):
            waste = (table.waste * 1000 // share).sum(axis=1)
            large = table.counts.astype(np.int64) @ (size * size // 10_000)
            price = (waste, -large, waste * 4 - large)[attempt % 3]
            if attempt >= 3:
                spread = int(np.ptp(price)) // 4 + 1 if len(price) else 1
                noise = (np.arange(len(price), dtype=np.int64) * 2654435761 + attempt * 40503 + kind * 977) % 1_000_003
                price = price + noise * spread // 1_000_003
            self.order.append(price)

    def _descend(self, root: _State, stop: int) -> tuple[tuple[int, np.ndarray], ...] | None:
        """Depth first below `root`; None when it is exhausted (`spent < stop`) or the leash ends."""
        if int(root.left.sum()) <= self.drop:
            return ()
        stack = [root]
        path: list[tuple[int, np.ndarray]] = []
        if not self._expand(root):
            return None
        while stack:
            state = stack[-1]
            if not state.children:
                self.dead.add(_key(state))
                stack.pop()
                if path:
                    path.pop()
                continue
            kind, row = state.children.pop()
            child = self._apply(state, kind, row)
            if int(child.left.sum()) <= self.drop:
                return (*path, (kind, self.tables[kind].counts[row]))
            if _key(child) in self.dead:
                continue
            if self.spent >= stop:
                return None
            if self._expand(child):
                stack.append(child)
                path.append((kind, self.tables[kind].counts[row]))
            else:
                self.dead.add(_key(child))
        return None

    def _apply(self, state: _State, kind: int, row: int) -> _State:
        table = self.tables[kind]
        copies = state.copies.copy()
        copies[kind] -= 1
        return _State(state.left - table.counts[row], copies, state.spare - table.waste[row], state.rows)

    def _expand(self, state: _State) -> bool:
        """Finds the children of a state: the decision with the fewest ways out. False: it is a dead end."""
        self.spent += 1
        kinds = np.flatnonzero(state.copies).tolist()
        state.rows = list(state.rows)
        full: dict[int, np.ndarray] = {}
        most = np.zeros(len(state.left), dtype=np.int64)
        ways = np.zeros(len(state.left), dtype=np.int64)
        looked = 0
        for kind in kinds:
            table, rows = self.tables[kind], state.rows[kind]
            looked += len(rows)
            counts = table.counts[rows]
            ok = (counts <= state.left).all(axis=1) & (table.waste[rows] <= state.spare).all(axis=1)
            rows, counts = rows[ok], counts[ok]
            if not len(rows):
                return False
            state.rows[kind] = rows
            maximal = ~(table.takes[rows] & (counts < state.left)).any(axis=1)
            full[kind] = rows[maximal]
            most += counts.max(axis=0) * state.copies[kind]
            ways += np.count_nonzero(counts[maximal], axis=0)
        self.spent += looked // _ROWS_PER_EXPANSION
        if int(np.maximum(state.left - most, 0).sum()) > self.drop or not kinds:
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
        if self.drop == 0 and len(waiting):
            cls = int(waiting[ways[waiting].argmin()])
            if int(ways[cls]) < len(pairs):
                pairs = [(k, row) for k in kinds for row in full[k][self.tables[k].counts[full[k], cls] > 0].tolist()]
        pairs.sort(key=lambda pair: (-int(self.order[pair[0]][pair[1]]), -pair[0], -pair[1]))
        return pairs


def _key(state: _State) -> bytes:
    return state.left.tobytes() + state.copies.tobytes()
