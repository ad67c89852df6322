"""A group of unlike pods as a small packing problem: classes with counts, and the distinct kinds of free nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muster.engine.members import Members
from muster.engine.trial import Trial


@dataclass(frozen=True, slots=True)
class Problem:
    """`C` classes on `T` kinds of nodes; nodes of a kind have the same room and admit the same classes.

    Room is cut down to what the group could use, so that nodes that differ only beyond that are of one kind.
    """

    amounts: np.ndarray
    """int64[C, R]: only rows that some class asks for."""
    counts: np.ndarray
    """int64[C]: members of the class, as far as there are slots for them at all."""
    free: np.ndarray
    """int64[T, R], not negative"""
    allowed: np.ndarray
    """bool[T, C]: at least one pod of the class fits"""
    nodes: tuple[np.ndarray, ...]
    """For each kind its nodes, ascending."""

    @property
    def copies(self) -> np.ndarray:
        """int64[T]: nodes of each kind."""
        return np.array([len(some) for some in self.nodes], dtype=np.int64)


def problem_of(trial: Trial, members: Sequence[Members]) -> Problem:
    """What the ledger's free room means to this group now."""
    states = [trial.state(some.cls) for some in members]
    sizes = np.array([len(some) for some in members], dtype=np.int64)
    amounts = trial.ledger.amounts[[some.cls for some in members]]
    rows = np.flatnonzero(amounts.any(axis=0))
    amounts = amounts[:, rows]
    slots = np.stack([np.minimum(state.slots, size) for state, size in zip(states, sizes, strict=True)], axis=1)
    counts = np.minimum(sizes, slots.sum(axis=0))
    useful = np.flatnonzero(slots.any(axis=1))
    slots = slots[useful]
    room = (trial.ledger.capacity[np.ix_(rows, useful)] - trial.ledger.used[np.ix_(rows, useful)]).T
    free = np.clip(room, 0, slots @ amounts)
    kinds, kind = distinct_rows(np.hstack((free, slots > 0)))
    nodes = tuple(useful[kind == t] for t in range(len(kinds)))
    return Problem(amounts, counts, free[kinds], slots[kinds] > 0, nodes)


def shrunk(problem: Problem, kinds: np.ndarray, classes: np.ndarray) -> tuple[Problem, np.ndarray, np.ndarray]:
    """Without the kinds and classes of which nothing is left; their places in the whole problem likewise."""
    k = np.flatnonzero([len(some) > 0 for some in problem.nodes])
    c = np.flatnonzero(problem.counts)
    shrunk = Problem(
        problem.amounts[c],
        problem.counts[c],
        problem.free[k],
        problem.allowed[np.ix_(k, c)],
        tuple(problem.nodes[i] for i in k),
    )
    return shrunk, kinds[k], classes[c]


def distinct_rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(index of the first of each distinct row, int[n] saying which one each row equals); in order of first sight."""
    mixer = np.arange(1, table.shape[1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    digest = (table.astype(np.uint64) + np.uint64(1)) * (mixer | np.uint64(1))
    digest = (digest ^ (digest >> np.uint64(29))).sum(axis=1, dtype=np.uint64)
    _, first, which = np.unique(digest, return_index=True, return_inverse=True)
    if not np.array_equal(table, table[first[which]]):  # Two rows with one digest: compare them in full.
        _, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[which.ravel()]


@dataclass(frozen=True, slots=True)
class Reach:
    """The classes that can only go to some kinds: what these kinds have must do for them."""

    kinds: np.ndarray
    """bool[T]"""
    classes: np.ndarray
    """bool[C]: allowed on these kinds only"""


def reaches(problem: Problem) -> list[Reach]:
    """Everything everywhere first, then one for each distinct narrower set of kinds that some class is bound to."""
    every = Reach(np.ones(len(problem.free), dtype=bool), np.ones(len(problem.counts), dtype=bool))
    found = [every]
    for column in dict.fromkeys(bytes(column) for column in np.ascontiguousarray(problem.allowed.T)):
        kinds = np.frombuffer(column, dtype=bool)
        if not kinds.all():
            found.append(Reach(kinds, ~(problem.allowed & ~kinds[:, None]).any(axis=0)))
    return found


def usable(problem: Problem) -> np.ndarray:
    """int64[T, R]: how much of the free room the group could use at most, by the common divisor of what it asks."""
    asked = np.where(problem.allowed[:, :, None], problem.amounts[None], 0)
    step = np.maximum(np.gcd.reduce(asked, axis=1), 1)
    room: np.ndarray = problem.free // step * step
    return room


def most_placeable(problem: Problem) -> int:
    """An upper bound on how many members fit together: a proof when it is below the minimum."""
    if not len(problem.free):
        return 0
    room = usable(problem) * problem.copies[:, None]
    caps = _class_caps(problem)
    bound = int(caps.sum())
    for reach in reaches(problem):
        inside = _most_by_sums(problem, caps, reach, room[reach.kinds].sum(axis=0))
        bound = min(bound, inside + int(caps[~reach.classes].sum()))
    return bound


def _class_caps(problem: Problem) -> np.ndarray:
    """int64[C]: how many of each class would fit if it were alone."""
    asked = problem.amounts[None]
    slots = np.where(asked > 0, problem.free[:, None] // np.maximum(asked, 1), np.iinfo(np.int64).max).min(axis=2)
    slots = np.minimum(np.where(problem.allowed, slots, 0), problem.counts)
    caps: np.ndarray = np.minimum((slots * problem.copies[:, None]).sum(axis=0), problem.counts)
    return caps


def _most_by_sums(problem: Problem, caps: np.ndarray, reach: Reach, total: np.ndarray) -> int:
    """How many members of these classes the summed room allows, by the scarcest row: the smallest requests first."""
    best = int(caps[reach.classes].sum())
    for row in range(problem.amounts.shape[1]):
        asked, caps_here = problem.amounts[reach.classes, row], caps[reach.classes]
        order = np.argsort(asked, kind="stable")
        left, count = int(total[row]), 0
        for amount, cap in zip(asked[order].tolist(), caps_here[order].tolist(), strict=True):
            fit = cap if amount == 0 else min(cap, left // amount)
            left -= fit * amount
            count += fit
        best = min(best, count)
    return best
