"""Node manifests from a short shape: 2 zones, 8 racks in each, 16 nodes in each rack, 8 GPUs in each node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muster.api import quantity

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
RACK = "topology.muster.dev/rack"
"""Label of the rack; Kubernetes itself names none. Values are unique in the whole fleet."""
HOSTNAME = "kubernetes.io/hostname"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
GPU = "nvidia.com/gpu"

MOST_NODES = 100_000
REGION_NAME = "here"

_READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
_INFO = {
    "kubeletVersion": "v1.37.0",
    "operatingSystem": "linux",
    "architecture": "amd64",
    "osImage": "hollow",
    "kernelVersion": "hollow",
    "containerRuntimeVersion": "hollow://0",
    "machineID": "",
    "systemUUID": "",
    "bootID": "",
    "kubeProxyVersion": "",
}
"""What a kubelet would say of its machine; the release is the one whose API is served."""


@dataclass(frozen=True, slots=True)
class Shape:
    """`zones` x `racks` per zone x `nodes` per rack, all alike.

    `cpu` and `memory` are quantities; None scales with the accelerators: 16 CPUs and 128Gi, and 16 and 224Gi for each.

    Raises:
        ValueError: the shape is impossible; names the field and says what is possible.
    """

    zones: int = 1
    racks: int = 1
    nodes: int = 1
    gpus: int = 0
    cpu: str | None = None
    memory: str | None = None
    pods: int = 110

    def __post_init__(self) -> None:
        for field, least in (("zones", 1), ("racks", 1), ("nodes", 1), ("gpus", 0), ("pods", 1)):
            value = getattr(self, field)
            if type(value) is not int or value < least:
                raise ValueError(f"{field} is {value!r}; want a whole number, {least} or more")
        if self.count > MOST_NODES:
            raise ValueError(
                f"zones x racks x nodes is {self.zones} x {self.racks} x {self.nodes} = {self.count} nodes; "
                f"at most {MOST_NODES} are possible"
            )
        for field in ("cpu", "memory"):
            text = getattr(self, field)
            if text is not None and _amount(field, text) <= 0:
                raise ValueError(f"{field} is {text!r}; want more than nothing")

    @property
    def count(self) -> int:
        """How many nodes the fleet has."""
        return self.zones * self.racks * self.nodes


def node_manifests(shape: Shape, since: str = "") -> list[dict[str, Any]]:
    """Ready nodes in order of zone, rack and number, named `z1-r1-n1` and so on; `since`: the time they are ready."""
    return [
        _node(shape, f"z{zone}", f"z{zone}-r{rack}", f"z{zone}-r{rack}-n{number}", since)
        for zone in range(1, shape.zones + 1)
        for rack in range(1, shape.racks + 1)
        for number in range(1, shape.nodes + 1)
    ]


def _amount(field: str, text: str) -> int:
    try:
        return quantity.amount(field, text)
    except ValueError as problem:
        raise ValueError(f"{field}: {problem}") from None


def _node(shape: Shape, zone: str, rack: str, name: str, since: str) -> dict[str, Any]:
    capacity = {
        "cpu": shape.cpu or str(16 + 16 * shape.gpus),
        "memory": shape.memory or f"{128 + 224 * shape.gpus}Gi",
        "pods": str(shape.pods),
    }
    if shape.gpus:
        capacity[GPU] = str(shape.gpus)
    labels = {
        HOSTNAME: name,
        REGION: REGION_NAME,
        ZONE: zone,
        RACK: rack,
        INSTANCE_TYPE: f"hollow-{shape.gpus}gpu" if shape.gpus else "hollow",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": capacity,
            "allocatable": dict(capacity),
            "conditions": [_READY | ({"lastHeartbeatTime": since, "lastTransitionTime": since} if since else {})],
            "addresses": [{"type": "Hostname", "address": name}],
            "nodeInfo": _INFO,
        },
    }
