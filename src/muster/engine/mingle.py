"""The minimums of leaves whose members open or close nodes to each other: members of all leaves in any order.

What `interplay` does for one group is done here for several, each in a placement of its own and with a minimum of its
own: first in a few orders, then depth-first over (member class, kind of node), completely within the budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from muster.engine.search import Outcome
from muster.engine.symmetry import Symmetry
from muster.engine.trial import Trial
from muster.model.topology import Placement


class Item(NamedTuple):
    """Alike members that may go to the nodes of one placement (None: anywhere)."""

    party: int
    cls: int
    size: int
    placement: Placement | None


class Mingled(NamedTuple):
    """(item, node) of everything placed, in the order in which it may be done; None: no placement was found."""

    steps: tuple[tuple[int, int], ...] | None
    proven: bool
    """Nothing found: there is none."""
    work: int


def mingle(trial: Trial, items: Sequence[Item], needs: Sequence[int], limit: int) -> Mingled:
    """Places so many members of each party at least; what is placed is on the ledger."""
    table = _Table(trial, items, needs)
    for order, in_turn, surplus in _orders(table):
        if table.greedy(order, in_turn=in_turn, surplus=surplus):
            return Mingled(tuple(table.steps), True, 0)
        table.clear()
    descent = _Descent(table, limit)
    outcome = descent.run()
    if outcome is Outcome.FOUND:
        return Mingled(tuple(table.steps), True, descent.spent)
    return Mingled(None, outcome is Outcome.IMPOSSIBLE, descent.spent)


class _Table:
    """What is placed of each item, and what is still needed of each party."""

    def __init__(self, trial: Trial, items: Sequence[Item], needs: Sequence[int]) -> None:
        assert trial.ties is not None
        self.trial, self.items, self.ties = trial, items, trial.ties
        self.left = [item.size for item in items]
        self.needs = list(needs)
        sizes = [0] * len(needs)
        for item in items:
            sizes[item.party] += item.size
        self.drops = [size - need for size, need in zip(sizes, needs, strict=True)]
        self.steps: list[tuple[int, int]] = []
        self._start = trial.ledger.checkpoint()
        masks: dict[Placement, np.ndarray] = {}
        for item in items:
            if item.placement is not None and item.placement not in masks:
                masks[item.placement] = np.zeros(len(trial), dtype=bool)
                masks[item.placement][item.placement.nodes] = True
        self.masks = masks
        self.opens = self.ties.open_up(item.cls for item in items)

    @property
    def is_done(self) -> bool:
        return all(need <= 0 for need in self.needs)

    def wants(self, i: int) -> bool:
        """Whether there is a member of the item left, and its party needs it."""
        return self.left[i] > 0 and self.needs[self.items[i].party] > 0

    def put(self, i: int, node: int) -> None:
        item = self.items[i]
        self.trial.ledger.place(item.cls, node)
        self.left[i] -= 1
        self.needs[item.party] -= 1
        self.steps.append((i, node))

    def take(self, checkpoint: int) -> None:
        """Takes the last step back; `checkpoint` is the ledger's before it."""
        self.trial.ledger.rollback(checkpoint)
        i, _ = self.steps.pop()
        self.left[i] += 1
        self.needs[self.items[i].party] += 1

    def clear(self) -> None:
        while self.steps:
            self.take(self._start)

    def inside(self, i: int, column: np.ndarray) -> np.ndarray:
        """A column with zeros outside of the item's placement."""
        placement = self.items[i].placement
        if placement is None:
            return column
        found: np.ndarray = column * self.masks[placement]
        return found

    def best(self, i: int) -> int | None:
        """The node that scores best for the next member."""
        scores = self.trial.scores(self.items[i].cls)
        placement = self.items[i].placement
        if placement is not None:
            scores = np.where(self.masks[placement], scores, -1)
        node = int(scores.argmax()) if len(scores) else -1
        return node if node >= 0 and scores[node] >= 0 else None

    def greedy(self, order: Sequence[int], *, in_turn: bool, surplus: bool) -> bool:
        """Member after member where it scores best, round after round. `surplus`: also what nobody needs."""
        moved = True
        while moved and not self.is_done:
            moved = False
            for i in order:
                while (self.left[i] if surplus else self.wants(i)) and (node := self.best(i)) is not None:
                    self.put(i, node)
                    moved = True
                    if in_turn:
                        break
        return self.is_done


def _orders(table: _Table) -> Iterator[tuple[Sequence[int], bool, bool]]:
    """(items in order, whether they take turns, whether surplus members are placed too), the most promising first."""
    trial, items, ties = table.trial, table.items, table.ties

    def scarcity(i: int) -> tuple[int, int]:
        slots = table.inside(i, np.minimum(trial.state(items[i].cls).slots * ties.passes(items[i].cls), items[i].size))
        return int(slots.sum()) * 100 // items[i].size, i

    every = range(len(items))
    scarcest = sorted(every, key=scarcity)
    free_first = sorted(every, key=lambda i: (ties.open_up([items[i].cls]), scarcity(i)))
    amounts = trial.ledger.amounts
    largest = sorted(every, key=lambda i: (-int(amounts[items[i].cls].sum()), scarcity(i)))
    for order in dict.fromkeys((tuple(scarcest), tuple(free_first), tuple(largest), tuple(every))):
        yield order, False, False
    yield scarcest, True, False
    if table.opens and any(table.drops):
        yield free_first, False, True


@dataclass(slots=True)
class _Frame:
    """A state on the way down: the ledger before the step to it, that step, and the steps from it, the best last."""

    start: int
    step: tuple[int, int] | None
    key: bytes
    children: list[tuple[int, int]]
    """(item, node), or node -1: one of the item is left out."""


class _Descent:
    """The complete search. If it finds a placement, that is on the ledger and in the table's steps."""

    def __init__(self, table: _Table, limit: int) -> None:
        self._table, self._limit = table, limit
        self._symmetry = Symmetry(table.trial, [item.cls for item in table.items], table.masks.values())
        self.spent = 0
        self._dead: set[bytes] = set()

    def run(self) -> Outcome:
        table, ledger = self._table, self._table.trial.ledger
        stack = [self._frame(ledger.checkpoint(), None)]
        while stack:
            frame = stack[-1]
            if not frame.children:
                self._dead.add(frame.key)
                stack.pop()
                self._undo(frame)
                continue
            step, before = frame.children.pop(), ledger.checkpoint()
            self._do(step)
            if table.is_done:
                return Outcome.FOUND
            if self.spent >= self._limit:
                for passed in (_Frame(before, step, b"", []), *reversed(stack)):
                    self._undo(passed)
                return Outcome.STOPPED
            child = self._frame(before, step)
            if child.children:
                stack.append(child)
            else:
                self._dead.add(child.key)
                self._undo(child)
        return Outcome.IMPOSSIBLE

    def _do(self, step: tuple[int, int]) -> None:
        i, node = step
        if node >= 0:
            self._table.put(i, node)
        else:
            self._table.left[i] -= 1
            self._table.drops[self._table.items[i].party] -= 1

    def _undo(self, frame: _Frame) -> None:
        if frame.step is None:
            return
        i, node = frame.step
        if node >= 0:
            self._table.take(frame.start)
        else:
            self._table.left[i] += 1
            self._table.drops[self._table.items[i].party] += 1

    def _frame(self, start: int, step: tuple[int, int] | None) -> _Frame:
        colours = self._symmetry.colours(self._table.left)
        self.spent += 1 + self._symmetry.cost
        key = np.sort(colours).tobytes() + self._state()
        return _Frame(start, step, key, [] if key in self._dead else self._children(colours))

    def _state(self) -> bytes:
        table = self._table
        return bytes(str((table.left, table.needs, table.drops)), "ascii")

    def _children(self, colours: np.ndarray) -> list[tuple[int, int]]:
        table = self._table
        waiting = [i for i, left in enumerate(table.left) if left and (table.opens or table.wants(i))]
        slots = {i: table.inside(i, table.trial.state(table.items[i].cls).slots) for i in waiting}
        lost = [0] * len(table.needs)
        for i, column in slots.items():
            lost[table.items[i].party] += max(table.left[i] - int(np.minimum(column, table.left[i]).sum()), 0)
        if any(lost[p] > table.drops[p] for p, need in enumerate(table.needs) if need > 0):
            return []
        ways = {i: self._representatives(i, column, colours) for i, column in slots.items()}
        if not table.opens:
            # What closes is closed for good: whoever has the fewest ways is placed, or left out, now.
            i, nodes = min(ways.items(), key=lambda way: (len(way[1]), way[0]))
            out = [(i, -1)] if table.drops[table.items[i].party] else []
            return [*out, *((i, node) for node in nodes)]
        order = sorted(ways, key=lambda i: (table.wants(i), -len(ways[i])))
        return [(i, node) for i in order for node in ways[i]]

    def _representatives(self, i: int, slots: np.ndarray, colours: np.ndarray) -> list[int]:
        """One node of each kind that takes a member now, the best last."""
        cls = self._table.items[i].cls
        nodes = np.flatnonzero((slots > 0) & self._table.ties.passes(cls))
        if not len(nodes):
            return []
        _, first = np.unique(colours[nodes], return_index=True)
        chosen = nodes[first]
        scores = self._table.trial.scores(cls)[chosen]
        order: list[int] = chosen[np.argsort(scores, kind="stable")].tolist()
        return order
