"""ResourceQuotas: how much of each is taken, kept exactly with every change of the store, and what is refused for it.

A namespace without a quota costs nothing. With one, `Quotas.note` moves the sums by what a change moves, in the same
step, so that `check` and the write after it are one; `settle` writes what has changed into the status of the quotas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from muster.api import catalog, quantity, scopes, usage
from muster.api.quotas import ResourceQuota
from muster.api.usage import Usage
from muster.apiserver import status
from muster.apiserver.log import Raw

if TYPE_CHECKING:
    from muster.apiserver.state import Call
    from muster.apiserver.storage import Change, Store

Json = dict[str, Any]

QUOTAS = catalog.RESOURCE_QUOTA.plural
_PODS = catalog.POD.plural
_GROWING = {
    _PODS: ("", "resize"), catalog.PERSISTENT_VOLUME_CLAIM.plural: ("",), catalog.SERVICE.plural: ("",),
    catalog.RESOURCE_CLAIM.plural: ("",),
}  # fmt: skip
"""Where an update may take more than before: resources, and what of their paths."""


class Bound:
    """One quota and what is taken of it."""

    def __init__(self, raw: Raw) -> None:
        view = msgspec.convert(raw, ResourceQuota)
        self.name = view.metadata.name
        self.spec = raw.get("spec")
        self.hard = {name: quantity.nanos(value) for name, value in view.spec.hard.items()}
        self.scopes = scopes.requirements(view.spec)
        self.names: dict[str, frozenset[str]] = {}
        """What each resource may take of."""
        for name in self.hard:
            resource = usage.counted_from(name)
            self.names[resource] = self.names.get(resource, frozenset()) | {name}
        self.used = dict.fromkeys(self.hard, 0)
        self._taken: dict[tuple[str, str], Usage] = {}

    def wants(self, resource: str, raw: Raw) -> bool:
        """Whether an object may take anything of this quota."""
        return resource in self.names and usage.inside(resource, raw, self.scopes)

    def note(self, resource: str, name: str, raw: Raw | None, whole: Usage) -> bool:
        """An object is as `raw` now and takes `whole`, or is gone; whether that changes what is taken of this quota."""
        if resource not in self.names:
            return False
        before = self._taken.pop((resource, name), None)
        taken = self.share(resource, whole) if raw is not None and self.wants(resource, raw) else {}
        if taken:
            self._taken[resource, name] = taken
        if before == taken or not (before or taken):
            return False
        for each, amount in (before or {}).items():
            self.used[each] -= amount
        for each, amount in taken.items():
            self.used[each] += amount
        return True

    def share(self, resource: str, whole: Usage) -> Usage:
        """What of an object's usage this quota bounds."""
        bounded = self.names[resource]
        return {name: value for name, value in whole.items() if name in bounded and value}

    def taken_by(self, resource: str, name: str) -> Usage:
        return self._taken.get((resource, name), {})

    @property
    def status(self) -> Json:
        hard = (self.spec or {}).get("hard") or {}
        used = {name: usage.shown(name, self.used[name]) for name in self.hard}
        return {"hard": dict(hard), "used": used} if hard else {}


class Quotas:
    """All quotas of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.bounds: dict[str, dict[str, Bound]] = {}
        """By namespace and name. Namespaces without a quota are not in it."""
        self._moved: set[tuple[str, str]] = set()
        self.recount()

    def recount(self) -> None:
        """Begins anew with what is stored."""
        self.bounds.clear()
        self._moved.clear()
        for raw in self._store.all(QUOTAS):
            self._define(raw["metadata"]["namespace"], raw)

    def of(self, namespace: str) -> Iterable[Bound]:
        """The quotas of a namespace by name."""
        found = self.bounds.get(namespace, {})
        return [found[name] for name in sorted(found)]

    def counted(self, namespace: str, raw: Raw) -> Bound:
        """A quota as if it were stored now."""
        bound = Bound(raw)
        for resource in bound.names:
            for each in self._store.all(resource, namespace):
                bound.note(resource, each["metadata"]["name"], each, usage.measured(resource, each))
        return bound

    def note(self, change: Change) -> None:
        """The store has changed."""
        space, event = change.namespace, change.event
        raw = None if event.type == "DELETED" else event.object
        there = [(name, bound) for name, bound in self.bounds.get(space, {}).items() if change.resource in bound.names]
        whole = usage.measured(change.resource, raw) if there and raw is not None else {}
        for name, bound in there:
            if bound.note(change.resource, change.name, raw, whole):
                self._moved.add((space, name))
        if change.resource != QUOTAS:
            return
        if raw is None:
            self._moved.discard((space, change.name))
            del self.bounds[space][change.name]
            if not self.bounds[space]:
                del self.bounds[space]
        else:
            self._define(space, raw)

    def _define(self, namespace: str, raw: Raw) -> None:
        name = raw["metadata"]["name"]
        known = self.bounds.get(namespace, {}).get(name)
        if known is None or known.spec != raw.get("spec"):
            known = self.bounds.setdefault(namespace, {})[name] = self.counted(namespace, raw)
        if (raw.get("status") or {}) != known.status:
            self._moved.add((namespace, name))

    def settle(self) -> None:
        """Writes what is taken into the status of the quotas of which that has changed."""
        while self._moved:
            namespace, name = self._moved.pop()
            raw, bound = self._store.get(QUOTAS, namespace, name), self.bounds[namespace][name]
            if raw is None or (raw.get("status") or {}) == (told := bound.status):
                continue
            author, self._store.author = self._store.author, None
            made = {**raw, "metadata": dict(raw["metadata"]), "status": told}
            self._store.put(QUOTAS, namespace, name, made)
            self._store.author = author


def check(call: Call, made: Raw, old: Raw | None) -> None:
    """Refuses what would take more than a quota of its namespace allows.

    Raises:
        Failure: 403, says which quota, what was asked for, what is taken and what is allowed.
    """
    resource, name = call.kind.resource, made["metadata"]["name"]
    if call.namespace not in call.store.quotas.bounds:
        return
    if old is not None and call.subresource not in _GROWING.get(resource, ()):
        return
    bounds = [bound for bound in call.store.quotas.of(call.namespace) if bound.wants(resource, made)]
    if resource == _PODS:
        for bound in bounds:
            _require_said(call, name, bound, made)
    whole = usage.measured(resource, made) if bounds else {}
    for bound in bounds:
        before = bound.taken_by(resource, name) if old is not None else {}
        more = {each: value - before.get(each, 0) for each, value in bound.share(resource, whole).items()}
        over = sorted(each for each, value in more.items() if value > 0 and bound.used[each] + value > bound.hard[each])
        if over:
            asked, taken, hard = (_listed(amounts, over) for amounts in (more, bound.used, bound.hard))
            why = f"exceeded quota: {bound.name}, requested: {asked}, used: {taken}, limited: {hard}"
            raise status.forbidden(call.kind, name, why)


def _require_said(call: Call, name: str, bound: Bound, made: Raw) -> None:
    missing = usage.unsaid(made, bound.names[_PODS] & usage.REQUIRED)
    if missing:
        said = "; ".join(f"{each} for: {','.join(sorted(missing[each]))}" for each in sorted(missing))
        raise status.forbidden(call.kind, name, f"failed quota: {bound.name}: must specify {said}")


def _listed(amounts: Usage, names: Iterable[str]) -> str:
    return ",".join(f"{name}={usage.shown(name, amounts[name])}" for name in names)


def first_status(call: Call, made: Raw) -> Json:
    """The status of a new quota, or of one whose spec changes."""
    return call.store.quotas.counted(call.namespace, made).status


def problems(store: Store) -> Iterator[str]:
    """Where what is kept differs from what is there, or is more than what is allowed: nowhere, ever."""
    for namespace in sorted({raw["metadata"]["namespace"] for raw in store.all(QUOTAS)}):
        for bound in store.quotas.of(namespace):
            raw = store.get(QUOTAS, namespace, bound.name)
            counted = store.quotas.counted(namespace, raw).used if raw is not None else {}
            if counted != bound.used:
                yield f"{namespace}/{bound.name}: kept {bound.used}, there are {counted}"
            if raw is not None and (raw.get("status") or {}) != bound.status:
                yield f"{namespace}/{bound.name}: status {raw.get('status')}, kept {bound.status}"
