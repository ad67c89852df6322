"""Lists of fillings to choose from: all there are where that is few enough, else wider and wider ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from muster.engine.halves import MOST_PODS, Halves, halves, joined
from muster.engine.patterns import MAX_ROWS, Budget, fill
from muster.engine.problem import Problem

LISTED = 28
"""So many classes or fewer: `patterns.fill` lists what there is."""
_NARROW = 60_000
"""Ways to fill nodes in a list that is not complete."""
_NONE = np.zeros(0, dtype=np.int64)
_FEWEST = 1_000
_FEW_PODS = 4
"""Fillings of so many pods, two pairs, are listed in no time."""
_WASTE = (3, 5, 8)
"""Halves of the average waste of a node that a filling may have."""


@dataclass(frozen=True, slots=True)
class Pool:
    """`P` fillings, none of which is part of another where the list is complete."""

    kind: np.ndarray
    """int64[P]"""
    counts: np.ndarray
    """int32[P, C]"""
    complete: bool
    """Whatever a placement does on a node is here, or a larger filling."""
    cost: int
    """Expansions that making it was worth."""
    lasting: bool = False
    """A list for what is left of the problem would have nothing that is not here, but for fillings of more pods."""


def pools(problem: Problem, budget: Budget, limit: int) -> Iterator[Pool]:
    """The complete list, if there is one within `limit` expansions; else lists of narrow fillings, then wider ones."""
    if len(problem.counts) > LISTED:
        yield from _widening(problem, budget)
        return
    everything = np.broadcast_to(budget.spare, (len(problem.nodes), len(budget.spare)))
    pool = _listed(problem, budget, everything, MAX_ROWS, limit)
    if pool.complete:
        yield pool
        return
    cost = pool.cost
    for shares in _steps(problem, budget):
        waste = shares * _step(problem, budget)
        pool = _listed(problem, budget, waste, max(_NARROW // len(problem.nodes), 500), _NARROW, evenly=True)
        yield replace(pool, complete=False, cost=pool.cost + cost)
        cost = 0


def _listed(problem: Problem, budget: Budget, waste: np.ndarray, most: int, limit: int, evenly: bool = False) -> Pool:
    """Fillings by class, that waste no more than this (int64[T, L]); complete if all of these are there."""
    kinds: list[np.ndarray] = []
    counts: list[np.ndarray] = []
    cost, complete = 0, limit > 0
    for kind in range(len(problem.nodes) if limit > 0 else 0):
        table = fill(problem, kind, replace(budget, spare=waste[kind]), most=most, evenly=evenly)
        cost += table.cost
        complete &= table.complete
        full = ~(table.takes & (table.counts < problem.counts)).any(axis=1)
        counts.append(table.counts[full].astype(np.int32))
        kinds.append(np.full(len(counts[-1]), kind))
        if cost > limit:
            complete = False
            break
    return Pool(np.concatenate(kinds or [_NONE]), np.concatenate(counts or [np.zeros((0, 0))]), complete, cost)


def _widening(problem: Problem, budget: Budget) -> Iterator[Pool]:
    """First the usual number of pods a node and little waste; then more waste, then more pods."""
    mean = -(-int(problem.counts.sum()) // max(int(problem.copies.sum()), 1))
    cost, known = 0, 0
    half: list[Halves] = []
    for most in range(min(max(mean, _FEW_PODS), MOST_PODS), MOST_PODS + 1):
        if known < (most + 1) // 2:
            known = (most + 1) // 2
            for kind in range(len(problem.nodes)):
                some = halves(problem, kind, budget, known)
                half[kind : kind + 1] = [some]
                cost += some.cost
        steps = _steps(problem, budget)
        for shares in steps:
            pool = _joined(problem, half, most, shares, cost)
            pool = replace(pool, lasting=pool.lasting and len(steps) == 1)
            last = most == MOST_PODS and shares is steps[-1]
            short = len(pool.kind) < _FEWEST and not last
            cost = pool.cost if short else 0
            if not short:
                yield pool


def _steps(problem: Problem, budget: Budget) -> list[np.ndarray]:
    """What nodes may waste, less first; once where more makes no difference."""
    steps: list[np.ndarray] = []
    for waste in _WASTE:
        shares = _shares(problem, budget, waste)
        if not steps or not np.array_equal(shares, steps[-1]):
            steps.append(shares)
    return steps


def _shares(problem: Problem, budget: Budget, waste: int) -> np.ndarray:
    """int64[T, L]: what a node may waste, in common divisors, by its size; at least one, at most all there is.

    On the account of some classes only, all there is: nodes that serve others are wasted on these altogether.
    """
    step = _step(problem, budget)
    room = np.where(budget.kinds.T, problem.free[:, budget.row], 0) // step
    total = np.maximum((room * problem.copies[:, None]).sum(axis=0), 1)
    spare = budget.spare // step
    share = np.minimum(np.maximum(-(-waste * spare * room // (2 * total)), 1), spare)
    limit: np.ndarray = np.minimum(np.where(budget.reach.all(axis=1), share, spare), room)
    return limit


def _step(problem: Problem, budget: Budget) -> np.ndarray:
    """int64[L]: the common divisor of all that is asked for on each line."""
    step: np.ndarray = np.maximum(np.gcd.reduce(problem.amounts, axis=0), 1)[budget.row]
    return step


def _joined(problem: Problem, half: list[Halves], most: int, waste: np.ndarray, cost: int) -> Pool:
    """The fillings of up to so many pods within this waste."""
    kinds: list[np.ndarray] = []
    counts: list[np.ndarray] = []
    lasting = True
    for kind, some in enumerate(half):
        for pods in range(1, most + 1):
            members, every, worth = joined(some, pods, waste[kind])
            lasting &= every
            table = np.zeros((len(members), len(problem.counts)), dtype=np.int32)
            np.add.at(table, (np.arange(len(members))[:, None], some.pods[members]), 1)
            counts.append(table)
            kinds.append(np.full(len(members), kind))
            cost += worth
    return Pool(np.concatenate(kinds), np.concatenate(counts), False, cost, lasting)
