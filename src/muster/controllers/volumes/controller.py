"""The PersistentVolume controller, with a hollow driver behind every storage class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muster.api import writes
from muster.api.calls import Response
from muster.api.instant import Instant
from muster.api.machine import DELETED, Effect, Event, Listed, Observed, Refused, WakeAt, Woken, Write, Written
from muster.api.object import Object
from muster.api.storage import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    PROVISIONED_BY,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    StorageClass,
)
from muster.controllers.pod_status import deleted
from muster.controllers.volumes import provisioning
from muster.controllers.volumes.known import (
    CLAIMS,
    CLASSES,
    NODES,
    RESOURCES,
    VOLUMES,
    Known,
    is_bound,
)
from muster.controllers.volumes.making import Maker
from muster.controllers.volumes.matching import (
    Key,
    belongs,
    best,
    claim_of,
    class_of,
    is_free,
    misfit,
    owner_of,
    volume_of,
)
from muster.controllers.volumes.outbox import CLAIM, VOLUME, Outbox, annotation, tag_of
from muster.controllers.writing import AGAIN

GONE = "gone"


class Volumes:
    """Binds claims to volumes, makes volumes for claims that have a class, and takes back what was made.

    One write per object at a time, each from what the watch has shown: claim and volume are led to each other step by
    step, and a controller that is killed in between goes on where it was.
    """

    resources: tuple[str, ...] = RESOURCES

    def __init__(self) -> None:
        self._known = Known()
        self._out = Outbox()
        self._pending = self._out.pending
        self._maker = Maker(self._known, self._out)
        self._ended: set[str] = set()
        self._contested: set[str] = set()
        self._reserving: dict[Key, str] = {}
        self._reserver: dict[str, Key] = {}

    def handle(self, event: Event, now: Instant) -> Sequence[Effect]:
        match event:
            case Observed(resource, change, obj):
                return self._observed(resource, obj, gone=change == DELETED, now=now)
            case Listed(resource, objects):
                return self._listed(resource, objects, now)
            case Written(("gone", str(name), str(uid)) as tag, response):
                self._pending.forget(tag)
                return self._still_there(name, uid, response, now)
            case Refused(("gone", str(name), str(uid)) as tag, response):
                self._pending.forget(tag)
                if response.status != 404:
                    return [WakeAt(now + AGAIN, (VOLUME, name))]
                return self._claim_ended(name, uid, now)
            case Written((str(), _) as tag, response):
                return self._look(tag, now) if self._pending.written(tag, response) else ()
            case Refused((str(what), key), response):
                return self._refused((what, key), response.status, now)
            case Woken((str(), _) as tag):
                return self._look(tag, now)
        return ()

    # -- what is there

    def _listed(self, resource: str, objects: Sequence[Object], now: Instant) -> list[Effect]:
        for obj in self._known.replace(resource, objects):
            self._forget(resource, obj)
        if resource in (CLAIMS, VOLUMES):
            self._pending.listed()
            self._reserving.clear()
            self._reserver.clear()
        return self._look_at_all(now)

    def _look_at_all(self, now: Instant) -> list[Effect]:
        if not self._known.complete:
            return []
        effects = [effect for obj in list(self._known.of(VOLUMES)) for effect in self._look_at_volume(obj.name, now)]
        for key in self._known.claims():
            effects += self._look_at_claim(key, now)
        return effects

    def _observed(self, resource: str, obj: Object, *, gone: bool, now: Instant) -> list[Effect]:
        before = self._known.get(resource, obj.name) if resource in (VOLUMES, NODES) else None
        if gone:
            self._known.remove(resource, obj)
            self._forget(resource, obj)
        else:
            self._known.put(resource, obj)
            if resource in (CLAIMS, VOLUMES):
                self._pending.observed(tag_of(resource, obj), obj.revision)
        if not self._known.complete:
            return []
        if resource == CLAIMS:
            return self._claim_changed((obj.namespace, obj.name), obj, now)
        if resource == VOLUMES:
            return self._volume_changed(obj, before, now)
        if resource == NODES and before is not None and not gone:
            return []
        return self._look_at_waiting(resource, obj, now)

    def _forget(self, resource: str, obj: Object) -> None:
        if resource == CLAIMS:
            self._ended.add(obj.uid)
            self._out.forget(obj.uid)
            self._pending.forget(tag_of(resource, obj))
        elif resource == VOLUMES:
            reference = volume_of(obj).spec.claim_ref
            self._ended.discard(reference.uid if reference is not None else "")
            self._contested.discard(obj.name)
            self._pending.forget(tag_of(resource, obj))

    def _claim_changed(self, key: Key, obj: Object, now: Instant) -> list[Effect]:
        effects = self._look_at_claim(key, now)
        for name in dict.fromkeys((*self._known.reserved_for(key), claim_of(obj).spec.volume_name)):
            effects += self._look_at_volume(name, now)
        if not any(volume_of(volume).spec.claim_ref for volume in self._volumes_for(key)):
            self._ended.discard(obj.uid)  # nobody will ask
        return effects

    def _volumes_for(self, key: Key) -> list[Object]:
        found = (self._known.get(VOLUMES, name) for name in self._known.reserved_for(key))
        return [volume for volume in found if volume is not None]

    def _volume_changed(self, obj: Object, before: Object | None, now: Instant) -> list[Effect]:
        """The volume, claims it has to do with, and if anyone can have it now, claims without one."""
        effects = self._look_at_volume(obj.name, now)
        owners: list[Key | None] = [owner_of(volume) for volume in (before, obj) if volume is not None]
        if (VOLUME, obj.name) not in self._pending:
            owners.append(self._reserved(obj.name))
        for key in dict.fromkeys((*self._known.asking_for(obj.name), *owners)):
            effects += self._look_at_claim(key, now) if key is not None else []
        if is_free(obj) and (before is None or not is_free(before) or obj.name in self._contested):
            effects += self._offer(obj, now)
        return effects

    def _offer(self, volume: Object, now: Instant) -> list[Effect]:
        """Looks at the claims without a volume that could have this one, until it is taken."""
        effects: list[Effect] = []
        self._contested.discard(volume.name)
        for key in self._known.unbound():
            if (VOLUME, volume.name) in self._pending:
                self._contested.add(volume.name)  # offered once more if nothing comes of this write
                break
            claim = self._known.claim(key)
            if claim is not None and misfit(volume, claim) is None:
                effects += self._look_at_claim(key, now)
        return effects

    def _look_at_waiting(self, resource: str, obj: Object, now: Instant) -> list[Effect]:
        """Claims without a volume that a class, a node, a driver or a capacity may matter to."""
        effects: list[Effect] = []
        for key in self._known.unbound():
            claim = self._known.claim(key)
            if claim is not None and (resource != NODES or annotation(claim, SELECTED_NODE) == obj.name):
                effects += self._look_at_claim(key, now)
        return effects

    def _refused(self, tag: tuple[str, Any], status: int, now: Instant) -> list[Effect]:
        """Tried again: if someone else was faster, with what the watch shows or has shown; else after a while."""
        newer = status == 409 and self._pending.outdated(tag)
        self._pending.forget(tag)
        claim = self._reserved(tag[1]) if tag[0] == VOLUME else None
        tags = [tag, *([(CLAIM, claim)] if claim is not None else [])]
        if newer:
            return [effect for each in tags for effect in self._look(each, now)]
        if tag[0] == VOLUME:
            self._contested.add(tag[1])
        return [WakeAt(now + AGAIN, each) for each in tags]

    def _reserved(self, volume: str) -> Key | None:
        """The claim that the volume was being reserved for; from now on it may look for another."""
        claim = self._reserver.pop(volume, None)
        if claim is not None:
            self._reserving.pop(claim, None)
        return claim

    def _look(self, tag: Any, now: Instant) -> list[Effect]:
        """The object of an answer or a timer; of a volume that was to be made and is not there, its claim."""
        what, key = tag
        if what == CLAIM:
            return self._look_at_claim(key, now)
        volume = self._known.get(VOLUMES, key)
        if volume is not None:
            return self._volume_changed(volume, None, now)
        return [effect for claim in self._known.unbound() for effect in self._look_at_claim(claim, now)]

    # -- claims

    def _look_at_claim(self, key: Key, now: Instant) -> list[Effect]:
        """The next step of a claim on its way to a volume."""
        claim = self._known.claim(key)
        if claim is None or (CLAIM, key) in self._pending or not self._known.complete:
            return []
        name = claim_of(claim).spec.volume_name
        if name:
            return self._lead_to(name, claim, now)
        if is_bound(claim):
            why = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
            return self._lost(claim, why, now)
        return [] if deleted(claim) else self._find(key, claim, now)

    def _find(self, key: Key, claim: Object, now: Instant) -> list[Effect]:
        """A volume for a claim that names none: one that is there, or one that is made."""
        if key in self._reserving and (VOLUME, self._reserving[key]) in self._pending:
            return []
        if claim_of(claim).spec.storage_class_name is None and not class_of(claim):
            default = self._known.default_class()
            if default is not None:
                return self._out.patch_claim(claim, {"spec": {"storageClassName": default}})
        storage_class = self._known.get(CLASSES, class_of(claim))
        chosen = annotation(claim, SELECTED_NODE)
        late = storage_class is not None and _is_late(storage_class) and not chosen
        node = self._known.get(NODES, chosen) if chosen else None
        any_free = not late and (node is not None or not chosen)
        there = self._known.candidates(key, class_of(claim) if any_free else None)
        volume = best((each for each in there if (VOLUME, each.name) not in self._pending), claim, node)
        if volume is not None:
            return self._bind(volume, claim, now)
        coming = (provisioning.volume_name(claim), *self._known.reserved_for(key))
        if any((VOLUME, name) in self._pending for name in coming):
            return []
        if late:
            why = "waiting for first consumer to be created before binding"
            return self._out.say(claim, "WaitForFirstConsumer", why, now)
        if not class_of(claim):
            why = "no persistent volumes available for this claim and no storage class is set"
            return self._out.say(claim, "FailedBinding", why, now)
        if storage_class is None:
            why = f'storageclass.storage.k8s.io "{class_of(claim)}" not found'
            return self._out.say(claim, "ProvisioningFailed", why, now, warning=True)
        return self._maker.make(claim, storage_class, node, now)

    def _lead_to(self, name: str, claim: Object, now: Instant) -> list[Effect]:
        """A claim that names its volume: bound to it, unless it is another's or does not fit."""
        volume = self._known.get(VOLUMES, name)
        if volume is None:
            if is_bound(claim):
                why = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
                return self._lost(claim, why, now)
            return []
        if belongs(volume, claim) or (owner_of(volume) is None and is_bound(claim)):
            return self._bind(volume, claim, now)
        if owner_of(volume) is not None:
            if is_bound(claim):
                why = "Two claims are bound to the same volume, this one is bound incorrectly"
                return self._lost(claim, why, now, reason="ClaimMisbound")
            why = f'volume "{name}" already bound to a different claim.'
            return self._out.say(claim, "FailedBinding", why, now, warning=True)
        problem = misfit(volume, claim)
        if problem is not None:
            why = f'Cannot bind to requested volume "{name}": {problem}'
            return self._out.say(claim, "VolumeMismatch", why, now, warning=True)
        return self._bind(volume, claim, now)

    def _bind(self, volume: Object, claim: Object, now: Instant) -> list[Effect]:
        """Volume first, so that no other claim can have it, then the claim, then its status."""
        reference, spec = volume_of(volume).spec.claim_ref, claim_of(claim).spec
        if reference is None or not reference.uid:
            if (VOLUME, volume.name) in self._pending:
                return []
            body: dict[str, Any] = {"spec": {"claimRef": provisioning.reference(claim)}}
            if reference is None:
                body["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
            key = (claim.namespace, claim.name)
            self._reserving[key], self._reserver[volume.name] = volume.name, key
            return self._out.patch_volume(volume, body)
        if spec.volume_name != volume.name or not is_bound(claim):
            notes = {BIND_COMPLETED: "yes"} | ({} if spec.volume_name else {BOUND_BY_CONTROLLER: "yes"})
            return self._out.patch_claim(
                claim, {"metadata": {"annotations": notes}, "spec": {"volumeName": volume.name}}
            )
        has = {
            "phase": "Bound",
            "accessModes": list(volume_of(volume).spec.access_modes),
            "capacity": dict(volume.raw["spec"].get("capacity") or {}),
        }
        status = claim.raw.get("status") or {}
        if all(status.get(field) == value for field, value in has.items()):
            return []
        return self._out.claim_status(claim, has)

    def _lost(self, claim: Object, why: str, now: Instant, *, reason: str = "ClaimLost") -> list[Effect]:
        if claim_of(claim).status.phase == "Lost":
            return []
        return [
            *self._out.claim_status(claim, {"phase": "Lost"}),
            *self._out.say(claim, reason, why, now, warning=True),
        ]

    # -- volumes

    def _look_at_volume(self, name: str, now: Instant) -> list[Effect]:
        """The phase of a volume, and what becomes of one whose claim has gone."""
        volume = self._known.get(VOLUMES, name)
        if volume is None or (VOLUME, name) in self._pending or not self._known.complete:
            return []
        reference = volume_of(volume).spec.claim_ref
        if reference is None or not reference.uid:
            return self._phase(volume, "Available")
        if reference.uid in self._ended:
            return self._release(volume)
        claim = self._known.claim((reference.namespace, reference.name))
        if claim is None or claim.uid != reference.uid:
            return self._ask(name, reference.uid, (reference.namespace, reference.name))
        bound_to = claim_of(claim).spec.volume_name
        if bound_to == name:
            return self._phase(volume, "Bound")
        if not bound_to:
            return self._look_at_claim((claim.namespace, claim.name), now)
        if annotation(volume, BOUND_BY_CONTROLLER):
            body = {"spec": {"claimRef": None}, "metadata": {"annotations": {BOUND_BY_CONTROLLER: None}}}
            return self._out.patch_volume(volume, body)
        return self._release(volume) if annotation(volume, PROVISIONED_BY) else []

    def _ask(self, volume: str, uid: str, claim: Key) -> list[Effect]:
        """The watch of claims may be late: whether the claim has really gone, the server must say."""
        tag = (GONE, volume, uid)
        if tag in self._pending:
            return []
        self._pending.begin(tag)
        return [Write(writes.get(CLAIMS, *claim), tag)]

    def _still_there(self, volume: str, uid: str, response: Response, now: Instant) -> list[Effect]:
        body = response.body if isinstance(response.body, Mapping) else {}
        same = (body.get("metadata") or {}).get("uid") == uid
        return [] if same else self._claim_ended(volume, uid, now)

    def _claim_ended(self, volume: str, uid: str, now: Instant) -> list[Effect]:
        self._ended.add(uid)
        return self._look_at_volume(volume, now)

    def _release(self, volume: Object) -> list[Effect]:
        """Released; a volume that was made for the claim goes with it if its policy says so."""
        if volume_of(volume).status.phase != "Released":
            return self._phase(volume, "Released")
        policy = volume_of(volume).spec.persistent_volume_reclaim_policy
        if policy != "Delete" or not annotation(volume, PROVISIONED_BY) or deleted(volume):
            return []
        tag = tag_of(VOLUMES, volume)
        self._pending.begin(tag, volume.revision)
        return [Write(writes.delete(VOLUMES, "", volume.name, uid=volume.uid), tag)]

    def _phase(self, volume: Object, phase: str) -> list[Effect]:
        if volume_of(volume).status.phase == phase:
            return []
        body = {"metadata": {"uid": volume.uid}, "status": {"phase": phase}}
        return self._out.send(VOLUMES, volume, body, "status")


def _is_late(storage_class: Object) -> bool:
    return storage_class.view(StorageClass).volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
