"""Whose every field is whoever makes an object: remembered by its outline, since most objects are made like others.

An outline is what the set of fields depends on: names, keys of items, and what is empty, but no other values.
"""

from __future__ import annotations

from typing import Any

from muster.apiserver import fieldsets
from muster.apiserver.fieldsets import Path
from muster.apiserver.shapes import UNKNOWN, Form, Shape

MOST_KNOWN = 4_096
"""Outlines that are remembered."""
Outline = tuple[Any, ...]
_WHOLE, _SET = Form.WHOLE, Form.SET
_known: dict[tuple[Shape, Outline | None, bool], frozenset[Path]] = {}
_deeper: dict[tuple[Shape, Outline], tuple[tuple[str, Shape], ...]] = {}


def fields_made(shape: Shape, made: Any, *, status: bool = True) -> frozenset[Path]:
    """The fields that a new object has, as `fieldsets.compare` with none before it finds them. Read only: shared.

    `status` False: without what is in the status.
    """
    key = shape, outline(shape, made), status
    found = _known.get(key)
    if found is None:
        changes = fieldsets.compare(shape, None, made)
        found = frozenset(path for path in changes.added | changes.modified if status or path[:1] != ("f:status",))
        if key[1] is not None:
            _remember(_known, key, found)
    return found


def outline(shape: Shape, value: Any) -> Outline | None:
    """What the fields of a value depend on, besides its shape; None for a field without parts."""
    if shape.form is _WHOLE or not value:
        return None
    if isinstance(value, dict):
        names = tuple(value)
        inner = _deeper.get((shape, names))
        if inner is None:
            inner = _inner(shape, names)
        return names, *[outline(place, part) if (part := value[name]) else None for name, place in inner]
    if not isinstance(value, list) or shape.form is Form.MAPPING:
        return None
    place = shape.item or UNKNOWN
    return tuple([(_key(shape, item), outline(place, item)) for item in value])


def _inner(shape: Shape, names: Outline) -> tuple[tuple[str, Shape], ...]:
    """Of these fields those that can have parts."""
    inner = ((name, shape.inner(name)) for name in names)
    found = tuple((name, place) for name, place in inner if place.form is not _WHOLE)
    _remember(_deeper, (shape, names), found)
    return found


def _key(shape: Shape, item: Any) -> Any:
    """What tells an item of a list apart: the values of its keys, where they are texts; else how a path says it."""
    if isinstance(item, dict) and shape.form is not _SET:
        values = tuple([item.get(name) for name in shape.keys])
        if all(type(value) is str for value in values):
            return values
    return shape.key_of(item)


def _remember(known: dict[Any, Any], key: Any, found: Any) -> None:
    if len(known) >= MOST_KNOWN:
        known.clear()
    known[key] = found
