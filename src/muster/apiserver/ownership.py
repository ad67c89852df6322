"""Who owns which field: `metadata.managedFields`.

In the store it is a `Deferred`: who wrote this version, over which one. Only a reader outside, or an apply, makes the
entries of it, so that writing stays cheap; `dressed` puts them in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from muster.api.instant import Instant, to_time
from muster.apiserver import admitted, fieldsets, outlines
from muster.apiserver.fieldsets import Changes, Path
from muster.apiserver.shapes import Shape, shape

Json = dict[str, Any]
Raw = Mapping[str, Any]

KEY = "managedFields"
APPLY, UPDATE = "Apply", "Update"
LONGEST_NAME = 128
MOST_UPDATERS = 10
ANCIENT = "ancient-changes"
REPLICAS = ("f:spec", "f:replicas")
_CONTAINERS = (("f:spec", "f:containers"), ("f:spec", "f:initContainers"))
_RESIZED = (("f:resources",), ("f:resizePolicy",))
_DEEPEST = 8
"""Versions that a `Deferred` may wait for."""


class Author(NamedTuple):
    """Who writes, how, and when."""

    manager: str
    operation: str
    subresource: str
    at: Instant
    resets: bool = False
    """What is in the status is not this write's to own; of a write of the status, what is not in it."""
    of: Shape | None = None
    """How a user's kind is owned; None: as the schema file says of the object's kind."""
    api_version: str = ""
    """What its entry says; "": that of the object."""
    filled: tuple[Path, ...] = ()
    """Of a new object the places that admission has filled in: not this write's to own."""

    @classmethod
    def read(cls, found: list[Any]) -> Author:
        """From a list of its fields, as JSON has it."""
        made = cls(*found)
        return made._replace(filled=tuple(map(tuple, made.filled))) if made.filled else made


@dataclass(frozen=True, slots=True)
class Entry:
    """What one manager owns through one kind of write."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    time: str
    fields: frozenset[Path]

    @property
    def identity(self) -> tuple[str, str, str, str]:
        return self.manager, self.operation, self.api_version, self.subresource


Entries = tuple[Entry, ...]
Conflicts = list[tuple[Entry, list[Path]]]
"""Whose fields would change, and which."""


class Deferred:
    """The managed fields of one version of an object: entries, or what they can be made from.

    Two of them are equal: who owns its fields is not part of what an object says.
    """

    __slots__ = ("_author", "_entries", "_previous", "depth")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, previous: Raw | None, author: Author | None, entries: Entries | None = None) -> None:
        self._previous = previous
        self._author = author
        self._entries = entries
        self.depth = 0
        before = None if previous is None or entries is not None else previous["metadata"].get(KEY)
        if isinstance(before, Deferred):
            self.depth = before.depth + 1
            if self.depth > _DEEPEST and previous is not None:
                before.entries(previous)
                self.depth = 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Deferred)

    def entries(self, raw: Raw) -> Entries:
        """The entries of `raw`, the version that this is of."""
        if self._entries is None:
            before = entries_of(self._previous) if self._previous is not None else ()
            self._entries = before if self._author is None else updated(before, self._previous, raw, self._author)
            self._previous = self._author = None
            self.depth = 0
        return self._entries

    def kept(self, raw: Raw) -> Any:
        """JSON from which `Kept` makes the same: of a first version who made it, of a later one the entries."""
        if self._entries is None and self._previous is None:
            return None if self._author is None else {"author": list(self._author)}
        return [_written(entry) for entry in self.entries(raw)]


class Kept(Deferred):
    """Managed fields as they lie in a file; read when somebody wants them."""

    __slots__ = ("_text",)

    def __init__(self, text: bytes) -> None:
        super().__init__(None, None)
        self._text = text

    def entries(self, raw: Raw) -> Entries:
        if self._entries is None:
            found = json.loads(self._text)
            made = Deferred(None, Author.read(found["author"])) if isinstance(found, dict) else None
            self._entries = read(found) if made is None else made.entries(raw)
            self._text = b""
        return self._entries

    def kept(self, raw: Raw) -> Any:
        self.entries(raw)
        return super().kept(raw)


def entries_of(raw: Raw) -> Entries:
    """Who owns what of a stored object."""
    found = raw["metadata"].get(KEY)
    return found.entries(raw) if isinstance(found, Deferred) else ()


def dressed(raw: Raw) -> Raw:
    """An object as it goes out, with its managed fields written out."""
    meta = raw.get("metadata")
    found = meta.get(KEY) if isinstance(meta, Mapping) else None
    if meta is None or not isinstance(found, Deferred):
        return raw
    listed = [_written(entry) for entry in found.entries(raw)]
    return {**raw, "metadata": {**meta, KEY: listed} if listed else bare(meta)}


def bare(meta: Raw) -> Json:
    """Metadata without managed fields."""
    return {key: value for key, value in meta.items() if key != KEY}


def undressed(raw: Raw) -> Json:
    return {**raw, "metadata": bare(raw["metadata"])}


# --- writes ------------------------------------------------------------------------------------------------------


def shape_of(raw: Raw) -> Shape:
    return shape(raw["apiVersion"], raw["kind"])


def _own(paths: set[Path], author: Author) -> set[Path]:
    if author.resets and not author.subresource:
        return {path for path in paths if path[0] != "f:status"}
    return paths


def _reaches(path: Path, author: Author) -> bool:
    """Whether an apply by this endpoint can change a place, and so own it: all but the fields that it resets."""
    part = path[0]
    if author.subresource == "status":
        if author.resets or part == "f:status":
            return part == "f:status"
        return part == "f:metadata" and path[1:2] != ("f:ownerReferences",)
    if author.subresource == "scale":
        return path == REPLICAS
    if author.subresource == "resize":
        return path[:2] in _CONTAINERS and path[3:4] in _RESIZED
    return not (author.resets and part == "f:status")


def _reached(paths: set[Path], author: Author) -> set[Path]:
    return {path for path in paths if _reaches(path, author)}


def updated(before: Entries, old: Raw | None, new: Raw, author: Author) -> Entries:
    """Entries after a write that is no apply: its author owns what it changed, and nobody else does any more."""
    if old is None and not before:
        return _created(new, author)
    changes = fieldsets.compare(author.of or shape_of(new), old, new)
    gained = _own(changes.added | changes.modified, author)
    if not gained and not changes.removed:
        return before
    identity = _identity(new, author)
    others = [entry for entry in before if entry.identity != identity]
    had = next((entry.fields for entry in before if entry.identity == identity), frozenset())
    fields = (had | gained) - changes.removed if had or changes.removed else frozenset(gained)
    mine = Entry(*identity, to_time(author.at), fieldsets.shared(fields))
    if not others:
        return (mine,) if fields else ()
    return _capped(_kept([*without(others, gained | changes.removed), mine]))


def _created(new: Raw, author: Author) -> Entries:
    """The entries of an object that was not there before, and is no apply's."""
    fields = outlines.fields_made(author.of or shape_of(new), new, status=bool(author.subresource) or not author.resets)
    if author.filled:
        fields = admitted.without(fields, author.filled)
    return (Entry(*_identity(new, author), to_time(author.at), fields),) if fields else ()


def but_for_admission(author: Author, given: Raw, made: Raw) -> Author:
    """The author of a new object, who does not own what admission has made of it."""
    filled = admitted.places(author.of or shape_of(made), given, made)
    return author._replace(filled=filled) if filled else author


def _identity(new: Raw, author: Author) -> tuple[str, str, str, str]:
    return author.manager, UPDATE, author.api_version or new["apiVersion"], author.subresource


def same(these: Entries, those: Entries) -> bool:
    """Whether the same managers own the same, whenever they last said so."""
    return {entry.identity: entry.fields for entry in these} == {entry.identity: entry.fields for entry in those}


def without(entries: Iterable[Entry], lost: set[Path]) -> list[Entry]:
    return [entry if entry.fields.isdisjoint(lost) else replace(entry, fields=entry.fields - lost) for entry in entries]


def _kept(entries: Iterable[Entry]) -> Entries:
    """Those that own something; applies first, then by time, as the real server orders them."""
    found = [entry for entry in entries if entry.fields]
    return tuple(sorted(found, key=lambda entry: (entry.operation, entry.time, entry.manager, entry.subresource)))


def _capped(entries: Entries) -> Entries:
    """Of many updaters the oldest become one."""
    updaters = [entry for entry in entries if entry.operation == UPDATE and not entry.subresource]
    if len(updaters) <= MOST_UPDATERS:
        return entries
    old = updaters[: len(updaters) - MOST_UPDATERS + 1]
    fields = frozenset(path for entry in old for path in entry.fields)
    ancient = replace(old[-1], manager=ANCIENT, fields=fields)
    return _kept([ancient, *(entry for entry in entries if entry not in old)])


class Applied(NamedTuple):
    """What an apply makes: the object before defaults, who owns what, and what stands against it."""

    object: Json
    entries: Entries
    conflicts: Conflicts


def applied(live: Json | None, before: Entries, config: Json, author: Author) -> Applied:
    """Merges a configuration into the live object (None: there is none), and takes out what its author let go.

    What it changes of others' fields is a conflict; the entries are those after winning it.
    """
    at = author.of or shape_of(config)
    wanted = _reached(fieldsets.fields_of(at, config), author)
    mine = Entry(author.manager, APPLY, config["apiVersion"], author.subresource, to_time(author.at), frozenset(wanted))
    had = next((entry.fields for entry in before if entry.identity == mine.identity), frozenset())
    others = [entry for entry in before if entry.identity != mine.identity]
    base: Json = live if live is not None else {key: config[key] for key in ("apiVersion", "kind")}
    made = fieldsets.merged(at, base, config)
    made = fieldsets.without(at, made, _let_go(had - wanted, wanted, others))
    changes = Changes(*(_reached(part, author) for part in fieldsets.compare(at, live, made)))
    conflicts = _conflicts(others, changes)
    lost = changes.added | changes.modified | changes.removed
    return Applied(made, _kept([*without(others, lost), mine]), conflicts)


def _let_go(dropped: frozenset[Path], wanted: set[Path], others: list[Entry]) -> set[Path]:
    """What was applied before and is not any more, but for what others own, and for what holds theirs or ours."""
    if not dropped:
        return set()
    held = set(wanted).union(*(entry.fields for entry in others))
    above = {path[:length] for path in held for length in range(1, len(path) + 1)}
    return {path for path in dropped if path not in above}


def _conflicts(others: list[Entry], changes: Changes) -> Conflicts:
    touched = changes.modified | changes.added
    found = [(entry, sorted(entry.fields & touched)) for entry in others]
    return [(entry, paths) for entry, paths in found if paths]


def beyond(conflicts: Conflicts, allowed: set[Path]) -> Conflicts:
    """The conflicts about other fields than these."""
    left = [(entry, [path for path in paths if path not in allowed]) for entry, paths in conflicts]
    return [(entry, paths) for entry, paths in left if paths]


# --- as JSON -----------------------------------------------------------------------------------------------------


def _written(entry: Entry) -> Json:
    made: Json = {
        "manager": entry.manager,
        "operation": entry.operation,
        "apiVersion": entry.api_version,
        "time": entry.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fieldsets.written(entry.fields),
    }
    return made | ({"subresource": entry.subresource} if entry.subresource else {})


def read(given: Any) -> Entries:
    """Entries that a client sent.

    Raises:
        ValueError: they are malformed.
    """
    made = []
    for entry in given:
        if not isinstance(entry, Mapping) or entry.get("operation") not in (APPLY, UPDATE):
            raise ValueError("operation must be Apply or Update")
        if entry.get("fieldsType", "FieldsV1") != "FieldsV1":
            raise ValueError("fieldsType must be FieldsV1")
        manager, operation, api_version, subresource, time = (
            entry.get(name) or "" for name in ("manager", "operation", "apiVersion", "subresource", "time")
        )
        fields = frozenset(fieldsets.read(entry.get("fieldsV1") or {}))
        made.append(Entry(manager, operation, api_version, subresource, time, fields))
    return _kept(made)


def conflict_message(conflicts: Conflicts) -> str:
    """As the real server says it."""
    count = sum(len(paths) for _, paths in conflicts)
    if count == 1:
        ((entry, (path,)),) = conflicts
        return f"Apply failed with 1 conflict: conflict with {named(entry)}: {fieldsets.shown(path)}"
    parts = []
    for entry, paths in conflicts:
        parts += [f"conflicts with {named(entry)}:", *(f"- {fieldsets.shown(path)}" for path in paths)]
    return f"Apply failed with {count} conflicts: " + "\n".join(parts)


def named(entry: Entry) -> str:
    said = f'"{entry.manager}"' + (f' with subresource "{entry.subresource}"' if entry.subresource else "")
    if entry.operation == APPLY:
        return said
    return f"{said} using {entry.api_version}" + (f" at {entry.time}" if entry.time else "")


def conflict_causes(conflicts: Conflicts) -> list[dict[str, str]]:
    return [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {named(entry)}",
            "field": fieldsets.shown(path),
        }
        for entry, paths in conflicts
        for path in paths
    ]
