"""A node takes so many volumes of a driver; and some drivers must be there for their pods to come."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from muster.engine.extension import Counter, Relations, Relaxation, Rows, View
from muster.model.diagnosis import Reason
from muster.model.records import PodClass
from muster.model.snapshot import NodeColumns, Snapshot
from muster.model.supply import PLENTY
from muster.model.volumes import Handle, Volumes


@dataclass(frozen=True, slots=True)
class VolumeDrivers:
    """Keeps pods off nodes without the driver of their volumes, if the driver asks for it (W12)."""

    name: str = "volume_drivers"
    reason: Reason = Reason.DRIVER_MISSING

    def filter_key(self, pod_class: PodClass) -> Hashable | None:
        return (pod_class.storage.drivers or None) if pod_class.storage is not None else None

    def filter(self, pod_class: PodClass, view: View) -> np.ndarray:
        assert pod_class.storage is not None
        passes: np.ndarray = np.logical_and.reduce([_has(view.nodes, name) for name in pod_class.storage.drivers])
        return passes

    def details(self, pod_class: PodClass, view: View) -> Iterable[tuple[str, np.ndarray]]:
        for name in pod_class.storage.drivers if pod_class.storage is not None else ():
            yield name, ~_has(view.nodes, name)

    def relaxations(self, pod_class: PodClass, view: View) -> Iterable[Relaxation]:
        return ()


def _has(nodes: NodeColumns, driver: str) -> np.ndarray:
    return np.fromiter((driver in record.drivers for record in nodes.records), bool, len(nodes))


@dataclass(frozen=True, slots=True)
class VolumeLimits:
    """Volumes by driver against the limits that nodes tell; one that several pods of a node use counts once.

    Where every volume of a driver is used by one pod of the decision only, a row counts them. Where some are shared,
    what a pod takes depends on who is there already: then they are counted by node, each shared one by its users (W11).
    """

    name: str = "volume_limits"
    reason: Reason = Reason.VOLUME_LIMIT

    def rows(self, snapshot: Snapshot, classes: Sequence[PodClass]) -> Rows:
        wanted = _wanted(snapshot, classes) - _sharing(classes)
        row = {driver: i for i, driver in enumerate(sorted(wanted))}
        shape = (len(row), len(snapshot.nodes))
        capacity, used = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        for driver, i in row.items():
            capacity[i], used[i] = _limit(snapshot.nodes, driver), _attached(snapshot, driver)
        amounts = np.zeros((len(classes), len(row)), dtype=np.int64)
        for c, pod_class in enumerate(classes):
            for driver, count in pod_class.storage.attached if pod_class.storage is not None else ():
                if driver in row:
                    amounts[c, row[driver]] = count
        return Rows(tuple(row), capacity, used, amounts)

    def relate(self, snapshot: Snapshot, classes: Sequence[PodClass]) -> Relations:
        counters: list[Counter] = []
        rules: dict[int, list[_Limit]] = {}
        for driver in sorted(_wanted(snapshot, classes) & _sharing(classes)):
            limit = _Tally(snapshot, driver, classes, len(counters))
            counters += limit.counters
            for c, pod_class in enumerate(classes):
                if (rule := limit.rule(pod_class)) is not None:
                    rules.setdefault(c, []).append(rule)
        return Relations(tuple(counters), {c: _Limits(tuple(some)) for c, some in rules.items()})


def _wanted(snapshot: Snapshot, classes: Sequence[PodClass]) -> set[str]:
    """Drivers of which a pending pod attaches volumes, and some node has a limit."""
    asked: set[str] = set()
    for one in classes:
        if one.storage is not None:
            asked.update(driver for driver, _ in (*one.storage.attached, *one.storage.shared))
    return {driver for driver in asked if bool((_limit(snapshot.nodes, driver) < PLENTY).any())}


def _sharing(classes: Sequence[PodClass]) -> set[str]:
    return {driver for one in classes if one.storage is not None for driver, _ in one.storage.shared}


def _limit(nodes: NodeColumns, driver: str) -> np.ndarray:
    """int64[N], kept with the node columns."""
    key = ("volume limit", driver)
    known = nodes.cache.get(key)
    if isinstance(known, np.ndarray):
        return known
    told = (record.drivers.get(driver) for record in nodes.records)
    made = np.fromiter((PLENTY if count is None else count for count in told), np.int64, len(nodes))
    nodes.cache[key] = made
    return made


def _attached(snapshot: Snapshot, driver: str, but: frozenset[Handle] = frozenset()) -> np.ndarray:
    """int64[N]: volumes of a driver that pods on the node use, each once."""
    index = snapshot.nodes.index
    counts = np.zeros(len(snapshot.nodes), dtype=np.int64)
    for handle, nodes in snapshot.volumes.attached.items():
        if handle[0] == driver and handle not in but:
            for node in nodes:
                if node in index:
                    counts[index[node]] += 1
    return counts


def _is_at(snapshot: Snapshot, volumes: Volumes, handle: Handle) -> np.ndarray:
    """int64[N]: 1 where a volume is attached."""
    there = np.zeros(len(snapshot.nodes), dtype=np.int64)
    for node in volumes.attached.get(handle, ()):
        at = snapshot.nodes.index.get(node)
        if at is not None:
            there[at] = 1
    return there


class _Tally:
    """The counters of one driver: one for volumes of one pod each, and one for the users of each shared one."""

    def __init__(self, snapshot: Snapshot, driver: str, classes: Sequence[PodClass], start: int) -> None:
        self._driver, self._start = driver, start
        stores = [one.storage for one in classes]
        handles = {h for one in stores if one is not None for h in one.shared if h[0] == driver}
        self._shared = tuple(sorted(handles))
        self._limit = _limit(snapshot.nodes, driver)
        own = [dict(one.attached).get(driver, 0) if one is not None else 0 for one in stores]
        size = len(snapshot.nodes)
        # Domains that differ in their limit must differ in their counts too, or they would be taken for alike.
        _, kind = np.unique(self._limit, return_inverse=True)
        self._base = (kind.astype(np.int64) + 1) << 24
        taken = _attached(snapshot, driver, frozenset(handles)) + self._base
        columns = [(taken, own)]
        for handle in self._shared:
            users = [int(one is not None and handle in one.shared) for one in stores]
            columns.append((_is_at(snapshot, snapshot.volumes, handle), users))
        codes, every = np.arange(size, dtype=np.int32), np.ones(size, dtype=bool)
        self.counters = [
            Counter(codes, every, np.append(counts, 0), np.array(adds, dtype=np.int64)) for counts, adds in columns
        ]

    def rule(self, pod_class: PodClass) -> _Limit | None:
        one = pod_class.storage
        if one is None:
            return None
        own = dict(one.attached).get(self._driver, 0)
        mine = tuple(self._start + 1 + i for i, handle in enumerate(self._shared) if handle in one.shared)
        if not own and not mine:
            return None
        every = tuple(range(self._start + 1, self._start + 1 + len(self._shared)))
        return _Limit(self._limit + self._base, own, self._start, every, mine)


@dataclass(frozen=True, slots=True)
class _Limit:
    """At most `limit[n]` volumes of one driver on node `n`."""

    limit: np.ndarray
    own: int
    taken: int
    every: tuple[int, ...]
    mine: tuple[int, ...]

    def too_many(self, counts: Sequence[np.ndarray]) -> np.ndarray:
        total = counts[self.taken][:-1] + self.own
        for i in self.every:
            total = total + ((counts[i][:-1] > 0) | (i in self.mine))
        adds = sum(((counts[i][:-1] == 0) for i in self.mine), np.zeros(len(total), dtype=np.int64)) + self.own
        found: np.ndarray = (total > self.limit) & (adds > 0)
        return found


@dataclass(frozen=True, slots=True)
class _Limits:
    parts: tuple[_Limit, ...]
    filters: bool = True
    opens: bool = False
    scores: bool = False

    def rejected(self, counts: Sequence[np.ndarray]) -> Iterable[tuple[Reason, np.ndarray]]:
        rejected: np.ndarray = np.logical_or.reduce([part.too_many(counts) for part in self.parts])
        yield Reason.VOLUME_LIMIT, rejected

    def score(self, counts: Sequence[np.ndarray], feasible: np.ndarray) -> np.ndarray:
        return np.zeros(len(feasible), dtype=np.int64)
