"""Terse builders with sensible values for everything a test does not care about.

Records take amounts in model units (thousandths of a core, bytes, whole accelerators), manifests take Kubernetes
quantities as text. Uids are made from names, so the same call makes equal objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from muster.model.keys import Key
from muster.model.neighbours import Holding, Neighbours
from muster.model.records import (
    Amounts,
    CompositeRecord,
    EntryKey,
    EntryKind,
    GroupNode,
    GroupRecord,
    HostPort,
    NodeRecord,
    Phase,
    PodClass,
    PodRecord,
    Policy,
    QueueEntry,
    Requirement,
    Taint,
    Term,
    Toleration,
)
from muster.model.resources import ResourceAxis
from muster.model.snapshot import NodeColumns, Nomination, Snapshot

GPU = "nvidia.com/gpu"
GIB = 1 << 30
HOSTNAME = "kubernetes.io/hostname"
DEFAULT_SCHEDULER = "default-scheduler"


def amounts(
    *, pods: int = 0, cpu: int = 0, memory: int = 0, gpus: int = 0, more: Mapping[str, int] | None = None
) -> Amounts:
    """Sorted amounts without zeros: `cpu` in thousandths of a core, `memory` in bytes, `more` by resource name."""
    every = {"pods": pods, "cpu": cpu, "memory": memory, GPU: gpus, **(more or {})}
    return tuple(sorted((name, amount) for name, amount in every.items() if amount))


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Taint:
    return Taint(key, value, effect)


def tolerate(key: str = "", value: str | None = None, effect: str = "") -> Toleration:
    """Tolerates the key with any value, or with this one; without a key, everything."""
    return Toleration(key, "Exists" if value is None else "Equal", value or "", effect)


def term(*requirements: tuple[str | None, str, tuple[str, ...]]) -> Term:
    """`term(("zone", "In", ("a", "b")))`; a key of None speaks of the node's name."""
    return Term(tuple(Requirement(*requirement) for requirement in requirements))


def pod_class(
    *,
    cpu: int = 0,
    memory: int = 0,
    gpus: int = 0,
    more: Mapping[str, int] | None = None,
    selector: Mapping[str, str] | None = None,
    required: Sequence[Term] | None = None,
    tolerations: Sequence[Toleration] = (),
    ports: Sequence[int | HostPort] = (),
    **fields: Any,
) -> PodClass:
    """A class of pods; `ports` are TCP on all addresses where only a number is given."""
    return PodClass(
        requests=amounts(pods=1, cpu=cpu, memory=memory, gpus=gpus, more=more),
        node_selector=tuple(sorted((selector or {}).items())),
        required=None if required is None else tuple(required),
        tolerations=tuple(tolerations),
        host_ports=tuple(HostPort("TCP", port, "0.0.0.0") if isinstance(port, int) else port for port in ports),
        **fields,
    )


def pod(
    name: str,
    cls: PodClass | None = None,
    *,
    namespace: str = "default",
    node: str | None = None,
    group: str | None = None,
    priority: int = 0,
    created: int = 0,
    uid: str | None = None,
    scheduler_name: str = DEFAULT_SCHEDULER,
    gates: Sequence[str] = (),
    nominated: str | None = None,
    labels: Mapping[str, str] | None = None,
    **class_fields: Any,
) -> PodRecord:
    """A pending pod, or a running one where `node` is given. `class_fields` are those of `pod_class`."""
    cls = cls or pod_class(**class_fields)
    return PodRecord(
        key=Key(namespace, name),
        uid=uid or f"uid-{namespace}-{name}",
        cls=cls,
        priority=priority,
        created=created,
        scheduler_name=scheduler_name,
        phase=Phase.BOUND if node else Phase.PENDING,
        node=node,
        usage=cls.requests if node else (),
        group=group,
        gates=tuple(gates),
        nominated_node=nominated,
        started=created if node else 0,
        labels=tuple(sorted((labels or {}).items())),
    )


def pods(
    prefix: str, count: int, cls: PodClass | None = None, *, start: int = 1, **fields: Any
) -> tuple[PodRecord, ...]:
    """`count` alike pods of one shared class, `<prefix>1` … `<prefix>N`. `fields` are those of `pod`."""
    first = pod(f"{prefix}{start}", cls, **fields)
    space = first.key.namespace
    names = (f"{prefix}{number}" for number in range(start, start + count))
    return tuple(replace(first, key=Key(space, name), uid=f"uid-{space}-{name}") for name in names)


def node(
    name: str,
    *,
    cpu: int = 64_000,
    memory: int = 256 * GIB,
    gpus: int = 0,
    pods: int = 110,
    more: Mapping[str, int] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Taint] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    features: Sequence[str] = (),
    uid: str | None = None,
) -> NodeRecord:
    """A node of 64 cores and 256 GiB that carries its name as hostname label."""
    return NodeRecord(
        name=name,
        uid=uid or f"uid-{name}",
        allocatable=amounts(pods=pods, cpu=cpu, memory=memory, gpus=gpus, more=more),
        labels={HOSTNAME: name, **(labels or {})},
        taints=tuple(taints),
        unschedulable=unschedulable,
        images=images or {},
        features=tuple(sorted(features)),
    )


def nodes(prefix: str, count: int, *, start: int = 1, **fields: Any) -> tuple[NodeRecord, ...]:
    """`count` alike nodes, `<prefix>1` … `<prefix>N`."""
    return tuple(node(f"{prefix}{number}", **fields) for number in range(start, start + count))


def group(
    name: str, min_count: int | None = None, *, namespace: str = "default", priority: int = 0, **fields: Any
) -> GroupRecord:
    """A gang that needs `min_count` members, or a basic group without one. `fields` are those of GroupRecord."""
    values: dict[str, Any] = {"uid": f"uid-group-{namespace}-{name}", "generation": 1, "created": 0, **fields}
    return GroupRecord(
        key=Key(namespace, name),
        policy=Policy.BASIC if min_count is None else Policy.GANG,
        min_count=1 if min_count is None else min_count,
        priority=priority,
        **values,
    )


def entry(
    *members: PodRecord,
    group: GroupRecord | None = None,
    bound: Sequence[PodRecord] = (),
    succeeded: int = 0,
    since: int = 0,
    attempts: int = 0,
) -> QueueEntry:
    """A queue entry of these pending pods; without a group exactly one pod. `bound` are its running members."""
    if group is None:
        (single,) = members
        key, uid, priority = EntryKey(EntryKind.POD, single.key), single.uid, single.priority
    else:
        key, uid, priority = EntryKey(EntryKind.POD_GROUP, group.key), group.uid, group.priority
    return QueueEntry(
        key=key,
        uid=uid,
        priority=priority,
        since=since,
        attempts=attempts,
        pods=members,
        group=group,
        running=len(bound),
        succeeded=succeeded,
        bound=tuple(bound),
    )


def composite(
    name: str, min_groups: int | None = None, *, namespace: str = "default", priority: int = 0, **fields: Any
) -> CompositeRecord:
    """A composite group that needs `min_groups` children, or a basic one. `fields` are those of CompositeRecord."""
    values: dict[str, Any] = {"uid": f"uid-composite-{namespace}-{name}", "generation": 1, "created": 0, **fields}
    return CompositeRecord(
        key=Key(namespace, name),
        policy=Policy.BASIC if min_groups is None else Policy.GANG,
        min_count=1 if min_groups is None else min_groups,
        priority=priority,
        **values,
    )


def hierarchy(tree: GroupNode, *, since: int = 0, attempts: int = 0) -> QueueEntry:
    """A queue entry of the pending pods of this tree, whose root is a composite group."""
    record, leaves = tree.record, tuple(tree.leaves())
    bound = tuple(pod for leaf in leaves for pod in leaf.bound)
    return QueueEntry(
        key=EntryKey(EntryKind.COMPOSITE, record.key),
        uid=record.uid,
        priority=record.priority,
        since=since,
        attempts=attempts,
        pods=tuple(pod for leaf in leaves for pod in leaf.pending),
        running=len(bound),
        succeeded=sum(leaf.succeeded for leaf in leaves),
        bound=bound,
        tree=tree,
    )


def nomination(pod: PodRecord, node: str) -> Nomination:
    """Room on `node` held for a pending pod."""
    owner = Key(pod.key.namespace, pod.group) if pod.group else None
    apart = () if pod.cls.demands is None else pod.cls.demands.anti_affinity
    return Nomination(pod.key, pod.uid, node, pod.cls, pod.priority, owner, pod.labels, apart)


def snapshot(
    nodes: Iterable[NodeRecord],
    bound: Iterable[PodRecord] = (),
    *,
    nominations: Sequence[Nomination] = (),
    groups: Iterable[GroupRecord] = (),
    known: Iterable[str] = (),
    levels: Sequence[str] = (),
    revision: int = 1,
    pending: Iterable[PodRecord] = (),
    spaces: Mapping[str, Mapping[str, str]] | None = None,
) -> Snapshot:
    """The cluster of these nodes with these bound pods on them. `known`: further resource names for the axis.

    `pending`: pods whose demands the bound ones are counted for; `spaces`: the labels of namespaces.
    """
    nodes, bound = tuple(nodes), tuple(bound)
    names = {name for record in nodes for name, _ in record.allocatable}
    names |= {name for record in bound for name, _ in record.usage}
    names |= {name for held in nominations for name, _ in held.cls.requests}
    axis = ResourceAxis().extended(names | set(known))
    columns = NodeColumns(nodes, axis, levels)
    used, ports = _taken(columns, bound)
    generations = np.ones(len(columns), dtype=np.int64)
    generations.flags.writeable = False
    return Snapshot(
        revision=revision,
        nodes=columns,
        used=used,
        generations=generations,
        ports=ports,
        nominations=tuple(nominations),
        groups={record.key: record for record in groups},
        neighbours=_neighbours(columns, bound, pending, spaces or {}),
    )


def _taken(columns: NodeColumns, bound: Sequence[PodRecord]) -> tuple[np.ndarray, dict[HostPort, Counter[str]]]:
    used = np.zeros((len(columns.axis), len(columns)), dtype=np.int64)
    ports: dict[HostPort, Counter[str]] = {}
    for record in bound:
        assert record.node is not None, f"{record.key} is in no node"
        used[:, columns.index[record.node]] += columns.axis.vector(record.usage)
        for port in record.cls.host_ports:
            ports.setdefault(port, Counter())[record.node] += 1
    used.flags.writeable = False
    return used, ports


def _neighbours(
    columns: NodeColumns,
    bound: Sequence[PodRecord],
    pending: Iterable[PodRecord],
    spaces: Mapping[str, Mapping[str, str]],
) -> Neighbours:
    """Counted pod by pod."""
    zeros = np.zeros(len(columns), dtype=np.int64)
    asked = {selection for pod in pending if pod.cls.demands for selection in pod.cls.demands.selections()}
    matching, leaving = ({selection: zeros.copy() for selection in asked} for _ in range(2))
    holding: dict[Holding, np.ndarray] = {}
    for pod in bound:
        at, labels = columns.index[pod.node or ""], dict(pod.labels)
        for selection in asked:
            if all(selector.selects(pod.key.namespace, labels, spaces) for selector in selection):
                matching[selection][at] += 1
                leaving[selection][at] += pod.terminating
        for held in pod.cls.demands.holdings() if pod.cls.demands else ():
            holding.setdefault(held, zeros.copy())[at] += 1
    return Neighbours(1, matching, leaving, holding, spaces)


def node_manifest(
    name: str,
    *,
    cpu: str = "64",
    memory: str = "256Gi",
    gpus: int = 0,
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    more: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A Ready v1 Node. `more` adds resources; `spec` adds fields of the spec, such as `unschedulable=True`."""
    capacity = {"cpu": cpu, "memory": memory, "pods": str(pods), **(more or {})}
    if gpus:
        capacity[GPU] = str(gpus)
    body = {**spec, "taints": [dict(t) for t in taints]} if taints else dict(spec)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **(labels or {})}},
        "spec": body,
        "status": {
            "capacity": capacity,
            "allocatable": dict(capacity),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def pod_manifest(
    name: str,
    *,
    namespace: str = "default",
    cpu: str | None = "1",
    memory: str | None = None,
    gpus: int = 0,
    group: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    more: Mapping[str, str] | None = None,
    ports: Sequence[int] = (),
    gates: Sequence[str] = (),
    **spec: Any,
) -> dict[str, Any]:
    """A v1 Pod of one container. `ports` are host ports; `spec` adds fields by their API names (`nodeName="n1"`)."""
    requests = {"cpu": cpu, "memory": memory, GPU: str(gpus) if gpus else None, **(more or {})}
    requests = {resource: amount for resource, amount in requests.items() if amount is not None}
    resources: dict[str, Any] = {"requests": requests} if requests else {}
    extended = {resource: amount for resource, amount in requests.items() if "/" in resource}
    if extended:
        resources["limits"] = extended
    container: dict[str, Any] = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": resources}
    if ports:
        container["ports"] = [{"containerPort": port, "hostPort": port} for port in ports]
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
    if annotations:
        metadata["annotations"] = dict(annotations)
    body: dict[str, Any] = {"containers": [container], **spec}
    if group is not None:
        body["schedulingGroup"] = {"podGroupName": group}
    if gates:
        body["schedulingGates"] = [{"name": gate} for gate in gates]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


def gang_manifest(
    name: str, min_count: int | None, *, namespace: str = "default", priority: int | None = None, **spec: Any
) -> dict[str, Any]:
    """A v1beta1 PodGroup that needs `min_count` members; `min_count` None makes a basic group."""
    policy: dict[str, Any] = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    body: dict[str, Any] = {"schedulingPolicy": policy, **spec}
    if priority is not None:
        body["priority"] = priority
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": body,
    }


def composite_manifest(
    name: str, min_groups: int | None, *, namespace: str = "default", priority: int | None = None, **spec: Any
) -> dict[str, Any]:
    """A v1alpha3 CompositePodGroup that needs `min_groups` children; None makes a basic one."""
    policy: dict[str, Any] = {"basic": {}} if min_groups is None else {"gang": {"minGroupCount": min_groups}}
    body: dict[str, Any] = {"workloadRef": workload_ref(name), "schedulingPolicy": policy, **spec}
    if priority is not None:
        body["priority"] = priority
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": body,
    }


def workload_ref(name: str) -> dict[str, str]:
    """What a group in a hierarchy must carry; the Workload itself need not exist."""
    return {"workloadName": name, "templateName": name}


def gang_manifests(
    name: str, size: int, *, min_count: int | None = None, namespace: str = "default", **pod_fields: Any
) -> list[dict[str, Any]]:
    """A PodGroup that needs all `size` members (or `min_count` of them), and its pods `<name>-0` … `<name>-N`."""
    members = [pod_manifest(f"{name}-{rank}", namespace=namespace, group=name, **pod_fields) for rank in range(size)]
    gang = gang_manifest(name, min_count or size, namespace=namespace, priority=pod_fields.get("priority"))
    return [gang, *members]
