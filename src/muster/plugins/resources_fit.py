"""Counts resources: what pods request must not exceed what the node has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from muster.engine.extension import Rows
from muster.model.diagnosis import Reason
from muster.model.records import PodClass
from muster.model.snapshot import Snapshot

PLENTY = 1 << 40
"""More than any node has."""


@dataclass(frozen=True, slots=True)
class ResourcesFit:
    """Every resource of the cluster is a row, the number of pods included.

    A resource that a node does not list counts as 0 there; a request of zero always fits, however overcommitted the
    node is. Where a device class serves a resource that a node does not list, `devices` counts instead (D12).
    """

    name: str = "resources_fit"
    reason: Reason = Reason.INSUFFICIENT

    def rows(self, snapshot: Snapshot, classes: Sequence[PodClass]) -> Rows:
        axis = snapshot.axis.extended(name for pod_class in classes for name, _ in pod_class.requests)
        unknown = len(axis) - len(snapshot.axis)
        capacity, used = snapshot.nodes.alloc, snapshot.used
        if unknown:
            nothing = np.zeros((unknown, len(snapshot.nodes)), dtype=np.int64)
            capacity, used = np.vstack((capacity, nothing)), np.vstack((used, nothing))
        capacity = _served(snapshot, axis.row, capacity, classes)
        amounts = np.zeros((len(classes), len(axis)), dtype=np.int64)
        for c, pod_class in enumerate(classes):
            amounts[c] = axis.vector(pod_class.requests)
        return Rows(axis.names, capacity, used, amounts)


def _served(
    snapshot: Snapshot, row: Mapping[str, int], capacity: np.ndarray, classes: Sequence[PodClass]
) -> np.ndarray:
    """int64[R, N]: with plenty of what a device class serves, where no device plugin does."""
    asked = {one.resource for pod_class in classes for one in pod_class.extended}
    rows = [row[name] for name in sorted(asked & snapshot.devices.resources.keys())]
    if not rows:
        return capacity
    found = capacity.copy()
    for at in rows:
        found[at][found[at] == 0] = PLENTY
    return found
