"""The cluster and the pods that the shapes use: what a real one of 5,000 accelerator nodes looks like, made up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from muster.testing.builders import composite_manifest, gang_manifest, node_manifest, pod_manifest, workload_ref

NODES = 5_000
"""The size the targets are meant for."""
GPUS = 8
PER_RACK = 16
ZONES = ("zone-a", "zone-b")
RACK = "topology.muster.dev/rack"
TAINTED = 50
"""Every so many nodes one is set apart for infrastructure."""

Manifest = dict[str, Any]


def fillers(nodes: int) -> list[Manifest]:
    """One bound pod on each node, of changing size, so that hardly two nodes are alike: a cluster that is lived in."""
    return [
        pod(
            f"filler-{number:05d}",
            "filler",
            cpu=f"{(number * 7919) % 64 * 500}m",
            memory=f"{1 + (number * 104_729) % 401}Gi",
            gpus=(number * 31) % 6,
            nodeName=f"node-{number:05d}",
        )
        for number in range(nodes)
    ]


def scaled(count: int, nodes: int) -> int:
    """A number meant for 5,000 nodes, for a smaller cluster: in proportion, at least 1. Larger clusters keep it."""
    return max(1, count * min(nodes, NODES) // NODES)


def nodes(count: int, per_rack: int = PER_RACK) -> list[Manifest]:
    """Nodes of 96 cores, 1 TiB and 8 accelerators, in racks in two zones, with the labels nodes usually have."""
    return [_node(number, per_rack) for number in range(count)]


def per_large_rack(count: int) -> int:
    """So many nodes in each of fifty racks; at least 4, so that a small gang fits into one."""
    return max(4, count // 50)


def _node(number: int, per_rack: int) -> Manifest:
    apart = number % TAINTED == TAINTED - 1
    zone = ZONES[(number // per_rack) % len(ZONES)]
    return node_manifest(
        f"node-{number:05d}",
        cpu="96",
        memory="1Ti",
        gpus=GPUS,
        labels={
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": "gpu-8x",
            "topology.kubernetes.io/region": "region-1",
            "topology.kubernetes.io/zone": zone,
            RACK: f"{zone}-rack-{number // per_rack:04d}",
            "pool": "infra" if apart else "training",
        },
        taints=[{"key": "dedicated", "value": "infra", "effect": "NoSchedule"}] if apart else (),
    )


def usable(count: int) -> Iterator[int]:
    """Numbers of the nodes among `count` that are not set apart."""
    return (number for number in range(count) if number % TAINTED != TAINTED - 1)


def pod(name: str, app: str, **fields: Any) -> Manifest:
    """A pod as a controller and the usual admission would make it. `fields` are those of `pod_manifest`."""
    fields.setdefault("memory", "4Gi")
    manifest = pod_manifest(name, labels={"app": app, "pod-template-hash": "6b8f7c9d5"}, **fields)
    container = manifest["spec"]["containers"][0]
    container["env"] = [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    container["terminationMessagePath"] = "/dev/termination-log"
    manifest["spec"].setdefault("restartPolicy", "Always")
    manifest["spec"]["terminationGracePeriodSeconds"] = 30
    manifest["spec"]["tolerations"] = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    return manifest


def gang(name: str, size: int, **fields: Any) -> list[Manifest]:
    """A PodGroup that needs all `size` members, and its alike pods."""
    return [gang_manifest(name, size), *(pod(f"{name}-{rank}", name, group=name, **fields) for rank in range(size))]


def racked_gang(name: str, size: int, **fields: Any) -> list[Manifest]:
    """The same, with the constraint that all members share a rack."""
    group, *members = gang(name, size, **fields)
    group["spec"]["schedulingConstraints"] = {"topology": [{"key": RACK}]}
    return [group, *members]


def hierarchy(name: str, groups: int, size: int, **fields: Any) -> list[Manifest]:
    """A CompositePodGroup in one zone that needs all of `groups` gangs, each of them in one rack."""
    zone = {"topology": [{"key": "topology.kubernetes.io/zone"}]}
    manifests: list[Manifest] = [composite_manifest(name, groups, schedulingConstraints=zone)]
    for number in range(groups):
        group, *members = racked_gang(f"{name}-{number}", size, **fields)
        group["spec"] |= {"parentCompositePodGroupName": name, "workloadRef": workload_ref(name)}
        manifests += [group, *members]
    return manifests


ROLES: Sequence[tuple[str, dict[str, Any]]] = (
    ("leader", {"cpu": "4", "memory": "16Gi"}),
    ("trainer", {"cpu": "12", "memory": "128Gi", "gpus": 8}),
    ("rollout", {"cpu": "8", "memory": "64Gi", "gpus": 2}),
    ("reward", {"cpu": "8", "memory": "32Gi", "gpus": 1, "nodeSelector": {"topology.kubernetes.io/zone": ZONES[0]}}),
    ("loader", {"cpu": "16", "memory": "32Gi", "nodeSelector": {"pool": "training"}}),
)
"""Five unlike roles of one reinforcement-learning job."""


def mixed_gang(name: str, per_role: int) -> list[Manifest]:
    """A gang of `per_role` pods in each of the five roles; all of them are needed."""
    members = [
        pod(f"{name}-{role}-{rank}", name, group=name, **fields) for role, fields in ROLES for rank in range(per_role)
    ]
    return [gang_manifest(name, len(members)), *members]


SERVICES = 10
"""How many kinds of single pods there are."""


def singles(count: int) -> Iterator[Manifest]:
    """Replicas of ten services of different sizes in turn, as names go; two of them keep to one zone."""
    return (_single(number) for number in range(count))


def _single(number: int) -> Manifest:
    service = number % SERVICES
    zone = {"nodeSelector": {"topology.kubernetes.io/zone": ZONES[service % 2]}} if service < 2 else {}
    cpu, memory = f"{250 * (1 + service)}m", f"{1 + service}Gi"
    return pod(f"single-{number:05d}-service-{service}", f"service-{service}", cpu=cpu, memory=memory, **zone)
