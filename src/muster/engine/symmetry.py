"""Which nodes are alike to a group at this moment, their domains included: a colour for each node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from muster.engine.extension import Counter
from muster.engine.trial import Trial

CELLS_PER_EXPANSION = 20_000
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_STEP = np.uint64(0x9E3779B97F4A7C15)


def mixed(values: np.ndarray) -> np.ndarray:
    """uint64, well mixed (splitmix64): sums and xors of such numbers tell sets of them apart."""
    x = values.astype(np.uint64) + _STEP
    x = (x ^ (x >> np.uint64(30))) * _MIX[0]
    x = (x ^ (x >> np.uint64(27))) * _MIX[1]
    return x ^ (x >> np.uint64(31))


def joined(rows: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """uint64[M]: one number for each column of these rows [K, M], in their order."""
    table = np.asarray(rows).astype(np.uint64)
    salts = mixed(np.arange(1, len(table) + 1, dtype=np.uint64))[:, None]
    found: np.ndarray = mixed(mixed(table ^ salts).sum(axis=0, dtype=np.uint64))
    return found


class _Level(NamedTuple):
    """The counters of one label key."""

    codes: np.ndarray
    """int[M]: the domain of each node here, -1 without the label."""
    places: tuple[int, ...]
    """Which counters these are."""
    size: int


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
        self._base = joined([column.astype(np.int64) for column in static]) if static else np.zeros(size, np.uint64)
        self._levels = _levels(trial, moving)
        self._nested = all(_nest(one.codes, other.codes) for one, other in combinations(self._levels, 2))
        self.cost = size * (len(rows) + len(moving) + 2 * len(self._levels) ** 2) // CELLS_PER_EXPANSION
        """What one colouring costs in expansions."""

    def colours(self, left: Sequence[int]) -> np.ndarray:
        """uint64[M], with so many of each class still to be placed."""
        ledger = self._trial.ledger
        wanted = np.asarray(left, dtype=np.int64) @ self._amounts
        free = np.clip(ledger.capacity[self._rows] - ledger.used[self._rows], 0, wanted[:, None])
        colours = joined([self._base, *free.astype(np.uint64)])
        every = [counts for _, counts in self._ties.state()]
        counted = [joined([every[place] for place in level.places]) for level in self._levels]
        if not self._nested:
            here = [some[level.codes] for some, level in zip(counted, self._levels, strict=True)]
            return joined([colours, *(level.codes.astype(np.uint64) for level in self._levels), *here])
        for _ in self._levels:
            colours = joined([colours, *self._domains(colours, counted)])
        return colours

    def _domains(self, colours: np.ndarray, counted: Sequence[np.ndarray]) -> Iterable[np.ndarray]:
        """What the domain of each node looks like: its counts, and the nodes in it."""
        for some, level in zip(counted, self._levels, strict=True):
            content = np.zeros(level.size, dtype=np.uint64)
            np.add.at(content, level.codes, colours)
            content[-1] = 0
            yield mixed(content ^ some)[level.codes]


def _levels(trial: Trial, moving: Sequence[tuple[int, Counter]]) -> list[_Level]:
    """Counters of one key together: equal codes over the whole cluster."""
    found: dict[tuple[bytes, int], list[tuple[int, Counter]]] = {}
    for place, counter in moving:
        found.setdefault((counter.codes.tobytes(), len(counter.counts)), []).append((place, counter))
    return [
        _Level(trial.cut(some[0][1].codes), tuple(place for place, _ in some), len(some[0][1].counts))
        for some in found.values()
    ]


def _nest(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether every domain of one key lies within one domain of the other; nodes without a label are no domain."""
    pairs = np.unique(np.stack((one, other)), axis=1).shape[1]
    return bool(pairs == max(len(np.unique(one)), len(np.unique(other))))
