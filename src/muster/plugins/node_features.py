"""Keeps pods off nodes that do not declare the features which they need (KEP-5328)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from muster.engine.extension import Relaxation, View
from muster.model.diagnosis import Reason
from muster.model.records import PodClass


@dataclass(frozen=True, slots=True)
class NodeFeatures:
    """Every feature of `PodClass.features` must be among those that the node declares."""

    name: str = "node_features"
    reason: Reason = Reason.NODE_FEATURES

    def filter_key(self, pod_class: PodClass) -> Hashable | None:
        return pod_class.features or None

    def filter(self, pod_class: PodClass, view: View) -> np.ndarray:
        passes: np.ndarray = np.logical_and.reduce([_declares(view, feature) for feature in pod_class.features])
        return passes

    def details(self, pod_class: PodClass, view: View) -> Iterable[tuple[str, np.ndarray]]:
        """By what is missing: a node without two features counts under both together."""
        lacks = _lacks(pod_class.features, view)
        for code in np.unique(lacks[lacks > 0]).tolist():
            missing = [feature for i, feature in enumerate(pod_class.features) if code >> i & 1]
            yield ", ".join(missing), lacks == code

    def relaxations(self, pod_class: PodClass, view: View) -> Iterable[Relaxation]:
        """A feature helps where it is the only one that is missing."""
        lacks = _lacks(pod_class.features, view)
        for i, feature in enumerate(pod_class.features):
            alone = lacks == 1 << i
            if alone.any():
                yield Relaxation("declare", feature, alone)


def _declares(view: View, feature: str) -> np.ndarray:
    return np.fromiter((feature in record.features for record in view.nodes.records), bool, len(view.nodes))


def _lacks(features: Sequence[str], view: View) -> np.ndarray:
    """int64[N]: bit `i` where feature `i` is missing."""
    total = np.zeros(len(view.nodes), dtype=np.int64)
    for i, feature in enumerate(features):
        total |= (~_declares(view, feature)).astype(np.int64) << i
    return total
