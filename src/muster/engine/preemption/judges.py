"""How many of an entry's pods could be placed without some units: by the ordinary decision, or by counting slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol

import numpy as np

from muster.engine.entry import Decided, decide_entry
from muster.engine.holds import Holds
from muster.engine.kinds import Kinds
from muster.engine.placement import Refusal, candidates
from muster.engine.preemption.units import Field
from muster.engine.preemption.world import without
from muster.engine.profile import Profile
from muster.engine.trial import Trial
from muster.engine.work import Work
from muster.model.records import GroupNode, PodClass, QueueEntry
from muster.model.snapshot import Snapshot


class Judge(Protocol):
    def placed(self, units: frozenset[int]) -> int:
        """How many pods are placed once these units are gone; 0 if the minimum is not reached."""
        ...


def trial_of(snapshot: Snapshot, profile: Profile, entry: QueueEntry) -> tuple[Trial, Holds]:
    """The world of one decision about one entry, with what is held against it."""
    kinds = Kinds(snapshot, entry.pods)
    classes: dict[int, PodClass] = {}
    for pod in entry.pods:
        cls = pod.cls if kinds.plain else kinds.of(pod)
        classes[id(cls)] = cls
    classes.update((id(nomination.cls), nomination.cls) for nomination in snapshot.nominations)
    trial = Trial(snapshot, profile, classes.values(), kinds)
    holds = Holds(trial)
    holds.enter(entry)
    return trial, holds


class Ordinary:
    """Asks the decision itself, on a snapshot without the units and without what is terminating already."""

    def __init__(self, field: Field, profile: Profile, entry: QueueEntry, budget: Work) -> None:
        self.field = field
        # Of several domains the one that takes most members (M7), however full it is.
        self._profile = profile.placing(replace(profile.placement, pod_count=1, allocation=0))
        self._entry, self._budget = entry, budget
        self._base = without(field.snapshot, field.freeing)
        self._known: dict[frozenset[int], int] = {}
        self._last: tuple[frozenset[int], Decided] | None = None
        self.stopped = False
        """Whether any of the decisions failed because its budget ended."""

    @property
    def base(self) -> Snapshot:
        """Without what is terminating."""
        return self._base

    @property
    def topology_key(self) -> str | None:
        """Of the whole entry."""
        record = self._entry.tree.record if self._entry.tree is not None else self._entry.group
        return None if record is None else record.topology_key

    def decide(self, units: frozenset[int]) -> Decided:
        if self._last is not None and self._last[0] == units:
            return self._last[1]
        snapshot = without(self._base, self.field.records(units))
        trial, holds = trial_of(snapshot, self._profile, self._entry)
        decided = decide_entry(trial, holds, self._entry, self._budget)
        if self._entry.tree is not None and 0 < len(decided.plan.binds) < len(self._entry.pods):
            decided = self._whole(snapshot, self._entry.tree) or decided
        self._last = units, decided
        self.stopped |= not decided.diagnosis.proven
        return decided

    def _whole(self, snapshot: Snapshot, tree: GroupNode) -> Decided | None:
        """All pods of a hierarchy, where choosing the rest after the minimum leaves some of them out."""
        entry = replace(self._entry, tree=_demanding(tree))
        trial, holds = trial_of(snapshot, self._profile, entry)
        decided = decide_entry(trial, holds, entry, self._budget)
        return decided if decided.plan.binds else None

    def placed(self, units: frozenset[int]) -> int:
        known = self._known.get(units)
        if known is None:
            known = self._known[units] = len(self.decide(units).plan.binds)
        return known


def _demanding(tree: GroupNode) -> GroupNode:
    """The same hierarchy as one that needs every pod there is."""
    children = tuple(_demanding(child) for child in tree.children)
    if tree.is_leaf:
        there = len(tree.pending) + len(tree.bound) + tree.succeeded
    else:
        there = sum(any(leaf.pending or leaf.bound for leaf in child.leaves()) for child in children)
    record = replace(tree.record, min_count=max(there, tree.record.min_count))
    return replace(tree, record=record, children=children)


class Slots:
    """Counts slots: exact where all pods are alike, nothing but amounts matters, and one level of domains at most."""

    def __init__(self, field: Field, trial: Trial, entry: QueueEntry, inside: np.ndarray, domains: int) -> None:
        cls = trial.class_of(entry.pods[0])
        amounts = trial.ledger.amounts[cls]
        rows = np.flatnonzero(amounts)
        self.field = field
        self.wanted, self.needed = len(entry.pods), entry.needed
        self.asked = amounts[rows][:, None]
        """int64[r, 1]"""
        self.passes = trial.feasible(cls).passes & (inside >= 0)
        self.free = trial.ledger.capacity[rows] - trial.ledger.used[rows]
        """int64[r, N]"""
        self.domain = np.where(inside >= 0, inside, domains)
        """int64[N]; the last one is for nodes that do not count."""
        self.domains = domains
        names = {row: name for name, row in trial.layout.row.items()}
        self.usage = field.usage([names[row] for row in rows.tolist()])
        """int64[r, P]"""
        self.base = self.slots(self.free) * self.passes
        self.sums = np.bincount(self.domain, weights=self.base, minlength=domains + 1)[:domains].astype(np.int64)
        self._known: dict[frozenset[int], int] = {}

    def slots(self, free: np.ndarray) -> np.ndarray:
        """int64[M]"""
        found: np.ndarray = np.clip((free // self.asked).min(axis=0), 0, self.wanted)
        return found

    def sums_without(self, places: np.ndarray) -> np.ndarray:
        """int64[D]: slots by domain without these pods."""
        free = self.free_without(places)
        slots = self.slots(free) * self.passes
        return np.bincount(self.domain, weights=slots, minlength=self.domains + 1)[: self.domains].astype(np.int64)

    def free_without(self, places: np.ndarray) -> np.ndarray:
        """int64[r, N]"""
        places = places[self.field.node[places] >= 0]
        nodes = self.field.node[places]
        free = self.free.copy()
        for row in range(len(free)):
            gained = np.bincount(nodes, weights=self.usage[row, places], minlength=free.shape[1])
            free[row] += gained.astype(np.int64)
        return free

    @cached_property
    def target(self) -> int:
        """How many are placed once everybody is gone; 0: not enough."""
        return self.counted(int(self.sums_without(np.arange(len(self.field.pods))).max(initial=0)))

    def counted(self, most: int) -> int:
        most = min(most, self.wanted)
        return most if most >= self.needed else 0

    def placed(self, units: frozenset[int]) -> int:
        known = self._known.get(units)
        if known is None:
            known = self._known[units] = self.counted(int(self._sums(units).max(initial=0)))
        return known

    def spared(self, order: Sequence[int], target: int) -> frozenset[int]:
        """What is left of these units once everyone is taken back, in this order, without whom the target is reached.

        The same as asking `placed` for each, on the nodes that it concerns only.
        """
        field, wanted = self.field, self.wanted
        asked: list[int] = self.asked.ravel().tolist()
        places = [place for number in order for place in field.pods_of[number] if field.node[place] >= 0]
        usage = dict(zip(places, self.usage[:, places].T.tolist(), strict=True))
        nodes = {place: field.node.item(place) for place in places}
        free = {node: self.free[:, node].tolist() for node in set(nodes.values())}
        for place, amounts in usage.items():
            free[nodes[place]] = [a + b for a, b in zip(free[nodes[place]], amounts, strict=True)]

        def slots(node: int, there: Sequence[int]) -> int:
            if not self.passes[node]:
                return 0
            fit = min(a // b for a, b in zip(there, asked, strict=True))
            return min(max(fit, 0), wanted)

        sums = [*self._sums(frozenset(order)).tolist(), 0]
        left = set(order)
        for number in order:
            then: dict[int, list[int]] = {}
            for place in field.pods_of[number]:
                if place in nodes:
                    there = then.get(nodes[place]) or free[nodes[place]]
                    then[nodes[place]] = [a - b for a, b in zip(there, usage[place], strict=True)]
            changed = list(sums)
            for node, there in then.items():
                changed[self.domain.item(node)] += slots(node, there) - slots(node, free[node])
            if max(changed[:-1]) >= target:
                sums = changed
                free.update(then)
                left.discard(number)
        return frozenset(left)

    def _sums(self, units: frozenset[int]) -> np.ndarray:
        field = self.field
        gained: dict[int, np.ndarray] = {}
        for number in units:
            for place in field.pods_of[number]:
                at = field.node.item(place)
                if at >= 0:
                    known = gained.get(at)
                    gained[at] = self.usage[:, place] if known is None else known + self.usage[:, place]
        if not gained:
            return self.sums
        nodes = np.fromiter(gained, dtype=np.int64)
        slots = self.slots(self.free[:, nodes] + np.stack(list(gained.values()), axis=1)) * self.passes[nodes]
        sums = self.sums.copy()
        where = self.domain[nodes]
        inside = where < self.domains
        np.add.at(sums, where[inside], (slots - self.base[nodes])[inside])
        return sums


def is_of_amounts(trial: Trial, cls: int) -> bool:
    """Whether amounts of resources say all about how many pods of the class fit on a node, whoever is evicted."""
    if trial.depends(cls) or trial.classes[cls].stores:
        return False
    return set(trial.layout.row.values()).issuperset(np.flatnonzero(trial.ledger.amounts[cls]).tolist())


def slots_judge(field: Field, base: Snapshot, profile: Profile, entry: QueueEntry) -> Slots | None:
    """None where counting slots would not be exact."""
    if entry.tree is not None or any(pod.cls is not entry.pods[0].cls for pod in entry.pods):
        return None
    trial, _ = trial_of(base, profile, entry)
    if len({trial.class_of(pod) for pod in entry.pods}) > 1:
        return None
    cls = trial.class_of(entry.pods[0])
    rows = np.flatnonzero(trial.ledger.amounts[cls]).tolist()
    if not rows or not is_of_amounts(trial, cls):
        return None
    inside, domains = np.zeros(len(base.nodes), dtype=np.int64), 1
    if entry.group is not None and entry.group.topology_key is not None:
        found = candidates(trial, entry)
        if isinstance(found, Refusal):
            return None
        inside = np.full(len(base.nodes), -1, dtype=np.int64)
        domains = len(found.among)
        for k, d in enumerate(found.among.tolist()):
            inside[found.domains[d].nodes] = k
    return Slots(field, trial, entry, inside, domains)


def all_places(field: Field, units: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
    """int64[p]: the pods of these units, or of all."""
    if units is None:
        return np.arange(len(field.pods))
    return np.flatnonzero(np.isin(field.unit, units))
