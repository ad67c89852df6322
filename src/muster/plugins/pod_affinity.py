"""Which pods a pod wants in its domain, and which it keeps out, running ones and members placed before included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from muster.engine.extension import BEST, Counter, Relations, Rows, Rule, Terms
from muster.model.diagnosis import Reason
from muster.model.neighbours import REQUIRED_WEIGHT, Holding, PodTerm, Selection
from muster.model.records import PodClass
from muster.model.resources import PODS
from muster.model.snapshot import Snapshot

_ROOMY = 1 << 40
"""More than all pods of a cluster can take."""


@dataclass(frozen=True, slots=True)
class PodAffinity:
    """Required affinity and anti-affinity in both directions; preferred terms of the pod and of running pods.

    Anti-affinity of which every holder is itself meant, where each node is a domain of its own (the hostname), adds up
    like a resource: a holder takes the whole of a row, a pod that is only meant takes one unit. So the engine packs
    such pods like any other, and completely. All other terms are rules over counts by domain.
    """

    hard_weight: int = 1
    """What the required affinity of a running pod is worth to a pod that it means (hardPodAffinityWeight, 0 to 100)."""
    only_own_preferences: bool = False
    """A pod without preferred terms is not drawn by those of running pods (ignorePreferredTermsOfExistingPods)."""
    name: str = "pod_affinity"
    reason: Reason = Reason.POD_ANTI_AFFINITY

    def rows(self, snapshot: Snapshot, classes: Sequence[PodClass]) -> Rows:
        terms = [term for term in _repelling(snapshot, classes) if _adds_up(snapshot, classes, term)]
        shape = (len(terms), len(snapshot.nodes))
        capacity, used = np.full(shape, _ROOMY, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        amounts = np.zeros((len(classes), len(terms)), dtype=np.int64)
        reasons: dict[tuple[int, int], Reason] = {}
        for row, term in enumerate(terms):
            holders, meant = _holders(classes, term), _meant(classes, (term.selector,))
            whole = 1 if holders == meant else _most_pods(snapshot) + 1
            labelled = snapshot.nodes.label(term.topology_key).codes >= 0
            capacity[row, labelled] = whole
            holding, matching = _running(snapshot, Holding(term, None)), _matching(snapshot, (term.selector,))
            used[row] = np.where(holding > 0, whole, np.minimum(matching, whole)) * labelled
            amounts[sorted(meant), row] = 1
            amounts[sorted(holders), row] = whole
            reasons.update(((cls, row), Reason.EXISTING_ANTI_AFFINITY) for cls in meant - holders)
        return Rows(tuple(term.topology_key for term in terms), capacity, used, amounts, reasons)

    def relate(self, snapshot: Snapshot, classes: Sequence[PodClass]) -> Relations:
        counters = _Counters(snapshot, classes)
        repelling = [term for term in _repelling(snapshot, classes) if not _adds_up(snapshot, classes, term)]
        drawing = [(h, self._worth(h)) for h in _all_holdings(snapshot, classes) if h.weight is not None]
        drawing = [(holding, worth) for holding, worth in drawing if worth]
        rules: dict[int, Rule] = {}
        for cls, pod_class in enumerate(classes):
            prefers = pod_class.demands is not None and bool(pod_class.demands.preferred)
            rule = _rule(counters, pod_class, repelling, drawing if prefers or not self.only_own_preferences else ())
            if rule.filters or rule.scores:
                rules[cls] = rule
        return Relations(tuple(counters.made), rules)

    def _worth(self, holding: Holding) -> int:
        return self.hard_weight if holding.weight == REQUIRED_WEIGHT else holding.weight or 0


def _all_holdings(snapshot: Snapshot, classes: Sequence[PodClass]) -> list[Holding]:
    """Terms of running pods, and of those that may run soon, that mean any of the classes or belong to one."""
    meant = {selection for pod_class in classes for selection in pod_class.matched}
    running = (holding for holding in snapshot.neighbours.holding if (holding.term.selector,) in meant)
    own = (h for pod_class in classes if pod_class.demands is not None for h in pod_class.demands.holdings())
    return list(dict.fromkeys((*running, *own)))


def _repelling(snapshot: Snapshot, classes: Sequence[PodClass]) -> list[PodTerm]:
    return [holding.term for holding in _all_holdings(snapshot, classes) if holding.weight is None]


def _holders(classes: Sequence[PodClass], term: PodTerm) -> set[int]:
    """The classes that have this anti-affinity term."""
    return {c for c, one in enumerate(classes) if one.demands is not None and term in one.demands.anti_affinity}


def _meant(classes: Sequence[PodClass], selection: Selection) -> set[int]:
    return {c for c, one in enumerate(classes) if selection in one.matched}


def _adds_up(snapshot: Snapshot, classes: Sequence[PodClass], term: PodTerm) -> bool:
    """Whether pods of these classes exclude each other by this term node by node, as amounts of a resource do."""
    column = snapshot.nodes.label(term.topology_key)
    alone = len(column.values) == np.count_nonzero(column.codes >= 0)
    holders, selection = _holders(classes, term), (term.selector,)
    if not alone or not holders <= _meant(classes, selection):
        return False
    # Running holders that are not meant keep pods out for another reason than those that are.
    return not holders or not (_running(snapshot, Holding(term, None)) > _matching(snapshot, selection)).any()


def _most_pods(snapshot: Snapshot) -> int:
    return int(snapshot.nodes.alloc[snapshot.axis.row[PODS]].max(initial=0))


def _running(snapshot: Snapshot, holding: Holding) -> np.ndarray:
    """int64[N]"""
    known = snapshot.neighbours.holding.get(holding)
    return np.zeros(len(snapshot.nodes), dtype=np.int64) if known is None else known


def _matching(snapshot: Snapshot, selection: Selection) -> np.ndarray:
    """int64[N]; nobody has asked about a selection that only terms of running pods are about: zeros."""
    known = snapshot.neighbours.matching.get(selection)
    return np.zeros(len(snapshot.nodes), dtype=np.int64) if known is None else known


class _Counters:
    """The counters of one decision, each made once."""

    def __init__(self, snapshot: Snapshot, classes: Sequence[PodClass]) -> None:
        self.made: list[Counter] = []
        self._snapshot, self._classes = snapshot, classes
        self._place: dict[tuple[object, str], int] = {}

    def matching(self, selection: Selection, key: str) -> int:
        """Pods that match, by domain of a topology key."""
        place = self._place.get((selection, key))
        if place is None:
            adds = np.array([selection in one.matched for one in self._classes], dtype=np.int64)
            place = self._place[selection, key] = self._make(_matching(self._snapshot, selection), adds, key)
        return place

    def holding(self, holding: Holding) -> int:
        """Pods that have the term, by domain of its topology key."""
        place = self._place.get((holding, ""))
        if place is None:
            own = [() if one.demands is None else tuple(one.demands.holdings()) for one in self._classes]
            adds = np.array([some.count(holding) for some in own], dtype=np.int64)
            running = _running(self._snapshot, holding)
            place = self._place[holding, ""] = self._make(running, adds, holding.term.topology_key)
        return place

    def _make(self, running: np.ndarray, adds: np.ndarray, key: str) -> int:
        column = self._snapshot.nodes.label(key)
        counts = np.zeros(len(column.values) + 1, dtype=np.int64)
        np.add.at(counts, column.codes, running)
        counts[-1] = 0
        self.made.append(Counter(column.codes, column.codes >= 0, counts, adds))
        return len(self.made) - 1


@dataclass(frozen=True, slots=True)
class _AffinityRule:
    """The terms that bear on one class, as counters."""

    counters: Sequence[Counter]
    near: tuple[int, ...]
    """Each must count somebody in the domain of the node."""
    first: bool
    """It matches all of these terms itself: if nobody does anywhere, it may be the first."""
    apart: tuple[int, ...]
    """None may count anybody there: what it keeps out."""
    kept_out: tuple[int, ...]
    """None may count anybody there: those who keep it out."""
    wishes: Mapping[int, int] = field(default_factory=dict)
    """Counter -> weight."""

    @property
    def filters(self) -> bool:
        return bool(self.near or self.apart or self.kept_out)

    @property
    def opens(self) -> bool:
        return bool(self.near)

    @property
    def scores(self) -> bool:
        return bool(self.wishes)

    @property
    def terms(self) -> Terms:
        return Terms(self.near, self.first, (*self.apart, *self.kept_out))

    def rejected(self, counts: Sequence[np.ndarray]) -> Iterable[tuple[Reason, np.ndarray]]:
        if self.near:
            yield Reason.POD_AFFINITY, ~self._is_near(counts)
        if self.apart:
            yield Reason.POD_ANTI_AFFINITY, self._anybody(counts, self.apart)
        if self.kept_out:
            yield Reason.EXISTING_ANTI_AFFINITY, self._anybody(counts, self.kept_out)

    def _is_near(self, counts: Sequence[np.ndarray]) -> np.ndarray:
        everywhere = [self.counters[k].codes >= 0 for k in self.near]
        if self.first and not any(counts[k].any() for k in self.near):
            found: np.ndarray = np.logical_and.reduce(everywhere)
        else:
            found = np.logical_and.reduce([counts[k][self.counters[k].codes] > 0 for k in self.near])
        return found

    def _anybody(self, counts: Sequence[np.ndarray], some: tuple[int, ...]) -> np.ndarray:
        found: np.ndarray = np.logical_or.reduce([counts[k][self.counters[k].codes] > 0 for k in some])
        return found

    def score(self, counts: Sequence[np.ndarray], feasible: np.ndarray) -> np.ndarray:
        """The weighted pods in the domains of a node, as a share of the span between the feasible nodes."""
        total = np.zeros(len(feasible), dtype=np.int64)
        for k, weight in self.wishes.items():
            total += weight * counts[k][self.counters[k].codes]
        if not feasible.any():
            return np.zeros_like(total)
        low, high = int(total[feasible].min()), int(total[feasible].max())
        if low == high:
            return np.zeros_like(total)
        return np.clip((total - low) * BEST // (high - low), 0, BEST)


def _rule(
    counters: _Counters, pod_class: PodClass, repelling: Sequence[PodTerm], drawing: Sequence[tuple[Holding, int]]
) -> _AffinityRule:
    demands, matched = pod_class.demands, set(pod_class.matched)
    near: tuple[int, ...] = ()
    apart: tuple[int, ...] = ()
    first = False
    wishes: dict[int, int] = {}
    if demands is not None:
        selection = tuple(term.selector for term in demands.affinity)
        near = tuple(counters.matching(selection, term.topology_key) for term in demands.affinity)
        first = selection in matched
        own = (term for term in demands.anti_affinity if term in repelling)
        apart = tuple(counters.matching((term.selector,), term.topology_key) for term in own)
        for weight, term in demands.preferred:
            k = counters.matching((term.selector,), term.topology_key)
            wishes[k] = wishes.get(k, 0) + weight
    kept_out = tuple(counters.holding(Holding(term, None)) for term in repelling if (term.selector,) in matched)
    for holding, worth in drawing:
        if (holding.term.selector,) in matched:
            k = counters.holding(holding)
            wishes[k] = wishes.get(k, 0) + worth
    return _AffinityRule(counters.made, near, first, apart, kept_out, wishes)
