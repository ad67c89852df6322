"""Disks that cannot be used twice on a node, and claims that only one pod may use at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from muster.engine.extension import Counter, Relations, Rows, Rule
from muster.model.diagnosis import Reason
from muster.model.keys import Key
from muster.model.records import PodClass
from muster.model.snapshot import Snapshot
from muster.model.volumes import WHOLE, Disk


@dataclass(frozen=True, slots=True)
class VolumeRestrictions:
    """A row for each disk that a pending pod names: who writes takes all of it, who only reads one unit of many.

    Of members that share a ReadWriteOncePod claim, one that is placed keeps the others out of the whole cluster. (A
    pod outside the decision that uses the claim is a flaw of the claim, `volume_claims`.) W9, W10.
    """

    name: str = "volume_restrictions"
    reason: Reason = Reason.DISK_CONFLICT

    def rows(self, snapshot: Snapshot, classes: Sequence[PodClass]) -> Rows:
        asked = [one.storage.disks if one.storage is not None else () for one in classes]
        row = {disk: i for i, disk in enumerate(sorted({disk for some in asked for disk, _ in some}))}
        shape = (len(row), len(snapshot.nodes))
        used = np.zeros(shape, dtype=np.int64)
        for disk, i in row.items():
            self._count_used(snapshot, disk, used[i])
        amounts = np.zeros((len(classes), len(row)), dtype=np.int64)
        for c, some in enumerate(asked):
            for disk, units in some:
                amounts[c, row[disk]] = units
        return Rows(tuple(disk.name for disk in row), np.full(shape, WHOLE, dtype=np.int64), used, amounts)

    def _count_used(self, snapshot: Snapshot, disk: Disk, used: np.ndarray) -> None:
        for node, units in snapshot.volumes.disks.get(disk, {}).items():
            at = snapshot.nodes.index.get(node)
            if at is not None:
                used[at] = units

    def relate(self, snapshot: Snapshot, classes: Sequence[PodClass]) -> Relations:
        asked = [one.storage.alone if one.storage is not None else () for one in classes]
        place = {claim: i for i, claim in enumerate(sorted({claim for some in asked for claim in some}))}
        size = len(snapshot.nodes)
        rules: dict[int, Rule] = {
            c: _Alone(tuple(place[claim] for claim in some), size) for c, some in enumerate(asked) if some
        }
        return Relations(tuple(_users(claim, asked, size) for claim in place), rules)


def _users(claim: Key, asked: Sequence[tuple[Key, ...]], nodes: int) -> Counter:
    """Pods that use a claim, in the whole cluster: every node is in one domain."""
    adds = np.array([claim in some for some in asked], dtype=np.int64)
    codes = np.zeros(nodes, dtype=np.int32)
    return Counter(codes, np.ones(nodes, dtype=bool), np.zeros(2, dtype=np.int64), adds)


@dataclass(frozen=True, slots=True)
class _Alone:
    """Nobody else may use these claims."""

    claims: tuple[int, ...]
    """Places of their counters."""
    size: int
    filters: bool = True
    opens: bool = False
    scores: bool = False

    def rejected(self, counts: Sequence[np.ndarray]) -> Iterable[tuple[Reason, np.ndarray]]:
        yield Reason.CLAIM_SHARED, np.full(self.size, any(counts[i][0] > 0 for i in self.claims))

    def score(self, counts: Sequence[np.ndarray], feasible: np.ndarray) -> np.ndarray:
        return np.zeros(len(feasible), dtype=np.int64)
