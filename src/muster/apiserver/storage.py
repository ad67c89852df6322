"""The truth: a versioned map of objects and its change log, under one revision counter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from muster.api.machine import ADDED, DELETED, MODIFIED
from muster.apiserver import ownership
from muster.apiserver.log import Log, Raw, WatchEvent
from muster.apiserver.quota import QUOTAS, Quotas

_NONE: Mapping[str, Raw] = {}


class Change(NamedTuple):
    """One write, for whoever keeps them."""

    resource: str
    namespace: str
    name: str
    event: WatchEvent


class Store:
    """Objects by resource, namespace ("" for cluster-scoped ones) and name.

    A stored object is never changed in place: a write replaces it and shares what stayed the same. Every write moves
    the revision by exactly one and stamps it into `metadata.resourceVersion`.
    """

    def __init__(self, history: int) -> None:
        self.revision = 0
        self.author: ownership.Author | None = None
        """Who owns what the present call changes; None: nobody new."""
        self.outbox: list[Change] | None = None
        """What was written and not yet handed to a keeper, who empties it; None: nobody keeps anything."""
        self.settled: int | None = None
        """The revision up to which a keeper has everything safe; watches tell no more. None: nobody keeps anything."""
        self._history = history
        self._floor = 0
        self._objects: dict[str, dict[str, dict[str, Raw]]] = {}
        self._logs: dict[str, Log] = {}
        self.quotas = Quotas(self)
        """What is taken of the quotas that are stored."""

    def get(self, resource: str, namespace: str, name: str) -> Raw | None:
        return self._objects.get(resource, {}).get(namespace, _NONE).get(name)

    def all(self, resource: str, namespace: str | None = None) -> Iterator[Raw]:
        """Every object of a resource, or those of one namespace, in order of creation."""
        spaces = self._objects.get(resource, {})
        if namespace is not None:
            yield from spaces.get(namespace, _NONE).values()
            return
        for space in spaces.values():
            yield from space.values()

    def count(self, resource: str, namespace: str) -> int:
        return len(self._objects.get(resource, {}).get(namespace, _NONE))

    def log(self, resource: str) -> Log:
        log = self._logs.get(resource)
        if log is None:
            log = self._logs[resource] = Log(self._history, self._floor)
        return log

    def put(self, resource: str, namespace: str, name: str, raw: dict[str, Any]) -> Raw:
        """Stores a new object or a new version. `raw` and its metadata belong to the caller and are given away."""
        space = self._objects.setdefault(resource, {}).setdefault(namespace, {})
        previous = space.get(name)
        self.revision += 1
        raw["metadata"]["resourceVersion"] = str(self.revision)
        self.claim(raw, previous)
        space[name] = raw
        change = ADDED if previous is None else MODIFIED
        self._note(Change(resource, namespace, name, WatchEvent(change, raw, self.revision, previous)))
        return raw

    def _note(self, change: Change) -> None:
        self.log(change.resource).append(change.event)
        if self.outbox is not None:
            self.outbox.append(change)
        if change.namespace in self.quotas.bounds or change.resource == QUOTAS:
            self.quotas.note(change)

    def claim(self, raw: dict[str, Any], previous: Raw | None) -> None:
        """Notes in the metadata of a new version who made it, unless the call has said itself who owns what."""
        meta = raw["metadata"]
        before = None if previous is None else previous["metadata"].get(ownership.KEY)
        if meta.get(ownership.KEY) is before and (before is not None or self.author is not None):
            meta[ownership.KEY] = made = ownership.Deferred(previous, self.author)
            if self.author is not None and self.author.of is not None:
                made.entries(raw)  # later the kind may have gone, or have become another

    def remove(self, resource: str, namespace: str, name: str) -> Raw:
        """Takes an object out; its last state, at the revision of the removal, is what watches see.

        Raises:
            KeyError: there is no such object.
        """
        previous = self._objects[resource][namespace].pop(name)
        if not self._objects[resource][namespace]:
            del self._objects[resource][namespace]
        self.revision += 1
        last = restamped(previous, self.revision)
        self._note(Change(resource, namespace, name, WatchEvent(DELETED, last, self.revision, previous)))
        return last

    @property
    def told(self) -> int:
        """The newest revision that anybody outside may know of."""
        return self.revision if self.settled is None else self.settled

    @property
    def compacted(self) -> int:
        """The highest revision up to which all changes have been forgotten on request."""
        return self._floor

    def compact(self, revision: int | None = None) -> None:
        """Forgets all changes up to a revision (the present one if none is given): watches behind it expire."""
        self._floor = max(self._floor, self.told if revision is None else min(revision, self.told))
        for log in self._logs.values():
            log.compact(self._floor)

    def begin(self, objects: Iterable[tuple[str, str, str, Raw]], revision: int) -> None:
        """Fills an empty store with objects as they were at a revision, before which nothing is known."""
        for resource, namespace, name, raw in objects:
            self._objects.setdefault(resource, {}).setdefault(namespace, {})[name] = raw
        self.revision = self._floor = revision

    def repeat(self, change: Change) -> None:
        """Makes a change that was made before, at its own revision."""
        self._place(change, None if change.event.type == DELETED else change.event.object)
        self.revision = change.event.revision
        self.log(change.resource).append(change.event)

    def retract(self, changes: Iterable[Change]) -> None:
        """Takes back the latest changes, all after the settled revision, which is the present one then."""
        for change in sorted(changes, key=lambda one: one.event.revision, reverse=True):
            self._place(change, change.event.previous)
        self.revision = self.told
        for log in self._logs.values():
            log.retract(self.revision)
        self.quotas.recount()

    def _place(self, change: Change, raw: Raw | None) -> None:
        space = self._objects.setdefault(change.resource, {}).setdefault(change.namespace, {})
        if raw is not None:
            space[change.name] = raw
            return
        del space[change.name]
        if not space:
            del self._objects[change.resource][change.namespace]

    def at(self, resource: str, revision: int) -> list[Raw] | None:
        """All objects of a resource as they were at an earlier revision; None if that has been forgotten."""
        log = self.log(resource)
        position = log.position(revision)
        later = None if position is None else log.since(position)
        if later is None:
            return None
        found = {_key(raw): raw for raw in self.all(resource)}
        for event in reversed(later):
            if event.previous is None:
                del found[_key(event.object)]
            else:
                found[_key(event.object)] = event.previous
        return list(found.values())


def _key(raw: Raw) -> tuple[str, str]:
    meta = raw["metadata"]
    return meta.get("namespace", ""), meta["name"]


def restamped(raw: Raw, revision: int) -> dict[str, Any]:
    """The same object with another resourceVersion; everything but the metadata is shared."""
    return {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(revision)}}
