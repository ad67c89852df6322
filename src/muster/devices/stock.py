"""All devices on all nodes: which device can be used from where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from muster.devices.columns import DeviceColumns
from muster.devices.inventory import Inventory
from muster.model.devices import DeviceKey, Offered, PoolKey, Reach
from muster.model.matching import any_term
from muster.model.snapshot import NodeColumns


@dataclass(frozen=True, eq=False)
class Stock:
    """All devices that are offered, on the nodes of one generation; made once for both."""

    nodes: NodeColumns
    offered: Offered
    cache: dict[object, object] = field(default_factory=dict)
    """What was worked out about it lives here, as long as it does."""

    @staticmethod
    def of(nodes: NodeColumns, offered: Offered) -> Stock:
        """The same instance for the same."""
        found = nodes.cache.get("devices")
        if not isinstance(found, Stock) or found.offered is not offered:
            found = nodes.cache["devices"] = Stock(nodes, offered)
        return found

    @cached_property
    def inventory(self) -> Inventory:
        found = self.offered.cache.get("inventory")
        if not isinstance(found, Inventory):
            found = self.offered.cache["inventory"] = Inventory(self.offered.slices.values(), self.offered.rules)
        return found

    @cached_property
    def columns(self) -> DeviceColumns:
        found = self.offered.cache.get("columns")
        if not isinstance(found, DeviceColumns):
            found = self.offered.cache["columns"] = DeviceColumns(self.inventory.devices, self.offered)
        return found

    @cached_property
    def drawing(self) -> Mapping[PoolKey, tuple[DeviceKey, ...]]:
        """By pool with shared counters, the devices that draw on them."""
        found: dict[PoolKey, tuple[DeviceKey, ...]] = {}
        for key, pool in self.inventory.pools.items():
            if pool.counters:
                found[key] = tuple(device.key for device in pool.devices if device.record.draws)
        return found

    @cached_property
    def spread(self) -> np.ndarray:
        """int64[D']: devices that draw on counters of a pool with such devices on several nodes."""
        place = self.columns.place
        pools = (np.array([place[k] for k in some if k in place], dtype=np.int64) for some in self.drawing.values())
        found = [some for some in pools if len(np.unique(self.home[some])) > 1]
        return np.concatenate(found) if found else np.array([], dtype=np.int64)

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
