"""How a controller looks after owners of one kind and their children: what it sees, asks for, adopts and lets go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from muster.api import writes
from muster.api.calls import MERGE_PATCH, Response
from muster.api.instant import MILLISECOND, SECOND, Instant
from muster.api.machine import DELETED, Effect, Event, Listed, Observed, Refused, Woken, Write, Written
from muster.api.object import Object
from muster.controllers.apps.children import Children
from muster.controllers.apps.owner import Creation, Owner
from muster.controllers.membership import Membership
from muster.controllers.pod_status import deleted
from muster.controllers.writing import AGAIN, Pending, controller_of, event

SETTLE: Instant = 20 * MILLISECOND
EACH: Instant = MILLISECOND // 5
LONGEST_SETTLE: Instant = SECOND
"""How long changes of children are collected before their owner is looked at: longer the more there are to look at, so
that making many costs no more than a share of the time it takes."""
CREATE, LOOK, DELETE, PATCH, READ = "create", "look", "delete", "patch", "read"
CHECK, STATUS, SELF = "check", "status", "self"
"""First parts of tags; the owner's uid follows, then a child's name (CREATE, LOOK) or uid (DELETE, PATCH, READ)."""
_API = "apps/v1"


class Care(ABC):
    """A machine of which a subclass says what one look at one owner brings (`sync`).

    Every write is conditional (uid, resourceVersion) or a create under a name that is the same after a restart, and
    each object has one write under way until the watch shows it.
    """

    def __init__(self, kind: str, resource: str, children: str, component: str, *more: str) -> None:
        self.kind, self.resource, self.child_resource, self.component = kind, resource, children, component
        self.resources: tuple[str, ...] = (resource, children, *more)
        self.children = Children(kind)
        self.owners: dict[str, Owner] = {}
        self.pending = Pending()
        self._inside: Membership[str, str] = Membership()
        self._listed: set[str] = set()

    @abstractmethod
    def sync(self, owner: Owner, now: Instant) -> list[Effect]:
        """What this owner lacks, as writes."""

    def others(self, resource: str, change: str, obj: Object, now: Instant) -> list[Effect]:
        """Something of the further resources has changed."""
        return []

    def others_listed(self, resource: str, objects: Sequence[Object], now: Instant) -> list[Effect]:
        """All of one of the further resources."""
        return []

    def made(self, owner: Owner, child: Object, now: Instant) -> list[Effect]:
        """The server has a child that was asked for."""
        return []

    def written(self, what: str, owner: Owner, key: str, response: Response, now: Instant) -> list[Effect]:
        """A write of the subclass was carried out."""
        return []

    def refused(self, what: str, owner: Owner, key: str, response: Response, now: Instant) -> list[Effect]:
        """A write was refused; the owner is looked at again soon."""
        return []

    def owner_gone(self, owner: Owner, now: Instant) -> list[Effect]:
        """An owner does not exist any more."""
        return []

    def touched(self, uid: str, child: Object, now: Instant) -> list[Effect]:
        """A child of this owner has come, changed or gone; the owner is looked at soon."""
        return []

    def warning(self, what: str, key: str, response: Response) -> tuple[str, str]:
        """Reason and message for a child that could not be made (CREATE) or deleted (DELETE)."""
        done = "creating" if what == CREATE else "deleting"
        return "FailedCreate" if what == CREATE else "FailedDelete", f"Error {done}: {problem_of(response)}"

    def handle(self, event: Event, now: Instant) -> Sequence[Effect]:
        if type(event) is Observed:
            return self._observed(event.resource, event.change, event.object, now)
        match event:
            case Listed(resource, objects):
                return self._all(resource, objects, now)
            case Woken((_, str(uid))):
                return self._woken(uid, now)
            case Written((str(what), str(uid), str(key)), response):
                what = PATCH if what == READ else what  # what was read is what came of the change
                shown = self.pending.written((what, uid, key), response)
                owner = self.owners.get(uid)
                return self._written(what, owner, key, shown, response, now) if owner is not None else ()
            case Refused((str(what), str(uid), str(key)), response):
                owner, child = self.owners.get(uid), self.children.get(key)
                if what == PATCH and response.status in (0, 409) and owner is not None and child is not None:
                    return [Write(writes.get(self.child_resource, child.namespace, child.name), (READ, uid, key))]
                self.pending.forget((PATCH if what == READ else what, uid, key))
                return self._refused(what, owner, key, response, now) if owner is not None else ()
        return ()

    # -- what is seen

    def _observed(self, resource: str, change: str, obj: Object, now: Instant) -> list[Effect]:
        if resource == self.child_resource:
            return self._child_gone(obj, now) if change == DELETED else self._child_seen(obj, now)
        if resource == self.resource:
            return self._owner_gone(obj.uid, now) if change == DELETED else self._owner_seen(obj, now)
        return self.others(resource, change, obj, now)

    def _all(self, resource: str, objects: Sequence[Object], now: Instant) -> list[Effect]:
        there = {obj.uid for obj in objects}
        self._listed.add(resource)
        effects: list[Effect] = []
        if resource == self.child_resource:
            for uid in [uid for uid in self.children if uid not in there]:
                effects += self._drop(uid, now)
            for owner in self.owners.values():
                owner.relisted()
            self.pending.listed()
            for obj in objects:
                effects += self._child_seen(obj, now)
        elif resource == self.resource:
            for uid in [uid for uid in self.owners if uid not in there]:
                effects += self._owner_gone(uid, now)
            self.pending.listed()
            for obj in objects:
                effects += self._owner_seen(obj, now)
        else:
            effects += self.others_listed(resource, objects, now)
        for owner in self.owners.values():
            effects += owner.wake(now + SETTLE)
        return effects

    def _owner_seen(self, obj: Object, now: Instant) -> list[Effect]:
        owner = self.owners.get(obj.uid)
        if owner is None:
            owner = self.owners[obj.uid] = Owner(obj)
            self._inside.add(obj.namespace, obj.uid)
            owner.see(obj)
        else:
            for what in (STATUS, SELF):
                self.pending.observed((what, obj.uid, ""), obj.revision)
            if owner.object.revision == obj.revision:
                return []
            owner.see(obj)
        return owner.wake(now)

    def _owner_gone(self, uid: str, now: Instant) -> list[Effect]:
        owner = self.owners.pop(uid, None)
        if owner is not None:
            self._inside.discard(owner.object.namespace, uid)
            for what in (STATUS, SELF):
                self.pending.forget((what, uid, ""))
            return self.owner_gone(owner, now)
        return []

    def _child_seen(self, child: Object, now: Instant) -> list[Effect]:
        known = self.children.get(child.uid)
        if known is not None and known.revision == child.revision:
            return []
        before = self.children.put(child)
        if before is None and self.children.get(child.uid) is None:
            return []  # another controller's
        effects: list[Effect] = []
        for uid in dict.fromkeys((self.children.owner(before), self.children.owner(child))):
            if uid:
                self._shown(uid, child)
                effects += self.touched(uid, child, now)
                effects += self.look_at(uid, now)
        if controller_of(child) is None:
            effects += self._look_for_parents(child, now)
        return effects

    def _shown(self, uid: str, child: Object) -> None:
        """The watch has caught up with what was asked of this child."""
        owner = self.owners.get(uid)
        if owner is not None:
            owner.creating.pop(child.name, None)
        if self.pending:
            for what in (PATCH, DELETE):
                self.pending.observed((what, uid, child.uid), child.revision)

    def _look_for_parents(self, orphan: Object, now: Instant) -> list[Effect]:
        labels = orphan.meta.get("labels") or {}
        effects: list[Effect] = []
        for uid in self._inside.of(orphan.namespace) if labels else ():
            if (PATCH, uid, orphan.uid) in self.pending:
                self.pending.observed((PATCH, uid, orphan.uid), orphan.revision)
            if self.owners[uid].selects.matches(labels):
                effects += self.look_at(uid, now)
        return effects

    def _child_gone(self, child: Object, now: Instant) -> list[Effect]:
        effects = self._drop(child.uid, now)
        uid = self.children.owner(child)
        owner = self.owners.get(uid)
        if owner is not None:
            owner.creating.pop(child.name, None)
            owner.gone.append(child.name)
        return effects + self.look_at(uid, now)

    def _drop(self, uid: str, now: Instant) -> list[Effect]:
        known = self.children.drop(uid)
        parent = self.children.owner(known)
        effects = self.touched(parent, known, now) if known is not None and parent else []
        for what in (PATCH, DELETE):
            self.pending.forget((what, parent, uid))
        return effects

    def look_at(self, uid: str, now: Instant) -> list[Effect]:
        owner = self.owners.get(uid)
        if owner is None:
            return []
        return owner.wake(now + min(SETTLE + EACH * self.children.number(uid), LONGEST_SETTLE))

    def inside(self, namespace: str) -> list[Owner]:
        """The owners of a namespace."""
        return [self.owners[uid] for uid in self._inside.of(namespace)]

    # -- timers and answers

    def _woken(self, uid: str, now: Instant) -> list[Effect]:
        owner = self.owners.get(uid)
        if owner is None:
            return []
        owner.timer = None
        return self.sync(owner, now) if len(self._listed) == len(self.resources) else []

    def _written(
        self, what: str, owner: Owner, key: str, shown: bool, response: Response, now: Instant
    ) -> Sequence[Effect]:
        if what == CREATE:
            effects = [*self._created(owner, key), *self.made(owner, Object(response.body), now)]
            if owner.waits():
                return effects
            owner.made()
            return [*effects, *owner.wake(now)]
        if what == LOOK:
            controller = controller_of(Object(response.body))
            if controller is not None and controller.get("uid") == owner.uid:
                made = self.made(owner, Object(response.body), now)
                return [*self._created(owner, key), *made, *owner.wake(now)]
            owner.creating.pop(key, None)
            owner.taken.add(key)
            return [*self.written(what, owner, key, response, now), *owner.wake(now + AGAIN)]
        if what == CHECK:
            owner.asked = False
            there = Object(response.body)
            return self.adopt(owner) if there.uid == owner.uid and not deleted(there) else ()
        return [*self.written(what, owner, key, response, now), *(owner.wake(now + SETTLE) if shown else ())]

    def _created(self, owner: Owner, name: str) -> list[Effect]:
        """The server has the child; unless it may be gone again, the watch will show it."""
        creation = owner.creating.get(name)
        if creation is None:
            return []
        if creation.listed:
            creation.listed = False
            return [Write(writes.get(self.child_resource, owner.object.namespace, name), (LOOK, owner.uid, name))]
        creation.answered = True
        return []

    def _refused(self, what: str, owner: Owner, key: str, response: Response, now: Instant) -> Sequence[Effect]:
        status = response.status
        if what == CREATE and status in (0, 409) and key in owner.creating:
            return [Write(writes.get(self.child_resource, owner.object.namespace, key), (LOOK, owner.uid, key))]
        effects: list[Effect] = []
        if what in (CREATE, LOOK):
            owner.creating.pop(key, None)
            owner.refused(now)
        elif what == CHECK:
            owner.asked = False
        if what == CREATE or (what == DELETE and status not in (404, 409)):
            effects += self.warns(owner, *self.warning(what, key, response), now)
        effects += self.refused(what, owner, key, response, now)
        return [*effects, *owner.wake(max(now + AGAIN, owner.retry_at))]

    def warns(self, owner: Owner, reason: str, message: str, now: Instant) -> list[Effect]:
        owner.problem = (reason, message)
        if owner.said == (reason, message):
            return []
        owner.said = (reason, message)
        return [self.says(owner, reason, message, now, warning=True)]

    # -- what it asks for

    def says(self, owner: Owner, reason: str, message: str, now: Instant, *, warning: bool = False) -> Effect:
        return event(owner.object.raw, reason, message, component=self.component, now=now, warning=warning)

    def create(self, owner: Owner, made: Mapping[str, Any]) -> Effect:
        """A new child; counts as there until the watch shows it or the server refuses it."""
        name = made["metadata"]["name"]
        owner.creating[name] = Creation()
        return Write(writes.create(made), (CREATE, owner.uid, name))

    def delete(self, owner: Owner, child: Object) -> list[Effect]:
        key = (DELETE, owner.uid, child.uid)
        if key in self.pending:
            return []
        self.pending.begin(key, child.revision)
        return [Write(writes.delete(self.child_resource, child.namespace, child.name, uid=child.uid), key)]

    def leaving(self, owner: Owner, child: Object) -> bool:
        """Whether its deletion was asked for, or it is being deleted."""
        return deleted(child) or (DELETE, owner.uid, child.uid) in self.pending

    def patch(self, owner: Owner, child: Object, body: Mapping[str, Any]) -> list[Effect]:
        """Changes a child that still is as it was seen.

        Refused as outdated, or not answered, it may or may not have been changed already: then what there is is read,
        and until the watch has shown that nothing is decided from what was known before.
        """
        key = (PATCH, owner.uid, child.uid)
        if key in self.pending:
            return []
        self.pending.begin(key, child.revision)
        meta = {**(body.get("metadata") or {}), "uid": child.uid, "resourceVersion": child.revision}
        whole = {**body, "metadata": meta}
        return [Write(writes.patch(self.child_resource, child.namespace, child.name, whole, MERGE_PATCH), key)]

    def patched(self, owner: Owner, child: Object) -> bool:
        """Whether a change of this child is on its way."""
        return (PATCH, owner.uid, child.uid) in self.pending

    def patch_self(self, owner: Owner, body: Mapping[str, Any], what: str = SELF) -> list[Effect]:
        """Changes the owner (SELF), or its status (STATUS), as it was seen."""
        key, obj = (what, owner.uid, ""), owner.object
        if any((each, owner.uid, "") in self.pending for each in (STATUS, SELF)):
            return []
        self.pending.begin(key, obj.revision)
        meta = {**(body.get("metadata") or {}), "uid": obj.uid, "resourceVersion": obj.revision}
        subresource = "status" if what == STATUS else None
        whole = {**body, "metadata": meta}
        return [Write(writes.patch(self.resource, obj.namespace, obj.name, whole, subresource=subresource), key)]

    def claim(self, owner: Owner) -> tuple[list[Object], bool, list[Effect]]:
        """The children it has, whether orphans are still to be adopted, and what is to be written for that.

        Children that its selector no longer matches are let go; orphans that it matches are taken, once the server has
        confirmed that the owner is not about to go.
        """
        mine: list[Object] = []
        effects: list[Effect] = []
        going = deleted(owner.object)
        for child in self.children.of(owner.uid):
            if going or owner.selects.matches(child.meta.get("labels") or {}):
                mine.append(child)
            elif not deleted(child):
                effects += self.patch(owner, child, {"metadata": {"ownerReferences": _without(child, owner.uid)}})
        waits = not going and any(self.adoptable(owner))
        if waits and not owner.asked:
            owner.asked = True
            get = writes.get(self.resource, owner.object.namespace, owner.object.name)
            effects.append(Write(get, (CHECK, owner.uid, "")))
        return mine, waits, effects

    def may_adopt(self, child: Object) -> bool:
        """Whether an orphan with the right labels is worth having."""
        return not deleted(child)

    def adoptable(self, owner: Owner) -> list[Object]:
        found = self.children.orphans(owner.object.namespace, owner.selector)
        return [each for each in found if self.may_adopt(each) and owner.selects.matches(each.meta.get("labels") or {})]

    def adopt(self, owner: Owner) -> list[Effect]:
        mine = reference_to(owner.object.raw, self.kind)
        effects: list[Effect] = []
        for child in self.adoptable(owner):
            references = [*(child.meta.get("ownerReferences") or ()), mine]
            effects += self.patch(owner, child, {"metadata": {"ownerReferences": references}})
        return effects


def reference_to(owner: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The owner reference of a controller of group apps."""
    meta = owner["metadata"]
    return {
        "apiVersion": _API,
        "kind": kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def problem_of(response: Response) -> str:
    """What the server said about a refusal."""
    body = response.body
    return str((body.get("message") if isinstance(body, Mapping) else "") or response.status)


def _without(child: Object, uid: str) -> list[Mapping[str, Any]]:
    return [each for each in child.meta.get("ownerReferences") or () if each.get("uid") != uid]
