"""How many domains of a narrower level so many pods need inside each domain of a wider one."""

from __future__ import annotations

import numpy as np

from muster.model.snapshot import NodeColumns
from muster.model.topology import Domains


class Nesting:
    """The domains of a narrower level inside each of some domains; made once and kept on the node columns."""

    __slots__ = ("_column", "_order", "_row", "_shape", "_starts")

    def __init__(self, nodes: NodeColumns, domains: Domains, key: str) -> None:
        labels = nodes.label(key)
        codes = labels.codes if domains.parent is None else labels.codes[domains.parent.nodes]
        known = np.flatnonzero((domains.codes >= 0) & (codes >= 0))
        pairs = domains.codes[known] * (len(labels.values) + 1) + codes[known]
        by_pair = np.argsort(pairs, kind="stable")
        self._order = known[by_pair]
        self._starts = np.flatnonzero(np.diff(pairs[by_pair], prepend=-1))
        self._row = domains.codes[self._order[self._starts]]
        self._column = np.arange(len(self._row)) - np.searchsorted(self._row, self._row)
        self._shape = (len(domains), int(self._column.max(initial=-1)) + 1)

    def parts(self, slots: np.ndarray, count: int) -> np.ndarray:
        """int64[D]: the fewest narrower domains with `count` of these slots int64[N]; one too many if they have not."""
        room = np.zeros(self._shape, dtype=np.int64)
        if len(self._row):
            room[self._row, self._column] = np.add.reduceat(slots[self._order], self._starts)
        room = -np.sort(-room, axis=1)
        parts: np.ndarray = np.count_nonzero(room.cumsum(axis=1) < count, axis=1) + 1
        return parts


def nesting(nodes: NodeColumns, domains: Domains, key: str) -> Nesting:
    """The domains of a narrower level inside these."""
    parent = domains.parent.path if domains.parent else ()
    cache_key = ("nesting", domains.key, key, parent)
    known = nodes.cache.get(cache_key)
    if not isinstance(known, Nesting):
        known = nodes.cache[cache_key] = Nesting(nodes, domains, key)
    return known
