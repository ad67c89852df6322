"""What the v1.37 schemas say of every field: name, type, how a list is merged. Made by tools/make_schema.py."""

from __future__ import annotations

import gzip
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import jsonschema_rs
import msgspec

from muster.api.instant import from_time, to_micro_time, to_time
from muster.api.quantity import canonical

Node = Mapping[str, Any]
"""One place in a schema."""

_NAMES = {"object": "an object", "array": "an array", "string": "a string", "boolean": "true or false"}
_QUANTITY = 'a quantity such as "500m" or "8Gi"'
_BOUNDS = {"int32": (-(1 << 31), (1 << 31) - 1), "int64": (-(1 << 63), (1 << 63) - 1)}
_SECONDS = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
_CHECKS: Mapping[str, Node] = {
    **{form: {"minimum": low, "maximum": high} for form, (low, high) in _BOUNDS.items()},
    "date-time": {"pattern": f"{_SECONDS}Z$"},
    "micro-time": {"format": "date-time", "pattern": f"{_SECONDS}[.][0-9]{{6}}Z$"},
    "byte": {"pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"},
}
"""What the validator is told of a format."""
_TIMES = {"date-time": to_time, "micro-time": to_micro_time}


class WrongType(NamedTuple):
    """A value of another type than its field has, and what was wanted."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


@dataclass(slots=True)
class Findings:
    """What `Schema.clean` met: paths of unknown fields (dropped), and values of a wrong type."""

    unknown: list[str] = field(default_factory=list)
    wrong: list[WrongType] = field(default_factory=list)


class Schema:
    """The fields of one kind."""

    def __init__(self, root: Node) -> None:
        self.root = root
        document = {"$ref": root["$ref"], "$defs": _checked_definitions()}
        self._validator = jsonschema_rs.Draft4Validator(document, validate_formats=True)

    def fits(self, value: Any) -> bool:
        """Every field is known, of the right type, and no null: the fast way to know that `clean` changes nothing."""
        return self._validator.is_valid(value)

    def clean(self, value: Any) -> tuple[Any, Findings]:
        """A copy as the server stores it: no nulls or unknown fields, quantities as text, times in UTC."""
        findings = Findings()
        return _clean(self.root, value, "", findings), findings


@cache
def document() -> Mapping[str, Any]:
    """The file: `kinds`, `$defs`, and the field numbers of `protobuf`."""
    packed = files("muster.apiserver").joinpath("schema.json.gz").read_bytes()
    read: Mapping[str, Any] = msgspec.json.decode(gzip.decompress(packed))
    return read


@cache
def _checked_definitions() -> Mapping[str, Any]:
    """The definitions with formats spelled out, so that only the form that is stored passes."""
    definitions: Mapping[str, Any] = _spelled_out(document()["$defs"])
    return definitions


def _spelled_out(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    made = {key: _spelled_out(value) for key, value in node.items()}
    form = made.get("format")
    return {**made, **_CHECKS.get(form, {})} if isinstance(form, str) else made


def fields_of_metadata(value: Any, findings: Findings) -> Any:
    """Metadata of any object as the server stores it."""
    return _clean({"$ref": "#/$defs/apis.meta.v1.ObjectMeta"}, value, "metadata", findings)


@cache
def schema(api_version: str, kind: str) -> Schema:
    """The schema of a kind.

    Raises:
        KeyError: the package has none; tools/make_schema.py lists those it has.
    """
    return Schema({"$ref": f"#/$defs/{document()['kinds'][f'{api_version}/{kind}']}"})


def resolved(node: Node) -> Node:
    """The node itself, or what it refers to with its own keys on top."""
    reference = node.get("$ref")
    if reference is None:
        return node
    target: Node = document()["$defs"][reference.removeprefix("#/$defs/")]
    return {**target, **node} if len(node) > 1 else target


def member(node: Node | None, name: str) -> Node | None:
    """The schema of a field, or of a mapping's values; None where anything goes."""
    if node is None:
        return None
    found = resolved(node)
    properties = found.get("properties")
    if properties is not None:
        inner: Node | None = properties.get(name)
        return inner
    values = found.get("additionalProperties")
    return values if isinstance(values, dict) else None


def _clean(node: Node, value: Any, path: str, findings: Findings) -> Any:
    node = resolved(node)
    kind = node.get("type")
    if kind is None:
        return value
    if kind == "object" and isinstance(value, dict):
        return _clean_object(node, value, path, findings)
    if kind == "array" and isinstance(value, list):
        items = node["items"]
        return [_clean(items, item, f"{path}[{index}]", findings) for index, item in enumerate(value)]
    form = node.get("format")
    if form == "quantity" and isinstance(value, int | float) and not isinstance(value, bool):
        return _clean_amount(value, path, findings)
    wanted = _complaint(kind, form, value)
    if wanted:
        findings.wrong.append(WrongType(path, f"must be {wanted}, not {_shown(value)}"))
        return value
    return _TIMES[form](from_time(value)) if form is not None and form in _TIMES else value


def _clean_amount(value: float, path: str, findings: Findings) -> Any:
    """A quantity that came as a number, as text."""
    try:
        return canonical(value)
    except ValueError:
        findings.wrong.append(WrongType(path, f"must be {_QUANTITY}, not {_short(str(value))}"))
        return value


def _clean_object(node: Node, value: dict[str, Any], path: str, findings: Findings) -> dict[str, Any]:
    properties, values = node.get("properties"), node.get("additionalProperties")
    if properties is None and not isinstance(values, dict):
        return value
    made = {}
    for name, part in value.items():
        if properties is None:
            inner, at = values, f"{path}[{name}]"
        else:
            inner, at = properties.get(name), f"{path}.{name}" if path else name
        if inner is None:
            findings.unknown.append(at)
        elif part is not None:
            made[name] = _clean(inner, part, at, findings)
    return made


def _complaint(kind: Any, form: str | None, value: Any) -> str | None:
    """What was wanted instead of a scalar (or of something that is none); None if it is fine."""
    if kind == "string":
        return _text_complaint(form, value)
    if kind == "integer":
        return _integer_complaint(form, value)
    if kind == "boolean":
        return None if isinstance(value, bool) else _NAMES["boolean"]
    if kind == "number":
        return None if isinstance(value, int | float) and not isinstance(value, bool) else "a number"
    if isinstance(kind, list):
        text = isinstance(value, str)
        return "an integer or a string" if not text and _integer_complaint(form, value) else None
    return _NAMES[kind]


def _text_complaint(form: str | None, value: Any) -> str | None:
    if form == "quantity" and not isinstance(value, str):
        return _QUANTITY
    if not isinstance(value, str):
        return _NAMES["string"]
    if form is not None and form in _TIMES:
        try:
            _TIMES[form](from_time(value))
        except (ValueError, OverflowError):
            return "an RFC 3339 time such as 2026-11-30T21:14:09Z"
    return None if form != "byte" or _is_base64(value) else "bytes in base64"


def _is_base64(text: str) -> bool:
    """Line breaks are allowed anywhere, as they are in the real server."""
    try:
        b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except ValueError:
        return False
    return True


def _integer_complaint(form: str | None, value: Any) -> str | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return "an integer"
    low, high = _BOUNDS[form or "int64"]
    return None if low <= value <= high else f"an integer from {low} to {high}"


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return _NAMES["object" if isinstance(value, dict) else "array"]
    return _short(msgspec.json.encode(value).decode())


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"
