"""What the scheduler knows of pods, nodes and groups: frozen records without any Kubernetes shape in them.

Times are microseconds since the epoch (0: unknown). Amounts are integers in the units of `resources.NATIVE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from muster.model.devices import DeviceUse, ExtendedRequest, PodClaims
from muster.model.keys import Key
from muster.model.neighbours import Labels, PodDemands, Selection
from muster.model.terms import Requirement as Requirement
from muster.model.terms import Term as Term
from muster.model.volumes import PodVolumes, Storage

Amounts = tuple[tuple[str, int], ...]
"""Resource amounts, sorted by name, no zeros, `pods` included."""


class Preference(NamedTuple):
    weight: int
    term: Term


class Toleration(NamedTuple):
    """`key` "" tolerates every key (operator Exists); `effect` "" every effect; operator Equal, Exists, Lt or Gt."""

    key: str
    operator: str
    value: str
    effect: str
    seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Whether it covers the taint. Lt and Gt compare the taint's integer with its own (KEP-5471)."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case "Exists":
                return True
            case "Lt" | "Gt":
                mine, its = _integer(self.value), _integer(taint.value)
                if mine is None or its is None:
                    return False
                return its < mine if self.operator == "Lt" else its > mine
            case _:
                return self.value == taint.value


class Taint(NamedTuple):
    key: str
    value: str
    effect: str


def _integer(text: str) -> int | None:
    """The integer that a text spells in plain decimal, without leading zeros or a plus sign."""
    digits = text.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and (digits == "0" or not digits.startswith("0"))
    return int(text) if plain else None


class HostPort(NamedTuple):
    """A port on the node. `ip` 0.0.0.0 clashes with every address of the same protocol and port."""

    protocol: str
    port: int
    ip: str


@dataclass(frozen=True, slots=True)
class PodClass:
    """Everything about a pod that decides where it may run: pods that look alike to every plugin share one class.

    `ingest` interns classes, so equal classes are the same instance, and plugins may cache by identity.
    """

    requests: Amounts
    node_selector: tuple[tuple[str, str], ...] = ()
    required: tuple[Term, ...] | None = None
    """Alternatives of the required node affinity; None: no such affinity. An empty tuple matches no node."""
    preferred: tuple[Preference, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    images: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    """What its node must declare (KEP-5328), sorted."""
    demands: PodDemands | None = None
    """What it asks of other pods; None: nothing."""
    matched: tuple[Selection, ...] = ()
    """The selections that mean its pods, as far as a decision needs them (`engine.kinds`); empty in a record."""
    stores: bool = False
    """Whether its pods use claims or disks, which their records name."""
    storage: Storage | None = None
    """What these come down to in a decision (`engine.kinds`); None in a record."""
    devices: bool = False
    """Whether its pods use claims for devices, which their records name."""
    extended: tuple[ExtendedRequest, ...] = ()
    """The extended resources among its requests, by container."""
    claims: PodClaims | None = None
    """What claims and extended resources come down to in a decision (`engine.kinds`); None in a record."""
    _hash: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        content = (
            self.requests,
            self.node_selector,
            self.required,
            self.preferred,
            self.tolerations,
            self.host_ports,
            self.images,
            self.features,
            self.demands,
            self.matched,
            self.stores,
            self.storage,
            self.devices,
            self.extended,
            self.claims,
        )
        object.__setattr__(self, "_hash", hash(content))

    def __hash__(self) -> int:
        return self._hash


class Growth(NamedTuple):
    """A resize that the pod's kubelet has deferred; among those of one priority the kubelet tries the least first."""

    rank: int
    """Of its quality of service: 0 Guaranteed, 1 Burstable, 2 BestEffort."""
    since: int
    """When it was deferred."""


class Phase(Enum):
    """Where a pod is in its life, as far as counting goes."""

    PENDING = "Pending"
    BOUND = "Bound"  # has a node and has not ended
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class PodRecord:
    key: Key
    uid: str
    cls: PodClass
    priority: int
    created: int
    scheduler_name: str
    phase: Phase = Phase.PENDING
    node: str | None = None
    usage: Amounts = ()
    """What it takes from its node while BOUND: max(desired, allocated, actual) per container; else `cls.requests`."""
    allocated: Amounts | None = None
    """What its kubelet has set aside for it, where that differs from `usage`."""
    growth: Growth | None = None
    """Of a BOUND pod that waits for room to be resized."""
    mirror: bool = False
    """It shows a pod that its kubelet runs by itself: deleting it ends nothing."""
    infeasible: bool = False
    """Its kubelet has said that it can not be resized as it wants to be."""
    group: str | None = None
    """Name of its PodGroup, in its own namespace."""
    terminating: bool = False
    gates: tuple[str, ...] = ()
    nominated_node: str | None = None
    preemption_policy: str = "PreemptLowerPriority"
    started: int = 0
    rank: int | None = None
    """Completion index, where the pod has one."""
    generation: int = 0
    labels: Labels = ()
    controller: tuple[str, str] | None = None
    """Resource and name of the ReplicationController, ReplicaSet or StatefulSet that it belongs to."""
    volumes: PodVolumes | None = None
    devices: tuple[DeviceUse, ...] = ()
    """Its claims for devices."""
    extended_claim: str = ""
    """The claim for its extended resources, as its status says."""

    @property
    def holds_room(self) -> bool:
        """Whether it counts on a node: it has one and has not ended; a terminating pod still holds its room."""
        return self.phase is Phase.BOUND


@dataclass(frozen=True, slots=True)
class NodeRecord:
    name: str
    uid: str
    allocatable: Amounts
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    images: Mapping[str, int] = field(default_factory=dict)
    """Image name -> size in bytes."""
    features: tuple[str, ...] = ()
    """What it declares (KEP-5328), sorted."""
    resize_owners: tuple[str, ...] = ()
    """Who forbids that pods on it are evicted for resizes (R8); empty: nobody does."""
    drivers: Mapping[str, int | None] = field(default_factory=dict)
    """Storage drivers on it -> how many of their volumes it takes; None: no limit is known."""


class Policy(Enum):
    BASIC = "basic"
    GANG = "gang"


@dataclass(frozen=True, slots=True)
class _Group:
    """What PodGroups and CompositePodGroups have alike."""

    key: Key
    uid: str
    generation: int
    policy: Policy
    min_count: int
    """How many members, or satisfied children (minGroupCount), it needs; 1 for a basic one."""
    priority: int
    created: int
    topology_key: str | None = None
    disruption_all: bool = False
    parent: str | None = None
    preemption_policy: str | None = None
    terminating: bool = False
    scheduled: bool = False
    """Its condition PodGroupInitiallyScheduled, or CompositePodGroupInitiallyScheduled, is True."""
    workload: str = ""
    """The Workload that it names."""


@dataclass(frozen=True, slots=True)
class GroupRecord(_Group):
    """A PodGroup."""


@dataclass(frozen=True, slots=True)
class CompositeRecord(_Group):
    """A CompositePodGroup."""


@dataclass(frozen=True, slots=True)
class GroupNode:
    """A group of a hierarchy with what is below it: children of a composite group, members of a PodGroup.

    `children` are in the order of creation, then name; `pending` in member order.
    """

    record: GroupRecord | CompositeRecord
    children: tuple[GroupNode, ...] = ()
    pending: tuple[PodRecord, ...] = ()
    bound: tuple[PodRecord, ...] = ()
    """Members that hold a node and are not terminating, assumed ones included."""
    succeeded: int = 0

    @property
    def is_leaf(self) -> bool:
        return isinstance(self.record, GroupRecord)

    @property
    def has_quorum(self) -> bool:
        """Whether enough members exist, or enough children that have quorum themselves (statements 15, 17)."""
        if self.is_leaf:
            return len(self.pending) + len(self.bound) + self.succeeded >= self.record.min_count
        return sum(child.has_quorum for child in self.children) >= self.record.min_count

    def leaves(self) -> Iterator[GroupNode]:
        """The PodGroups of the hierarchy, in order."""
        if self.is_leaf:
            yield self
        for child in self.children:
            yield from child.leaves()


class EntryKind(Enum):
    POD = "Pod"
    POD_GROUP = "PodGroup"
    COMPOSITE = "CompositePodGroup"


class EntryKey(NamedTuple):
    """Names a queue entry: a single pod, or a root group (a PodGroup without parent, or the top of a hierarchy)."""

    kind: EntryKind
    key: Key


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """One thing to decide: a single pod, or a root group with the members that are pending now.

    `pods` are in member order: priority, then when they were first seen, then name.
    """

    key: EntryKey
    uid: str
    priority: int
    since: int
    attempts: int
    pods: tuple[PodRecord, ...]
    group: GroupRecord | None = None
    running: int = 0
    """Members that hold a node and are not terminating, assumed ones included."""
    succeeded: int = 0
    """Members that ended well: they count towards the minimum (beyond.md M5)."""
    bound: tuple[PodRecord, ...] = ()
    """Those running members; their priority and scheduler name are compared too (statement 31)."""
    may_preempt: bool = False
    """Whether others run that may have to make room for it."""
    resize: bool = False
    """It is one BOUND pod that wants to grow where it is."""
    tree: GroupNode | None = None
    """The hierarchy below a root composite group, which has no `group`; `pods` and `bound` are those of all leaves."""

    @property
    def needed(self) -> int:
        """How many of `pods` must be placed together for anything to be bound (at least 1)."""
        minimum = self.group.min_count if self.group else 1
        return max(1, minimum - self.running - self.succeeded)
