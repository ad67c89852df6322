"""What the scheduler knows of volumes and claims, and what the volumes of a pod come down to in one decision.

Sizes are bytes. A claim is *late* if its class binds it only once a pod that uses it has a node (WaitForFirstConsumer).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from muster.model.keys import Key
from muster.model.neighbours import LabelRequirement, Labels
from muster.model.terms import Requirement, Term

ONE_POD = "ReadWriteOncePod"
WHOLE = 1 << 12
"""Units of a disk: a pod that writes to it takes all of them, one that only reads takes one."""


class ClaimUse(NamedTuple):
    """A claim that a pod names, in its own namespace. `ephemeral`: it is made for the pod, which must own it."""

    name: str
    ephemeral: bool = False


class Disk(NamedTuple):
    """A disk that pods name themselves, without a claim."""

    kind: str
    name: str


class PodVolumes(NamedTuple):
    """What of a pod's volumes bears on where it can run."""

    claims: tuple[ClaimUse, ...] = ()
    disks: tuple[tuple[Disk, int], ...] = ()
    """With the units that it takes of each."""


@dataclass(frozen=True, slots=True)
class VolumeRecord:
    """A PersistentVolume."""

    name: str
    uid: str
    size: int
    version: str = field(default="", compare=False)
    """Its resourceVersion, for a write that must not overtake another."""
    modes: tuple[str, ...] = ()
    block: bool = False
    class_name: str = ""
    affinity: tuple[Term, ...] | None = None
    zones: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """(label key, its values): zone and region that the node must have too."""
    driver: str = ""
    handle: str = ""
    labels: Labels = ()
    claim: Key | None = None
    """Who it is reserved for or bound to; `claim_uid` "" means whoever has the name."""
    claim_uid: str = ""
    available: bool = False
    terminating: bool = False
    attributes: str = ""
    """Its VolumeAttributesClass."""


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """A PersistentVolumeClaim."""

    key: Key
    uid: str
    size: int
    modes: tuple[str, ...] = ()
    block: bool = False
    class_name: str | None = None
    selector: tuple[LabelRequirement, ...] = ()
    volume: str = ""
    bound: bool = False
    """Bound for good, the volume's side included."""
    selected_node: str = ""
    owner: str = ""
    """Uid of the pod that it was made for."""
    terminating: bool = False
    lost: bool = False
    attributes: str = ""


@dataclass(frozen=True, slots=True)
class ClassRecord:
    """A StorageClass."""

    name: str
    provisioner: str = ""
    """"" if volumes of the class are made by hand only."""
    late: bool = False
    topologies: tuple[Term, ...] | None = None
    """Where volumes can be made: any of these; None: everywhere."""


@dataclass(frozen=True, slots=True)
class DriverRecord:
    """A CSIDriver."""

    name: str
    tracks_capacity: bool = False
    must_be_there: bool = False
    """Pods with its volumes stay off nodes that do not have it."""


@dataclass(frozen=True, slots=True)
class CapacityRecord:
    """A CSIStorageCapacity: room for volumes of a class on some nodes."""

    key: Key
    class_name: str
    topology: tuple[Requirement, ...] | None
    """None: no node; an empty tuple: every node."""
    capacity: int | None = None
    largest: int | None = None


Handle = tuple[str, str]
"""(driver, handle): the volume as the driver knows it."""


class Choice(NamedTuple):
    """What was decided for a late claim that is not bound yet: a volume, or "" where one is made for this node."""

    volume: str
    node: str


@dataclass(frozen=True)
class Volumes:
    """Claims and volumes at one revision; nothing in it is changed."""

    version: int = 0
    claims: Mapping[Key, ClaimRecord] = field(default_factory=dict)
    volumes: Mapping[str, VolumeRecord] = field(default_factory=dict)
    classes: Mapping[str, ClassRecord] = field(default_factory=dict)
    drivers: Mapping[str, DriverRecord] = field(default_factory=dict)
    capacities: Mapping[Key, CapacityRecord] = field(default_factory=dict)
    mounts: Mapping[Key, Mapping[str, int]] = field(default_factory=dict)
    """Claim -> node -> pods there that use it, assumed ones included."""
    disks: Mapping[Disk, Mapping[str, int]] = field(default_factory=dict)
    """Disk -> node -> units taken."""
    chosen: Mapping[Key, Choice] = field(default_factory=dict)
    """Claims of pods that are on their way to their nodes."""
    attachments: tuple[tuple[str, str], ...] = ()
    """(volume, node) of what is attached still, whether a pod uses it or not."""
    held: tuple[tuple[str, Storage], ...] = ()
    """(node, what a pod that is nominated there needs), of those that hold against the entry that is decided."""

    @cached_property
    def promised(self) -> frozenset[str]:
        """Volumes that were chosen for a claim that is not bound yet."""
        return frozenset(choice.volume for choice in self.chosen.values() if choice.volume)

    @cached_property
    def reservations(self) -> Mapping[Key, str]:
        """Claim -> the volume that names it."""
        return {volume.claim: volume.name for volume in self.volumes.values() if volume.claim is not None}

    @cached_property
    def attached(self) -> Mapping[Handle, frozenset[str]]:
        """Nodes by what is attached to them, or will be for the pods there."""
        found: dict[Handle, set[str]] = {}
        for key, nodes in self.mounts.items():
            handle = self.handle_of(key)
            if handle is not None:
                found.setdefault(handle, set()).update(nodes)
        for name, node in self.attachments:
            volume = self.volumes.get(name)
            if volume is not None and volume.driver:
                found.setdefault((volume.driver, volume.handle), set()).add(node)
        return {handle: frozenset(nodes) for handle, nodes in found.items()}

    @cached_property
    def free(self) -> Mapping[str, tuple[VolumeRecord, ...]]:
        """By class, the volumes that a late claim may be given, the smallest first."""
        found: dict[str, list[VolumeRecord]] = {}
        for volume in self.volumes.values():
            unclaimed = volume.claim is None and volume.name not in self.promised
            if unclaimed and volume.available and not volume.terminating:
                found.setdefault(volume.class_name, []).append(volume)
        return {name: tuple(sorted(some, key=lambda v: (v.size, v.name))) for name, some in found.items()}

    def handle_of(self, key: Key) -> Handle | None:
        """(driver, handle) of the volume that a claim has, or will have; None: no driver attaches it."""
        claim = self.claims.get(key)
        if claim is None:
            return None
        choice = self.chosen.get(key)
        volume = self.volumes.get(claim.volume or (choice.volume if choice is not None else ""))
        if volume is not None:
            return (volume.driver, volume.handle) if volume.driver else None
        found = self.classes.get(claim.class_name or "")
        return (found.provisioner, str(key)) if found is not None and found.provisioner else None


NO_VOLUMES = Volumes()


class Flaw(Enum):
    """Why a claim keeps its pod from every node."""

    MISSING = "missing"
    TERMINATING = "terminating"
    LOST = "lost"
    NOT_OWNED = "not-owned"
    UNBOUND = "unbound"
    CLASS_MISSING = "class-missing"
    VOLUME_MISSING = "volume-missing"
    IN_USE = "in-use"
    """By another pod, and only one may."""


class ClaimKind(NamedTuple):
    """What a late claim asks for: claims that ask for the same are alike."""

    class_name: str
    size: int
    modes: tuple[str, ...] = ()
    block: bool = False
    selector: tuple[LabelRequirement, ...] = ()
    attributes: str = ""

    def suits(self, volume: VolumeRecord) -> bool:
        """Whether a volume would do, if it is free and can be reached."""
        labels = dict(volume.labels)
        return (
            volume.class_name == self.class_name
            and volume.size >= self.size
            and volume.block == self.block
            and volume.attributes == self.attributes
            and set(self.modes) <= set(volume.modes)
            and all(requirement.holds(labels) for requirement in self.selector)
        )


@dataclass(frozen=True, slots=True)
class Storage:
    """What the volumes of a pod come down to: pods for which it is equal are alike as far as volumes go."""

    flaw: tuple[Flaw, str] | None = None
    """With the name that it is about; nothing else is told then."""
    reached: tuple[tuple[Term, ...], ...] = ()
    """Node affinities of volumes: of each, one term must hold."""
    zones: tuple[tuple[str, tuple[str, ...]], ...] = ()
    nodes: tuple[str, ...] = ()
    """Nodes for which volumes are being made: it must be each of these."""
    late: tuple[tuple[ClaimKind, int], ...] = ()
    """Claims for which a volume is yet to be found or made, with their number."""
    joint: tuple[tuple[Key, ClaimKind], ...] = ()
    """The same, where several pods of the decision use the claim: they must be on one node."""
    drivers: tuple[str, ...] = ()
    """Those that the node must have."""
    attached: tuple[tuple[str, int], ...] = ()
    """By driver, so many volumes that no other pod uses."""
    shared: tuple[Handle, ...] = ()
    """Volumes that other pods use too."""
    alone: tuple[Key, ...] = ()
    """Claims for one pod that several pods of the decision use."""
    disks: tuple[tuple[Disk, int], ...] = ()
