"""Owners and dependents where one of them is of a user's kind: the garbage collector only knows the built-in kinds.

What an object of a user's kind owns goes with it, here and at once, as what is in a namespace does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from muster.api import catalog
from muster.api.catalog import Kind, Raw
from muster.apiserver.custom import registry
from muster.apiserver.custom.kinds import CustomKind
from muster.apiserver.storage import Store

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_NEVER_OWNED = (catalog.EVENT, catalog.NAMESPACE)

Dependent = tuple[Kind, Raw]


def of(store: Store, kind: Kind, owner: Raw) -> list[Dependent]:
    """What `owner` owns and nobody else looks after: everything if it is of a user's kind, else what is of one."""
    customs = registry.all_storing(store)
    if not customs:
        return []
    kinds: list[Kind] = [*customs]
    if isinstance(kind, CustomKind):
        kinds += [each for each in catalog.KINDS if each not in _NEVER_OWNED]
    meta = owner["metadata"]
    space = meta.get("namespace")
    return [
        (each, raw)
        for each in kinds
        if each.namespaced or not kind.namespaced
        for raw in store.all(each.resource, space if each.namespaced and space else None)
        if any(reference.get("uid") == meta["uid"] for reference in _references(raw))
    ]


def _references(raw: Raw) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = raw["metadata"].get("ownerReferences") or []
    return found


def blocks(raw: Raw, uid: str) -> bool:
    """Whether an owner waits for this before it goes, when it is deleted in the foreground."""
    return any(entry.get("uid") == uid and entry.get("blockOwnerDeletion") for entry in _references(raw))


def without_owner(raw: Raw, uid: str) -> dict[str, Any] | None:
    """An object that lets go of one owner; None: it has no other."""
    left = [reference for reference in _references(raw) if reference.get("uid") != uid]
    return {**raw, "metadata": {**raw["metadata"], "ownerReferences": left}} if left else None


def disowned(raw: Raw, uid: str) -> dict[str, Any]:
    """An object without one owner, whether it has others or not."""
    made = without_owner(raw, uid)
    if made is None:
        meta = {key: value for key, value in raw["metadata"].items() if key != "ownerReferences"}
        made = {**raw, "metadata": meta}
    return made


def waiting_owners(store: Store, raw: Raw) -> Iterator[tuple[CustomKind, Raw]]:
    """Owners of users' kinds that are being deleted in the foreground, and so wait for their dependents."""
    references = _references(raw)
    if not references:
        return
    space = raw["metadata"].get("namespace", "")
    for kind in registry.all_storing(store):
        for reference in references:
            if reference.get("kind") != kind.kind or reference.get("apiVersion", "").partition("/")[0] != kind.group:
                continue
            owner = store.get(kind.resource, space if kind.namespaced else "", reference.get("name", ""))
            if owner is not None and owner["metadata"]["uid"] == reference.get("uid") and is_waiting(owner):
                yield kind, owner


def is_waiting(owner: Raw) -> bool:
    meta = owner["metadata"]
    return "deletionTimestamp" in meta and FOREGROUND in (meta.get("finalizers") or ())


def released(owner: Raw, finalizer: str) -> dict[str, Any]:
    """An owner that no longer waits."""
    left = [name for name in owner["metadata"].get("finalizers") or () if name != finalizer]
    meta = {**owner["metadata"], "finalizers": left}
    if not left:
        del meta["finalizers"]
    return {**owner, "metadata": meta}
