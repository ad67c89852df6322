"""The world of one `decide` call: classes and their columns over one ledger, brought up to date where it moved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy

import numpy as np

from muster.engine.extension import Rows
from muster.engine.feasibility import Feasible, feasible_nodes
from muster.engine.kinds import Kinds
from muster.engine.ledger import Ledger
from muster.engine.profile import Profile
from muster.engine.scoring import Layout, dynamic_plugins, dynamic_scores, static_scores
from muster.engine.ties import Ties
from muster.model.diagnosis import PodVerdict, Reason
from muster.model.records import NodeRecord, PodClass, PodRecord
from muster.model.resources import ResourceAxis
from muster.model.snapshot import Snapshot
from muster.model.topology import Placement

UNLIMITED = 1 << 40
"""Sums of it over all nodes must stay far from the largest integer."""
_TRIES = 256
"""So many columns are looked up before the memo must have been of use."""


class Trial:
    """Everything that the heads of one decision share; or (`within`) that world cut down to one placement.

    Node `n` of states, scores and ledger is the n-th node of the placement. Only `snapshot` is always whole.
    """

    def __init__(
        self, snapshot: Snapshot, profile: Profile, classes: Iterable[PodClass], kinds: Kinds | None = None
    ) -> None:
        self.snapshot = snapshot
        self._kinds = kinds if kinds is not None and not kinds.plain else None
        self.placement: Placement | None = None
        self._parts: dict[Placement, Trial] = {}
        self._followed = 0
        self.profile = profile
        self.classes: tuple[PodClass, ...] = tuple(dict.fromkeys(classes))
        self.index: Mapping[PodClass, int] = {pod_class: c for c, pod_class in enumerate(self.classes)}
        parts = [plugin.rows(snapshot, self.classes) for plugin in profile.capacities]
        self.details: tuple[str, ...] = tuple(detail for part in parts for detail in part.details)
        self.owners: tuple[Reason, ...] = tuple(
            plugin.reason for plugin, part in zip(profile.capacities, parts, strict=True) for _ in part.details
        )
        self._reasons = _own_reasons(parts)
        self.layout = Layout(snapshot.nodes, _resource_rows(snapshot.axis, parts))
        self.ledger = _ledger(len(snapshot.nodes), len(self.classes), parts)
        self._ties: Ties | None = None
        if self._kinds is not None:
            self._ties = Ties(snapshot, profile, self.classes, self.ledger) or None
        self._states: dict[int, ClassState] = {}
        self.verdicts: dict[int, tuple[int, PodVerdict]] = {}
        """By class: how many changes the ledger had seen, and why no further pod of it found a node then."""

    def __len__(self) -> int:
        """How many nodes it has."""
        return len(self.snapshot.nodes) if self.placement is None else len(self.placement.nodes)

    def within(self, placement: Placement) -> Trial:
        """The world of a placement inside this one. What is placed there counts here only once it is adopted."""
        part = copy(self)
        part.placement, part._followed = placement, len(self.ledger.touched)
        inside, ledger = self.positions(placement), self.ledger
        part.ledger = Ledger(ledger.capacity.take(inside, axis=1), ledger.used.take(inside, axis=1), ledger.amounts)
        part._states, part.verdicts, part._parts = {}, {}, {}
        part._tie(self)
        return part

    def _tie(self, whole: Trial) -> None:
        """Takes over the counts of the world that this is a part of."""
        if whole._ties is not None:
            assert self.placement is not None
            self._ties = whole._ties.within(self.placement.nodes, self.ledger)

    def part(self, placement: Placement) -> Trial:
        """The same, kept and brought up to date, with nothing placed in it."""
        part = self._parts.get(placement)
        if part is None:
            part = self._parts[placement] = self.within(placement)
            return part
        part.ledger.rollback(0)
        touched = self.ledger.touched
        if part._followed < len(touched):
            inside, nodes = self.positions(placement), np.unique(touched[part._followed :])
            at = np.minimum(np.searchsorted(inside, nodes), len(inside) - 1)
            mine = at[inside[at] == nodes]
            part.ledger.follow(mine, self.ledger.used[:, inside[mine]])
            part._followed = len(touched)
        part._tie(self)
        return part

    def adopt(self, part: Trial) -> None:
        """Places here what is placed in a part."""
        assert part.placement is not None
        inside = self.positions(part.placement)
        single: dict[tuple[int, int], int] = {}
        for cls, nodes, counts in part.ledger.since(0):
            if isinstance(nodes, int):
                single[cls, nodes] = single.get((cls, nodes), 0) + int(counts)
            else:
                self.ledger.place_many(cls, inside[nodes], np.asarray(counts))
        for (cls, node), count in single.items():
            self.ledger.place(cls, int(inside[node]), count)
        part.ledger.settle()
        part._followed = len(self.ledger.touched)

    def inside(self, columns: np.ndarray, placement: Placement | None) -> np.ndarray:
        """Columns [..., N] of this world, cut down to a placement inside it (None: the whole cluster's)."""
        if placement is None or placement is self.placement:
            return columns
        found: np.ndarray = columns.take(self.positions(placement), axis=-1)
        return found

    def positions(self, placement: Placement) -> np.ndarray:
        """int64[M]: where the nodes of a placement inside this world are in it."""
        if self.placement is None:
            return placement.nodes
        if placement.parent is self.placement:
            return placement.inside
        found: np.ndarray = np.searchsorted(self.placement.nodes, placement.nodes)
        return found

    def cut(self, columns: np.ndarray) -> np.ndarray:
        """Columns [..., N] over the whole cluster, cut down to the nodes of this world."""
        return columns if self.placement is None else columns[..., self.placement.nodes]

    def record(self, node: int) -> NodeRecord:
        """What is known of a node."""
        return self.snapshot.nodes.records[node if self.placement is None else int(self.placement.nodes[node])]

    def find(self, name: str) -> int | None:
        """The node of this name, None if it is not in this world."""
        node = self.snapshot.nodes.index.get(name)
        if node is None or self.placement is None:
            return node
        at = int(np.searchsorted(self.placement.nodes, node))
        return at if at < len(self.placement.nodes) and int(self.placement.nodes[at]) == node else None

    def feasible(self, cls: int) -> Feasible:
        """The verdicts of all static filters on a class."""
        known = feasible_nodes(self.snapshot.nodes, self.classes[cls], self.profile)
        return known if self.placement is None else Feasible(self.cut(known.passes), self.cut(known.reasons))

    def static(self, cls: int) -> np.ndarray:
        """int64[N]: the part of the score that no placement changes. Nodes are compared over the whole cluster."""
        pod_class, nodes = self.classes[cls], self.snapshot.nodes
        feasible = feasible_nodes(nodes, pod_class, self.profile)
        return self.cut(static_scores(nodes, pod_class, self.profile, feasible))

    def class_of(self, pod: PodRecord) -> int:
        """The class of a pod, by what this decision can tell of it."""
        return self.index[pod.cls if self._kinds is None else self._kinds.of(pod)]

    @property
    def plain(self) -> bool:
        """Whether pods of one record class are alike in this decision."""
        return self._kinds is None

    def reason(self, cls: int, row: int) -> Reason:
        """Why a class is rejected where a counted row is full."""
        return self._reasons.get((cls, row), self.owners[row])

    @property
    def ties(self) -> Ties | None:
        """What depends on pods placed before; None if nothing does."""
        return self._ties

    def related(self, cls: int) -> bool:
        """Whether pods placed before bear on where the class may go, or should."""
        return self._ties is not None and self._ties.concern(cls)

    def depends(self, cls: int) -> bool:
        """Whether pods placed before may open or close nodes to the class, beyond what is counted on a node."""
        return self._ties is not None and self._ties.filter(cls)

    def fits(self, cls: int, node: int) -> bool:
        """Whether one more pod of the class may go to a node now."""
        if self.state(cls).slots[node] <= 0:
            return False
        return self._ties is None or bool(self._ties.passes(cls)[node])

    def state(self, cls: int) -> ClassState:
        """The columns of a class; its slots are up to date."""
        state = self._known(cls)
        state.refresh()
        return state

    def scores(self, cls: int) -> np.ndarray:
        """int64[N]: what each node is worth to the next pod of the class, -1 where none fits. Not to be changed."""
        scores = self._known(cls).scores()
        return scores if self._ties is None or not self._ties.concern(cls) else self._ties.ranked(cls, scores)

    def _known(self, cls: int) -> ClassState:
        state = self._states.get(cls)
        if state is None:
            state = self._states[cls] = ClassState(self, cls)
        return state


def _resource_rows(axis: ResourceAxis, parts: Sequence[Rows]) -> Mapping[str, int]:
    """Where scores find the resources: the rows of the first limit that counts cpu; none if nothing does."""
    start = 0
    for part in parts:
        if set(axis.names) <= set(part.details):
            return {name: start + i for i, name in enumerate(part.details)}
        start += len(part.details)
    return {}


def _own_reasons(parts: Sequence[Rows]) -> Mapping[tuple[int, int], Reason]:
    """(class, row of the ledger) -> its own reason."""
    reasons: dict[tuple[int, int], Reason] = {}
    start = 0
    for part in parts:
        reasons.update(((cls, start + row), reason) for (cls, row), reason in part.reasons.items())
        start += len(part.details)
    return reasons


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
        "_amounts",
        "_dynamic",
        "_hits",
        "_memo",
        "_misses",
        "_ranked",
        "_rows",
        "_seen",
        "_seen_slots",
        "_static",
        "_trial",
        "_uniform",
        "cls",
        "feasible",
        "pod_class",
        "slots",
    )

    def __init__(self, trial: Trial, cls: int) -> None:
        self._trial = trial
        self.cls = cls
        self.pod_class = trial.classes[cls]
        self.feasible: Feasible = trial.feasible(cls)
        amounts = trial.ledger.amounts[cls]
        self._rows = np.flatnonzero(amounts)
        self._amounts = amounts[self._rows][:, None]
        self._dynamic = dynamic_plugins(self.pod_class, trial.profile)
        self._static: np.ndarray | None = None
        self._ranked: np.ndarray | None = None
        self._uniform: bool | None = None
        self._memo: dict[bytes, tuple[int, int]] = {}
        self._hits = self._misses = 0
        self.slots = self.count_slots(trial.ledger.used)
        self._seen_slots = self._seen = len(trial.ledger.touched)

    def count_slots(self, used: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
        """int64[N]: copies that fit beside this usage on these nodes (bool[N]; those that pass the static filters)."""
        slots = np.full(used.shape[1], UNLIMITED, dtype=np.int64)
        capacity = self._trial.ledger.capacity
        for row, amount in zip(self._rows.tolist(), self._amounts.ravel().tolist(), strict=True):
            free = capacity[row] - used[row]
            np.minimum(slots, free if amount == 1 else free // amount, out=slots)
        np.maximum(slots, 0, out=slots)
        slots *= self.feasible.passes if among is None else among
        return slots

    @property
    def wished(self) -> np.ndarray:
        """int64[N]: the slots on those nodes only whose unchanging score is the best of all nodes with slots."""
        static = self.static()
        if self._uniform is None:
            asked = static[self.feasible.passes]
            self._uniform = not len(asked) or bool((asked == asked[0]).all())
        if self._uniform or not (fits := self.slots > 0).any():
            return self.slots
        return np.where(static == static[fits].max(), self.slots, 0)

    def refresh(self) -> None:
        """Brings `slots` up to date with the ledger."""
        ledger = self._trial.ledger
        stale = ledger.touched[self._seen_slots :]
        if not stale:
            return
        self._seen_slots = len(ledger.touched)
        if len(stale) * 4 > len(self.slots):
            self.slots = self.count_slots(ledger.used)
        else:
            nodes = np.array(stale)
            free = ledger.capacity.take(nodes, axis=1) - ledger.used.take(nodes, axis=1)
            self.slots[nodes] = self._slots_in(free) * self.feasible.passes[nodes]

    def _slots_in(self, free: np.ndarray) -> np.ndarray:
        """int64[M]: copies that fit into this free room int64[rows, M], whatever the static filters say."""
        slots: np.ndarray = (free[self._rows] // self._amounts).min(axis=0, initial=UNLIMITED)
        np.maximum(slots, 0, out=slots)
        return slots

    def scores(self) -> np.ndarray:
        """int64[N]: score of each node for the next copy, -1 where none fits."""
        touched = self._trial.ledger.touched
        stale = touched[self._seen :]
        self._seen = len(touched)
        if self._ranked is None or len(stale) * 4 > len(self.slots):
            self.refresh()
            self._ranked = np.where(self.slots > 0, np.maximum(self._score_all(), 0), -1)
        elif stale:
            self._seen_slots = len(touched)
            unknown = self._recall(stale) if self._memo_pays() else stale
            if unknown:
                self._rate(unknown)
        return self._ranked

    def _memo_pays(self) -> bool:
        """Nodes of equal capacity come into equal states again and again; in a mixed cluster they do not."""
        return self._misses < _TRIES or self._misses < 4 * self._hits

    def _recall(self, nodes: list[int]) -> list[int]:
        """Rates the nodes whose columns are known from elsewhere; returns the others."""
        assert self._ranked is not None
        column, static, passes = self._trial.ledger.column, self.static(), self.feasible.passes
        unknown: list[int] = []
        for node in nodes:
            known = self._memo.get(column(node))
            if known is None:
                unknown.append(node)
                continue
            slots, value = known
            fits = slots > 0 and passes.item(node)
            self.slots[node] = slots if fits else 0
            self._ranked[node] = max(value + static.item(node), 0) if fits else -1
        self._misses += len(unknown)
        self._hits += len(nodes) - len(unknown)
        return unknown

    def _rate(self, stale: list[int]) -> None:
        """Slots and scores of some nodes anew."""
        assert self._ranked is not None
        ledger, nodes = self._trial.ledger, np.array(stale)
        capacity, used = ledger.capacity.take(nodes, axis=1), ledger.used.take(nodes, axis=1)
        slots, values = self._slots_in(capacity - used), self.dynamic(capacity, used)
        if self._memo_pays():
            self._memo.update(
                zip(map(ledger.column, stale), zip(slots.tolist(), values.tolist(), strict=True), strict=True)
            )
        slots = slots * self.feasible.passes[nodes]
        self.slots[nodes] = slots
        self._ranked[nodes] = np.where(slots > 0, np.maximum(values + self.static()[nodes], 0), -1)

    def _score_all(self) -> np.ndarray:
        ledger = self._trial.ledger
        values: np.ndarray = self.static() + self.dynamic(ledger.capacity, ledger.used)
        return values

    def static(self) -> np.ndarray:
        """int64[N]: the part of the score that no placement changes."""
        if self._static is None:
            self._static = self._trial.static(self.cls)
        return self._static

    def dynamic(self, capacity: np.ndarray, used: np.ndarray) -> np.ndarray:
        """int64[M]: the part that follows usage, for any columns."""
        trial = self._trial
        return dynamic_scores(self._dynamic, self.pod_class, trial.layout, capacity, used)
