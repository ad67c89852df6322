"""Node manifests from a short shape: `zones 2, racks 8, nodes 16, gpus 8`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
RACK = "topology.muster.dev/rack"
HOSTNAME = "kubernetes.io/hostname"
GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Shape:
    """`zones` x `racks` per zone x `nodes` per rack, each node with `gpus` accelerators, `cpu`, `memory`, `pods`."""

    zones: int = 1
    racks: int = 1
    nodes: int = 1
    gpus: int = 0
    cpu: str = "32"
    memory: str = "256Gi"
    pods: int = 110


def node_manifests(shape: Shape) -> list[dict[str, Any]]:
    """Nodes in order of zone, rack, number; names `z1-r1-n1`, labels ZONE, RACK, HOSTNAME.

    Raises:
        ValueError: the shape is impossible; names the field and says what is possible.
    """
    return []
