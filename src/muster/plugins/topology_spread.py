"""Spreads alike pods over the domains of a label: not more in one than in the emptiest, or rather not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np

from muster.engine.extension import BEST, Counter, Relations, Rule, Skew, Terms
from muster.model.diagnosis import Reason
from muster.model.matching import selected, tolerates_all, tolerates_cordon
from muster.model.neighbours import SpreadConstraint
from muster.model.records import PodClass
from muster.model.snapshot import NodeColumns, Snapshot

HOSTNAME = "kubernetes.io/hostname"
_SCALE = 1 << 10
"""Scores are computed in so many parts of a pod."""


@dataclass(frozen=True, slots=True)
class TopologySpread:
    """DoNotSchedule constraints filter by the skew that the pod would make; ScheduleAnyway ones score by the crowd.

    Terminating pods do not count. A node without one of the topology keys takes no pod with such a constraint, and its
    pods do not count.
    """

    name: str = "topology_spread"

    def relate(self, snapshot: Snapshot, classes: Sequence[PodClass]) -> Relations:
        made: list[Counter] = []
        place: dict[object, int] = {}
        rules: dict[int, Rule] = {}
        for cls, pod_class in enumerate(classes):
            constraints = pod_class.demands.spread if pod_class.demands is not None else ()
            if constraints:
                places = [_counter(snapshot, classes, pod_class, one, made, place) for one in constraints]
                parts = [
                    _Part(one, k, made[k], (one.selector,) in pod_class.matched, _domains(made[k]))
                    for one, k in zip(constraints, places, strict=True)
                ]
                hard = tuple(part for part in parts if part.constraint.hard)
                rules[cls] = _SpreadRule(hard, tuple(part for part in parts if not part.constraint.hard))
        return Relations(tuple(made), rules)


def _counter(
    snapshot: Snapshot,
    classes: Sequence[PodClass],
    pod_class: PodClass,
    constraint: SpreadConstraint,
    made: list[Counter],
    place: dict[object, int],
) -> int:
    """The number of the counter of a constraint; those that count the same are one."""
    nodes, selection = snapshot.nodes, (constraint.selector,)
    assert pod_class.demands is not None
    alike = [c.topology_key for c in pod_class.demands.spread if c.hard == constraint.hard and not c.everywhere]
    counted = _counted(nodes, pod_class, constraint, alike)
    key = selection, constraint.topology_key, counted.tobytes()
    known = place.get(key)
    if known is not None:
        return known
    column = nodes.label(constraint.topology_key)
    counts = np.zeros(len(column.values) + 1, dtype=np.int64)
    matching, leaving = snapshot.neighbours.matching.get(selection), snapshot.neighbours.leaving.get(selection)
    if matching is not None and leaving is not None:
        np.add.at(counts, column.codes, (matching - leaving) * counted)
    adds = np.array([selection in one.matched for one in classes], dtype=np.int64)
    made.append(Counter(column.codes, counted, counts, adds))
    place[key] = len(made) - 1
    return len(made) - 1


def _counted(nodes: NodeColumns, pod_class: PodClass, constraint: SpreadConstraint, keys: Iterable[str]) -> np.ndarray:
    """bool[N]: nodes that have all the keys and that the constraint's policies let count."""
    own = nodes.label(constraint.topology_key).codes >= 0
    counted: np.ndarray = np.logical_and.reduce([own, *(nodes.label(key).codes >= 0 for key in keys)])
    if constraint.honor_affinity:
        counted = counted & selected(nodes, pod_class)
    if constraint.honor_taints:
        counted = counted & tolerates_all(nodes, pod_class)
        if not tolerates_cordon(pod_class):
            counted = counted & ~nodes.unschedulable
    return counted


def _domains(counter: Counter) -> np.ndarray:
    there = np.zeros(len(counter.counts), dtype=bool)
    there[counter.codes[counter.counted]] = True
    return there


class _Part(NamedTuple):
    """One constraint of a class."""

    constraint: SpreadConstraint
    place: int
    counter: Counter
    counts_itself: bool
    domains: np.ndarray
    """bool[D + 1]: those with a node that counts."""


@dataclass(frozen=True, slots=True)
class _SpreadRule:
    hard: tuple[_Part, ...]
    soft: tuple[_Part, ...]

    @property
    def filters(self) -> bool:
        return bool(self.hard)

    @property
    def opens(self) -> bool:
        return bool(self.hard)

    @property
    def scores(self) -> bool:
        return bool(self.soft)

    @property
    def terms(self) -> Terms:
        return Terms(skews=tuple(map(_skew, self.hard)))

    def rejected(self, counts: Sequence[np.ndarray]) -> Iterable[tuple[Reason, np.ndarray]]:
        rejected: np.ndarray = np.logical_or.reduce([_too_many(part, counts[part.place]) for part in self.hard])
        yield Reason.TOPOLOGY_SPREAD, rejected

    def score(self, counts: Sequence[np.ndarray], feasible: np.ndarray) -> np.ndarray:
        """As kube-scheduler's, in whole pods: the fewer there are in the domains of a node, the better."""
        needed = [part.counter.codes >= 0 for part in self.soft if not part.constraint.everywhere]
        labelled: np.ndarray = np.logical_and.reduce([np.ones(len(feasible), dtype=bool), *needed])
        among = feasible & labelled
        if not among.any():
            return np.zeros(len(feasible), dtype=np.int64)
        total = np.zeros(len(feasible), dtype=np.int64)
        for part in self.soft:
            codes = part.counter.codes
            seen = np.zeros(len(counts[part.place]), dtype=bool)
            seen[codes[among]] = True
            domains = int(np.count_nonzero(seen))
            weight = round(_SCALE * log(domains + 2))
            crowd = counts[part.place][codes] * weight + (part.constraint.max_skew - 1) * _SCALE
            total += np.where(codes >= 0, crowd, 0)
        total = (total + _SCALE // 2) // _SCALE
        low, high = int(total[among].min()), int(total[among].max())
        if not high:
            return np.where(labelled, BEST, 0)
        return np.where(labelled, np.clip((high + low - total) * BEST // high, 0, BEST), 0)


def _skew(part: _Part) -> Skew:
    enough = int(np.count_nonzero(part.domains)) >= max(part.constraint.min_domains, 1)
    return Skew(part.place, part.constraint.max_skew, int(part.counts_itself), part.domains, enough)


def _too_many(part: _Part, counts: np.ndarray) -> np.ndarray:
    """bool[N]: one more pod there would make more skew than allowed, or the node has no such label."""
    codes, there = part.counter.codes, counts[part.domains]
    fewest = int(there.min()) if len(there) >= max(part.constraint.min_domains, 1) else 0
    rejected: np.ndarray = (codes < 0) | (counts[codes] + part.counts_itself - fewest > part.constraint.max_skew)
    return rejected
