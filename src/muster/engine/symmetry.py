"""Which nodes are alike to a group at this moment, their domains included: a colour for each node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from muster.engine.extension import Counter
from muster.engine.trial import Trial

CELLS_PER_EXPANSION = 20_000
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def mixed(values: np.ndarray) -> np.ndarray:
    """uint64, well mixed (splitmix64): sums and xors of such numbers tell sets of them apart."""
    with np.errstate(over="ignore"):
        x = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * _MIX[0]
        x = (x ^ (x >> np.uint64(27))) * _MIX[1]
        return x ^ (x >> np.uint64(31))


def joined(columns: Iterable[np.ndarray], size: int) -> np.ndarray:
    """uint64[size]: one number for each row of these columns, in their order."""
    found = np.zeros(size, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            found = mixed(found * np.uint64(3) + mixed(column))
    return found


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
        self._moving: list[int] = []
        for place, (counter, counts) in enumerate(ties.state()):
            if counter.adds[self._classes].any():
                self._moving.append(place)
                static.append(trial.cut(counter.counted))
            else:
                codes = trial.cut(counter.codes)
                static += [codes >= 0, counts[codes]]
        self._base = joined(static, size)
        self._codes = [trial.cut(counter.codes) for counter in self._moved()]
        self._nested = all(_nest(one, other) for one, other in combinations(self._codes, 2))
        self.cost = size * (len(rows) + 2 * len(self._codes)) // CELLS_PER_EXPANSION
        """What one colouring costs in expansions."""

    def _moved(self) -> list[Counter]:
        every = [counter for counter, _ in self._ties.state()]
        return [every[place] for place in self._moving]

    def colours(self, left: Sequence[int]) -> np.ndarray:
        """uint64[M], with so many of each class still to be placed."""
        ledger = self._trial.ledger
        wanted = np.asarray(left, dtype=np.int64) @ self._amounts
        free = np.clip(ledger.capacity[self._rows] - ledger.used[self._rows], 0, wanted[:, None])
        colours = joined((self._base, *free), len(self._base))
        every = [counts for _, counts in self._ties.state()]
        counts = [every[place] for place in self._moving]
        if not self._nested:
            return joined((colours, *self._codes, *self._here(counts)), len(colours))
        for _ in range(len(self._codes) if len(self._codes) > 1 else 1):
            colours = joined((colours, *self._domains(colours, counts)), len(colours))
        return colours

    def _here(self, counts: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [some[codes] for some, codes in zip(counts, self._codes, strict=True)]

    def _domains(self, colours: np.ndarray, counts: Sequence[np.ndarray]) -> Iterable[np.ndarray]:
        """What the domain of each node looks like: its count, and the nodes in it."""
        for some, codes in zip(counts, self._codes, strict=True):
            content = np.zeros(len(some), dtype=np.uint64)
            np.add.at(content, codes, colours)
            content[-1] = 0
            yield joined((content, some), len(some))[codes]


def _nest(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether every domain of one key lies within one domain of the other; nodes without a label are no domain."""
    if np.array_equal(one, other):
        return True
    pairs = np.unique(np.stack((one, other)), axis=1).shape[1]
    return bool(pairs == max(len(np.unique(one)), len(np.unique(other))))
