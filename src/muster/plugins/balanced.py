"""Prefers nodes on which cpu and memory are used in like shares, so that neither is left over alone."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from muster.engine.extension import BEST, View
from muster.model.records import PodClass
from muster.model.resources import CPU, MEMORY, is_accelerator

_SCALE = 2 * BEST


@dataclass(frozen=True, slots=True)
class Balanced:
    """100 less half the difference, in percent, between the used shares of cpu and memory with the pod in place.

    No opinion of a pod that asks for an accelerator (it is packed), or for neither resource (it changes no share).
    """

    name: str = "balanced"
    dynamic: bool = True

    def score_key(self, pod_class: PodClass) -> Hashable | None:
        names = {name for name, amount in pod_class.requests if amount > 0}
        if any(is_accelerator(name) for name in names) or not names & {CPU, MEMORY}:
            return None
        return pod_class.requests

    def score(self, pod_class: PodClass, view: View) -> np.ndarray:
        requests = dict(pod_class.requests)
        rows = [view.row[CPU], view.row[MEMORY]]
        amounts = np.array([requests.get(CPU, 0), requests.get(MEMORY, 0)], dtype=np.int64)
        share = (view.used[rows] + amounts[:, None]) * _SCALE // np.maximum(view.alloc[rows], 1)
        share = np.minimum(share, _SCALE)
        score: np.ndarray = BEST - np.abs(share[0] - share[1]) // 4
        return score
