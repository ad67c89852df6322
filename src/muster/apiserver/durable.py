"""Changes as records that a file can keep, and a store made from them again. Pure: the file is `runtime.journal`'s."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from muster.api.machine import ADDED, DELETED, MODIFIED
from muster.apiserver.log import Raw, WatchEvent
from muster.apiserver.ownership import KEY, Deferred, Kept
from muster.apiserver.storage import Change, Store, restamped


class Record(NamedTuple):
    """One change: the object's whole new version as JSON, or none if it was removed."""

    revision: int
    resource: str
    namespace: str
    name: str
    supersedes: int | None
    """The revision of the version before, which nobody needs once this one is the oldest that is kept."""
    body: bytes | None
    owners: bytes | None
    """What its managed fields are made from (`ownership.Deferred.kept`)."""


class Damaged(Exception):
    """The records contradict each other."""


def record(change: Change) -> Record:
    event = change.event
    before = None if event.previous is None else int(event.previous["metadata"]["resourceVersion"])
    body, owners = (None, None) if event.type == DELETED else _encoded(event.object)
    return Record(event.revision, change.resource, change.namespace, change.name, before, body, owners)


def _encoded(raw: Raw) -> tuple[bytes, bytes | None]:
    meta = raw["metadata"]
    owned = meta.get(KEY)
    if not isinstance(owned, Deferred):
        return msgspec.json.encode(raw), None
    bare = {key: value for key, value in meta.items() if key != KEY}
    kept = owned.kept(raw)
    return msgspec.json.encode({**raw, "metadata": bare}), None if kept is None else msgspec.json.encode(kept)


def _decoded(one: Record) -> dict[str, Any]:
    assert one.body is not None
    raw: dict[str, Any] = msgspec.json.decode(one.body)
    if one.owners is not None:
        raw["metadata"][KEY] = Kept(one.owners)
    return raw


def restored(records: Iterable[Record], compacted: int, history: int) -> Store:
    """A store as it was after the last record.

    Args:
        records: in order of revision; up to `compacted` only the versions that were the latest then.
        compacted: nothing is known of how things came to be up to here: watches from before are expired.
        history: how many changes of each resource it keeps for watches.

    Raises:
        Damaged: a record removes, or follows, what is not there.
    """
    store = Store(history)
    begun = False
    old: list[tuple[str, str, str, Raw]] = []
    for one in records:
        if one.revision <= compacted:
            if one.body is not None:
                old.append((one.resource, one.namespace, one.name, _decoded(one)))
            continue
        if not begun:
            store.begin(old, compacted)
            begun = True
        store.repeat(_change(store, one))
    if not begun:
        store.begin(old, compacted)
    return store


def _change(store: Store, one: Record) -> Change:
    previous = store.get(one.resource, one.namespace, one.name)
    there = None if previous is None else int(previous["metadata"]["resourceVersion"])
    if there != one.supersedes or (one.body is None and previous is None):
        raise Damaged(f"revision {one.revision} of {one.resource} {one.name} follows {one.supersedes}, not {there}")
    if one.body is None:
        assert previous is not None
        event = WatchEvent(DELETED, restamped(previous, one.revision), one.revision, previous)
    else:
        event = WatchEvent(ADDED if previous is None else MODIFIED, _decoded(one), one.revision, previous)
    return Change(one.resource, one.namespace, one.name, event)
