"""Keeps pods off nodes whose taints they do not tolerate, and prefers nodes without soft taints."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from muster.engine.extension import BEST, Relaxation, View
from muster.model.diagnosis import Reason
from muster.model.matching import CORDON, HARD, tolerates_all, untolerated
from muster.model.records import PodClass, Taint

SOFT = ("PreferNoSchedule",)


@dataclass(frozen=True, slots=True)
class Taints:
    """NoSchedule and NoExecute taints must be tolerated; of PreferNoSchedule taints, fewer untolerated are better."""

    name: str = "taints"
    reason: Reason = Reason.NODE_TAINTED
    dynamic: bool = False

    def filter_key(self, pod_class: PodClass) -> Hashable | None:
        return pod_class.tolerations

    def filter(self, pod_class: PodClass, view: View) -> np.ndarray:
        return tolerates_all(view.nodes, pod_class)

    def details(self, pod_class: PodClass, view: View) -> Iterable[tuple[str, np.ndarray]]:
        """By the first untolerated taint of each node."""
        sets, codes = view.nodes.taint_sets()
        first: dict[str, list[int]] = {}
        for code, taints in enumerate(sets):
            for taint in untolerated(pod_class, taints, HARD)[:1]:
                first.setdefault(describe(taint), []).append(code)
        for detail, members in sorted(first.items()):
            yield detail, np.isin(codes, members)

    def relaxations(self, pod_class: PodClass, view: View) -> Iterable[Relaxation]:
        """Tolerating a taint helps where it is the only one that is not tolerated; that of a cordon goes with it."""
        sets, codes = view.nodes.taint_sets()
        alone: dict[tuple[str, str], list[int]] = {}
        for code, taints in enumerate(sets):
            missing = set(untolerated(pod_class, taints, HARD))
            if missing == {CORDON}:
                alone.setdefault(("uncordon", ""), []).append(code)
            elif len(missing) == 1:
                alone.setdefault(("tolerate", describe(missing.pop())), []).append(code)
        for (action, detail), members in sorted(alone.items()):
            yield Relaxation(action, detail, np.isin(codes, members))

    def score_key(self, pod_class: PodClass) -> Hashable | None:
        return pod_class.tolerations

    def score(self, pod_class: PodClass, view: View) -> np.ndarray:
        sets, codes = view.nodes.taint_sets()
        counts = np.array([len(untolerated(pod_class, taints, SOFT)) for taints in sets], dtype=np.int64)[codes]
        highest = int(counts[view.feasible].max(initial=0))
        score: np.ndarray = np.clip(BEST - counts * BEST // max(highest, 1), 0, BEST)
        return score


def describe(taint: Taint) -> str:
    """`key=value:effect`, or `key:effect` without a value."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
