"""Puts copies of one class onto nodes: exactly as if each copy in turn took the best node, but all at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from muster.engine.trial import ClassState, Trial

Scorer = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(nodes[M], capacity[rows, M], used[rows, M]) -> int64[M], column by column; more is better."""

_ONE_BY_ONE = 6
_FIRST_DEPTH = 4
_NEVER = np.iinfo(np.int64).max


class Spot(NamedTuple):
    """`counts[i]` copies on `nodes[i]`; nodes ascending, counts positive."""

    nodes: np.ndarray
    counts: np.ndarray


def place_best(trial: Trial, cls: int, count: int) -> int:
    """Places up to `count` copies, each on the node that scores best with the earlier ones in place.

    Ties go to the first node. Returns how many found a node; fewer than `count` only if no node has a slot left.
    """
    state = trial.state(cls)
    if count > _ONE_BY_ONE and not trial.related(cls):
        return _place(trial, cls, choose(trial, state, count, _profile_scorer(state), state.scores()))
    for done in range(count):
        node = best_node(trial, cls)
        if node is None:
            return done
        trial.ledger.place(cls, node)
    return count


def best_node(trial: Trial, cls: int) -> int | None:
    """The node that scores best for one more pod of the class, the first of equals; None if none has a slot."""
    ranked = trial.scores(cls)
    node = int(ranked.argmax()) if len(ranked) else -1
    return node if node >= 0 and ranked[node] >= 0 else None


class RowWeights(NamedTuple):
    """Makes one number of an amount of every row: thousandths of the largest node, weighted."""

    largest: np.ndarray
    """int64[rows], positive"""
    weight: np.ndarray
    """int64[rows], 0 where the row does not matter"""

    def total(self, amounts: np.ndarray) -> np.ndarray:
        """int64[M] of amounts int64[rows, M]."""
        rows = np.flatnonzero(self.weight)
        total: np.ndarray = (amounts[rows] * 1000 // self.largest[rows, None] * self.weight[rows, None]).sum(axis=0)
        return total


def place_tight(trial: Trial, cls: int, count: int, weights: RowWeights) -> int:
    """Places up to `count` copies, each where the least is left over by these weights."""
    state = trial.state(cls)

    def left(nodes: np.ndarray, capacity: np.ndarray, used: np.ndarray) -> np.ndarray:
        return -weights.total(np.maximum(capacity - used, 0))

    ledger = trial.ledger
    values = left(np.arange(0), ledger.capacity, ledger.used)
    ranked = np.where(state.slots > 0, values - values.min(initial=0), -1)
    return _place(trial, cls, choose(trial, state, count, left, ranked))


def _place(trial: Trial, cls: int, spot: Spot) -> int:
    trial.ledger.place_many(cls, spot.nodes, spot.counts)
    return int(spot.counts.sum())


def _profile_scorer(state: ClassState) -> Scorer:
    def score(nodes: np.ndarray, capacity: np.ndarray, used: np.ndarray) -> np.ndarray:
        value: np.ndarray = state.dynamic(capacity, used) + state.static()[nodes]
        return value

    return score


def choose(trial: Trial, state: ClassState, count: int, scorer: Scorer, ranked: np.ndarray) -> Spot:
    """Where `count` sequential best choices would put the copies.

    `ranked` is int64[N], the value of the next copy on each node, negative where none fits. A copy on a node can only
    be taken after the ones before it there, so in the merged order it counts as much as the worst of them (the running
    minimum); the first `count` in the order (running minimum, node) are then exactly what taking the best next copy
    again and again takes, whether the values rise or fall from copy to copy.
    """
    candidates = _leaders(ranked, count)
    slots = np.minimum(state.slots[candidates], count)
    if int(slots.sum()) <= count:
        return Spot(candidates, slots)
    depth = min(_FIRST_DEPTH, int(slots.max()))
    while True:
        counts = _merge(trial, state.cls, candidates, slots, depth, count, scorer)
        if not np.any((counts == depth) & (slots > depth)):
            taken = counts > 0
            return Spot(candidates[taken], counts[taken])
        depth = min(depth * 4, int(slots.max()))


def _leaders(ranked: np.ndarray, count: int) -> np.ndarray:
    """The nodes, ascending, that could get one of `count` copies: the best `count` by first value, then by order."""
    if np.count_nonzero(ranked >= 0) <= count:
        return np.flatnonzero(ranked >= 0)
    cut = np.partition(ranked, len(ranked) - count)[len(ranked) - count]
    above = ranked > cut
    missing = count - int(np.count_nonzero(above))
    above[np.flatnonzero(ranked == cut)[:missing]] = True
    return np.flatnonzero(above)


def _merge(
    trial: Trial, cls: int, nodes: np.ndarray, slots: np.ndarray, depth: int, count: int, scorer: Scorer
) -> np.ndarray:
    """int64[M]: copies per candidate among the best `count`, looking `depth` copies deep on each."""
    ledger = trial.ledger
    copies = np.arange(depth)
    columns = np.repeat(nodes, depth)
    taken = np.tile(copies, len(nodes))
    used = ledger.used[:, columns] + ledger.amounts[cls][:, None] * taken
    values = scorer(columns, ledger.capacity[:, columns], used).reshape(len(nodes), depth)
    worst = np.minimum.accumulate(values, axis=1)
    order = (worst.max() - worst) * len(nodes) + np.arange(len(nodes))[:, None]
    order[copies >= slots[:, None]] = _NEVER
    flat = order.ravel()
    if count >= flat.size:
        all_of_them: np.ndarray = np.count_nonzero(order != _NEVER, axis=1)
        return all_of_them
    cut = np.partition(flat, count - 1)[count - 1]
    counts: np.ndarray = np.count_nonzero(order < cut, axis=1)
    # All copies with the order of the cut are on one node; it gets what is still missing.
    tied = np.count_nonzero(order == cut, axis=1)
    missing = count - int(counts.sum())
    counts += np.minimum(tied, missing if cut != _NEVER else 0)
    return counts
