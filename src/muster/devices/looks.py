"""Which nodes offer the same to some claims: what their devices look like, as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from muster.devices.stock import Stock
from muster.model.devices import Choice


@dataclass(frozen=True, eq=False)
class Looks:
    """Devices as these choices and constraints see them, whoever has them."""

    stock: Stock
    order: np.ndarray
    """Devices of one node that matter, by node, then by what they look like."""
    codes: np.ndarray
    """int64[len(order)]: equal where they look the same; not 0."""

    @staticmethod
    def of(stock: Stock, choices: tuple[Choice, ...], bonds: tuple[str, ...]) -> Looks:
        """The same instance for the same."""
        found = stock.cache.get((choices, bonds))
        if not isinstance(found, Looks):
            found = stock.cache[choices, bonds] = _made(stock, choices, bonds)
        return found

    def patterns(self, taken: np.ndarray, wide: Sequence[int]) -> np.ndarray:
        """int64[N]: equal where nodes offer the same, with these devices taken and these ones for several nodes."""
        stock = self.stock
        is_taken = np.zeros(len(stock.columns.devices), dtype=bool)
        is_taken[taken] = True
        codes = self.codes * 2 + is_taken[self.order]
        at = stock.home[self.order]
        ranked = np.lexsort((codes, at))
        rank = np.arange(len(at)) - np.searchsorted(at, at)
        table = np.zeros((int(rank.max(initial=-1)) + 1, len(stock.nodes)), dtype=np.int64)
        table[rank, at] = codes[ranked]
        reached = (np.isin(np.arange(len(stock.nodes)), stock.wide[i]) for i in wide)
        return folded((stock.incomplete, *table, *reached), len(stock.nodes))


def folded(columns: Iterable[np.ndarray], size: int) -> np.ndarray:
    """int64[size]: equal where all columns (not negative) are. One column after the other: rows of a table at once are
    sorted ten times slower."""
    found = np.zeros(size, dtype=np.int64)
    for column in columns:
        if size and column.max() > 0:
            _, found = np.unique(found * (int(column.max()) + 1) + column, return_inverse=True)
    return found


def _made(stock: Stock, choices: tuple[Choice, ...], bonds: tuple[str, ...]) -> Looks:
    columns = stock.columns
    everything = [choice for choice in choices if choice.count is None]
    looks = (
        *(columns.good(choice) for choice in choices),
        *(columns.selected(choice) for choice in everything),
        *(columns.able(choice) for choice in everything),
        *(columns.codes(name) for name in bonds),
        columns.special,
    )
    code = folded(looks, len(columns.devices))
    matters = np.zeros(len(columns.devices), dtype=bool)
    for choice in choices:
        matters |= columns.selected(choice) != 0
    there = np.flatnonzero((stock.home >= 0) & matters)
    order = there[np.lexsort((code[there], stock.home[there]))]
    return Looks(stock, order, code[order] + 1)
