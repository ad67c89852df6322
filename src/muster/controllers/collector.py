"""Garbage collection by owner references: background, foreground, orphan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.api import catalog, writes
from muster.api.calls import Response
from muster.api.gates import FeatureGates
from muster.api.instant import Instant
from muster.api.machine import DELETED, Effect, Event, Listed, Observed, Refused, WakeAt, Woken, Write, Written
from muster.api.object import Object
from muster.controllers.membership import Membership
from muster.controllers.pod_status import deleted
from muster.controllers.writing import AGAIN, Pending, without_finalizer

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_UNCOLLECTED = frozenset({"events"})
"""Many, short-lived, and never owned."""

LOOK, DELETE, DISOWN, RELEASE = "look", "delete", "disown", "release"


@dataclass(slots=True)
class _Thing:
    """One object, with the resource it belongs to."""

    resource: str
    object: Object

    @property
    def owners(self) -> Sequence[Mapping[str, Any]]:
        return self.object.meta.get("ownerReferences") or ()

    def waits_for_dependents(self) -> bool:
        return deleted(self.object) and FOREGROUND in (self.object.meta.get("finalizers") or ())


class Collector:
    """Deletes what none of its owners is left of.

    An owner counts as gone once the watch has shown its deletion, or the server says that there is no object of that
    name and uid; never because a watch is late. Owners of kinds that are not served are left alone.
    """

    def __init__(self, gates: FeatureGates) -> None:
        self._served = {kind.plural: kind for kind in catalog.KINDS if kind.served(gates)}
        self.resources: tuple[str, ...] = tuple(name for name in self._served if name not in _UNCOLLECTED)
        self._things: dict[str, _Thing] = {}
        self._by_resource: dict[str, dict[str, None]] = {resource: {} for resource in self.resources}
        self._dependents: Membership[str, str] = Membership()
        self._absent: set[str] = set()
        self._asked: set[str] = set()
        self._pending = Pending()
        self._listed: set[str] = set()

    def handle(self, event: Event, now: Instant) -> Sequence[Effect]:
        if type(event) is Observed:
            return self._gone(event.object.uid) if event.change == DELETED else self._seen(event.resource, event.object)
        match event:
            case Listed(resource, objects):
                return self._all(resource, objects)
            case Written((str(what), str(uid)) as tag, response):
                self._pending.written(tag, response)
                return self._looked(uid, response) if what == LOOK else ()
            case Refused((str(what), str(uid)) as tag, response):
                self._pending.forget(tag)
                return self._refused(what, uid, response.status, now)
            case Woken((str(what), str(uid))):
                if what == LOOK:
                    self._asked.discard(uid)
                    return [effect for each in list(self._dependents.of(uid)) for effect in self._judge(each)]
                return [*self._judge(uid), *self._conclude(uid)]
        return ()

    # -- what is there

    def _all(self, resource: str, objects: Sequence[Object]) -> list[Effect]:
        there = {obj.uid for obj in objects}
        effects: list[Effect] = []
        for uid in [uid for uid in self._by_resource[resource] if uid not in there]:
            effects += self._gone(uid)
        self._pending.listed()
        last = resource not in self._listed and len(self._listed) == len(self.resources) - 1
        self._listed.add(resource)
        for obj in objects:
            effects += self._seen(resource, obj)
        if last:
            for uid in list(self._things):
                effects += [*self._judge(uid), *self._conclude(uid)]
        # An owner that was there when it was asked for, and is not in the list, was never shown and never will be.
        for owner in sorted(self._asked - self._things.keys()):
            self._asked.discard(owner)
            for dependent in list(self._dependents.of(owner)):
                effects += self._judge(dependent)
        return effects

    def _seen(self, resource: str, obj: Object) -> Sequence[Effect]:
        uid = obj.uid
        known, effects = self._things.get(uid), list[Effect]()
        if known is None:
            self._things[uid] = thing = _Thing(resource, obj)
            self._by_resource[resource][uid] = None
            self._absent.discard(uid)
            self._asked.discard(uid)
            if not thing.owners and not deleted(obj):
                return ()
            self._join(thing)
        else:
            if known.object.revision == obj.revision:
                return ()
            if self._pending:
                for what in (DELETE, DISOWN, RELEASE):
                    self._pending.observed((what, uid), obj.revision)
            before = known.owners
            known.object = obj
            if before != known.owners:
                self._leave(uid, before)
                self._join(known)
                for owner in before:
                    effects += self._left(owner.get("uid", ""))
            elif not deleted(obj):
                return effects  # what becomes of it depends on its owners, and they have not changed
        if len(self._listed) < len(self.resources):
            return effects
        return [*effects, *self._judge(uid), *self._conclude(uid)]

    def _join(self, thing: _Thing) -> None:
        for owner in thing.owners:
            self._dependents.add(owner.get("uid", ""), thing.object.uid)

    def _leave(self, uid: str, owners: Sequence[Mapping[str, Any]]) -> None:
        for owner in owners:
            self._dependents.discard(owner.get("uid", ""), uid)

    def _gone(self, uid: str) -> list[Effect]:
        """An object is no more: its dependents may have to go, its owners may have waited for that."""
        thing = self._things.pop(uid, None)
        if thing is None:
            return []
        del self._by_resource[thing.resource][uid]
        owners = thing.owners
        self._leave(uid, owners)
        for what in (DELETE, DISOWN, RELEASE):
            self._pending.forget((what, uid))
        effects: list[Effect] = []
        if uid in self._dependents:
            self._absent.add(uid)
            for dependent in list(self._dependents.of(uid)):
                effects += self._judge(dependent)
        for owner in owners:
            effects += self._left(owner.get("uid", ""))
        return effects

    def _left(self, owner: str) -> Sequence[Effect]:
        """A dependent of this owner is gone, or no longer its."""
        if owner not in self._dependents:
            self._absent.discard(owner)
        thing = self._things.get(owner)
        if thing is None or not deleted(thing.object) or len(self._listed) < len(self.resources):
            return ()
        finalizers = thing.object.meta.get("finalizers") or ()
        if ORPHAN in finalizers and owner not in self._dependents:
            return self._release(thing, ORPHAN)
        if FOREGROUND in finalizers and not self._is_blocked(owner):
            return self._release(thing, FOREGROUND)
        return ()

    # -- dependents

    def _judge(self, uid: str) -> list[Effect]:
        """Whether an object has to go because of its owners."""
        thing = self._things.get(uid)
        if thing is None or not thing.owners or len(self._listed) < len(self.resources):
            return []
        if deleted(thing.object) and not thing.waits_for_dependents():
            return []
        solid, waiting, unknown = self._classify(thing)
        if unknown:
            return self._ask(unknown, thing)
        if solid:
            return self._disown(thing, waiting) if waiting else []
        if deleted(thing.object):
            return []
        return self._delete(thing, "Foreground" if waiting else "Background")

    def _classify(
        self, thing: _Thing
    ) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]], list[Mapping[str, Any]]]:
        """Its owners that are there, that wait for their dependents to go, and that nobody has seen yet."""
        solid: list[Mapping[str, Any]] = []
        waiting: list[Mapping[str, Any]] = []
        unknown: list[Mapping[str, Any]] = []
        for owner in thing.owners:
            uid = owner.get("uid", "")
            known, kind = self._things.get(uid), self._kind_of(owner)
            if kind is None or (kind.namespaced and not thing.object.namespace):
                solid.append(owner)  # nothing can be said about it
            elif known is not None and _is_meant(known, kind, owner, thing):
                (waiting if known.waits_for_dependents() else solid).append(owner)
            elif known is None and uid not in self._absent:
                unknown.append(owner)
        return solid, waiting, unknown

    def _kind_of(self, owner: Mapping[str, Any]) -> catalog.Kind | None:
        """The kind of an owner, if this server serves it."""
        for kind in self._served.values():
            if kind.kind == owner.get("kind") and kind.group == _group(owner.get("apiVersion", "")):
                return kind
        return None

    def _ask(self, unknown: Sequence[Mapping[str, Any]], thing: _Thing) -> list[Effect]:
        """Owners that the watch has not shown may be new, or gone for long: the server knows."""
        effects: list[Effect] = []
        for owner in unknown:
            uid, kind = owner.get("uid", ""), self._kind_of(owner)
            if uid not in self._asked and kind is not None:
                self._asked.add(uid)
                where = writes.get(kind.plural, thing.object.namespace, owner.get("name", ""))
                effects.append(Write(where, (LOOK, uid)))
        return effects

    def _looked(self, uid: str, response: Response) -> Sequence[Effect]:
        found = Object(response.body)
        if found.uid == uid:
            return ()  # it is there; the watch will show it, and later its end
        return self._is_absent(uid)

    def _is_absent(self, uid: str) -> list[Effect]:
        self._asked.discard(uid)
        if uid in self._things:
            return []
        self._absent.add(uid)
        return [effect for dependent in list(self._dependents.of(uid)) for effect in self._judge(dependent)]

    def _delete(self, thing: _Thing, propagation: str) -> list[Effect]:
        obj, key = thing.object, (DELETE, thing.object.uid)
        if key in self._pending:
            return []
        self._pending.begin(key, obj.revision)
        gone = writes.delete(thing.resource, obj.namespace, obj.name, uid=obj.uid, propagation=propagation)
        return [Write(gone, key)]

    def _disown(self, thing: _Thing, owners: Sequence[Mapping[str, Any]]) -> list[Effect]:
        """Takes owners off an object that others still own, so that they need not wait for it."""
        obj, key = thing.object, (DISOWN, thing.object.uid)
        if key in self._pending:
            return []
        self._pending.begin(key, obj.revision)
        uids = {owner.get("uid") for owner in owners}
        kept = [owner for owner in thing.owners if owner.get("uid") not in uids]
        body = {"metadata": {"ownerReferences": kept, "uid": obj.uid, "resourceVersion": obj.revision}}
        return [Write(writes.patch(thing.resource, obj.namespace, obj.name, body), key)]

    # -- owners that wait

    def _conclude(self, uid: str) -> list[Effect]:
        """What a deleted owner with a collector's finalizer still has to do before that goes."""
        thing = self._things.get(uid)
        if thing is None or not deleted(thing.object) or len(self._listed) < len(self.resources):
            return []
        finalizers = thing.object.meta.get("finalizers") or ()
        if ORPHAN in finalizers:
            return self._orphan(thing)
        return self._foreground(thing) if FOREGROUND in finalizers else []

    def _orphan(self, thing: _Thing) -> list[Effect]:
        effects: list[Effect] = []
        left = list(self._dependents.of(thing.object.uid))
        for dependent in left:
            other = self._things[dependent]
            owners = [owner for owner in other.owners if owner.get("uid") == thing.object.uid]
            effects += self._disown(other, owners)
        return effects if left else self._release(thing, ORPHAN)

    def _foreground(self, thing: _Thing) -> list[Effect]:
        uid = thing.object.uid
        effects = [effect for dependent in list(self._dependents.of(uid)) for effect in self._judge(dependent)]
        return effects if self._is_blocked(uid) else [*effects, *self._release(thing, FOREGROUND)]

    def _is_blocked(self, uid: str) -> bool:
        """Whether an object that is there insists on going before its owner does.

        One that itself waits for the owner to go does not, or both would wait for ever.
        """
        return any(not self._waits_for(dependent, uid) for dependent in self._blocking(uid))

    def _blocking(self, uid: str) -> Iterator[str]:
        for dependent in self._dependents.of(uid):
            owners = self._things[dependent].owners
            if any(owner.get("uid") == uid and owner.get("blockOwnerDeletion") for owner in owners):
                yield dependent

    def _waits_for(self, uid: str, other: str) -> bool:
        """Whether this object goes only after the other one, by whatever chain of owners that wait."""
        met, left = {uid}, [uid]
        while left:
            current = left.pop()
            if current == other:
                return True
            if self._things[current].waits_for_dependents():
                more = [dependent for dependent in self._blocking(current) if dependent not in met]
                met.update(more)
                left += more
        return False

    def _release(self, thing: _Thing, finalizer: str) -> list[Effect]:
        key = (RELEASE, thing.object.uid)
        if key in self._pending:
            return []
        self._pending.begin(key, thing.object.revision)
        return [Write(without_finalizer(thing.resource, thing.object, finalizer), key)]

    # -- answers

    def _refused(self, what: str, uid: str, status: int, now: Instant) -> Sequence[Effect]:
        if what == LOOK and status == 404:
            return self._is_absent(uid)
        if what == DELETE and status in (404, 409):
            return ()  # it is gone, or another one by now; the watch will say so
        return [WakeAt(now + AGAIN, (what, uid))]


def _is_meant(known: _Thing, kind: catalog.Kind, owner: Mapping[str, Any], dependent: _Thing) -> bool:
    """Whether the object with the owner's uid is of the kind and name that the reference says, and in reach."""
    found = known.object
    return (
        known.resource == kind.plural
        and found.name == owner.get("name")
        and found.namespace in ("", dependent.object.namespace)
    )


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]
