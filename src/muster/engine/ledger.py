"""Trial accounting: what would be used on every node if the placements so far were real."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np


class Assignment(NamedTuple):
    """`counts[i]` pods of class `cls` on node `nodes[i]`; nodes are distinct. Single ones are plain integers."""

    cls: int
    nodes: np.ndarray | int
    counts: np.ndarray | int


class Ledger:
    """A private copy of the used amounts, and an integer log of who took what, replayed backwards to undo.

    Rows are all counted limits, resources first in no particular order; columns are nodes. Feasibility is the caller's
    business: a ledger counts whatever it is told.
    """

    __slots__ = ("_columns", "_kinds", "_log", "amounts", "capacity", "moves", "touched", "used")

    def __init__(self, capacity: np.ndarray, used: np.ndarray, amounts: np.ndarray) -> None:
        self.capacity = capacity
        """int64[rows, N], read only"""
        self.used = np.array(used, dtype=np.int64, order="C")
        """int64[rows, N]"""
        self.amounts = amounts
        """int64[C, rows]: what one pod of a class takes"""
        self.touched: list[int] = []
        """Every node whose usage changed, in order, repeats and undone changes included: readers keep an offset."""
        self.moves: list[Assignment] | None = None
        """Where somebody counts pods: everything placed and, with negative counts, undone, in order."""
        self._log: list[Assignment] = []
        self._columns: dict[int, bytes] = {}
        self._kinds: dict[int, bytes] = {}

    def place(self, cls: int, node: int, count: int = 1) -> None:
        """`count` pods of a class go to one node."""
        self.shift(cls, node, count)
        self._log.append(Assignment(cls, node, count))
        if self.moves is not None:
            self.moves.append(self._log[-1])

    def place_many(self, cls: int, nodes: np.ndarray, counts: np.ndarray) -> None:
        """`counts[i]` pods of a class go to `nodes[i]`; the nodes are distinct."""
        if len(nodes):
            self._shift_many(cls, nodes, counts)
            self._log.append(Assignment(cls, nodes, counts))
            if self.moves is not None:
                self.moves.append(self._log[-1])

    def shift(self, cls: int, node: int, count: int) -> None:
        """Adds (or, negative, takes away) room without a log entry: for room that is held for others."""
        self.used[:, node] += self.amounts[cls] if count == 1 else self.amounts[cls] * count
        self.touched.append(node)
        self._columns.pop(node, None)

    def column(self, node: int) -> bytes:
        """Capacity and usage of a node as a key: nodes with the same one are in the same state."""
        known = self._columns.get(node)
        if known is None:
            kind = self._kinds.get(node)
            if kind is None:
                kind = self._kinds[node] = self.capacity[:, node].tobytes()
            known = self._columns[node] = kind + self.used[:, node].tobytes()
        return known

    def checkpoint(self) -> int:
        return len(self._log)

    def rollback(self, checkpoint: int) -> None:
        """Undoes everything placed since."""
        for cls, nodes, counts in reversed(self._log[checkpoint:]):
            if isinstance(nodes, int):
                self.shift(cls, nodes, -int(counts))
            else:
                self._shift_many(cls, nodes, -counts)
            if self.moves is not None:
                self.moves.append(Assignment(cls, nodes, -counts))
        del self._log[checkpoint:]

    def settle(self) -> None:
        """What is placed is there to stay: it is no longer undone, and not told by `since`."""
        self._log.clear()

    def follow(self, nodes: np.ndarray, used: np.ndarray) -> None:
        """Takes over int64[rows, M], what is used of these nodes elsewhere."""
        self.used[:, nodes] = used
        self.touched.extend(nodes.tolist())
        self._columns.clear()

    def since(self, checkpoint: int) -> Iterator[Assignment]:
        """The placements since a checkpoint, oldest first."""
        return iter(self._log[checkpoint:])

    def taken_since(self, checkpoint: int) -> np.ndarray:
        """int64[rows, N]: what the placements since a checkpoint hold."""
        taken = np.zeros_like(self.used)
        for cls, nodes, counts in self._log[checkpoint:]:
            taken[:, nodes] += np.multiply.outer(self.amounts[cls], counts)
        return taken

    def replay(self, placements: Iterator[Assignment] | list[Assignment]) -> None:
        """Places again what was undone."""
        for cls, nodes, counts in placements:
            if isinstance(nodes, int):
                self.place(cls, nodes, int(counts))
            else:
                self.place_many(cls, nodes, np.asarray(counts))

    def _shift_many(self, cls: int, nodes: np.ndarray, counts: np.ndarray | int) -> None:
        for row in np.flatnonzero(self.amounts[cls]):
            self.used[row, nodes] += self.amounts[cls, row] * counts
        self.touched.extend(nodes.tolist())
        self._columns.clear()
