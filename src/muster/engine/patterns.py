"""All ways to fill one kind of node: count vectors over classes, with what each leaves unused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.engine.problem import Problem, Reach

MAX_ROWS = 16_384
"""Ways to fill a node beyond which only the fullest are kept."""
MAX_LINES = 8
"""Lines of the budget that are watched: the tightest."""
CELLS_PER_EXPANSION = 100_000
"""Bytes made or compared that cost about as much as looking at one state."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much room may stay unused by those who depend on it.

    A line is a reach and a resource row: the kinds of the reach have so much more than its classes ask for. Whatever a
    node leaves of that row without giving it to these classes is taken from the line.
    """

    reach: np.ndarray
    """bool[L, C]: classes of the line"""
    kinds: np.ndarray
    """bool[L, T]"""
    row: np.ndarray
    """int64[L]"""
    spare: np.ndarray
    """int64[L]: negative is a proof that it cannot be done"""

    def asked(self, problem: Problem) -> np.ndarray:
        """int64[C, L]: what a pod of the class takes from its node on the line's account."""
        return np.where(self.reach.T, problem.amounts[:, self.row], 0)


def budget_of(problem: Problem, found: list[Reach], drop: int) -> Budget:
    """The lines of a problem of which `drop` members, whichever, may stay out."""
    rows = problem.amounts.shape[1]
    reach = np.repeat(np.array([one.classes for one in found]), rows, axis=0)
    kinds = np.repeat(np.array([one.kinds for one in found]), rows, axis=0)
    row = np.tile(np.arange(rows), len(found))
    room = (problem.free * problem.copies[:, None])[:, row]
    total = (room * kinds.T).sum(axis=0)
    asked = np.where(reach.T, problem.amounts[:, row], 0)
    demand = problem.counts @ asked - _largest(asked, problem.counts, drop)
    spare = total - demand
    tightness = spare * 1000 // np.maximum(total, 1)
    needed = np.flatnonzero(demand > 0)
    kept = np.sort(needed[np.argsort(tightness[needed], kind="stable")][:MAX_LINES])
    return Budget(reach[kept], kinds[kept], row[kept], spare[kept])


def _largest(asked: np.ndarray, counts: np.ndarray, drop: int) -> np.ndarray:
    """int64[L]: the most that `drop` members can ask for on each line."""
    if drop == 0:
        return np.zeros(asked.shape[1], dtype=np.int64)
    order = np.argsort(-asked, axis=0, kind="stable")
    sizes = np.take_along_axis(asked, order, axis=0)
    before = np.cumsum(counts[order], axis=0) - counts[order]
    taken = np.clip(drop - before, 0, counts[order])
    total: np.ndarray = (taken * sizes).sum(axis=0)
    return total


@dataclass(frozen=True, slots=True)
class Patterns:
    """`P` ways to fill a node of one kind, the empty one included where the budget allows it."""

    counts: np.ndarray
    """int[P, C], in the smallest type that holds the members of any class"""
    waste: np.ndarray
    """int64[P, L]: what it takes from each line of the budget"""
    takes: np.ndarray
    """bool[P, C]: one more pod of the class would still fit"""
    complete: bool
    """All ways within the budget are here."""
    cost: int
    """Expansions that making it was worth."""


def fill(
    problem: Problem, kind: int, budget: Budget, forced: int | None = None, most: int = MAX_ROWS, evenly: bool = False
) -> Patterns:
    """Every way to fill a node of this kind, with the forced class, that wastes no more than the budget has.

    Beyond `most` ways, those that leave the least of the node unused; `evenly`: every second, third, … of them.
    """
    asked = budget.asked(problem)
    at_most = np.where(budget.kinds[:, kind], problem.free[kind, budget.row], 0)
    floor = at_most - budget.spare  # int64[L]: what the classes of a line must take here at least.
    order = _by_size(problem, kind, forced)
    slots = _slots(problem, kind)
    ahead = np.zeros(len(floor), dtype=np.int64)
    ahead = sum((slots[c] * asked[c] for c in order), ahead)
    small = np.int8 if problem.counts.max(initial=0) < 127 else np.int32
    counts = np.zeros((1, len(problem.counts)), dtype=small)
    left, taken = problem.free[kind][None].copy(), np.zeros((1, len(floor)), dtype=np.int64)
    complete, cells = True, 0
    for c in order:
        counts, left, taken = _extend(problem, c, counts, left, taken, asked[c])
        ahead = ahead - slots[c] * asked[c]
        cells += len(counts) * (len(problem.counts) + 8 * (len(floor) + left.shape[1]))
        keep = (taken + ahead >= floor).all(axis=1)
        if c == forced:
            keep &= counts[:, c] > 0
        counts, left, taken = counts[keep], left[keep], taken[keep]
        if len(counts) > most:
            complete = False
            best = np.arange(0, len(counts), -(-len(counts) // most))
            if not evenly:
                best = np.sort(_fullest(problem, kind, left)[: most // 2])
            counts, left, taken = counts[best], left[best], taken[best]
    takes = (left[:, None, :] >= problem.amounts[None]).all(axis=2) & problem.allowed[kind]
    cells += takes.size * left.shape[1]
    return Patterns(counts, at_most - taken, takes, complete, 1 + cells // CELLS_PER_EXPANSION)


def _slots(problem: Problem, kind: int) -> np.ndarray:
    """int64[C]: how many of each class fit on an untouched node of the kind."""
    asked = problem.amounts
    slots = np.where(asked > 0, problem.free[kind] // np.maximum(asked, 1), np.iinfo(np.int64).max).min(axis=1)
    return np.where(problem.allowed[kind], np.minimum(slots, problem.counts), 0)


def _by_size(problem: Problem, kind: int, forced: int | None) -> list[int]:
    """The classes that fit, the forced one, then the largest share of the node first: few rows early on."""
    share = (problem.amounts * 1000 // np.maximum(problem.free[kind], 1)).max(axis=1)
    order = [c for c in np.argsort(-share, kind="stable").tolist() if problem.allowed[kind, c] and problem.counts[c]]
    return sorted(order, key=lambda c: c != forced)


def _extend(
    problem: Problem, c: int, counts: np.ndarray, left: np.ndarray, taken: np.ndarray, asked: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every row with 0, 1, 2, … more pods of class `c`, as many as fit."""
    amounts = problem.amounts[c]
    rows = np.flatnonzero(amounts)
    most = np.minimum((left[:, rows] // amounts[rows]).min(axis=1, initial=np.iinfo(np.int64).max), problem.counts[c])
    source = np.repeat(np.arange(len(counts)), most + 1)
    starts = np.cumsum(most + 1) - (most + 1)
    more = np.arange(len(source)) - starts[source]
    counts = counts[source]
    counts[:, c] = more
    return counts, left[source] - more[:, None] * amounts, taken[source] + more[:, None] * asked


def _fullest(problem: Problem, kind: int, left: np.ndarray) -> np.ndarray:
    """Indices of the rows, those that leave the smallest share of the node unused first."""
    share = (left * 1000 // np.maximum(problem.free[kind], 1)).sum(axis=1)
    return np.argsort(share, kind="stable")
