"""What the claims and disks of a pod come down to at one revision: from names to meaning.

Claims that mean the same are told apart no more, so that a thousand pods with a claim each are one class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from muster.model.keys import Key
from muster.model.records import PodRecord
from muster.model.terms import Term
from muster.model.volumes import (
    ONE_POD,
    ClaimKind,
    ClaimRecord,
    ClaimUse,
    Flaw,
    Storage,
    VolumeRecord,
    Volumes,
)


def crowd_of(pods: Iterable[PodRecord], known: Volumes) -> Counter[object]:
    """How many of these pods use each claim, and each (driver, handle)."""
    crowd: Counter[object] = Counter()
    for pod in pods:
        if pod.volumes is not None:
            uses = {Key(pod.key.namespace, use.name) for use in pod.volumes.claims}
            crowd.update(uses)
            crowd.update({handle for key in uses if (handle := known.handle_of(key)) is not None})
    return crowd


def storage_of(pod: PodRecord, known: Volumes, crowd: Mapping[object, int]) -> Storage:
    """What a pod's volumes mean; `crowd` tells which claims and handles several pods of the decision use."""
    assert pod.volumes is not None
    meaning = _Meaning(pod, known, crowd)
    for use in dict.fromkeys(pod.volumes.claims):
        flaw = meaning.take(use)
        if flaw is not None:
            return Storage(flaw=flaw)
    return meaning.storage()


def is_reserved_for(volume: VolumeRecord, claim: ClaimRecord) -> bool:
    return volume.claim == claim.key and volume.claim_uid in ("", claim.uid)


class _Meaning:
    """Takes in one claim after the other."""

    def __init__(self, pod: PodRecord, known: Volumes, crowd: Mapping[object, int]) -> None:
        self._pod, self._known, self._crowd = pod, known, crowd
        self._reached: set[tuple[Term, ...]] = set()
        self._zones: set[tuple[str, tuple[str, ...]]] = set()
        self._nodes: set[str] = set()
        self._late: Counter[ClaimKind] = Counter()
        self._joint: list[tuple[Key, ClaimKind]] = []
        self._handles: set[tuple[str, str]] = set()
        self._alone: list[Key] = []

    def take(self, use: ClaimUse) -> tuple[Flaw, str] | None:
        """Why the claim keeps the pod from every node; None: it does not."""
        key = Key(self._pod.key.namespace, use.name)
        claim = self._known.claims.get(key)
        if claim is None:
            return (Flaw.MISSING, use.name)
        if use.ephemeral and claim.owner != self._pod.uid:
            return (Flaw.NOT_OWNED, use.name)
        if claim.terminating:
            return (Flaw.TERMINATING, use.name)
        if claim.lost:
            return (Flaw.LOST, use.name)
        if ONE_POD in claim.modes:
            if self._known.mounts.get(key):
                return (Flaw.IN_USE, use.name)
            if self._crowd.get(key, 0) > 1:
                self._alone.append(key)
        handle = self._known.handle_of(key)
        if handle is not None:
            self._handles.add(handle)
        return self._place(claim)

    def _place(self, claim: ClaimRecord) -> tuple[Flaw, str] | None:
        """Where the claim's volume is or could be."""
        known = self._known
        if claim.bound and claim.volume:
            return self._reach(claim.volume)
        if not claim.class_name:
            return (Flaw.UNBOUND, claim.key.name)
        found = known.classes.get(claim.class_name)
        if found is None:
            return (Flaw.CLASS_MISSING, claim.class_name)
        if not found.late or claim.volume:
            return (Flaw.UNBOUND, claim.key.name)
        choice = known.chosen.get(claim.key)
        reserved = choice.volume if choice is not None else self._reserved(claim)
        if reserved:
            return self._reach(reserved)
        node = choice.node if choice is not None else claim.selected_node
        if node:
            self._nodes.add(node)
            return None
        kind = kind_of(claim)
        if self._crowd.get(claim.key, 0) > 1:
            self._joint.append((claim.key, kind))
        else:
            self._late[kind] += 1
        return None

    def _reserved(self, claim: ClaimRecord) -> str:
        """The volume that names this claim already, from an earlier attempt or by hand."""
        name = self._known.reservations.get(claim.key, "")
        return name if name and is_reserved_for(self._known.volumes[name], claim) else ""

    def _reach(self, name: str) -> tuple[Flaw, str] | None:
        volume = self._known.volumes.get(name)
        if volume is None:
            return (Flaw.VOLUME_MISSING, name)
        if volume.affinity is not None:
            self._reached.add(volume.affinity)
        self._zones.update(volume.zones)
        return None

    def storage(self) -> Storage:
        known, crowd = self._known, self._crowd
        busy = {one for one in self._handles if crowd.get(one, 0) > 1 or known.attached.get(one)}
        own = Counter(driver for driver, _ in self._handles - busy)
        needed = {driver for driver, _ in self._handles}
        needs = {name for name in needed if name in known.drivers and known.drivers[name].must_be_there}
        assert self._pod.volumes is not None
        return Storage(
            reached=tuple(sorted(self._reached, key=repr)),
            zones=tuple(sorted(self._zones)),
            nodes=tuple(sorted(self._nodes)),
            late=tuple(sorted(self._late.items())),
            joint=tuple(sorted(self._joint)),
            drivers=tuple(sorted(needs)),
            attached=tuple(sorted(own.items())),
            shared=tuple(sorted(busy)),
            alone=tuple(sorted(self._alone)),
            disks=self._pod.volumes.disks,
        )


def kind_of(claim: ClaimRecord) -> ClaimKind:
    """What a late claim asks for."""
    return ClaimKind(claim.class_name or "", claim.size, claim.modes, claim.block, claim.selector, claim.attributes)
