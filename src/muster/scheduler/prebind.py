"""What has to happen to the claims of a pod before it can be bound: a volume is chosen for each, and bound to it.

The choice is made anew from the records when a plan is taken: of a claim that was given a volume or a node before, by
whoever led then, nothing is chosen but what is written there (W13, W14).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from muster.api import writes
from muster.api.instant import MINUTE, Instant
from muster.api.machine import Write
from muster.api.storage import BOUND_BY_CONTROLLER, SELECTED_NODE
from muster.model.keys import Key
from muster.model.mounts import is_reserved_for, kind_of
from muster.model.records import PodRecord
from muster.model.supply import Supply, Want, shared_out
from muster.model.volumes import Choice, ClaimKind, ClaimRecord, VolumeRecord
from muster.scheduler.cache import Cache
from muster.scheduler.stocktaking import CLAIMS, VOLUMES

PATIENCE: Instant = 10 * MINUTE
"""So long a pod waits for its volumes on its node."""
TIMED_OUT = "binding volumes: its claims were not bound within 10 minutes"
MERGE = "application/merge-patch+json"


class VolumeTag(NamedTuple):
    """Tag of a write for a claim of a pod."""

    uid: str
    attempt: int
    claim: Key


class Prebind:
    """Chooses volumes, and says of pods on their way how far their claims are."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._told: set[tuple[str, Key]] = set()
        """(pod uid, claim) of which the watch showed the node that was chosen."""

    def unbound(self, record: PodRecord) -> list[Key]:
        """The claims of a pod that are not bound for good."""
        if record.volumes is None:
            return []
        claims = self._cache.stock.claims
        keys = dict.fromkeys(Key(record.key.namespace, use.name) for use in record.volumes.claims)
        return [key for key in keys if (known := claims.get(key)) is None or not (known.bound and known.volume)]

    def choices(self, placements: Sequence[tuple[PodRecord, str]]) -> Mapping[Key, Choice] | None:
        """What each unbound claim of these pods gets; None: there is not enough for all of them."""
        stock = self._cache.stock
        found: dict[Key, Choice] = {}
        open_claims: dict[str, dict[tuple[ClaimKind, str], list[Key]]] = {}
        for record, node in placements:
            for key in self.unbound(record):
                claim = stock.claims.get(key)
                if claim is None:
                    return None
                if key in found or key in stock.chosen:
                    continue
                found[key] = Choice(self._reserved(claim), node)
                if not found[key].volume and not claim.selected_node:
                    kind = kind_of(claim)
                    open_claims.setdefault(kind.class_name, {}).setdefault((kind, node), []).append(key)
        for name, wanted in open_claims.items():
            some = self._share_out(name, wanted, self._held(name, placements)) or self._share_out(name, wanted, ())
            if some is None:
                return None
            found.update(some)
        return found

    def _reserved(self, claim: ClaimRecord) -> str:
        known = self._cache.stock.columns()
        name = known.reservations.get(claim.key, "")
        return name if name and is_reserved_for(known.volumes[name], claim) else ""

    def _held(self, name: str, placements: Sequence[tuple[PodRecord, str]]) -> Sequence[tuple[ClaimKind, str, int]]:
        """What nominated pods that are as important will need of a class, and where: others leave it to them."""
        placed = {record.uid for record, _ in placements}
        most = max(record.priority for record, _ in placements)
        return [
            (kind, held.node, number)
            for held in self._cache.snapshot().nominations
            if held.uid not in placed and held.priority >= most and held.cls.storage is not None
            for kind, number in held.cls.storage.late
            if kind.class_name == name
        ]

    def _share_out(
        self,
        name: str,
        wanted: Mapping[tuple[ClaimKind, str], Sequence[Key]],
        held: Sequence[tuple[ClaimKind, str, int]],
    ) -> Mapping[Key, Choice] | None:
        """The volumes of one class; who gets none has one made on its node."""
        nodes, known = self._cache.rooms.columns(), self._cache.stock.columns()
        supply = Supply(nodes, known, name, (*(kind for kind, _ in wanted), *(kind for kind, _, _ in held)))
        if any(node not in nodes.index for _, node in wanted):
            return None
        wants = [Want(supply.place[kind], nodes.index[node], len(keys)) for (kind, node), keys in wanted.items()]
        wants += [Want(supply.place[kind], nodes.index[node], n) for kind, node, n in held if node in nodes.index]
        given = shared_out(supply, wants, spare=True)
        if given is None:
            return None
        taken: Counter[int] = Counter()
        found: dict[Key, Choice] = {}
        for ((_, node), keys), lots in zip(wanted.items(), given, strict=False):
            volumes: list[VolumeRecord] = []
            for lot, count in sorted(lots.items()):
                volumes += supply.lots[lot].volumes[taken[lot] : taken[lot] + count]
                taken[lot] += count
            for i, key in enumerate(keys):
                found[key] = Choice(volumes[i].name if i < len(volumes) else "", node)
        return found

    def writes(self, record: PodRecord, attempt: int) -> Iterator[Write]:
        """What is to be written for the claims of a pod, as far as it is not there already."""
        stock = self._cache.stock
        for key in self.unbound(record):
            choice, claim = stock.chosen.get(key), stock.claims.get(key)
            if choice is None or claim is None:
                continue
            tag = VolumeTag(record.uid, attempt, key)
            if not choice.volume:
                if claim.selected_node != choice.node:
                    body = {"metadata": {"uid": claim.uid, "annotations": {SELECTED_NODE: choice.node}}}
                    yield Write(writes.patch(CLAIMS, key.namespace, key.name, body, MERGE), tag)
            elif choice.volume in stock.volumes and stock.volumes[choice.volume].claim is None:
                volume = stock.volumes[choice.volume]
                yield Write(writes.patch(VOLUMES, "", volume.name, _claimed(volume, claim), MERGE), tag)

    def trouble(self, record: PodRecord, node: str) -> str:
        """Why the claims of a pod will not be bound on this node; "": they may."""
        stock = self._cache.stock
        if node not in self._cache.nodes:
            return f'node "{node}" is gone'
        for key in self.unbound(record):
            claim, choice = stock.claims.get(key), stock.chosen.get(key)
            if claim is None or claim.terminating:
                return f'persistentvolumeclaim "{key.name}" was deleted'
            if claim.lost:
                return f'persistentvolumeclaim "{key.name}" lost its volume'
            if choice is None:
                return f'nothing is chosen for persistentvolumeclaim "{key.name}"'
            if choice.volume:
                volume = stock.volumes.get(choice.volume)
                if volume is None or (volume.claim is not None and not is_reserved_for(volume, claim)):
                    return f'persistentvolume "{choice.volume}" was taken away'
            elif claim.selected_node == choice.node:
                self._told.add((record.uid, key))
            elif (record.uid, key) in self._told:
                return f'no volume could be made for persistentvolumeclaim "{key.name}" on node "{choice.node}"'
        return ""

    def forget(self, record: PodRecord) -> None:
        """The pod is not on its way any more."""
        self._told = {one for one in self._told if one[0] != record.uid} if self._told else self._told


def _claimed(volume: VolumeRecord, claim: ClaimRecord) -> Mapping[str, object]:
    """Reserves a volume for a claim, unless somebody has changed the volume."""
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.key.namespace,
        "name": claim.key.name,
        "uid": claim.uid,
    }
    meta: dict[str, object] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
    if volume.version:
        meta["resourceVersion"] = volume.version
    return {"metadata": meta, "spec": {"claimRef": reference}}
