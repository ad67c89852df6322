"""Whether a user's blocks have the shape that all further rules read: told first, so that those can rely on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster.api.validation import FieldError, Path

Shape = Any
"""A type, a mapping of fields to shapes, or a list of the one shape of all entries."""
_PARTS: Mapping[str, Shape] = {}
POLICY: Shape = {"basic": _PARTS, "gang": {"minCount": int, "minGroupCount": int}}
CONSTRAINTS: Shape = {"topology": [{"key": str}]}
MODE: Shape = {"single": _PARTS, "all": _PARTS}
CLAIMS: Shape = [{"name": str, "resourceClaimName": str, "resourceClaimTemplateName": str}]
_CALLED = {int: "a whole number", str: "text"}


def shape_errors(value: Any, shape: Shape, path: Path) -> Iterator[FieldError]:
    """Everything below `value` that is of another type; what is absent or not known is left to other rules."""
    if value is None:
        return
    if isinstance(shape, Mapping):
        if not isinstance(value, Mapping):
            yield path.invalid(value, "must be a mapping")
            return
        for name, inner in shape.items():
            yield from shape_errors(value.get(name), inner, path / name)
    elif isinstance(shape, list):
        if not isinstance(value, Sequence) or isinstance(value, str):
            yield path.invalid(value, "must be a list")
            return
        for index, each in enumerate(value):
            if each is None:
                yield (path // index).required("an entry must not be empty")
            yield from shape_errors(each, shape[0], path // index)
    elif not isinstance(value, shape) or isinstance(value, bool):
        yield path.invalid(value, f"must be {_CALLED[shape]}")
