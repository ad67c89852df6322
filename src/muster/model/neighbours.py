"""What pods ask of the pods around them, and where the pods stand that this is about.

A demand never names a pod, only a selector over labels; which pods a selector means is known of the running ones as
counts by node, and of those being decided as part of their class for that decision (`PodClass.matched`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

Labels = tuple[tuple[str, str], ...]
"""Labels of a pod, sorted by key."""


class LabelRequirement(NamedTuple):
    """One expression on a label; `operator` is In, NotIn, Exists or DoesNotExist. NotIn holds where it is missing."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
        return value is None


class PodSelector(NamedTuple):
    """Pods with such labels, in these namespaces or in those with such labels."""

    requirements: tuple[LabelRequirement, ...] | None
    """All must hold; None selects no pod at all."""
    namespaces: tuple[str, ...] = ()
    by_labels: tuple[LabelRequirement, ...] | None = None
    """Namespaces by their labels: an empty tuple means every one, None no further ones."""

    def selects(self, namespace: str, labels: Mapping[str, str], spaces: Mapping[str, Mapping[str, str]]) -> bool:
        """Whether it means a pod; `spaces` are the labels of the namespaces."""
        if self.requirements is None or not all(requirement.holds(labels) for requirement in self.requirements):
            return False
        if namespace in self.namespaces:
            return True
        if self.by_labels is None:
            return False
        there = spaces.get(namespace, {})
        return all(requirement.holds(there) for requirement in self.by_labels)


Selection = tuple[PodSelector, ...]
"""The pods that every one of these selectors means."""


class PodTerm(NamedTuple):
    """Pods that share a domain: nodes with the same value of the label `topology_key`."""

    selector: PodSelector
    topology_key: str


class WeightedTerm(NamedTuple):
    """Preferred affinity; a negative weight is anti-affinity."""

    weight: int
    term: PodTerm


class SpreadConstraint(NamedTuple):
    """`max_skew` between the domain of the pod and the emptiest one; `hard`: DoNotSchedule, else ScheduleAnyway."""

    selector: PodSelector
    topology_key: str
    max_skew: int
    hard: bool
    min_domains: int = 1
    honor_affinity: bool = True
    """Nodes that the pod's node selector or required node affinity rule out do not count."""
    honor_taints: bool = False
    """Nodes whose taints the pod does not tolerate do not count."""
    everywhere: bool = False
    """Nodes without the label, or without that of another constraint, count as well and are no worse for it."""


class PodDemands(NamedTuple):
    """What one pod asks of its neighbours."""

    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    preferred: tuple[WeightedTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()

    def selections(self) -> Iterator[Selection]:
        """Every set of pods whose numbers it depends on. Of several affinity terms a pod must match all to count."""
        if self.affinity:
            yield tuple(term.selector for term in self.affinity)
        for term in self.anti_affinity:
            yield (term.selector,)
        for _, preferred in self.preferred:
            yield (preferred.selector,)
        for constraint in self.spread:
            yield (constraint.selector,)

    def holdings(self) -> Iterator[Holding]:
        """What it does to other pods once it runs."""
        for term in self.anti_affinity:
            yield Holding(term, None)
        for term in self.affinity:
            yield Holding(term, REQUIRED_WEIGHT)
        for weight, preferred in self.preferred:
            yield Holding(preferred, weight)


REQUIRED_WEIGHT = 0
"""Stands for what a running pod's required affinity is worth to a pod that it means: the profile says how much."""


class Holding(NamedTuple):
    """A term of a running pod, as it bears on others: keeps out whom it means (None), or draws them by its weight."""

    term: PodTerm
    weight: int | None


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The running pods, assumed ones included, that somebody's demands are about. Arrays are int64[N], read only."""

    version: int = 0
    """Grows with every change of what is counted here."""
    matching: Mapping[Selection, np.ndarray] = field(default_factory=dict)
    """Pods that match, terminating ones included; of every selection that a pending pod asks about."""
    leaving: Mapping[Selection, np.ndarray] = field(default_factory=dict)
    """Those of them that are terminating."""
    holding: Mapping[Holding, np.ndarray] = field(default_factory=dict)
    """Pods that have such a term."""
    spaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Namespace -> its labels."""


NOBODY = Neighbours()


class SelectionIndex:
    """Finds the selections that mean a pod without asking each: by one label that they demand."""

    __slots__ = ("_anyone", "_by_label")

    def __init__(self, selections: Iterable[Selection] = ()) -> None:
        self._by_label: dict[tuple[str, str], list[Selection]] = {}
        self._anyone: list[Selection] = []
        for selection in selections:
            self.add(selection)

    def add(self, selection: Selection) -> None:
        for selector in selection:
            for key, operator, values in selector.requirements or ():
                if operator == "In":
                    for value in values:
                        self._by_label.setdefault((key, value), []).append(selection)
                    return
        self._anyone.append(selection)

    def meant(self, namespace: str, labels: Labels, spaces: Mapping[str, Mapping[str, str]]) -> tuple[Selection, ...]:
        """The selections that mean this pod, each once, in a declared order."""
        known = dict(labels)
        candidates = [selection for label in labels for selection in self._by_label.get(label, ())]
        return tuple(
            dict.fromkeys(
                selection
                for selection in (*candidates, *self._anyone)
                if all(selector.selects(namespace, known, spaces) for selector in selection)
            )
        )
