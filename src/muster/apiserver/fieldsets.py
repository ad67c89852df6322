"""Sets of fields: what an object has, how two versions of it differ, merging, removing. Nothing is changed in place.

A path is a tuple of elements as `fieldsV1` writes them: `f:name` a field or key of a mapping, `k:{...}` an item by its
keys, `v:...` an item of a set by its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from functools import lru_cache
from typing import Any, NamedTuple, TypeGuard

import msgspec

from muster.apiserver.shapes import UNKNOWN, Form, Shape

Json = dict[str, Any]
Path = tuple[str, ...]
Fields = Set[Path]

_SERVERS = (
    "name", "namespace", "uid", "creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink",
)  # fmt: skip
_NOBODYS = {("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{name}") for name in _SERVERS)}
"""What no manager owns."""
_ABSENT: Any = object()
_WHOLE = Form.WHOLE


class Changes(NamedTuple):
    """Paths in which a version differs from the one before."""

    added: set[Path]
    modified: set[Path]
    removed: set[Path]


def _has_parts(value: Any, shape: Shape) -> TypeGuard[Json | list[Any]]:
    """Whether a value has parts of its own here: a list has only where its items are told apart."""
    return isinstance(value, dict) or (isinstance(value, list) and shape.form is not Form.MAPPING)


def fields_of(shape: Shape, value: Any) -> set[Path]:
    """The fields that an applied configuration has an opinion on."""
    found: set[Path] = set()
    _collect(shape, value, (), found)
    return found - _NOBODYS


def _collect(shape: Shape, value: Any, path: Path, found: set[Path]) -> None:
    """An item of a list is a member itself; a structure only where it is empty."""
    if shape.form is Form.WHOLE or not _has_parts(value, shape):
        found.add(path)
    elif isinstance(value, dict):
        if path and not value:
            found.add(path)
        for name, part in value.items():
            if part is not None:
                _collect(shape.inner(name), part, (*path, f"f:{name}"), found)
    else:
        for item in value:
            at = (*path, shape.key_of(item))
            found.add(at)
            if shape.item is not None:
                _collect(shape.item, item, at, found)


def mistakes(shape: Shape, value: Any, path: Path = ()) -> Iterator[str]:
    """What cannot be merged of an applied configuration: items of a list that are not told apart."""
    if shape.form is Form.WHOLE or not _has_parts(value, shape):
        return
    if isinstance(value, dict):
        for name, part in value.items():
            if part:
                yield from mistakes(shape.inner(name), part, (*path, f"f:{name}"))
        return
    met: dict[str, int] = {}
    for number, item in enumerate(value):
        element = shape.key_of(item)
        met[element] = met.get(element, 0) + 1
        if met[element] == 2:
            which = _shown(element) if element[0] == "k" else f"[{element[2:]}]"
            yield f"{shown(path)}: duplicate entries for key {which}"
        omitted = [] if shape.form is Form.SET else shape.keys_left_out(item)
        if omitted:
            what = "associative list with keys has an element that omits key field"
            yield f'{shown(path)}: element {number}: {what} "{omitted[0]}" (and doesn\'t have default value)'
        if shape.item is not None:
            yield from mistakes(shape.item, item, (*path, element))


def compare(shape: Shape, old: Any, new: Any) -> Changes:
    """What differs between two versions (None for none at all)."""
    changes = Changes(set(), set(), set())
    _compare(shape, {} if old is None else old, {} if new is None else new, (), changes)
    for part in changes:
        part -= _NOBODYS
    return changes


def _compare(shape: Shape, old: Any, new: Any, path: Path, changes: Changes) -> None:
    if old is new:
        return
    if old is _ABSENT or new is _ABSENT:
        present, found = (new, changes.added) if old is _ABSENT else (old, changes.removed)
        _all(shape, present, path, found, every=new is _ABSENT)
        return
    if shape.form is Form.WHOLE or type(old) is not type(new) or not _has_parts(old, shape):
        if old != new:
            changes.modified.add(path)
        return
    for element, inner, before, after in _pairs(shape, old, new):
        _compare(inner, before, after, (*path, element), changes)


def _all(shape: Shape, value: Any, path: Path, found: set[Path], *, every: bool) -> None:
    """All that came, or with `every` all that can have been owned, at a place."""
    if shape.form is Form.WHOLE or not value or not _has_parts(value, shape):
        found.add(path)
        return
    if every or shape.shows or path[-1][0] != "f":
        found.add(path)
    if not isinstance(value, dict):
        for item in value:
            _all(shape.item or UNKNOWN, item, (*path, shape.key_of(item)), found, every=every)
        return
    known = shape.parts
    for name, part in value.items():
        inner = known.get(name) or shape.inner(name)
        at = (*path, "f:" + name)
        if inner.form is _WHOLE or not part:  # most are: saves a call
            found.add(at)
        else:
            _all(inner, part, at, found, every=every)


def _parts(shape: Shape, value: Any) -> Iterator[tuple[str, Shape, Any]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield f"f:{name}", shape.inner(name), part
    else:
        for item in value:
            yield shape.key_of(item), shape.item or UNKNOWN, item


def _pairs(shape: Shape, old: Any, new: Any) -> Iterator[tuple[str, Shape, Any, Any]]:
    if isinstance(new, dict):
        for name, part in new.items():
            yield f"f:{name}", shape.inner(name), old.get(name, _ABSENT), part
        for name, part in old.items():
            if name not in new:
                yield f"f:{name}", shape.inner(name), part, _ABSENT
        return
    before, after = ({shape.key_of(item): item for item in items} for items in (old, new))
    inner = shape.item or UNKNOWN
    for element, item in after.items():
        yield element, inner, before.get(element, _ABSENT), item
    for element, item in before.items():
        if element not in after:
            yield element, inner, item, _ABSENT


# --- merging and removing ----------------------------------------------------------------------------------------


def merged(shape: Shape, live: Any, applied: Any) -> Any:
    """The live value with what was applied on top; items that are applied come in their order, others keep theirs."""
    if shape.form is Form.WHOLE or type(live) is not type(applied) or not _has_parts(applied, shape):
        return applied
    if isinstance(applied, dict):
        made = dict(live)
        for name, part in applied.items():
            if part is not None:
                made[name] = merged(shape.inner(name), live[name], part) if name in live else part
        return made
    wanted = {shape.key_of(item): item for item in applied}
    present = {shape.key_of(item): item for item in live}
    inner = shape.item or UNKNOWN
    ready = [merged(inner, present[element], item) if element in present else item for element, item in wanted.items()]
    return _woven(list(present), dict(zip(wanted, ready, strict=True)), present)


def _woven(live: list[str], applied: Json, present: Json) -> list[Any]:
    """Applied items in their order; each live item that is not applied stays behind the one that it came after."""
    after: dict[str | None, list[str]] = {}
    anchor: str | None = None
    for element in live:
        if element in applied:
            anchor = element
        else:
            after.setdefault(anchor, []).append(element)
    made = [present[element] for element in after.get(None, ())]
    for element, item in applied.items():
        made.append(item)
        made += [present[other] for other in after.get(element, ())]
    return made


def without(shape: Shape, value: Any, unwanted: Fields) -> Any:
    """The value without these paths; what is empty afterwards goes too, but for the whole."""
    if not unwanted:
        return value
    made = _without(shape, value, (), unwanted, {path[:length] for path in unwanted for length in range(len(path))})
    return {} if made is _ABSENT else made


def _without(shape: Shape, value: Any, path: Path, unwanted: Fields, above: Fields) -> Any:
    if path in unwanted:
        return _ABSENT
    if path not in above or shape.form is Form.WHOLE or not _has_parts(value, shape) or not value:
        return value
    kept = [
        (element, left)
        for element, inner, part in _parts(shape, value)
        if (left := _without(inner, part, (*path, element), unwanted, above)) is not _ABSENT
    ]
    if not kept:
        return _ABSENT
    return {element[2:]: left for element, left in kept} if isinstance(value, dict) else [left for _, left in kept]


# --- fieldsV1 ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4_096)
def shared(fields: frozenset[Path]) -> frozenset[Path]:
    """One set for all that are equal: objects that are made alike are owned alike."""
    return fields


@lru_cache(maxsize=4_096)
def written(fields: frozenset[Path]) -> Json:
    """A set as `fieldsV1`: nested, with a dot where something is a member beside what is in it. Read only: shared."""
    root: Json = {}
    for path in sorted(fields):
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return _plain(root)


def _plain(node: Json) -> Json:
    if node.keys() == {"."}:
        return {}
    return {element: _plain(inner) for element, inner in node.items()}


def read(given: Any) -> set[Path]:
    """The set that a `fieldsV1` means.

    Raises:
        ValueError: it is malformed.
    """
    found: set[Path] = set()
    _read(given, (), found)
    return found


def _read(given: Any, path: Path, found: set[Path]) -> None:
    if not isinstance(given, dict) or len(path) > 100:
        raise ValueError("fieldsV1 is an object of objects")
    if path and (not given or "." in given):
        found.add(path)
    for element, inner in given.items():
        if element == ".":
            continue
        if element[:2] not in ("f:", "k:", "v:", "i:"):
            raise ValueError(f"fieldsV1: unknown path element {element[:60]!r}")
        _read(inner, (*path, element), found)


def shown(path: Path) -> str:
    """A path as a message says it: `.spec.containers[name="main"].image`."""
    return "".join(map(_shown, path))


def _shown(element: str) -> str:
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return f".{rest}"
    if kind == "k:":
        keys = msgspec.json.decode(rest)
        return "[" + ",".join(f"{key}={msgspec.json.encode(value).decode()}" for key, value in keys.items()) + "]"
    return f"[={rest}]" if kind == "v:" else f"[{rest}]"


def below(paths: Iterable[Path], prefix: Path) -> bool:
    """Whether one of the paths lies within a place."""
    return any(path[: len(prefix)] == prefix and len(path) > len(prefix) for path in paths)
