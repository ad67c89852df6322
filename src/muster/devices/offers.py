"""What the devices of every node can serve: how many pods with given claims, beside others that were placed there.

Nodes that offer the same are asked once. Devices that several nodes can use tie these together: what is allocated for
a pod on one of them is gone for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from muster.devices.allocate import Allocation, allocate
from muster.devices.columns import DeviceColumns
from muster.devices.inventory import Holdings, Inventory
from muster.devices.kinds import Want
from muster.model.devices import ClaimShape, DeviceKey, Devices, Reach
from muster.model.keys import Key
from muster.model.matching import any_term
from muster.model.snapshot import NodeColumns

BUDGET = 2_000
"""States of a search for devices; beyond it a node counts as one that cannot serve the claims."""
MOST_COPIES = 128
"""Pods of one kind that are counted on a node; more than that many share no device plugin's node either."""


class Combo(NamedTuple):
    """The claims of a pod class that are to be allocated."""

    own: tuple[ClaimShape, ...]
    joint: tuple[tuple[Key, ClaimShape], ...] = ()


@dataclass(frozen=True)
class Stock:
    """All devices of one revision, on the nodes of one generation; made once for both."""

    nodes: NodeColumns
    known: Devices
    _offers: dict[tuple[Combo, ...], Offers] = field(default_factory=dict)

    def offers(self, combos: tuple[Combo, ...]) -> Offers:
        """What these find here; the same instance for the same."""
        if combos not in self._offers:
            self._offers[combos] = Offers(self, combos)
        return self._offers[combos]

    @cached_property
    def inventory(self) -> Inventory:
        return Inventory(self.known.slices.values(), self.known.rules)

    @cached_property
    def columns(self) -> DeviceColumns:
        return DeviceColumns(self.inventory.devices, self.known)

    @cached_property
    def holdings(self) -> Holdings:
        """What claims have, and what is decided for claims that will have it."""
        given = (self.known.allotment(key) for key in self.known.claims)
        return self.inventory.holdings(grant for one in given if one is not None for grant in one.grants)

    @cached_property
    def _reached(self) -> Mapping[Reach, np.ndarray]:
        """By reach, the nodes (ascending) that have it."""
        found: dict[Reach, np.ndarray] = {}
        every = {reach for pool in self.inventory.pools.values() for reach in pool.reaches}
        for reach in every:
            if reach.node:
                at = self.nodes.index.get(reach.node)
                found[reach] = np.array([] if at is None else [at], dtype=np.int64)
            elif reach.terms is None:
                found[reach] = np.arange(len(self.nodes))
            else:
                found[reach] = np.flatnonzero(any_term(self.nodes, reach.terms))
        return found

    @cached_property
    def home(self) -> np.ndarray:
        """int64[D]: the only node that can use a device; -1: none can, or several."""
        spots = {reach: int(at[0]) if len(at) == 1 else -1 for reach, at in self._reached.items()}
        devices = self.inventory.devices
        return np.fromiter((spots[device.reach] for device in devices), dtype=np.int64, count=len(devices))

    @cached_property
    def wide(self) -> Mapping[int, np.ndarray]:
        """By device that several nodes can use: those nodes."""
        found = {}
        for i in np.flatnonzero(self.home < 0).tolist():
            at = self._reached[self.inventory.devices[i].reach]
            if len(at):
                found[i] = at
        return found

    @cached_property
    def incomplete(self) -> np.ndarray:
        """bool[N]: a pool that is not whole may have devices there, so nobody can have all of a kind (D4)."""
        found = np.zeros(len(self.nodes), dtype=bool)
        for pool in self.inventory.pools.values():
            for reach in pool.reaches if pool.fault else ():
                found[self._reached[reach]] = True
        return found

    @cached_property
    def _local(self) -> tuple[np.ndarray, np.ndarray]:
        """Devices by home, and where those of each node begin."""
        order = np.argsort(self.home, kind="stable")
        return order, np.searchsorted(self.home[order], np.arange(len(self.nodes) + 1))

    def local(self, node: int) -> list[int]:
        """Devices that only this node can use."""
        order, starts = self._local
        found: list[int] = order[starts[node] : starts[node + 1]].tolist()
        return found

    def usable(self, node: int) -> list[int]:
        """All devices that the node can use, in the order of the inventory."""
        mine = self.local(node)
        return sorted([*mine, *(i for i, at in self.wide.items() if node in at)]) if self.wide else mine


class Offers:
    """What pods of some combos find. Combo `k` is the k-th; `counts[k]` (int64[N]) says how many are placed where."""

    def __init__(self, stock: Stock, combos: Sequence[Combo]) -> None:
        self.stock = stock
        self.combos = tuple(combos)
        self._choices = tuple(
            dict.fromkeys(c for shape in self._shapes() for request in shape.requests for c in request)
        )
        self._bonds = sorted({bond.attribute for shape in self._shapes() for bond in shape.constraints})
        self._answers: dict[object, bool] = {}

    def _shapes(self) -> Iterable[ClaimShape]:
        for combo in self.combos:
            yield from combo.own
            for _, shape in combo.joint:
                yield shape

    @cached_property
    def joint(self) -> tuple[tuple[Key, ClaimShape], ...]:
        """Claims that pods share, each once."""
        return tuple(sorted({key: shape for combo in self.combos for key, shape in combo.joint}.items()))

    @cached_property
    def wide(self) -> tuple[int, ...]:
        """Devices that matter to these claims and that several nodes can use."""
        columns = self.stock.columns
        return tuple(i for i in self.stock.wide if any(columns.able(choice)[i] for choice in self._choices))

    @property
    def simple(self) -> bool:
        """Whether the number of pods that fit on a node says everything: one combo, and no node bears on another."""
        return len(self.combos) == 1 and not self.joint and not self.wide

    # -- nodes that are alike

    @cached_property
    def patterns(self) -> np.ndarray:
        """int64[N]: equal where nodes offer the same, as far as these claims can tell."""
        stock, columns = self.stock, self.stock.columns
        count = len(columns.devices)
        code = np.zeros(count, dtype=np.int64)
        taken = np.fromiter((d.key in stock.holdings.taken for d in columns.devices), dtype=bool, count=count)
        for column in (
            taken,
            *(columns.good(choice) for choice in self._choices),
            *(columns.selected(choice) for choice in self._choices if choice.count is None),
            *(columns.able(choice) for choice in self._choices if choice.count is None),
            *(columns.codes(name) for name in self._bonds),
            self._special(),
        ):
            _, code = np.unique(code * (int(column.max(initial=0)) + 1) + column, return_inverse=True)
        matters = np.logical_or.reduce(
            [np.zeros(count, dtype=bool), *(columns.selected(choice) != 0 for choice in self._choices)]
        )
        return self._patterned(np.where(matters, code + 1, 0))

    def _special(self) -> np.ndarray:
        """int64[D]: its own number for each device that is shared or draws on counters, 0 for all others."""
        devices = self.stock.columns.devices
        own = (i + 1 if d.record.shared or d.record.draws else 0 for i, d in enumerate(devices))
        return np.fromiter(own, dtype=np.int64, count=len(devices))

    def _patterned(self, code: np.ndarray) -> np.ndarray:
        home, nodes = self.stock.home, len(self.stock.nodes)
        there = np.flatnonzero((home >= 0) & (code > 0))
        order = there[np.lexsort((code[there], home[there]))]
        at = home[order]
        rank = np.arange(len(order)) - np.searchsorted(at, at)
        table = np.zeros((nodes, int(rank.max(initial=-1)) + 3), dtype=np.int64)
        table[at, rank] = code[order]
        table[:, -1] = self.stock.incomplete
        for i in self.wide:
            table[self.stock.wide[i], -2] += 1 << (i % 62)
        _, patterns = np.unique(table, axis=0, return_inverse=True)
        found: np.ndarray = patterns.ravel()
        return found

    # -- verdicts

    def most(self) -> np.ndarray:
        """int64[N]: how many pods of the only combo a node can serve."""
        _, first, patterns = np.unique(self.patterns, return_index=True, return_inverse=True)
        return np.array([self._most(int(node)) for node in first], dtype=np.int64)[patterns]

    def _most(self, node: int) -> int:
        copies = 0
        while copies < MOST_COPIES and self.serves({node: (copies + 1,)}):
            copies += 1
        return copies

    def rejected(self, combo: int, counts: Sequence[np.ndarray]) -> np.ndarray:
        """bool[N]: one more pod of the combo could not be served there, with so many of all combos placed."""
        total = np.add.reduce(list(counts))
        if self.wide or self.joint:
            return self._rejected_together(combo, counts, total)
        codes = self.patterns
        for column in counts:
            _, codes = np.unique(codes * (int(column.max(initial=0)) + 1) + column, return_inverse=True)
        _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
        verdicts = [not self.serves({int(n): self._with(combo, counts, int(n))}) for n in first]
        return np.array(verdicts, dtype=bool)[codes]

    def _with(self, combo: int, counts: Sequence[np.ndarray], node: int) -> tuple[int, ...]:
        return tuple(int(column[node]) + (k == combo) for k, column in enumerate(counts))

    def _rejected_together(self, combo: int, counts: Sequence[np.ndarray], total: np.ndarray) -> np.ndarray:
        """The same where claims or devices tie nodes together: all that is placed is served with it."""
        placed = {int(n): tuple(int(column[n]) for column in counts) for n in np.flatnonzero(total)}
        spots = np.where(total > 0, np.arange(len(total)) + 1, 0)
        _, codes = np.unique(self.patterns * (len(total) + 1) + spots, return_inverse=True)
        _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
        verdicts = [not self.serves({**placed, int(n): self._with(combo, counts, int(n))}) for n in first]
        return np.array(verdicts, dtype=bool)[codes]

    def serves(self, placed: Mapping[int, tuple[int, ...]]) -> bool:
        """Whether all these pods can be served: by node, how many of each combo."""
        plain = not self.wide and not self.joint
        key = tuple(sorted((int(self.patterns[n]) if plain else n, some) for n, some in placed.items() if any(some)))
        known = self._answers.get(key)
        if known is None:
            if plain and len(placed) > 1:
                known = all(self.serves({node: some}) for node, some in placed.items())
            else:
                known = self.allocation(placed)[1].grants is not None
            self._answers[key] = known
        return known

    def allocation(self, placed: Mapping[int, tuple[int, ...]]) -> tuple[tuple[Key | None, ...], Allocation]:
        """Devices for all these pods: by want its claim if pods share it, and what the search says of the wants.

        Wants are in the order of nodes, then combos, then copies, then claims; those that pods share come first.
        """
        stock, columns = self.stock, self.stock.columns
        usable = {node: stock.usable(node) for node in placed}
        keys = {node: frozenset(columns.devices[i].key for i in some) for node, some in usable.items()}
        wants: list[Want] = []
        names: list[Key | None] = []
        for key, shape in self.joint:
            users = [n for n, some in placed.items() if any(c and self._uses(k, key) for k, c in enumerate(some))]
            if users:
                common: frozenset[DeviceKey] = frozenset.intersection(*(keys[n] for n in users))
                wants.append(Want(shape, common, not any(stock.incomplete[n] for n in users)))
                names.append(key)
        for node in sorted(placed):
            for k, copies in enumerate(placed[node]):
                own = [Want(shape, keys[node], not stock.incomplete[node]) for shape in self.combos[k].own]
                wants += own * copies
                names += [None] * (len(own) * copies)
        devices = [columns.devices[i] for i in sorted({i for some in usable.values() for i in some})]
        found = allocate(stock.inventory, devices, stock.holdings, wants, columns, budget=BUDGET)
        return tuple(names), found

    def _uses(self, k: int, key: Key) -> bool:
        return any(mine == key for mine, _ in self.combos[k].joint)
