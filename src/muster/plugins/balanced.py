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
        cpu = _share(view, CPU, requests.get(CPU, 0))
        memory = _share(view, MEMORY, requests.get(MEMORY, 0))
        score: np.ndarray = BEST - np.abs(cpu - memory) // 4
        return score


def _share(view: View, name: str, asked: int) -> np.ndarray:
    """int64[M]: the used share with the pod in place, in units of 1/200, at most all of it."""
    row = view.row[name]
    share: np.ndarray = np.minimum((view.used[row] + asked) * _SCALE // np.maximum(view.alloc[row], 1), _SCALE)
    return share
