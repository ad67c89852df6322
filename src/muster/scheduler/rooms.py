"""What nodes have and what is taken of it, kept as columns: the numeric half of the cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from muster.model.records import Amounts, HostPort, NodeRecord
from muster.model.resources import ResourceAxis
from muster.model.snapshot import NodeColumns
from muster.model.topology import detected_levels


class Holding(NamedTuple):
    """What one pod takes on its node."""

    node: str
    usage: Amounts
    ports: tuple[HostPort, ...]


class Touch(NamedTuple):
    """A node that got better for somebody, or went, since it was last asked for, and what it was like before.

    `free` was free by row, None where that is not known or of no use; `record` was known of the node itself, None where
    there was no such node. `changed`: the node itself did, and not only what is taken of it.
    """

    free: Sequence[int] | None
    record: NodeRecord | None
    changed: bool


class Rooms:
    """Nodes, and the pods that hold room on them (on unknown nodes too: those count when the node appears)."""

    def __init__(self, levels: Sequence[str] = ()) -> None:
        self.revision = 0
        self.records: dict[str, NodeRecord] = {}
        self.touched: dict[str, Touch] = {}
        self._levels = tuple(levels)
        self._axis = ResourceAxis()
        self._columns = NodeColumns((), self._axis, self._levels)
        self._stale = False
        self._used = np.zeros((len(self._axis), 0), dtype=np.int64)
        self._generations = np.zeros(0, dtype=np.int64)
        self._held: dict[str, dict[str, Holding]] = {}
        self._ports: dict[HostPort, dict[str, int]] = {}
        self._ports_seen: Mapping[HostPort, Mapping[str, int]] | None = {}
        self._vectors: dict[Amounts, np.ndarray] = {}
        self._rows: dict[Amounts, tuple[tuple[int, int], ...]] = {}

    # -- nodes

    def put_node(self, record: NodeRecord) -> None:
        old = self.records.get(record.name)
        if old == record:
            return
        if old is None or not _as_good(old, record):
            self._note(record.name, changed=True)
        self.records[record.name] = record
        self._node_changed(record.name)
        self._know(record.allocatable)

    def drop_node(self, name: str) -> None:
        del self.records[name]
        self.touched[name] = Touch(None, None, changed=True)
        self._node_changed(name)

    def _node_changed(self, name: str) -> None:
        self._stale = True
        self._bump(name)

    # -- pods on them

    def take(self, uid: str, holding: Holding) -> None:
        self._held.setdefault(holding.node, {})[uid] = holding
        self._add(holding, 1)

    def give(self, uid: str, holding: Holding) -> None:
        """The pod no longer holds this."""
        node = holding.node
        if node in self.records:
            self._note(node, changed=False)
        there = self._held[node]
        del there[uid]
        if not there:
            del self._held[node]
        self._add(holding, -1)

    def _note(self, node: str, *, changed: bool) -> None:
        """Remembers what the node was like before something about it changes for the better."""
        known = self.touched.get(node)
        if known is None:
            record = self.records.get(node)
            self.touched[node] = Touch(self.free(node) if record else None, record, changed)
        elif changed and not known.changed:
            self.touched[node] = known._replace(changed=True)

    def note_nomination_ended(self, node: str) -> None:
        """What was held on the node is free for others, though nothing that is taken of it has changed."""
        self.revision += 1
        if node in self.records:
            self._note(node, changed=False)
            self.touched[node] = self.touched[node]._replace(free=None)

    def _add(self, holding: Holding, sign: int) -> None:
        vector = self._vector(holding.usage)
        at = self._columns.index.get(holding.node)
        if at is not None:
            if sign > 0:
                self._used[:, at] += vector
            else:
                self._used[:, at] -= vector
        for port in holding.ports:
            self._count_port(port, holding.node, sign)
        self._bump(holding.node)

    def _count_port(self, port: HostPort, node: str, sign: int) -> None:
        self._ports_seen = None
        users = self._ports.setdefault(port, {})
        users[node] = users.get(node, 0) + sign
        if not users[node]:
            del users[node]
            if not users:
                del self._ports[port]

    def _bump(self, node: str) -> None:
        self.revision += 1
        at = self._columns.index.get(node)
        if at is not None:
            self._generations[at] = self.revision

    # -- reading

    def generation(self, node: str) -> int:
        """Grows with every change of the node or of the pods on it; -1: it is gone, or in no snapshot yet."""
        at = self._columns.index.get(node) if node in self.records else None
        return -1 if at is None else int(self._generations[at])

    def free(self, node: str) -> list[int]:
        """What is free on a known node, by row of the axis; negative where it is overcommitted."""
        at = self._columns.index.get(node)
        if at is not None and not self._stale:
            return (self._columns.alloc[:, at] - self._used[:, at]).tolist()  # type: ignore[no-any-return]
        return (self._axis.vector(self.records[node].allocatable) - self._sum(node)).tolist()  # type: ignore[no-any-return]

    def rows(self, wanted: Amounts) -> tuple[tuple[int, int], ...]:
        """(row, amount) pairs; a row keeps its meaning."""
        known = self._rows.get(wanted)
        if known is None:
            self._know(wanted)
            known = self._rows[wanted] = tuple((self._axis.row[name], amount) for name, amount in wanted)
        return known

    def know(self, wanted: Amounts) -> None:
        """Makes sure that every resource named here has a row: heads may only ask for resources on the axis."""
        if wanted not in self._vectors:
            self._vector(wanted)

    def columns(self) -> NodeColumns:
        """The node columns, rebuilt if a node has changed."""
        if self._stale:
            self._rebuild()
        return self._columns

    def used(self) -> np.ndarray:
        """A read-only copy of int64[R, N] for the present columns."""
        return _frozen(self._used.copy())

    def generations(self) -> np.ndarray:
        return _frozen(self._generations.copy())

    def ports(self) -> Mapping[HostPort, Mapping[str, int]]:
        """Ports in use, not changed afterwards."""
        if self._ports_seen is None:
            self._ports_seen = {port: dict(users) for port, users in self._ports.items()}
        return self._ports_seen

    def held(self) -> Iterator[tuple[str, Holding]]:
        for there in self._held.values():
            yield from there.items()

    # -- the axis and the columns

    def _vector(self, wanted: Amounts) -> np.ndarray:
        vector = self._vectors.get(wanted)
        if vector is None:
            self._know(wanted)
            vector = self._vectors[wanted] = self._axis.vector(wanted)
        return vector

    def _know(self, wanted: Amounts) -> None:
        axis = self._axis.extended(name for name, _ in wanted)
        if axis is self._axis:
            return
        new = np.zeros((len(axis) - len(self._axis), self._used.shape[1]), dtype=np.int64)
        self._used = np.vstack((self._used, new))
        self._axis = axis
        self._vectors.clear()
        self._stale = True
        self.revision += 1

    def _sum(self, node: str) -> np.ndarray:
        total = np.zeros(len(self._axis), dtype=np.int64)
        for holding in self._held.get(node, {}).values():
            total += self._vector(holding.usage)
        return total

    def _rebuild(self) -> None:
        """New columns from the records; columns of nodes that stay are copied, the others summed up anew."""
        old = self._columns
        levels = self._levels or detected_levels(record.labels for record in self.records.values())
        new = NodeColumns(tuple(self.records.values()), self._axis, levels)
        origin = np.fromiter((old.index.get(name, -1) for name in new.names), dtype=np.int64, count=len(new))
        stays = origin >= 0
        used = np.zeros((len(self._axis), len(new)), dtype=np.int64)
        generations = np.full(len(new), self.revision, dtype=np.int64)
        used[:, stays] = self._used[:, origin[stays]]
        generations[stays] = self._generations[origin[stays]]
        for at in np.flatnonzero(~stays).tolist():
            if new.names[at] in self._held:
                used[:, at] = self._sum(new.names[at])
        self._columns, self._used, self._generations, self._stale = new, used, generations, False


def _as_good(old: NodeRecord, new: NodeRecord) -> bool:
    """Whether a change of a node can let in no pod that was kept out before: here, or where fewer domains count."""
    had = dict(old.allocatable)
    return (
        old.unschedulable == new.unschedulable
        and old.taints == new.taints
        and old.labels == new.labels
        and set(old.features) >= set(new.features)
        and old.drivers == new.drivers
        and all(amount <= had.get(name, 0) for name, amount in new.allocatable)
        and old.uid == new.uid
    )


def missed(by: dict[str, Touch], touched: Mapping[str, Touch]) -> None:
    """Adds to what a decision under way has missed.

    What was free before tells nothing then, since the decision itself goes on to take of it.
    """
    for node, touch in touched.items():
        known = by.get(node, touch)
        by[node] = Touch(None, known.record, known.changed or touch.changed)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
