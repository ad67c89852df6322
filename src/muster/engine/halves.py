"""Ways to fill a node from many unlike pods: halves of a filling, joined where together they leave almost nothing.

`patterns.fill` goes through the classes one after the other, which is too much where each class has a pod or two and
there are a hundred of them. Here all sets of up to three pods are listed; two of them make a filling if their sums
meet, and the partners of a set are found in an order by two of the sums instead of being tried. Where there are too
many, every second, third, … set is looked at: with so many fillings, most can be done without.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from muster.engine.patterns import CELLS_PER_EXPANSION, Budget
from muster.engine.problem import Problem

MOST_PODS = 6
"""Pods of a filling: two sets of three."""
_MOST_SETS = 600_000
_JOINED_A_POD = 64, 32
"""So many fillings of one number of pods on one kind, for each pod to be placed; of more than that a sample."""
_PAIRS_A_POD = 2_000, 1_200
_LOOKUPS = 600_000, 150_000
_FEW_VALUES = 18
_TELLING = 500
"""Thousandths of a room: a line of which more may be left tells nothing."""


@dataclass(frozen=True, slots=True)
class Sets:
    """`S` sets of equally many pods."""

    members: np.ndarray
    """int16[S, k]: places in the list of pods, ascending"""
    sums: np.ndarray
    """int[S, A]: what they ask for, on each account"""
    every: bool
    """These are all that fit."""


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
    sets = [Sets(np.arange(len(pods), dtype=np.int16)[:, None], asked, True)]
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
    every = sets.every and thin.step == 1
    return Sets(np.hstack((members[source[fits]], pod[fits, None].astype(np.int16))), together[fits], every)


def _every(many: int, most: int) -> slice:
    """Of so many, evenly, no more than about `most`."""
    return slice(None, None, max(-(-many // most), 1))


def _sample(many: int, most: tuple[int, int], times: int = 1, each: int = 1) -> slice:
    """All of so many, or where these are too many evenly a smaller number: with so much choice a few will do."""
    all_of_them, some = most
    return slice(None) if many * each <= all_of_them * times else _every(many * each, some * times)


def _ranges(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(i repeated lengths[i] times, 0 … lengths[i] - 1), for all i."""
    source = np.repeat(np.arange(len(lengths)), lengths)
    return source, np.arange(len(source)) - (np.cumsum(lengths) - lengths)[source]


def joined(half: Halves, pods: int, waste: np.ndarray) -> tuple[np.ndarray, bool, int]:
    """Fillings of so many pods that take no more than `waste` (int64[L]) from any line.

    Returns (int16[P, pods] places in the list of pods, whether these are all, expansions that it was worth).
    """
    floor = half.room - waste
    if pods == 1 or not len(floor):
        sets = half.sets[0]
        return sets.members[(sets.sums[:, half.account] >= floor).all(axis=1)], True, 1
    left, right = half.sets[pods // 2 - 1], half.sets[(pods + 1) // 2 - 1]
    i, j, every, cells = _partners(left, right, floor, half)
    thin = _sample(len(i), _JOINED_A_POD, len(half.pods))
    every &= left.every and right.every and thin == slice(None)
    return np.hstack((left.members[i[thin]], right.members[j[thin]])), every, 1 + cells // CELLS_PER_EXPANSION


def _partners(left: Sets, right: Sets, floor: np.ndarray, half: Halves) -> tuple[np.ndarray, np.ndarray, bool, int]:
    """Indices of the left and right sets that make a filling, each once; whether these are all; bytes looked at."""
    source, first, last, order, every = _ranges_of_partners(left, right, floor, half)
    count = np.maximum(last - first, 0)
    thin = _sample(int(count.sum()), _PAIRS_A_POD, len(half.pods))
    chosen = np.arange(count.size)[thin]
    which, offset = _ranges(count[chosen])
    i, j = source[chosen[which]], order[first[chosen][which] + offset]
    cells = 50 * count.size + 8 * len(order) + 40 * len(i)
    once = left.members[i, -1] < right.members[j, 0]
    i, j = i[once], j[once]
    both = left.sums[i] + right.sums[j]
    cells += both.nbytes
    good = (both <= half.limit).all(axis=1) & (both[:, half.account] >= floor).all(axis=1)
    return i[good], j[good], every and thin == slice(None), cells


def _ranges_of_partners(
    left: Sets, right: Sets, floor: np.ndarray, half: Halves
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool]:
    """(left set, first and behind the last of its partners, the order of the right sets that these are in, all of them)

    Right sets are ordered by what they ask for on some lines; of the last of these a range may do, of the others each
    allowed sum is gone through.
    """
    *few, fine = _keys(half, floor)
    values = list(product(*(range(max(int(floor[line]), 0), int(half.room[line]) + 1) for line in few)))
    thin = _sample(len(left.sums), _LOOKUPS, 1, len(values))
    chosen = np.arange(len(left.sums))[thin]
    scale = half.room + 1
    key = _mixed(right.sums[:, half.account], [*few, fine], scale)
    order = np.argsort(key, kind="stable")
    mine = left.sums[np.ix_(chosen, half.account)]
    own = _mixed(mine, few, scale)
    sums = [(_mixed(np.array([v]), list(range(len(few))), scale[few]) - own) * scale[fine] for v in values]
    possible = np.concatenate([(mine[:, few] <= v).all(axis=1) for v in values])
    asking = np.flatnonzero(possible)
    base, source = np.concatenate(sums)[asking], asking % len(chosen)
    taken = mine[source, fine].astype(np.int64)
    first = np.searchsorted(key[order], base + np.clip(floor[fine] - taken, 0, None))
    last = np.searchsorted(key[order], base + half.room[fine] - taken, "right")
    return chosen[source], first, last, order, thin == slice(None)


def _mixed(sums: np.ndarray, lines: list[int], scale: np.ndarray) -> np.ndarray:
    """int64[S]: one number for the sums (int[S, L]) on these lines."""
    mixed = np.zeros(len(sums), dtype=np.int64)
    for line in lines:
        mixed = mixed * scale[line] + np.minimum(sums[:, line], scale[line] - 1)
    return mixed


def _keys(half: Halves, floor: np.ndarray) -> list[int]:
    """Lines that tell most about a set, as many as have few allowed sums together; the last has most of them."""
    width = half.room - np.maximum(floor, 0) + 1
    share = np.where(half.room > 0, width * 1000 // np.maximum(half.room, 1), 1_000_000)
    first, *others = np.argsort(share, kind="stable").tolist()
    lines = [first]
    for line in others:
        longer = sorted([*lines, line], key=lambda other: int(width[other]))
        if share[line] > _TELLING or any(half.account[line] == half.account[other] for other in lines):
            continue
        if np.prod(width[longer[:-1]]) <= _FEW_VALUES and np.prod(half.room[longer] + 1.0) < 2**62:
            lines = longer
    return lines
