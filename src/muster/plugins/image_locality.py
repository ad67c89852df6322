"""Prefers nodes that already hold the pod's images."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from muster.engine.extension import BEST, View
from muster.model.records import PodClass

_MIB = 1 << 20
SMALL = 23 * _MIB
"""Bytes per container below which it is not worth looking."""
LARGE = 1000 * _MIB
"""Bytes per container from which a node scores 100."""


@dataclass(frozen=True, slots=True)
class ImageLocality:
    """kube-scheduler's rule: image bytes present, scaled down by the share of nodes that hold the image."""

    name: str = "image_locality"
    dynamic: bool = False

    def score_key(self, pod_class: PodClass) -> Hashable | None:
        return pod_class.images or None

    def score(self, pod_class: PodClass, view: View) -> np.ndarray:
        count = len(view.nodes)
        present = np.zeros(count, dtype=np.int64)
        for image in pod_class.images:
            size = np.fromiter((r.images.get(image, 0) for r in view.nodes.records), dtype=np.int64, count=count)
            present += size * np.count_nonzero(size) // max(count, 1)
        largest = LARGE * len(pod_class.images)
        return (np.clip(present, SMALL, largest) - SMALL) * BEST // (largest - SMALL)
