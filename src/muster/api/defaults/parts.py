"""Reading members of objects whose JSON types nobody has checked yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Raw = Mapping[str, Any]
Json = dict[str, Any]


def copied(holder: Raw, field: str) -> Json:
    """A private copy of a mapping field, empty if it is absent or no mapping (validation says so then)."""
    value = holder.get(field)
    return dict(value) if isinstance(value, Mapping) else {}


def is_mapping(holder: Raw, field: str) -> bool:
    """Whether a field is absent or a mapping."""
    return field not in holder or isinstance(holder[field], Mapping)


def at(holder: Raw | None, *fields: str) -> Raw:
    """The mapping at the end of these fields, or an empty one if there is none."""
    value: Any = holder
    for field in fields:
        value = value.get(field) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}
