"""Room held for nominated pods against entries of equal or lower priority (statement 57, P23)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muster.engine.trial import Trial
from muster.model.keys import Key
from muster.model.plan import Plan
from muster.model.records import PodRecord, QueueEntry
from muster.model.snapshot import Nomination


class Holds:
    """Keeps in the ledger exactly the nominations that hold room against the entry being decided.

    A nomination holds while its pod is not placed, against entries of no higher priority other than its own. From one
    entry to the next only the difference is booked.
    """

    __slots__ = ("_by_group", "_by_uid", "_count", "_nominations", "_ours", "_placed", "_trial")

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        index = trial.snapshot.nodes.index
        known = (nomination for nomination in trial.snapshot.nominations if nomination.node in index)
        self._nominations: Sequence[Nomination] = sorted(known, key=lambda n: (-n.priority, n.pod))
        self._by_uid = {nomination.uid: i for i, nomination in enumerate(self._nominations)}
        self._by_group: dict[Key, list[int]] = {}
        for i, nomination in enumerate(self._nominations):
            if nomination.group is not None:
                self._by_group.setdefault(nomination.group, []).append(i)
        self._count = 0
        self._placed: set[int] = set()
        self._ours: set[int] = set()

    def enter(self, entry: QueueEntry) -> None:
        """Books what is held against this entry, and nothing else."""
        if not self._nominations:
            return
        while self._count < len(self._nominations) and self._nominations[self._count].priority >= entry.priority:
            self._book(self._count, 1)
            self._count += 1
        while self._count and self._nominations[self._count - 1].priority < entry.priority:
            self._count -= 1
            self._book(self._count, -1)
        self._ours = {self._by_uid[pod.uid] for pod in entry.pods if pod.uid in self._by_uid}
        if entry.group is not None:
            self._ours.update(self._by_group.get(entry.group.key, ()))
        for i in sorted(self._ours):
            if i < self._count:
                self._book(i, -1)

    def leave(self, plan: Plan) -> None:
        """The entry is decided: what it did not use of its own nominations is held again against the next one."""
        if not self._ours:
            return
        placed = {bind.uid for bind in plan.binds}
        for i in sorted(self._ours):
            if self._nominations[i].uid in placed:
                self._placed.add(i)
            elif i < self._count:
                self._book(i, 1)
        self._ours = set()

    def _book(self, i: int, count: int) -> None:
        if i not in self._placed:
            nomination = self._nominations[i]
            node = self._trial.snapshot.nodes.index[nomination.node]
            self._trial.ledger.shift(self._trial.index[nomination.cls], node, count)

    def held(self) -> np.ndarray | None:
        """int64[rows, N]: what is held against the current entry; None if nothing is."""
        active = [i for i in range(self._count) if i not in self._placed and i not in self._ours]
        if not active:
            return None
        total = np.zeros_like(self._trial.ledger.used)
        for i in active:
            nomination = self._nominations[i]
            node = self._trial.snapshot.nodes.index[nomination.node]
            total[:, node] += self._trial.ledger.amounts[self._trial.index[nomination.cls]]
        return total


def nominated_nodes(trial: Trial, pods: Sequence[PodRecord]) -> list[int]:
    """The nodes, one per nominated pod, that exist here."""
    wishes = [pod.nominated_node for pod in pods if pod.nominated_node is not None]
    return [node for node in map(trial.find, wishes) if node is not None]
