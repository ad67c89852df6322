"""What belongs to owners of one kind, and what could: objects of one resource by their controller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from muster.api.meta import LabelSelector
from muster.api.object import Object
from muster.controllers.membership import Membership
from muster.controllers.writing import controller_of

_Pair = tuple[str, str, str]  # namespace, label key, label value


class Children:
    """All objects of a resource that are controlled by an owner of `kind`, and those that nobody controls.

    Orphans are found by their labels, so that many of them cost an owner nothing that selects others.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._known: dict[str, Object] = {}
        self._of: Membership[str, str] = Membership()
        self._orphans: Membership[str, str] = Membership()
        self._labelled: Membership[_Pair, str] = Membership()

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def get(self, uid: str) -> Object | None:
        return self._known.get(uid)

    def owner(self, child: Object | None) -> str:
        """Uid of the owner that controls it, or ""."""
        reference = controller_of(child) if child is not None else None
        return str(reference["uid"]) if reference is not None and reference.get("kind") == self._kind else ""

    def put(self, child: Object) -> Object | None:
        """Notes it as it is now; returns it as it was."""
        reference = controller_of(child)
        if reference is not None and reference.get("kind") != self._kind:
            return self.drop(child.uid)
        before = self._known.get(child.uid)
        if before is not None:
            if before.meta.get("ownerReferences") == child.meta.get("ownerReferences") and (
                before.meta.get("labels") == child.meta.get("labels")
            ):
                self._known[child.uid] = child
                return before
            self._unindex(before)
        self._known[child.uid] = child
        if reference is not None:
            self._of.add(reference["uid"], child.uid)
        else:
            self._orphans.add(child.namespace, child.uid)
            for pair in _pairs(child):
                self._labelled.add(pair, child.uid)
        return before

    def drop(self, uid: str) -> Object | None:
        """It is gone, or belongs to others; returns what it was."""
        known = self._known.pop(uid, None)
        if known is not None:
            self._unindex(known)
        return known

    def of(self, owner: str) -> list[Object]:
        return [self._known[uid] for uid in self._of.of(owner)]

    def number(self, owner: str) -> int:
        """How many children the owner has."""
        return len(self._of.of(owner))

    def orphans(self, namespace: str, selector: LabelSelector) -> list[Object]:
        """Those that may match the selector: all of one of its labels, or all."""
        pair = next(iter(selector.match_labels.items()), None)
        found: Iterable[str] = self._orphans.of(namespace) if pair is None else self._labelled.of((namespace, *pair))
        return [self._known[uid] for uid in found]

    def _unindex(self, child: Object) -> None:
        reference = controller_of(child)
        if reference is not None:
            self._of.discard(reference["uid"], child.uid)
        else:
            self._orphans.discard(child.namespace, child.uid)
            for pair in _pairs(child):
                self._labelled.discard(pair, child.uid)


def _pairs(child: Object) -> Iterator[_Pair]:
    for key, value in (child.meta.get("labels") or {}).items():
        yield child.namespace, key, value
