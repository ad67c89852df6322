"""Why something waits, as data: reasons with the events that can cure them, counted over nodes and pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import NamedTuple

from muster.model.devices import DeviceLack
from muster.model.keys import Key
from muster.model.records import EntryKey, EntryKind, PodClass


class Cure(Enum):
    """Kinds of change in the cluster that can let a waiting entry be placed."""

    NODE_ADDED = "node added"
    NODE_GREW = "node reports more of a resource"
    NODE_RELABELLED = "node labels changed"
    NODE_UNTAINTED = "node taints changed"
    NODE_UNCORDONED = "node made schedulable"
    NODE_FEATURES_CHANGED = "node declares other features"
    ROOM_FREED = "a pod left a node or shrank"
    PORT_FREED = "a pod with host ports left a node"
    MEMBER_CHANGED = "a member pod came, went or changed"
    GROUP_CHANGED = "the group appeared, or its minimum was lowered"
    NOMINATION_DROPPED = "a nomination that held room is gone"
    NEIGHBOURS_CHANGED = "a pod that affinity or spread is about came, went or was relabelled"
    NODE_DRIVERS_CHANGED = "storage drivers of a node, or their limits, changed"
    VOLUMES_CHANGED = "a volume, a claim, a class or free storage that the pod could use changed"
    DEVICES_CHANGED = "devices, a device class or a claim for devices that the pod could use changed"


class Reason(IntEnum):
    """Why a node was rejected, or an entry waits before any node is looked at. The value is a stable code.

    1-63 fit the engine's uint8 column; of filters of one kind the smaller runs first; 0 means not rejected.
    """

    NONE = 0
    NODE_UNSCHEDULABLE = 1
    NODE_TAINTED = 2
    NODE_SELECTOR = 3
    HOST_PORTS = 4
    INSUFFICIENT = 5
    # Room that would do for one pod, but another pod of higher or equal priority is nominated there.
    NOMINATED_AWAY = 6
    # Room that would do for one pod, taken by other members of the same group.
    TAKEN_BY_MEMBERS = 7
    # Rules about other pods, those of the same group that are placed already included.
    TOPOLOGY_SPREAD = 8
    POD_AFFINITY = 9
    POD_ANTI_AFFINITY = 10
    # Another pod there has an anti-affinity term that means this one.
    EXISTING_ANTI_AFFINITY = 11
    # The node does not declare a feature that the pod needs ; `detail` names those that are missing.
    NODE_FEATURES = 12
    # A claim of the pod keeps it from every node; `detail` is a `volumes.Flaw` and a name, as "missing/data".
    CLAIM = 13
    # A volume of the pod, or one that is being made for it, cannot be reached from the node.
    VOLUME_AFFINITY = 14
    VOLUME_ZONE = 15
    # No volume that is free can be reached from there, and none can be made there.
    NO_VOLUMES = 16
    # Volumes can be made there, but there is not so much storage left.
    NO_STORAGE = 17
    # The driver that the pod's volumes need is not on the node; `detail` names it.
    DRIVER_MISSING = 18
    VOLUME_LIMIT = 19
    # Another pod on the node writes to a disk of the pod, or the pod wants to write to one that is in use.
    DISK_CONFLICT = 20
    # Another member that is placed uses a claim that only one pod may use.
    CLAIM_SHARED = 21
    # A device claim keeps the pod from every node; `detail` is a `devices.ClaimFlaw` and a name, as "missing/gpu".
    DEVICE_CLAIM = 22
    # A device that one of the pod's claims has cannot be used from the node.
    DEVICE_AWAY = 23
    # The node cannot serve all claims of the pod that are not allocated.
    NO_DEVICES = 24

    GATED = 64
    MEMBERS_MISSING = 65
    GROUP_MISSING = 66
    PARENT_MISSING = 67
    SCHEDULER_NAME_MISMATCH = 68
    PRIORITY_MISMATCH = 69
    PREEMPTION_POLICY_MISMATCH = 70
    NO_NODES = 71
    # Placed, but the API server refuses the binding; `detail` is what it said.
    BINDING_REFUSED = 73
    # The decision itself failed; `detail` is what was raised.
    DECISION_FAILED = 74
    # The group is being deleted: to its pending pods it is gone (statement 11).
    GROUP_DELETED = 75
    # No node carries the label of the group's topology constraint; `detail` is its key.
    NO_DOMAINS = 76
    # Running members are in two domains of the group's topology key (statement 36).
    DOMAIN_SPLIT = 77
    # A running member is on a node without the label.
    OUTSIDE_DOMAINS = 78
    # Running members are on nodes that do not exist, and on no others: nobody knows their domain.
    DOMAIN_UNKNOWN = 79
    # Too few children of a composite group have their members; `detail` is the group's name.
    GROUPS_MISSING = 80
    # Parent references form a cycle; `detail` names one group of it.
    CYCLE = 81
    # The hierarchy breaks a rule of v1.38 (statement 55); `detail` says which.
    INVALID_HIERARCHY = 83
    # Placed, and a claim is not ready yet; `detail` is kind, claim and node, as "persistentvolumeclaim/data/n1".
    CLAIMS_AWAITED = 84
    # More levels of groups than a hierarchy may have; `detail` is how many it may.
    TOO_DEEP = 82

    @property
    def wakes_on(self) -> frozenset[Cure]:
        return _WAKES_ON[self]


_ROOM = frozenset({Cure.NODE_ADDED, Cure.NODE_GREW, Cure.ROOM_FREED, Cure.NOMINATION_DROPPED})
_NEIGHBOURS = frozenset({Cure.NODE_ADDED, Cure.NODE_RELABELLED, Cure.NEIGHBOURS_CHANGED})
_MEMBERS = frozenset({Cure.MEMBER_CHANGED, Cure.GROUP_CHANGED})
_REACH = frozenset({Cure.NODE_ADDED, Cure.NODE_RELABELLED, Cure.VOLUMES_CHANGED})
_WAKES_ON: Mapping[Reason, frozenset[Cure]] = {
    Reason.NONE: frozenset(),
    Reason.NODE_UNSCHEDULABLE: frozenset({Cure.NODE_ADDED, Cure.NODE_UNCORDONED}),
    Reason.NODE_TAINTED: frozenset({Cure.NODE_ADDED, Cure.NODE_UNTAINTED}),
    Reason.NODE_SELECTOR: frozenset({Cure.NODE_ADDED, Cure.NODE_RELABELLED}),
    Reason.NODE_FEATURES: frozenset({Cure.NODE_ADDED, Cure.NODE_FEATURES_CHANGED}),
    Reason.HOST_PORTS: frozenset({Cure.NODE_ADDED, Cure.PORT_FREED}),
    Reason.CLAIM: frozenset({Cure.VOLUMES_CHANGED}),
    Reason.VOLUME_AFFINITY: _REACH,
    Reason.VOLUME_ZONE: _REACH,
    Reason.NO_VOLUMES: _REACH,
    Reason.NO_STORAGE: _REACH,
    Reason.DRIVER_MISSING: frozenset({Cure.NODE_ADDED, Cure.NODE_DRIVERS_CHANGED, Cure.VOLUMES_CHANGED}),
    Reason.VOLUME_LIMIT: _ROOM | {Cure.NODE_DRIVERS_CHANGED, Cure.VOLUMES_CHANGED},
    Reason.DISK_CONFLICT: _ROOM,
    Reason.CLAIM_SHARED: _MEMBERS | {Cure.VOLUMES_CHANGED},
    Reason.DEVICE_CLAIM: frozenset({Cure.DEVICES_CHANGED}),
    Reason.DEVICE_AWAY: frozenset({Cure.NODE_ADDED, Cure.NODE_RELABELLED, Cure.DEVICES_CHANGED}),
    Reason.NO_DEVICES: frozenset({Cure.NODE_ADDED, Cure.NODE_RELABELLED, Cure.DEVICES_CHANGED}),
    Reason.INSUFFICIENT: _ROOM,
    Reason.NOMINATED_AWAY: _ROOM,
    Reason.TAKEN_BY_MEMBERS: _ROOM,
    Reason.TOPOLOGY_SPREAD: _NEIGHBOURS | {Cure.NODE_UNTAINTED},
    Reason.POD_AFFINITY: _NEIGHBOURS,
    Reason.POD_ANTI_AFFINITY: _NEIGHBOURS,
    Reason.EXISTING_ANTI_AFFINITY: _NEIGHBOURS,
    Reason.GATED: frozenset({Cure.MEMBER_CHANGED}),
    Reason.MEMBERS_MISSING: _MEMBERS,
    Reason.GROUP_MISSING: frozenset({Cure.GROUP_CHANGED}),
    Reason.PARENT_MISSING: frozenset({Cure.GROUP_CHANGED}),
    Reason.SCHEDULER_NAME_MISMATCH: _MEMBERS,
    Reason.PRIORITY_MISMATCH: _MEMBERS,
    Reason.PREEMPTION_POLICY_MISMATCH: _MEMBERS,
    Reason.NO_NODES: frozenset({Cure.NODE_ADDED}),
    Reason.BINDING_REFUSED: frozenset(),
    Reason.DECISION_FAILED: frozenset(),
    Reason.CLAIMS_AWAITED: frozenset(),
    Reason.GROUP_DELETED: frozenset({Cure.GROUP_CHANGED}),
    Reason.NO_DOMAINS: frozenset({Cure.NODE_ADDED, Cure.NODE_RELABELLED, Cure.GROUP_CHANGED}),
    Reason.DOMAIN_SPLIT: _MEMBERS | {Cure.NODE_RELABELLED},
    Reason.OUTSIDE_DOMAINS: _MEMBERS | {Cure.NODE_RELABELLED},
    Reason.GROUPS_MISSING: _MEMBERS,
    Reason.CYCLE: frozenset({Cure.GROUP_CHANGED}),
    Reason.TOO_DEEP: frozenset({Cure.GROUP_CHANGED}),
    Reason.INVALID_HIERARCHY: frozenset({Cure.GROUP_CHANGED}),
    Reason.DOMAIN_UNKNOWN: _MEMBERS | {Cure.NODE_ADDED},
}


class Rejection(NamedTuple):
    """So many nodes said no for this reason.

    `detail` names what was missing where the reason needs it: the resource, the taint (`key=value:effect` as far as
    given), the gate. A node that lacks two resources counts under both.
    """

    reason: Reason
    nodes: int
    detail: str = ""


class Shortfall(NamedTuple):
    """What is missing where it is nearest: so much of a resource on the best node (`where`), or on several in sum."""

    resource: str
    lacking: int
    where: str = ""
    """The node or, for several, the domain they are in; "" for several nodes of the cluster."""
    nodes: int = 1
    """How many nodes that is; there may be fewer of them than pods that are missing."""
    asked: int = 0
    """What one pod asks for, where no usable node has so much even when empty; else 0."""
    most: int = 0
    """What the largest of them has then."""
    devices: DeviceLack | None = None
    """What a claim lacks there, if it is no resource that is lacking but devices."""


class Lack(NamedTuple):
    """What pods of one kind lack, of a group that misses unlike ones."""

    pod: str
    """The name of the first of them."""
    pods: int
    """How many are not placed."""
    rejections: tuple[Rejection, ...]
    shortfall: Shortfall | None = None


class Remedy(NamedTuple):
    """One change that would let the entry be placed, cheapest first. `action` is a code that `wording` renders.

    Actions: add-members (amount), lower-min-count (to amount), free (amount of detail), add-nodes (amount, like
    detail), uncordon (amount nodes), tolerate (detail), declare (amount nodes, the feature in detail), remove-gate
    (amount, the names in detail), create-group (detail), match-priority.
    """

    action: str
    amount: int = 0
    detail: str = ""
    where: str = ""
    """What the change is about: the node, or how many nodes (free, uncordon), the domain (add-nodes), the group of a
    hierarchy (lower-min-count); "" where that does not matter."""


class Awaited(NamedTuple):
    """Slots that a hierarchy cannot do without and does not have."""

    pod_class: PodClass
    slots: int
    """How many more there must be at least, in the cluster or, with a key, in one of its domains."""
    wanted: int
    """How many it takes in a domain of which nothing is known yet."""
    topology_key: str = ""
    deficits: tuple[tuple[str, int], ...] = ()
    """By domain, so many more would do there."""
    domain: str = ""
    """The only one that helps, since members run there."""


class Verdict(Enum):
    SCHEDULED = "Scheduled"
    UNSCHEDULABLE = "Unschedulable"
    ERROR = "SchedulerError"
    WAITING = "Waiting"
    """Held before any attempt: gated, members or group missing."""


@dataclass(frozen=True, slots=True)
class PodVerdict:
    """One member that was not placed. Empty `rejections`: it had a node, but its group did not reach the minimum."""

    rejections: tuple[Rejection, ...] = ()
    nodes: int = 0
    """How many nodes were looked at."""
    group: str = ""
    """In a hierarchy, the PodGroup of a member without rejections of its own."""


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """What came of one group of a hierarchy."""

    kind: EntryKind
    key: Key
    depth: int
    """0 for the root."""
    min_count: int
    there: int
    """Members, or satisfied children, that it has: running, done, and as far as it goes placed."""
    left: int
    """Pending members, or children, beyond those."""
    satisfied: bool
    """By itself, whatever became of its parent."""
    exists: int = 0
    """Members, or children with quorum, that exist; fewer than `min_count`: nothing was tried."""
    failed: tuple[str, ...] = ()
    """Of a composite group that is not satisfied: the children that are not."""
    domain: str = ""
    topology_key: str = ""
    rejections: tuple[Rejection, ...] = ()
    nodes: int = 0
    blocker: str = ""
    """The nearest composite group above it that is not satisfied: nothing is bound below that one."""
    blocker_is_parent: bool = False
    shortfall: Shortfall | None = None
    """Of a PodGroup that fails by itself: what it lacks where it is nearest."""


class PreemptionOutcome(Enum):
    """What came of looking for pods of lower priority that could make room."""

    NEVER = "not eligible due to preemptionPolicy=Never."
    NO_VICTIMS = "No preemption victims found for incoming preemptor"
    """Evicting everything of lower priority would not help."""
    ONGOING = "ongoing preemption on nominated nodes"
    """Pods that were evicted for it are still terminating."""
    AWAITED = "pods of lower priority are terminating, and their room suffices"
    FOUND = "found a placement"


class Victim(NamedTuple):
    """A pod that is evicted; `unit` is the group that goes as a whole with it."""

    pod: Key
    uid: str
    node: str
    priority: int
    """That counts: its group's, where it is in one."""
    unit: EntryKey | None = None


@dataclass(frozen=True, slots=True)
class Preemption:
    """What preemption tried for an entry that did not fit."""

    outcome: PreemptionOutcome
    victims: tuple[Victim, ...] = ()
    groups: tuple[EntryKey, ...] = ()
    """Groups that are evicted as a whole, with those below them."""
    awaited: frozenset[str] = frozenset()
    """Uids of pods whose going it waits for."""
    placed: int = 0
    """How many of its pods have a node once they are gone."""
    candidates: int = 0
    """How many pods of lower priority there were to choose from."""
    violations: int = 0
    """Disruption budgets that are overrun, counted by pods."""
    highest: int = 0
    """The highest priority among the victims."""
    started: int = 0
    """How many of them have begun to run."""
    needed: bool = True
    """Whether it is proven that nothing fits without evictions; False: the search for that was ended by its budget."""
    best: bool = True
    """Whether it is proven that there is no better choice, or none at all; False: none was found."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why an entry is where it is; complete in itself, so that every reader renders the same record."""

    entry: EntryKey
    uid: str
    verdict: Verdict
    revision: int
    min_count: int = 1
    running: int = 0
    succeeded: int = 0
    pending: int = 0
    """Members pending when it was decided."""
    placed: int = 0
    """Of those, how many the decision places; when it fails, the most that could have been placed together."""
    rejections: tuple[Rejection, ...] = ()
    """The entry's own reasons (gate, members missing, mismatch), or the node reasons of its first unplaced member."""
    pods: Mapping[Key, PodVerdict] = field(default_factory=dict)
    """Every pending member that is not placed; alike members share one PodVerdict."""
    shortfall: Shortfall | None = None
    """Of the first unplaced member and those like it."""
    remedies: tuple[Remedy, ...] = ()
    proven: bool = True
    """False: the search ended with its budget, so another placement is not proven impossible."""
    nodes: int = 0
    names: tuple[str, ...] = ()
    """Names a reason speaks of: gates, the missing group or parent, the two values or domains that disagree."""
    topology_key: str = ""
    """The label key of its topology constraint; "" without one."""
    placements: int = 0
    """How many domains of that key were looked at."""
    feasible: int = 0
    """In so many of them the group was found to fit."""
    infeasible: int = 0
    """In so many it was found not to; the others were not worked out, since they could not have been better."""
    domain: str = ""
    """The one it is placed in or, where none suffices, the nearest: what `rejections` and `placed` speak of."""
    deficits: tuple[tuple[str, int], ...] = ()
    """By domain, so many slots more would do there; only where all pending members are alike and none suffices."""

    lacks: tuple[Lack, ...] = ()
    """What each kind of unplaced members lacks, most of them first; only where there are several kinds."""
    awaits: Awaited | None = None
    """Of a hierarchy of which something was not placed, where that can be counted."""
    preemption: Preemption | None = None
    """None: nothing was tried, since nothing of lower priority runs or the failure is of another kind."""
    groups: tuple[GroupOutcome, ...] = ()
    """Of a hierarchy: every group, parents before children; none where all members of all groups are placed."""

    @property
    def wakes_on(self) -> frozenset[Cure]:
        """Every kind of change that can cure one of its reasons."""
        cures: set[Cure] = set()
        for rejection in self.rejections:
            cures |= rejection.reason.wakes_on
        for pod in set(self.pods.values()):
            for rejection in pod.rejections:
                cures |= rejection.reason.wakes_on
        return frozenset(cures)
