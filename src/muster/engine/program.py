"""An integer program that grows column by column and row by row, and what the solver says of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import gcd
from typing import Any

import numpy as np

from muster.engine.relaxation import Answer, new_solver, whole_numbers

MOST = 1 << 20
"""Larger factors are rounded, so that floating point holds all of them with room to spare."""
_ENTRIES_PER_EXPANSION = 500


class Program:
    """Whole numbers from 0 to a limit each, and sums of them that may not exceed something."""

    def __init__(self) -> None:
        self.upper: list[int] = []
        self._rows: list[tuple[tuple[int, ...], tuple[int, ...], int]] = []
        self._entries = 0

    def columns(self, limits: Iterable[int]) -> range:
        """One column for each limit."""
        start = len(self.upper)
        self.upper.extend(limits)
        return range(start, len(self.upper))

    def column(self, limit: int = 1) -> int:
        return self.columns((limit,))[0]

    def at_most(self, total: Mapping[int, int], limit: int) -> None:
        """Factors and limit are divided by what they have in common; beyond `MOST` the row becomes a weaker one."""
        if sum(factor * self.upper[column] for column, factor in total.items() if factor > 0) <= limit:
            return
        common = gcd(*total.values())
        largest = max(abs(factor) for factor in total.values()) // common
        if largest >= MOST:
            # Rounding down what is taken and the room alike keeps every solution, if nothing is given back.
            assert min(total.values()) >= 0
            common *= -(-largest // MOST) + 1
        factors = tuple(factor // common for factor in total.values())
        self._rows.append((tuple(total), factors, limit // common))
        self._entries += len(factors)

    def at_least(self, total: Mapping[int, int], limit: int) -> None:
        self.at_most({column: -factor for column, factor in total.items()}, -limit)

    def solve(self, limit: int, prices: Sequence[float] | None = None) -> Answer:
        """Some solution, a cheap one if there are prices; it ends after about `limit` expansions."""
        return self._solved(limit, prices, cheapest=False)

    def cheapest(self, limit: int, prices: Sequence[float]) -> Answer:
        """The cheapest solution, if `limit` expansions are enough to prove that, else a cheap one."""
        return self._solved(limit, prices, cheapest=True)

    def _solved(self, limit: int, prices: Sequence[float] | None, *, cheapest: bool) -> Answer:
        solver: Any = new_solver()
        columns, rows = len(self.upper), len(self._rows)
        cost = np.zeros(columns) if prices is None else np.array(prices)
        none = np.zeros(0, dtype=np.int32)
        empty = np.zeros(columns, dtype=np.int32)
        solver.addCols(columns, cost, np.zeros(columns), np.array(self.upper, dtype=float), 0, empty, none, np.zeros(0))
        starts = np.cumsum([0, *(len(which) for which, _, _ in self._rows)])[:-1].astype(np.int32)
        index = np.fromiter(chain.from_iterable(which for which, _, _ in self._rows), dtype=np.int32)
        value = np.fromiter(chain.from_iterable(factors for _, factors, _ in self._rows), dtype=float)
        most = np.array([limit for *_, limit in self._rows], dtype=float)
        solver.addRows(rows, np.full(rows, -np.inf), most, len(index), starts, index, value)
        answer = whole_numbers(solver, columns, max(limit, 1), cheapest=cheapest)
        return replace(answer, spent=answer.spent + self._entries // _ENTRIES_PER_EXPANSION)
