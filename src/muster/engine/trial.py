"""The world of one `decide` call: classes and their columns over one ledger, brought up to date where it moved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from muster.engine.extension import Rows
from muster.engine.feasibility import Feasible, feasible_nodes
from muster.engine.ledger import Ledger
from muster.engine.profile import Profile
from muster.engine.scoring import dynamic_plugins, dynamic_scores, static_scores
from muster.model.diagnosis import PodVerdict, Reason
from muster.model.records import PodClass
from muster.model.resources import ResourceAxis
from muster.model.snapshot import Snapshot

UNLIMITED = np.iinfo(np.int64).max // 4
ONE_BY_ONE = 3
"""Up to so many touched nodes are brought up to date one by one, with a memo of like columns."""


class Trial:
    """Everything that the heads of one decision share."""

    def __init__(self, snapshot: Snapshot, profile: Profile, classes: Iterable[PodClass]) -> None:
        self.snapshot = snapshot
        self.profile = profile
        self.classes: tuple[PodClass, ...] = tuple(dict.fromkeys(classes))
        self.index: Mapping[PodClass, int] = {pod_class: c for c, pod_class in enumerate(self.classes)}
        parts = [plugin.rows(snapshot, self.classes) for plugin in profile.capacities]
        self.details: tuple[str, ...] = tuple(detail for part in parts for detail in part.details)
        self.owners: tuple[Reason, ...] = tuple(
            plugin.reason for plugin, part in zip(profile.capacities, parts, strict=True) for _ in part.details
        )
        self.row = _resource_rows(snapshot.axis, parts)
        self.ledger = _ledger(len(snapshot.nodes), len(self.classes), parts)
        self._states: dict[int, ClassState] = {}
        self.verdicts: dict[int, tuple[int, PodVerdict]] = {}
        """By class: how many changes the ledger had seen, and why no further pod of it found a node then."""

    def state(self, cls: int) -> ClassState:
        """The columns of a class, up to date."""
        state = self._states.get(cls)
        if state is None:
            state = self._states[cls] = ClassState(self, cls)
        else:
            state.refresh()
        return state


def _resource_rows(axis: ResourceAxis, parts: Sequence[Rows]) -> Mapping[str, int]:
    """Where scores find the resources: the rows of the first limit that counts cpu; none if nothing does."""
    start = 0
    for part in parts:
        if set(axis.names) <= set(part.details):
            return {name: start + i for i, name in enumerate(part.details)}
        start += len(part.details)
    return {}


def _ledger(nodes: int, classes: int, parts: Sequence[Rows]) -> Ledger:
    empty, none = np.zeros((0, nodes), dtype=np.int64), np.zeros((classes, 0), dtype=np.int64)
    capacity = np.vstack([part.capacity for part in parts] or [empty])
    used = np.vstack([part.used for part in parts] or [empty])
    amounts = np.hstack([part.amounts for part in parts] or [none])
    return Ledger(capacity, used, amounts)


class ClassState:
    """One class over all nodes: `slots[n]` copies fit on node `n` now, and its score there for the next copy.

    Both follow the ledger: `refresh` looks only at nodes touched since the last time.
    """

    __slots__ = (
        "_dynamic",
        "_memo",
        "_pairs",
        "_ranked",
        "_seen",
        "_seen_slots",
        "_static",
        "_trial",
        "cls",
        "feasible",
        "pod_class",
        "slots",
    )

    def __init__(self, trial: Trial, cls: int) -> None:
        self._trial = trial
        self.cls = cls
        self.pod_class = trial.classes[cls]
        self.feasible: Feasible = feasible_nodes(trial.snapshot.nodes, self.pod_class, trial.profile)
        amounts = trial.ledger.amounts[cls]
        self._pairs = [(int(row), int(amounts[row])) for row in np.flatnonzero(amounts)]
        self._dynamic = dynamic_plugins(self.pod_class, trial.profile)
        self._static: np.ndarray | None = None
        self._ranked: np.ndarray | None = None
        self._memo: dict[bytes, int] = {}
        self.slots = self.count_slots(trial.ledger.used)
        self._seen_slots = self._seen = len(trial.ledger.touched)

    def count_slots(self, used: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
        """int64[N]: copies that fit beside this usage on these nodes (bool[N]; those that pass the static filters)."""
        slots = np.full(used.shape[1], UNLIMITED, dtype=np.int64)
        capacity = self._trial.ledger.capacity
        for row, amount in self._pairs:
            free = capacity[row] - used[row]
            np.minimum(slots, free if amount == 1 else free // amount, out=slots)
        np.maximum(slots, 0, out=slots)
        slots *= self.feasible.passes if among is None else among
        return slots

    def refresh(self) -> None:
        """Brings `slots` up to date with the ledger."""
        touched = self._trial.ledger.touched
        stale = touched[self._seen_slots :]
        if not stale:
            return
        self._seen_slots = len(touched)
        if len(stale) <= ONE_BY_ONE:
            for node in stale:
                self.slots[node] = self._slots_at(node)
        elif len(stale) * 4 > len(self.slots):
            self.slots = self.count_slots(self._trial.ledger.used)
        else:
            self._refresh_slots(np.array(stale))

    def _refresh_slots(self, nodes: np.ndarray) -> None:
        capacity, used = self._trial.ledger.capacity, self._trial.ledger.used
        slots: np.ndarray | None = None
        for row, amount in self._pairs:
            free = (capacity[row, nodes] - used[row, nodes]) // amount
            slots = free if slots is None else np.minimum(slots, free)
        if slots is not None:
            self.slots[nodes] = np.maximum(slots, 0) * self.feasible.passes[nodes]

    def _slots_at(self, node: int) -> int:
        if not self.feasible.passes[node]:
            return 0
        capacity, used = self._trial.ledger.capacity, self._trial.ledger.used
        slots = UNLIMITED
        for row, amount in self._pairs:
            slots = min(slots, (capacity.item(row, node) - used.item(row, node)) // amount)
        return max(slots, 0)

    def scores(self) -> np.ndarray:
        """int64[N]: score of each node for the next copy, -1 where none fits."""
        self.refresh()
        touched = self._trial.ledger.touched
        stale = touched[self._seen :]
        self._seen = len(touched)
        if self._ranked is None or len(stale) * 4 > len(self.slots):
            self._ranked = np.where(self.slots > 0, self._score_all(), -1)
        elif len(stale) <= ONE_BY_ONE:
            for node in stale:
                self._ranked[node] = self._score_at(node) if self.slots[node] > 0 else -1
        else:
            ledger, nodes = self._trial.ledger, np.array(stale)
            values = self.dynamic(ledger.capacity.take(nodes, axis=1), ledger.used.take(nodes, axis=1))
            self._ranked[nodes] = np.where(self.slots[nodes] > 0, values + self.static()[nodes], -1)
        return self._ranked

    def _score_all(self) -> np.ndarray:
        ledger = self._trial.ledger
        values: np.ndarray = self.static() + self.dynamic(ledger.capacity, ledger.used)
        return values

    def static(self) -> np.ndarray:
        """int64[N]: the part of the score that no placement changes."""
        if self._static is None:
            nodes = self._trial.snapshot.nodes
            self._static = static_scores(nodes, self.pod_class, self._trial.profile, self.feasible)
        return self._static

    def dynamic(self, capacity: np.ndarray, used: np.ndarray) -> np.ndarray:
        """int64[M]: the part that follows usage, for any columns."""
        trial = self._trial
        return dynamic_scores(self._dynamic, self.pod_class, trial.snapshot.nodes, trial.row, capacity, used)

    def _score_at(self, node: int) -> int:
        ledger = self._trial.ledger
        capacity, used = ledger.capacity[:, node], ledger.used[:, node]
        key = capacity.tobytes() + used.tobytes()
        value = self._memo.get(key)
        if value is None:
            value = self._memo[key] = int(self.dynamic(capacity[:, None], used[:, None])[0])
        return value + int(self.static()[node])
