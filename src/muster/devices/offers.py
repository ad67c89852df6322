"""What the devices of every node can serve: how many pods with given claims, beside others that were placed there.

Nodes that offer the same are asked once. Devices that several nodes can use tie these together: what is allocated for
a pod on one of them is gone for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from muster.devices.allocate import Allocation, allocate
from muster.devices.inventory import Device, Holdings
from muster.devices.kinds import Want
from muster.devices.lacks import lack_of
from muster.devices.looks import Looks, folded
from muster.devices.stock import Stock
from muster.model.devices import ClaimShape, DeviceKey, DeviceLack, Devices
from muster.model.keys import Key

BUDGET = 2_000
"""States of a search for devices; beyond it a node counts as one that cannot serve the claims."""
PLENTY = 1 << 40
"""Pods on a node where they need no devices."""
MOST_COPIES = 128
"""Pods of one kind that are counted on a node; more than that many share no device plugin's node either."""


class Combo(NamedTuple):
    """The claims of a pod class that are to be allocated."""

    own: tuple[ClaimShape, ...]
    joint: tuple[tuple[Key, ClaimShape], ...] = ()
    extended: tuple[tuple[str, ClaimShape], ...] = ()
    """By extended resource, what is asked for on nodes where no device plugin offers it (D12)."""


class Offers:
    """What pods of some combos find. Combo `k` is the k-th; `counts[k]` (int64[N]) says how many are placed where."""

    def __init__(self, stock: Stock, known: Devices, combos: Sequence[Combo]) -> None:
        self.stock = stock
        self.combos = tuple(combos)
        self._held = known.held
        self._choices = tuple(
            dict.fromkeys(c for shape in self._shapes() for request in shape.requests for c in request)
        )
        self._bonds = sorted({bond.attribute for shape in self._shapes() for bond in shape.constraints})
        self._answers: dict[object, bool] = {}

    def _shapes(self) -> Iterable[ClaimShape]:
        for combo in self.combos:
            yield from combo.own
            for _, shape in (*combo.joint, *combo.extended):
                yield shape

    def own(self, k: int, node: int) -> tuple[ClaimShape, ...]:
        """What is to be allocated on a node for each pod of a combo."""
        combo = self.combos[k]
        if not combo.extended:
            return combo.own
        return (*combo.own, *(shape for resource, shape in combo.extended if not self._plugged[resource][node]))

    @cached_property
    def _plugged(self) -> Mapping[str, np.ndarray]:
        """By extended resource (bool[N]): a device plugin offers it."""
        nodes = self.stock.nodes
        names = {resource for combo in self.combos for resource, _ in combo.extended}
        none = np.zeros(len(nodes), dtype=bool)
        return {name: nodes.alloc[nodes.axis.row[name]] > 0 if name in nodes.axis.row else none for name in names}

    @cached_property
    def joint(self) -> tuple[tuple[Key, ClaimShape], ...]:
        """Claims that pods share, each once."""
        return tuple(sorted({key: shape for combo in self.combos for key, shape in combo.joint}.items()))

    @cached_property
    def wide(self) -> tuple[int, ...]:
        """Devices that matter to these claims and that several nodes can use."""
        columns = self.stock.columns
        return tuple(i for i in self.stock.wide if any(columns.able(choice)[i] for choice in self._choices))

    @cached_property
    def tied(self) -> bool:
        """Whether a node bears on another: pods share claims, nodes share devices, or devices of several nodes draw on
        one counter (D9)."""
        drawing, columns = self.stock.spread, self.stock.columns
        return bool(self.joint or self.wide) or any(columns.able(choice)[drawing].any() for choice in self._choices)

    @property
    def simple(self) -> bool:
        """Whether the number of pods that fit on a node says everything: one combo, and no node bears on another."""
        return len(self.combos) == 1 and not self.tied

    # -- nodes that are alike

    @cached_property
    def patterns(self) -> np.ndarray:
        """int64[N]: equal where nodes offer the same, as far as these claims can tell."""
        looks = Looks.of(self.stock, self._choices, tuple(self._bonds))
        place = self.stock.columns.place
        taken = [place[key] for key in self._held if key in place]
        found = looks.patterns(np.array(taken, dtype=np.int64), self.wide)
        return folded((found, *self._plugged.values()), len(found)) if self._plugged else found

    # -- verdicts

    def most(self) -> np.ndarray:
        """int64[N]: how many pods of the only combo a node can serve."""
        _, first, patterns = np.unique(self.patterns, return_index=True, return_inverse=True)
        return np.array([self._most(int(node)) for node in first], dtype=np.int64)[patterns]

    def _most(self, node: int) -> int:
        if not self.own(0, node):
            return PLENTY
        copies = 0
        while copies < MOST_COPIES and self.serves({node: (copies + 1,)}):
            copies += 1
        return copies

    def rejected(self, combo: int, counts: Sequence[np.ndarray]) -> np.ndarray:
        """bool[N]: one more pod of the combo could not be served there, with so many of all combos placed."""
        if self.tied:  # all that is placed has to be served with it
            total = np.add.reduce(list(counts))
            placed = {int(n): tuple(int(column[n]) for column in counts) for n in np.flatnonzero(total)}
            columns: Sequence[np.ndarray] = [np.where(total > 0, np.arange(len(total)) + 1, 0)]
        else:
            placed, columns = {}, counts
        codes = folded((self.patterns, *columns), len(self.patterns))
        _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
        verdicts = [not self.serves({**placed, int(n): self._with(combo, counts, int(n))}) for n in first]
        return np.array(verdicts, dtype=bool)[codes]

    def _with(self, combo: int, counts: Sequence[np.ndarray], node: int) -> tuple[int, ...]:
        return tuple(int(column[node]) + (k == combo) for k, column in enumerate(counts))

    def serves(self, placed: Mapping[int, tuple[int, ...]]) -> bool:
        """Whether all these pods can be served: by node, how many of each combo."""
        there = ((n if self.tied else int(self.patterns[n]), some) for n, some in placed.items() if any(some))
        key = tuple(sorted(there))
        known = self._answers.get(key)
        if known is None:
            if not self.tied and len(placed) > 1:
                known = all(self.serves({node: some}) for node, some in placed.items())
            else:
                known = self.allocation(placed)[1].grants is not None
            self._answers[key] = known
        return known

    def nearest(self, usable: np.ndarray) -> DeviceLack | None:
        """What the first combo lacks on the best of these nodes (bool[N]), asked of each pattern once; None: nothing
        that can be said of one claim alone."""
        stock, columns = self.stock, self.stock.columns
        nodes = np.flatnonzero(usable)
        _, first = np.unique(self.patterns[nodes], return_index=True)
        best: DeviceLack | None = None
        for node in sorted(nodes[first].tolist()):
            devices = [columns.devices[i] for i in stock.usable(node)]
            holdings = self._holdings(devices)
            shapes = (*self.own(0, node), *(shape for _, shape in self.combos[0].joint))
            wants = (Want(shape, complete=not stock.incomplete[node]) for shape in shapes)
            lack = next((some for want in wants if (some := lack_of(devices, holdings, want, columns))), None)
            if lack is not None and (best is None or lack.found * best.needed > best.found * lack.needed):
                best = lack._replace(node=stock.nodes.names[node])
        return best

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
                own = [Want(shape, keys[node], not stock.incomplete[node]) for shape in self.own(k, node)]
                wants += own * copies
                names += [None] * (len(own) * copies)
        devices = [columns.devices[i] for i in sorted({i for some in usable.values() for i in some})]
        holdings = self._holdings(devices)
        found = allocate(stock.inventory, devices, holdings, wants, columns, budget=BUDGET)
        return tuple(names), found

    def _holdings(self, devices: Sequence[Device]) -> Holdings:
        """What others have of these devices, and of counters that they draw on."""
        pools = {device.pool for device in devices if device.record.draws}
        keys = dict.fromkeys(device.key for device in devices)
        keys.update((key, None) for pool in pools for key in self.stock.drawing[pool])
        return self.stock.inventory.holdings(grant for key in keys for grant in self._held.get(key, ()))

    def _uses(self, k: int, key: Key) -> bool:
        return any(mine == key for mine, _ in self.combos[k].joint)
