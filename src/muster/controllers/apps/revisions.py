"""ControllerRevisions: the states that the template of a StatefulSet or DaemonSet has had, to tell pods apart by and to
go back to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from muster.api import writes
from muster.api.calls import MERGE_PATCH, Response
from muster.api.machine import Effect, Write
from muster.api.object import Object
from muster.controllers.apps.care import reference_to
from muster.controllers.apps.children import Children
from muster.controllers.apps.names import canonical, template_hash
from muster.controllers.apps.owner import Owner
from muster.controllers.pod_status import deleted
from muster.controllers.writing import Pending, controller_of

REVISIONS = "controllerrevisions"
REVISION, SEEK = "revision", "revision?"
"""First parts of tags; the owner's uid and the revision's name follow."""
POD_LABEL = "controller-revision-hash"
Raw = Mapping[str, Any]


class Settled(NamedTuple):
    """`update` is the revision of the template as it is now, None while it is being made; `all` are oldest first."""

    update: Object | None
    all: Sequence[Object]
    effects: list[Effect]


def data_of(owner: Raw) -> dict[str, Any]:
    """The patch that gives an owner the template that it has now."""
    return {"spec": {"template": {**(owner["spec"].get("template") or {}), "$patch": "replace"}}}


def _alike(data: Any, other: Any) -> bool:
    """Whether two such patches give the same template."""
    return bool(data == other or canonical(data) == canonical(other))


def template_of(revision: Object) -> dict[str, Any]:
    """The pod template that a revision restores."""
    template = ((revision.raw.get("data") or {}).get("spec") or {}).get("template") or {}
    return {key: value for key, value in template.items() if key != "$patch"}


def number_of(revision: Object) -> int:
    return revision.raw.get("revision") or 0


class Revisions:
    """All revisions of owners of one kind.

    Args:
        hash_label: the label by which a revision tells its hash.
        pending: writes under way, shared with the controller.
    """

    def __init__(self, kind: str, hash_label: str, pending: Pending) -> None:
        self._kind = kind
        self._hash_label = hash_label
        self._pending = pending
        self._known = Children(kind)
        self._collisions: dict[str, int] = {}

    def seen(self, revision: Object) -> list[str]:
        """Takes one as it is now; the uids of the owners to look at, "" for one that nobody owns."""
        before = self._known.put(revision)
        concerned = list(dict.fromkeys((self._known.owner(before), self._known.owner(revision))))
        for uid in concerned:
            self._pending.observed((REVISION, uid, revision.name), revision.revision)
        return concerned

    def gone(self, revision: Object) -> list[str]:
        uid = self._known.owner(self._known.drop(revision.uid)) or self._known.owner(revision)
        self._pending.forget((REVISION, uid, revision.name))
        return [uid]

    def listed(self, objects: Sequence[Object]) -> None:
        there = {obj.uid for obj in objects}
        for uid in [uid for uid in self._known if uid not in there]:
            known = self._known.get(uid)
            if known is not None:
                self.gone(known)
        for obj in objects:
            self.seen(obj)

    def forget(self, uid: str) -> None:
        """The owner is gone."""
        self._collisions.pop(uid, None)

    def of(self, owner: Owner) -> list[Object]:
        """Oldest first."""
        there = [each for each in self._known.of(owner.uid) if not deleted(each)]
        return sorted(there, key=lambda each: (number_of(each), each.meta.get("creationTimestamp") or "", each.name))

    def collisions(self, owner: Owner) -> int:
        """How many names of revisions turned out to be those of other states."""
        return max(owner.status.get("collisionCount") or 0, self._collisions.get(owner.uid, 0))

    def adoptable(self, owner: Owner) -> list[Object]:
        found = self._known.orphans(owner.object.namespace, owner.selector)
        return [each for each in found if not deleted(each) and owner.selects.matches(each.meta.get("labels") or {})]

    def adopt(self, owner: Owner) -> list[Effect]:
        """Takes the orphans of an owner of which the server has said that it is there to stay."""
        effects: list[Effect] = []
        for each in self.adoptable(owner):
            references = [*(each.meta.get("ownerReferences") or ()), reference_to(owner.object.raw, self._kind)]
            effects += self._patch(owner, each, {"metadata": {"ownerReferences": references}})
        return effects

    def settle(self, owner: Owner) -> Settled:
        """Finds the revision of the template, or has it made; one of an earlier time becomes the newest again."""
        there, data = self.of(owner), data_of(owner.object.raw)
        newest = number_of(there[-1]) if there else 0
        same = [each for each in there if each.raw.get("data") == data]
        same = same or [each for each in there if _alike(each.raw.get("data"), data)]
        if not same:
            return Settled(None, there, self._make(owner, data, newest + 1))
        if same[-1] is there[-1]:
            return Settled(same[-1], there, [])
        return Settled(same[-1], there, self._patch(owner, same[-1], {"revision": newest + 1}))

    def surplus(self, owner: Owner, settled: Settled, live: Collection[str]) -> list[Effect]:
        """Deletes the oldest beyond `revisionHistoryLimit`, except those whose names are `live`."""
        limit = owner.spec.get("revisionHistoryLimit")
        idle = [each for each in settled.all if each.name not in live and each is not settled.update]
        effects: list[Effect] = []
        for each in idle[: max(0, len(idle) - (10 if limit is None else limit))]:
            key = (REVISION, owner.uid, each.name)
            if key not in self._pending:
                self._pending.begin(key, each.revision)
                effects.append(Write(writes.delete(REVISIONS, each.namespace, each.name, uid=each.uid), key))
        return effects

    def refused(self, owner: Owner, name: str, status: int) -> list[Effect]:
        """A write of a revision was refused: if its name is taken, the server is asked by what."""
        if status not in (0, 409) or any(each.name == name for each in self.of(owner)):
            return []
        return [Write(writes.get(REVISIONS, owner.object.namespace, name), (SEEK, owner.uid, name))]

    def found(self, owner: Owner, name: str, response: Response) -> None:
        """What has the name: this owner's revision, which the watch will show, or another one, and that collides."""
        there = Object(response.body)
        controller = controller_of(there)
        mine = controller is None or controller.get("uid") == owner.uid
        if not mine or not _alike(there.raw.get("data"), data_of(owner.object.raw)):
            self._collisions[owner.uid] = self.collisions(owner) + 1

    def _make(self, owner: Owner, data: Raw, number: int) -> list[Effect]:
        template = owner.spec.get("template") or {}
        hashed = template_hash(template, self.collisions(owner))
        name = f"{owner.object.name[: 252 - len(hashed)]}-{hashed}"
        key = (REVISION, owner.uid, name)
        if key in self._pending:
            return []
        metadata: dict[str, Any] = {
            "name": name,
            "namespace": owner.object.namespace,
            "labels": {**((template.get("metadata") or {}).get("labels") or {}), self._hash_label: hashed},
            "ownerReferences": [reference_to(owner.object.raw, self._kind)],
        }
        if owner.object.meta.get("annotations"):
            metadata["annotations"] = owner.object.meta["annotations"]
        made = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata}
        self._pending.begin(key)
        return [Write(writes.create({**made, "data": data, "revision": number}), key)]

    def _patch(self, owner: Owner, revision: Object, body: Raw) -> list[Effect]:
        key = (REVISION, owner.uid, revision.name)
        if key in self._pending:
            return []
        self._pending.begin(key, revision.revision)
        meta = {**(body.get("metadata") or {}), "uid": revision.uid, "resourceVersion": revision.revision}
        whole = {**body, "metadata": meta}
        return [Write(writes.patch(REVISIONS, revision.namespace, revision.name, whole, MERGE_PATCH), key)]
