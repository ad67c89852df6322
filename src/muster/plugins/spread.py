"""Spreads pods that ask for no accelerator: the node with the largest free share is best."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from muster.engine.extension import BEST, View
from muster.model.records import PodClass
from muster.model.resources import CPU, MEMORY, PODS, is_accelerator


@dataclass(frozen=True, slots=True)
class Spread:
    """Least allocated: the mean free share of cpu and memory once the pod is there.

    A pod that requests neither is spread by the number of pods, or it would always go to the first node.
    """

    name: str = "spread"
    dynamic: bool = True

    def score_key(self, pod_class: PodClass) -> Hashable | None:
        if any(amount > 0 and is_accelerator(name) for name, amount in pod_class.requests):
            return None
        return pod_class.requests

    def score(self, pod_class: PodClass, view: View) -> np.ndarray:
        asked = [(view.row[name], amount) for name, amount in pod_class.requests if name in (CPU, MEMORY)]
        asked = asked or [(view.row[name], amount) for name, amount in pod_class.requests if name == PODS]
        rows = [row for row, _ in asked]
        amounts = np.array([amount for _, amount in asked], dtype=np.int64)
        alloc = view.alloc[rows]
        left = np.maximum(alloc - view.used[rows] - amounts[:, None], 0)
        score: np.ndarray = (left * BEST // np.maximum(alloc, 1)).sum(axis=0) // max(len(rows), 1)
        return score
