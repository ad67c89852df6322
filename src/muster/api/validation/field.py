"""Field errors and field paths, worded as Kubernetes words them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec


class Type:
    """The types of field errors (the names of the conformance format)."""

    REQUIRED = "Required"
    INVALID = "Invalid"
    TYPE_INVALID = "TypeInvalid"
    """The value has another type than a user's own schema says."""
    FORBIDDEN = "Forbidden"
    DUPLICATE = "Duplicate"
    TOO_MANY = "TooMany"
    TOO_LONG = "TooLong"
    NOT_SUPPORTED = "NotSupported"
    NOT_FOUND = "NotFound"
    INTERNAL = "Internal"
    """A wrong use by a program, not by a person (B17)."""


_PHRASE = {
    Type.REQUIRED: "Required value",
    Type.INVALID: "Invalid value",
    Type.TYPE_INVALID: "Invalid value",
    Type.FORBIDDEN: "Forbidden",
    Type.DUPLICATE: "Duplicate value",
    Type.TOO_MANY: "Too many",
    Type.TOO_LONG: "Too long",
    Type.NOT_SUPPORTED: "Unsupported value",
    Type.NOT_FOUND: "Not found",
    Type.INTERNAL: "Internal error",
}
_SHOWS_VALUE = {Type.INVALID, Type.TYPE_INVALID, Type.DUPLICATE, Type.NOT_SUPPORTED, Type.NOT_FOUND, Type.TOO_MANY}
_LONGEST_VALUE = 200


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field. `type` is a member of `Type`; `message` says the rule or the fix."""

    field: str
    type: str
    message: str
    value: Any = None

    @property
    def reason(self) -> str:
        """The `reason` of a cause in a Status."""
        return f"FieldValue{self.type}"

    @property
    def body(self) -> str:
        """The error without its field: the `message` of a cause in a Status."""
        shown = f": {_shown(self.value)}" if self.type in _SHOWS_VALUE else ""
        return f"{_PHRASE[self.type]}{shown}" + (f": {self.message}" if self.message else "")

    def __str__(self) -> str:
        return f"{self.field}: {self.body}" if self.field else self.body


def _shown(value: Any) -> str:
    if isinstance(value, msgspec.Struct) or (isinstance(value, tuple) and value):
        value = msgspec.to_builtins(value)
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


class Path:
    """A path to a field: `Path("spec") / "containers" // 0 / "name"` is `spec.containers[0].name`.

    Made cheaply and written out only when there is an error; each method below makes one.
    """

    __slots__ = ("_parent", "_step")

    def __init__(self, step: str | int = "", parent: Path | None = None) -> None:
        self._step = step
        self._parent = parent

    def __truediv__(self, name: str) -> Path:
        return Path(name, self)

    def __floordiv__(self, index: int) -> Path:
        return Path(index, self)

    def key(self, key: str) -> Path:
        """The entry of a mapping: `metadata.labels[app]`."""
        return Path(f"[{key}]", self)

    def __str__(self) -> str:
        before = str(self._parent) if self._parent else ""
        if isinstance(self._step, int):
            return f"{before}[{self._step}]"
        return f"{before}.{self._step}" if before and self._step[:1] != "[" else f"{before}{self._step}"

    def __repr__(self) -> str:
        return f"<Path {self}>"

    def required(self, message: str = "") -> FieldError:
        return FieldError(str(self), Type.REQUIRED, message)

    def invalid(self, value: Any, message: str) -> FieldError:
        return FieldError(str(self), Type.INVALID, message, value)

    def forbidden(self, message: str) -> FieldError:
        return FieldError(str(self), Type.FORBIDDEN, message)

    def duplicate(self, value: Any, message: str = "") -> FieldError:
        return FieldError(str(self), Type.DUPLICATE, message, value)

    def not_found(self, value: Any, message: str = "") -> FieldError:
        return FieldError(str(self), Type.NOT_FOUND, message, value)

    def too_many(self, count: int, limit: int) -> FieldError:
        return FieldError(str(self), Type.TOO_MANY, f"must have at most {limit} items", count)

    def too_long(self, limit: int) -> FieldError:
        return FieldError(str(self), Type.TOO_LONG, f"may not be more than {limit} bytes")

    def not_supported(self, value: Any, supported: Iterable[str]) -> FieldError:
        names = ", ".join(f'"{name}"' for name in supported)
        return FieldError(str(self), Type.NOT_SUPPORTED, f"supported values: {names}", value)


ROOT = Path()
SPEC = Path("spec")
METADATA = Path("metadata")
STATUS = Path("status")
