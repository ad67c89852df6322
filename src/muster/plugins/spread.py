"""Spreads pods that ask for no accelerator: the node with the largest free share is best."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from muster.engine.extension import BEST, View
from muster.model.records import Amounts, PodClass
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
        total = np.zeros(view.alloc.shape[1], dtype=np.int64)
        asked = _counted(pod_class.requests)
        for name, amount in asked:
            alloc = view.alloc[view.row[name]]
            left = (alloc - view.used[view.row[name]] - amount) * BEST
            total += np.maximum(left // np.maximum(alloc, 1), 0)
        return total if len(asked) == 1 else total // max(len(asked), 1)


def _counted(requests: Amounts) -> list[tuple[str, int]]:
    """What is spread by: cpu and memory as far as requested, else the pod itself."""
    shares = [(name, amount) for name, amount in requests if name in (CPU, MEMORY)]
    return shares or [(name, amount) for name, amount in requests if name == PODS]
