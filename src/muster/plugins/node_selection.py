"""Which nodes a pod may use by their labels and names, and whether a node takes new pods at all."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from muster.engine.extension import BEST, Relaxation, View
from muster.model.diagnosis import Reason
from muster.model.records import PodClass, Requirement, Taint, Term
from muster.model.snapshot import NodeColumns

UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")


@dataclass(frozen=True, slots=True)
class NodeUnschedulable:
    """A cordoned node takes no new pods, but for those that tolerate the taint that stands for it."""

    name: str = "node_unschedulable"
    reason: Reason = Reason.NODE_UNSCHEDULABLE

    def filter_key(self, pod_class: PodClass) -> Hashable | None:
        tolerated = any(toleration.tolerates(UNSCHEDULABLE) for toleration in pod_class.tolerations)
        return None if tolerated else "not tolerated"

    def filter(self, pod_class: PodClass, view: View) -> np.ndarray:
        return ~view.nodes.unschedulable

    def details(self, pod_class: PodClass, view: View) -> Iterable[tuple[str, np.ndarray]]:
        return ()

    def relaxations(self, pod_class: PodClass, view: View) -> Iterable[Relaxation]:
        yield Relaxation("uncordon", "", view.nodes.unschedulable)


@dataclass(frozen=True, slots=True)
class NodeSelection:
    """The node selector and the required node affinity must hold; preferred terms count by their weights."""

    name: str = "node_selection"
    reason: Reason = Reason.NODE_SELECTOR
    dynamic: bool = False

    def filter_key(self, pod_class: PodClass) -> Hashable | None:
        if not pod_class.node_selector and pod_class.required is None:
            return None
        return (pod_class.node_selector, pod_class.required)

    def filter(self, pod_class: PodClass, view: View) -> np.ndarray:
        passes = np.ones(len(view.nodes), dtype=bool)
        for key, value in pod_class.node_selector:
            passes &= holds(view.nodes, Requirement(key, "In", (value,)))
        if pod_class.required is not None:
            passes &= any_term(view.nodes, pod_class.required)
        return passes

    def details(self, pod_class: PodClass, view: View) -> Iterable[tuple[str, np.ndarray]]:
        return ()

    def relaxations(self, pod_class: PodClass, view: View) -> Iterable[Relaxation]:
        return ()

    def score_key(self, pod_class: PodClass) -> Hashable | None:
        return pod_class.preferred or None

    def score(self, pod_class: PodClass, view: View) -> np.ndarray:
        total = np.zeros(len(view.nodes), dtype=np.int64)
        for preference in pod_class.preferred:
            total += preference.weight * any_term(view.nodes, (preference.term,))
        highest = int(total[view.feasible].max(initial=0))
        return np.clip(total * BEST // highest, 0, BEST) if highest > 0 else np.zeros_like(total)


def any_term(nodes: NodeColumns, terms: Sequence[Term]) -> np.ndarray:
    """bool[N]: at least one of the terms holds. A term holds if all its requirements do; an empty one never does."""
    passes = np.zeros(len(nodes), dtype=bool)
    for term in terms:
        if term.requirements:
            passes |= np.logical_and.reduce([holds(nodes, requirement) for requirement in term.requirements])
    return passes


def holds(nodes: NodeColumns, requirement: Requirement) -> np.ndarray:
    """bool[N]: the requirement holds on the node. NotIn holds where the label is missing."""
    if requirement.key is None:
        return _holds_for_name(nodes, requirement)
    column = nodes.label(requirement.key)
    match requirement.operator:
        case "Exists":
            return column.codes >= 0
        case "DoesNotExist":
            return column.codes < 0
        case "Gt" | "Lt":
            suits = [_compares(value, requirement) for value in column.values]
            absent = False
        case operator:
            suits = [(value in requirement.values) == (operator == "In") for value in column.values]
            absent = operator == "NotIn"
    # Code -1 (no such label) picks the last entry.
    passes: np.ndarray = np.array([*suits, absent], dtype=bool)[column.codes]
    return passes


def _holds_for_name(nodes: NodeColumns, requirement: Requirement) -> np.ndarray:
    named = np.zeros(len(nodes), dtype=bool)
    named[[nodes.index[name] for name in requirement.values if name in nodes.index]] = True
    return ~named if requirement.operator == "NotIn" else named


def _compares(value: str, requirement: Requirement) -> bool:
    """Gt and Lt compare integers; anything else on either side matches nothing."""
    if len(requirement.values) != 1 or not _INTEGER.match(value) or not _INTEGER.match(requirement.values[0]):
        return False
    bound = int(requirement.values[0])
    return int(value) > bound if requirement.operator == "Gt" else int(value) < bound
