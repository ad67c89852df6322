"""Which nodes a pod class means or may use by labels, names and taints: columns over nodes, for any plugin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from muster.model.records import PodClass, Requirement, Taint, Term
from muster.model.snapshot import NodeColumns

CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""What a cordon says as a taint; whoever uncordons the node removes it."""
HARD = ("NoSchedule", "NoExecute")
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")


def selected(nodes: NodeColumns, pod_class: PodClass) -> np.ndarray:
    """bool[N]: the node selector and the required node affinity hold."""
    passes = np.ones(len(nodes), dtype=bool)
    for key, value in pod_class.node_selector:
        passes &= holds(nodes, Requirement(key, "In", (value,)))
    if pod_class.required is not None:
        passes &= any_term(nodes, pod_class.required)
    return passes


def tolerates_all(nodes: NodeColumns, pod_class: PodClass) -> np.ndarray:
    """bool[N]: every hard taint is tolerated."""
    sets, codes = nodes.taint_sets()
    passes: np.ndarray = np.array([not untolerated(pod_class, taints, HARD) for taints in sets], dtype=bool)[codes]
    return passes


def tolerates_cordon(pod_class: PodClass) -> bool:
    return any(toleration.tolerates(CORDON) for toleration in pod_class.tolerations)


def untolerated(pod_class: PodClass, taints: Iterable[Taint], effects: tuple[str, ...]) -> list[Taint]:
    """The taints with one of these effects that no toleration of the class covers."""
    return [
        taint
        for taint in taints
        if taint.effect in effects and not any(toleration.tolerates(taint) for toleration in pod_class.tolerations)
    ]


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
