"""Which nodes a pod may use by their labels and names, and whether a node takes new pods at all."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from muster.engine.extension import BEST, Relaxation, View
from muster.model.diagnosis import Reason
from muster.model.matching import any_term, selected, tolerates_cordon
from muster.model.records import PodClass


@dataclass(frozen=True, slots=True)
class NodeUnschedulable:
    """A cordoned node takes no new pods, but for those that tolerate the taint that stands for it."""

    name: str = "node_unschedulable"
    reason: Reason = Reason.NODE_UNSCHEDULABLE

    def filter_key(self, pod_class: PodClass) -> Hashable | None:
        return None if tolerates_cordon(pod_class) else "not tolerated"

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
        return selected(view.nodes, pod_class)

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
