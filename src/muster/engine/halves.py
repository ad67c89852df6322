"""Ways to fill a node from many unlike pods: halves of a filling, joined where together they leave almost nothing.

`patterns.fill` goes through the classes one after the other, which is too much where each class has a pod or two and
there are a hundred of them. Here all sets of up to three pods are listed; two of them make a filling if their sums
meet, and the partners of a set are found in an order by two of the sums instead of being tried. Where there are too
many, every second, third, … set is looked at: with so many fillings, most can be done without.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.engine.patterns import CELLS_PER_EXPANSION, Budget
from muster.engine.problem import Problem

MOST_PODS = 6
"""Pods of a filling: two sets of three."""
_MOST_SETS = 250_000
_JOINED_A_POD = 32
"""So many fillings of one number of pods on one kind, for each pod to be placed."""
_PAIRS_A_POD = 2_000
_FEW_VALUES = 6


@dataclass(frozen=True, slots=True)
class Sets:
    """`S` sets of equally many pods."""

    members: np.ndarray
    """int16[S, k]: places in the list of pods, ascending"""
    sums: np.ndarray
    """int[S, A]: what they ask for, on each account"""


@dataclass(frozen=True, slots=True)
class Halves:
    """One kind of node: the pods that fit on it, and sets of one, two or three of them that do together.

    Accounts are the resource rows and, after them, the lines of the budget that are not simply a row.
    """

    pods: np.ndarray
    """int[n]: the class of each pod; the largest first"""
    sets: tuple[Sets, ...]
    limit: np.ndarray
    """int[A]: what sums may come to, in common divisors"""
    account: np.ndarray
    """int[L]: of each line of the budget"""
    room: np.ndarray
    """int64[L]: what the kind adds to each line, in common divisors"""
    cost: int
    """Expansions that making it was worth."""


def halves(problem: Problem, kind: int, budget: Budget, size: int) -> Halves:
    """Sets of up to `size` pods that fit on a node of the kind."""
    step = np.maximum(np.gcd.reduce(problem.amounts, axis=0), 1)
    free, amounts = problem.free[kind] // step, problem.amounts // step
    share = (amounts * 1000 // np.maximum(free, 1)).max(axis=1)
    classes = [c for c in np.argsort(-share, kind="stable").tolist() if problem.allowed[kind, c]]
    pods = np.repeat(np.array(classes, dtype=np.int64), problem.counts[classes])
    of_some = np.flatnonzero(~budget.reach.all(axis=1))
    account = budget.row.copy()
    account[of_some] = len(free) + np.arange(len(of_some))
    asked = np.hstack((amounts, (budget.asked(problem) // step[budget.row])[:, of_some]))[pods]
    limit = np.concatenate((free, free[budget.row[of_some]]))
    small = np.int32 if int(limit.max(initial=0)) < 1 << 29 else np.int64
    asked, limit = asked.astype(small), limit.astype(small)
    sets = [Sets(np.arange(len(pods), dtype=np.int16)[:, None], asked)]
    cells = 0
    for _ in range(size - 1):
        sets.append(_one_more(sets[-1], asked, limit))
        cells += sets[-1].sums.nbytes * 2
    room = np.where(budget.kinds[:, kind], free[budget.row], 0)
    return Halves(pods, tuple(sets), limit, account, room, 1 + cells // CELLS_PER_EXPANSION)


def _one_more(sets: Sets, asked: np.ndarray, limit: np.ndarray) -> Sets:
    """Each set with each pod that comes after its last, as far as they fit."""
    more = len(asked) - 1 - sets.members[:, -1].astype(np.int64)
    thin = _every(int(more.sum()), _MOST_SETS)
    members, sums, more = sets.members[thin], sets.sums[thin], more[thin]
    source, offset = _ranges(more)
    pod = members[source, -1] + 1 + offset
    together = sums[source] + asked[pod]
    fits = np.flatnonzero((together <= limit).all(axis=1))
    return Sets(np.hstack((members[source[fits]], pod[fits, None].astype(np.int16))), together[fits])


def _every(many: int, most: int) -> slice:
    """Of so many, evenly, no more than about `most`."""
    return slice(None, None, max(-(-many // most), 1))


def _ranges(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(i repeated lengths[i] times, 0 … lengths[i] - 1), for all i."""
    source = np.repeat(np.arange(len(lengths)), lengths)
    return source, np.arange(len(source)) - (np.cumsum(lengths) - lengths)[source]


def joined(half: Halves, pods: int, waste: np.ndarray) -> tuple[np.ndarray, int]:
    """Fillings of so many pods that take no more than `waste` (int64[L]) from any line.

    Returns (int16[P, pods] places in the list of pods, expansions that it was worth).
    """
    floor = half.room - waste
    if pods == 1 or not len(floor):
        sets = half.sets[0]
        return sets.members[(sets.sums[:, half.account] >= floor).all(axis=1)], 1
    left, right = half.sets[pods // 2 - 1], half.sets[(pods + 1) // 2 - 1]
    i, j, cells = _partners(left, right, floor, half)
    thin = _every(len(i), _JOINED_A_POD * len(half.pods))
    return np.hstack((left.members[i[thin]], right.members[j[thin]])), 1 + cells // CELLS_PER_EXPANSION


def _partners(left: Sets, right: Sets, floor: np.ndarray, half: Halves) -> tuple[np.ndarray, np.ndarray, int]:
    """Indices of the left and right sets that make a filling, each filling once; and bytes looked at for it."""
    coarse, fine = _keys(half, floor)
    steps = floor[coarse] if coarse is not None else 0, half.room[coarse] if coarse is not None else 0
    values = np.arange(max(int(steps[0]), 0), int(steps[1]) + 1)
    right_coarse, right_fine = _column(right, half, coarse), _column(right, half, fine)
    scale = int(max(right_fine.max(initial=0), half.room[fine])) + 2
    key = right_coarse * scale + right_fine
    order = np.argsort(key, kind="stable")
    key = key[order]
    need = (values[:, None] - _column(left, half, coarse)) * scale
    left_fine = _column(left, half, fine)
    first = np.searchsorted(key, need + np.clip(floor[fine] - left_fine, 0, None))
    last = np.searchsorted(key, need + np.maximum(half.room[fine] - left_fine, -1), "right")
    count = np.where(need >= 0, np.maximum(last - first, 0), 0).ravel()
    thin = _every(int(count.sum()), _PAIRS_A_POD * len(half.pods))
    chosen = np.arange(count.size)[thin]
    which, offset = _ranges(count[chosen])
    i, j = chosen[which] % len(left.members), order[first.ravel()[chosen][which] + offset]
    cells = 20 * count.size + 8 * len(key) + 40 * len(i)
    once = left.members[i, -1] < right.members[j, 0]
    i, j = i[once], j[once]
    both = left.sums[i] + right.sums[j]
    cells += both.nbytes
    good = (both <= half.limit).all(axis=1) & (both[:, half.account] >= floor).all(axis=1)
    return i[good], j[good], cells


def _column(sets: Sets, half: Halves, line: int | None) -> np.ndarray:
    """int64[S]: the sums on a line of the budget, zeros for none."""
    if line is None:
        return np.zeros(len(sets.sums), dtype=np.int64)
    return sets.sums[:, half.account[line]].astype(np.int64)


def _keys(half: Halves, floor: np.ndarray) -> tuple[int | None, int]:
    """(line whose few allowed sums are gone through, line whose allowed sums are a range in an order)."""
    width = half.room - floor + 1
    share = np.where(half.room > 0, width * 1000 // np.maximum(half.room, 1), 1_000_000)
    order = np.argsort(share, kind="stable").tolist()
    few = [line for line in order[1:] if half.room[line] > 0 and width[line] <= _FEW_VALUES]
    few = [line for line in few if half.account[line] != half.account[order[0]]]
    return (few[0] if few else None), order[0]
