"""Which nodes are alike to a group at this moment, their domains included: a colour for each node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from muster.engine.extension import Counter
from muster.engine.trial import Trial

CELLS_PER_EXPANSION = 20_000
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_STEP = np.uint64(0x9E3779B97F4A7C15)


def mixed(values: np.ndarray) -> np.ndarray:
    """uint64 of uint64, well mixed (splitmix64): sums of such numbers tell sets of them apart."""
    x = values + _STEP
    x = (x ^ (x >> np.uint64(30))) * _MIX[0]
    x = (x ^ (x >> np.uint64(27))) * _MIX[1]
    return x ^ (x >> np.uint64(31))


def _salts(count: int) -> np.ndarray:
    """uint64[count, 1], odd: rows multiplied by these can be added, and their order still matters."""
    return (mixed(np.arange(1, count + 1, dtype=np.uint64)) | np.uint64(1))[:, None]


class Symmetry:
    """Colours of nodes for these classes: equal colours can be exchanged without a difference to anybody.

    Where the domains of all keys nest, two domains are alike if they count alike and hold alike nodes. Where they
    overlap, a node is only exchanged with others of the very same domains. `marks`: columns that tell nodes apart too.
    """

    def __init__(self, trial: Trial, classes: Sequence[int], marks: Iterable[np.ndarray] = ()) -> None:
        self._trial, self._classes = trial, np.array(classes, dtype=np.intp)
        ties = trial.ties
        assert ties is not None
        self._ties = ties
        size = len(trial)
        rows = np.flatnonzero(trial.ledger.amounts[self._classes].any(axis=0))
        self._rows, self._amounts = rows, trial.ledger.amounts[np.ix_(self._classes, rows)]
        static = [*marks, *(trial.state(cls).feasible.passes for cls in self._classes.tolist())]
        moving: list[tuple[int, Counter]] = []
        for place, (counter, counts) in enumerate(ties.state()):
            if counter.adds[self._classes].any():
                moving.append((place, counter))
                static.append(trial.cut(counter.counted))
            else:
                codes = trial.cut(counter.codes)
                static += [codes >= 0, counts[codes]]
        table = np.array([column.astype(np.uint64) for column in static]).reshape(len(static), size)
        self._base = (mixed(table) * _salts(len(table))).sum(axis=0, dtype=np.uint64)
        self._row_salts = _salts(len(rows) + 1)[1:]
        self._counted(trial, moving)
        self._nested = all(_nest(one, other) for one, other in combinations(self._codes, 2))
        self.cost = size * (len(rows) + len(moving) + 2 * len(self._codes) ** 2) // CELLS_PER_EXPANSION
        """What one colouring costs in expansions."""

    def _counted(self, trial: Trial, moving: Sequence[tuple[int, Counter]]) -> None:
        """Lays out the domains of all keys one after the other; counters of one key count into the same domains."""
        keys: dict[tuple[bytes, int], int] = {}
        starts, codes, into = [0], [], []
        for _, counter in moving:
            key = counter.codes.tobytes(), len(counter.counts)
            if key not in keys:
                keys[key] = starts[-1]
                here = trial.cut(counter.codes).astype(np.int64)
                codes.append(np.where(here < 0, key[1] - 1, here) + starts[-1])
                starts.append(starts[-1] + key[1])
            into.append(np.arange(key[1]) + keys[key])
        self._places = [place for place, _ in moving]
        self._codes = np.array(codes, dtype=np.int64).reshape(len(codes), len(trial))
        """int64[keys, M]: the domain of each node, the last one of the key without the label."""
        self._nowhere = np.array(starts[1:], dtype=np.int64) - 1
        self._size = starts[-1]
        self._into = np.concatenate(into) if into else np.zeros(0, dtype=np.int64)
        weights = _salts(len(moving)).ravel()
        self._weights = np.repeat(weights, [len(some) for some in into]) if into else weights
        self._key_salts = _salts(len(codes) + 2)

    def colours(self, left: Sequence[int]) -> np.ndarray:
        """uint64[M], with so many of each class still to be placed."""
        ledger = self._trial.ledger
        wanted = np.asarray(left, dtype=np.int64) @ self._amounts
        free = np.clip(ledger.capacity[self._rows] - ledger.used[self._rows], 0, wanted[:, None]).astype(np.uint64)
        colours = mixed(self._base + (free * self._row_salts).sum(axis=0, dtype=np.uint64))
        if not len(self._codes):
            return colours
        every = [counts for _, counts in self._ties.state()]
        counts = np.concatenate([every[place] for place in self._places]).astype(np.uint64)
        domains = np.zeros(self._size, dtype=np.uint64)
        np.add.at(domains, self._into, counts * self._weights)
        if not self._nested:
            table = mixed(self._codes.astype(np.uint64)) + domains[self._codes]
            return mixed(colours + (table * self._key_salts[1:-1]).sum(axis=0, dtype=np.uint64))
        flat, keys = self._codes.ravel(), len(self._codes)
        for _ in range(keys):
            content = np.zeros(self._size, dtype=np.uint64)
            np.add.at(content, flat, np.concatenate([colours] * keys))
            content[self._nowhere] = 0
            content = mixed(content + domains)[self._codes]
            colours = mixed(
                colours * self._key_salts[0] + (content * self._key_salts[1:-1]).sum(axis=0, dtype=np.uint64)
            )
        return colours


def _nest(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether every domain of one key lies within one domain of the other; nodes without a label are no domain."""
    pairs = np.unique(np.stack((one, other)), axis=1).shape[1]
    return bool(pairs == max(len(np.unique(one)), len(np.unique(other))))
