"""The controller of ResourceClaims: makes them from templates, lets go of them, and takes back what was allocated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from muster.api import writes
from muster.api.calls import Response
from muster.api.gates import FeatureGates
from muster.api.instant import Instant
from muster.api.machine import DELETED, Effect, Event, Listed, Observed, Refused, WakeAt, Woken, Write, Written
from muster.api.object import Object
from muster.api.resource import DELETE_PROTECTION
from muster.controllers.pod_status import TERMINAL, deleted, phase
from muster.controllers.resourceclaims.known import (
    CLAIMS,
    GROUPS,
    PODS,
    TEMPLATES,
    Known,
    Name,
    group_of,
    reserved_for,
)
from muster.controllers.resourceclaims.made import Entry, entries, manifest, recorded
from muster.controllers.writing import AGAIN, Pending, event, without_finalizer

COMPONENT = "resource-claim-controller"
NOT_MADE = "FailedResourceClaimCreation"


class Making(NamedTuple):
    """Tag of the creation of a claim."""

    owner: Name
    uid: str
    entry: str


class Asking(NamedTuple):
    """Tag of a look at whoever has a reservation and is not shown by the watch."""

    consumer: Name
    uid: str


class ResourceClaims:
    """One claim per pod and entry that names a template, or one per group and entry where the group names the same
    (D18, D19, D26); reservations end with their pods and groups (D16, D23), and with the last one the allocation (D15).
    """

    def __init__(self, gates: FeatureGates) -> None:
        self._grouped = gates.enabled("GenericWorkload") and gates.enabled("DRAWorkloadResourceClaims")
        groups = (GROUPS,) if self._grouped else ()
        self.resources: tuple[str, ...] = (PODS, *groups, TEMPLATES, CLAIMS)
        self._known = Known(self.resources)
        self._pending = Pending()
        self._making: dict[tuple[str, str], str] = {}
        """(uid of the owner, entry) -> the name of the claim that is being made for it."""
        self._taken: dict[tuple[str, str], int] = {}
        """(uid of the owner, entry) -> how many names turned out to be somebody else's."""
        self._freed: set[str] = set()
        """uids of claims whose allocation was taken back here, and whose finalizer still is to go."""
        self._gone: set[str] = set()
        """uids of what does not exist any more, and is owner or consumer of a claim, or still shown by the watch."""
        self._asking: set[Asking] = set()
        self._said: dict[str, str] = {}
        """uid of an owner -> what it was last told."""

    def handle(self, event: Event, now: Instant) -> Sequence[Effect]:
        match event:
            case Observed(resource, change, obj):
                return self._observed(resource, obj, change == DELETED, now)
            case Listed(resource, objects):
                return self._listed(resource, objects, now)
            case Refused(Making() as tag, response):
                return self._not_made(tag, response, now)
            case Written(Name() as name, response):
                return self._look(name, now) if self._pending.written(name, response) else ()
            case Refused(Name() as name, response):
                self._pending.forget(name)
                if response.status != 404:
                    return [WakeAt(now + AGAIN, name)]
                there = self._known.get(name)
                if there is not None:
                    self._gone.add(there.uid)
                return ()
            case Woken(Name() as name):
                return self._look(name, now)
            case Written(Asking() as asked, response) | Refused(Asking() as asked, response):
                return self._told(asked, response, now)
            case Woken(Asking() as asked):
                return self._ask(asked)
        return ()

    # -- what is there

    def _listed(self, resource: str, objects: Sequence[Object], now: Instant) -> list[Effect]:
        for obj in self._known.replace(resource, objects):
            self._forget(resource, obj)
        self._pending.listed()
        self._making.clear()
        self._asking.clear()
        if not self._known.complete:
            return []
        return [e for one in self.resources for obj in self._known.of(one) for e in self._look(_name(one, obj), now)]

    def _observed(self, resource: str, obj: Object, gone: bool, now: Instant) -> list[Effect]:
        name = _name(resource, obj)
        before = self._known.get(name)
        if gone:
            self._known.remove(resource, obj)
            self._forget(resource, obj)
            if self._known.touching(obj.uid):
                self._gone.add(obj.uid)
        else:
            self._known.put(resource, obj)
            self._pending.observed(name, obj.revision)
        if not self._known.complete:
            return []
        effects: list[Effect] = []
        if resource == CLAIMS:
            self._unlink(before)
            owner = self._known.owner_of(obj)
            if owner is not None:
                # Whoever deletes it may know better than the watch that its owner is gone: no race with him.
                effects += [WakeAt(now + AGAIN, owner)] if gone else self._look(owner, now)
        elif resource == TEMPLATES:
            for asking in tuple(self._known.asking(name)):
                effects += self._look(asking, now)
        else:
            for claim in self._known.touching(obj.uid):
                effects += self._look(claim, now)
            for member in tuple(self._known.members(name)) if resource == GROUPS else ():
                effects += self._look(member, now)
        return effects + self._look(name, now)

    def _unlink(self, claim: Object | None) -> None:
        """What is not there any more, and has no claim now, need not be known."""
        for consumer in reserved_for(claim) if claim is not None else ():
            uid = str(consumer.get("uid") or "")
            if uid in self._gone and not self._known.touching(uid):
                self._gone.discard(uid)

    def _ask(self, asked: Asking) -> list[Effect]:
        """Whether somebody that the watch does not show is there."""
        if asked in self._asking:
            return []
        self._asking.add(asked)
        return [Write(writes.get(*asked.consumer), asked)]

    def _told(self, asked: Asking, response: Response, now: Instant) -> list[Effect]:
        self._asking.discard(asked)
        body = response.body if isinstance(response.body, Mapping) else {}
        if response.status != 404 and not response.ok:
            return [WakeAt(now + AGAIN, asked)]
        if response.ok and (body.get("metadata") or {}).get("uid") == asked.uid:
            return []  # the watch will show it
        claims = self._known.touching(asked.uid)
        if claims:
            self._gone.add(asked.uid)
        return [effect for claim in claims for effect in self._look(claim, now)]

    def _forget(self, resource: str, obj: Object) -> None:
        self._pending.forget(_name(resource, obj))
        self._said.pop(obj.uid, None)
        self._freed.discard(obj.uid)
        self._gone.discard(obj.uid)
        for table in (self._making, self._taken):
            for key in [key for key in table if key[0] == obj.uid]:
                del table[key]

    # -- what is to be done

    def _look(self, name: Name, now: Instant) -> list[Effect]:
        obj = self._known.get(name)
        if obj is None or name in self._pending or not self._known.complete:
            return []
        if name.resource == CLAIMS:
            return self._let_go(name, obj)
        return self._provide(name, obj, now) if name.resource != TEMPLATES else []

    def _provide(self, name: Name, owner: Object, now: Instant) -> list[Effect]:
        """Makes the claims of a pod or group that are missing, and records those that are there."""
        if name.resource == PODS and phase(owner) in TERMINAL:
            return self._discard(owner)
        wanted = [entry for entry in entries(owner) if entry.template]
        if not wanted or deleted(owner) or owner.uid in self._gone:
            return []
        effects: list[Effect] = []
        made, named = self._known.made_for(owner.uid), dict(recorded(owner))
        for entry in wanted:
            group = self._group_with(owner, entry) if name.resource == PODS else None
            if group is not None:
                mine = self._known.made_for(group.uid).get(entry.name)
            else:
                mine = made.get(entry.name)
                effects += self._make(name, owner, entry, now) if mine is None else []
            if mine is not None:
                self._making.pop((owner.uid, entry.name), None)
                named[entry.name] = mine.name
        if named != recorded(owner):
            self._pending.begin(name, owner.revision)
            statuses = [{"name": entry, "resourceClaimName": claim} for entry, claim in named.items()]
            body = {"metadata": {"uid": owner.uid}, "status": {"resourceClaimStatuses": statuses}}
            effects.append(Write(writes.patch(*name, body, subresource="status"), name))
        return effects

    def _group_with(self, pod: Object, entry: Entry) -> Object | None:
        """The group of a pod, if it has the same entry (D18)."""
        group = group_of(pod)
        found = self._known.get(group) if group is not None and self._grouped else None
        return found if found is not None and entry in set(entries(found)) else None

    def _make(self, name: Name, owner: Object, entry: Entry, now: Instant) -> list[Effect]:
        key = (owner.uid, entry.name)
        waits = name.resource == PODS and self._grouped and (group := group_of(owner)) and not self._known.get(group)
        if key in self._making or waits:
            return []
        template = self._known.get(Name(TEMPLATES, owner.namespace, entry.template))
        if template is None:
            return self._say(owner, f'resource claim template "{entry.template}" not found', now)
        claim = manifest(owner, entry, template, self._taken.get(key, 0))
        self._making[key] = claim["metadata"]["name"]
        return [Write(writes.create(claim), Making(name, *key))]

    def _not_made(self, tag: Making, response: Response, now: Instant) -> list[Effect]:
        """Tried again: at once if the name is somebody else's, else after a while."""
        key = (tag.uid, tag.entry)
        name, owner = self._making.pop(key, ""), self._known.get(tag.owner)
        if owner is None or owner.uid != tag.uid:
            return []
        if response.status != 409:
            why = response.body.get("message") if isinstance(response.body, Mapping) else None
            return [*(self._say(owner, str(why), now) if why else ()), WakeAt(now + AGAIN, tag.owner)]
        there = self._known.get(Name(CLAIMS, owner.namespace, name))
        if there is None or there in self._known.owned(owner.uid):
            return [WakeAt(now + AGAIN, tag.owner)]  # it may be the one that was asked for, not shown yet
        self._taken[key] = self._taken.get(key, 0) + 1
        return self._look(tag.owner, now)

    def _discard(self, pod: Object) -> list[Effect]:
        """Claims that were made for a pod go when it has ended (D16)."""
        return [
            Write(writes.delete(CLAIMS, claim.namespace, claim.name, uid=claim.uid))
            for claim in self._known.owned(pod.uid)
            if not deleted(claim)
        ]

    def _let_go(self, name: Name, claim: Object) -> list[Effect]:
        """Takes off reservations of whoever is gone; with the last one the allocation, then the finalizer."""
        status = claim.raw.get("status") or {}
        now_for = reserved_for(claim)
        still, asked = self._holders(claim)
        unused = not still and (len(now_for) > 0 or deleted(claim))
        body: dict[str, Any] = {}
        if len(still) < len(now_for):
            body["reservedFor"] = still or None
        if unused and status.get("allocation"):
            body |= {"allocation": None, "devices": None}
            self._freed.add(claim.uid)
        if body:
            self._pending.begin(name, claim.revision)
            meta = {"uid": claim.uid, "resourceVersion": claim.revision}
            return [*asked, Write(writes.patch(*name, {"metadata": meta, "status": body}, subresource="status"), name)]
        if status.get("allocation") or DELETE_PROTECTION not in (claim.meta.get("finalizers") or ()):
            self._freed.discard(claim.uid)
        elif claim.uid in self._freed or deleted(claim):  # otherwise it is a scheduler's, about to allocate
            self._pending.begin(name, claim.revision)
            return [*asked, Write(without_finalizer(CLAIMS, claim, DELETE_PROTECTION), name)]
        return asked

    def _holders(self, claim: Object) -> tuple[list[Mapping[str, Any]], list[Effect]]:
        """Those that a claim stays reserved for, and looks at those of them that may be gone."""
        still: list[Mapping[str, Any]] = []
        asked: list[Effect] = []
        for consumer in reserved_for(claim):
            holds, uid = self._known.holds(claim.namespace, consumer), str(consumer.get("uid") or "")
            if holds is False or (holds is None and uid in self._gone):
                continue
            still.append(consumer)
            if holds is None:
                asked += self._ask(Asking(Name(consumer["resource"], claim.namespace, str(consumer.get("name"))), uid))
        return still, asked

    def _say(self, owner: Object, why: str, now: Instant) -> list[Effect]:
        """An event, unless it was the last one about this owner."""
        if self._said.get(owner.uid) == why:
            return []
        self._said[owner.uid] = why
        return [event(owner.raw, NOT_MADE, why, component=COMPONENT, now=now, warning=True)]


def _name(resource: str, obj: Object) -> Name:
    return Name(resource, obj.namespace, obj.name)
