"""A pod waits while one of its claims is missing, not bound though it should be, or in use where only one pod may."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from muster.engine.extension import Relaxation, View
from muster.model.diagnosis import Reason
from muster.model.records import PodClass


@dataclass(frozen=True, slots=True)
class VolumeClaims:
    """Rejects every node for a class whose claims have a flaw (`volumes.Flaw`); the first one is told (W1, W2)."""

    name: str = "volume_claims"
    reason: Reason = Reason.CLAIM

    def filter_key(self, pod_class: PodClass) -> Hashable | None:
        return pod_class.storage.flaw if pod_class.storage is not None else None

    def filter(self, pod_class: PodClass, view: View) -> np.ndarray:
        return np.zeros(len(view.nodes), dtype=bool)

    def details(self, pod_class: PodClass, view: View) -> Iterable[tuple[str, np.ndarray]]:
        if pod_class.storage is not None and pod_class.storage.flaw is not None:
            flaw, name = pod_class.storage.flaw
            yield f"{flaw.value}/{name}", np.ones(len(view.nodes), dtype=bool)

    def relaxations(self, pod_class: PodClass, view: View) -> Iterable[Relaxation]:
        return ()
