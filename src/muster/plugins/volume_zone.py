"""A volume that is labelled with a zone or region can be used from nodes of that zone and region only."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from muster.engine.extension import Relaxation, View
from muster.model.diagnosis import Reason
from muster.model.records import PodClass

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA = {
    ZONE: "failure-domain.beta.kubernetes.io/zone",
    REGION: "failure-domain.beta.kubernetes.io/region",
}
"""The older key of the same meaning."""


@dataclass(frozen=True, slots=True)
class VolumeZone:
    """Nodes without any such label are in no zone, and are let pass (W8)."""

    name: str = "volume_zone"
    reason: Reason = Reason.VOLUME_ZONE

    def filter_key(self, pod_class: PodClass) -> Hashable | None:
        return (pod_class.storage.zones or None) if pod_class.storage is not None else None

    def filter(self, pod_class: PodClass, view: View) -> np.ndarray:
        assert pod_class.storage is not None
        keys = (*BETA, *BETA.values())
        passes = np.ones(len(view.nodes), dtype=bool)
        for key, values in pod_class.storage.zones:
            passes &= _is_in(view, key, values)
        nowhere: np.ndarray = np.logical_and.reduce([view.nodes.label(key).codes < 0 for key in keys])
        found: np.ndarray = passes | nowhere
        return found

    def details(self, pod_class: PodClass, view: View) -> Iterable[tuple[str, np.ndarray]]:
        return ()

    def relaxations(self, pod_class: PodClass, view: View) -> Iterable[Relaxation]:
        return ()


def _is_in(view: View, key: str, values: tuple[str, ...]) -> np.ndarray:
    """bool[N]: the node has one of the values under the key, or under the other key of the same meaning."""
    others = {**BETA, **{beta: known for known, beta in BETA.items()}}
    mine, other = view.nodes.label(key), view.nodes.label(others[key])
    suits = np.array([*(value in values for value in mine.values), False], dtype=bool)[mine.codes]
    instead = np.array([*(value in values for value in other.values), False], dtype=bool)[other.codes]
    found: np.ndarray = np.where(mine.codes >= 0, suits, instead)
    return found
