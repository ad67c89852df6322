"""Bodies in Kubernetes' protobuf form, as typed clients send them. Read only: every answer is JSON.

The schema file knows of every type its field numbers, as `number -> name:type`; tools/make_field_numbers.py says how a
type is written there. Go's encoder writes scalars that are zero too; as in JSON, those are left out where zero and
absent are the same.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec

from muster.api.instant import SECOND, to_micro_time, to_time
from muster.apiserver.schema import document

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
MAX_DEPTH = 100
_FIXED = {1: 8, 5: 4}
_ZERO = (None, "", 0, False)


class _Field(NamedTuple):
    name: str
    """"" where JSON has the fields of the value at the level above."""
    code: str
    form: str
    """"", "[]" for a list, "{}" for a mapping."""
    tells_zero: bool
    """Zero is a value of its own."""


def decoded(body: bytes) -> dict[str, Any]:
    """The object in a body, as JSON would have it.

    Raises:
        ValueError: it is malformed, or of a type whose fields are not known.
    """
    if not body.startswith(MAGIC):
        raise ValueError("it does not begin with the mark of a Kubernetes object")
    api_version = kind = ""
    raw = b""
    for number, value in _values(body[len(MAGIC) :]):
        if number == 1 and isinstance(value, bytes):
            names = {inner: text for inner, text in _values(value) if isinstance(text, bytes)}
            api_version, kind = _text(names.get(1, b"")), _text(names.get(2, b""))
        elif number == 2 and isinstance(value, bytes):
            raw = value
    made = _message(_type_of(api_version, kind), raw, MAX_DEPTH)
    return {"apiVersion": api_version, "kind": kind, **made}


def _type_of(api_version: str, kind: str) -> str:
    for known in (f"{api_version}/{kind}", f"v1/{kind}"):
        name = document()["kinds"].get(known)
        if name is not None and (known.startswith(f"{api_version}/") or kind == "DeleteOptions"):
            return str(name).removeprefix("apis.")
    raise ValueError(f"the fields of {kind or 'an object without kind'} in {api_version!r} are not known here")


@cache
def _fields(name: str) -> Mapping[int, _Field]:
    made = {}
    for number, entry in document()["protobuf"].get(name, {}).items():
        field, _, code = entry.partition(":")
        form = ""
        if code[:2] in ("[]", "{}"):
            form, code = code[:2], code[2:]
        made[int(number)] = _Field(field, code.lstrip("?"), form, code.startswith("?"))
    return made


def _message(name: str, data: bytes, room: int) -> dict[str, Any]:
    if room < 0:
        raise ValueError("it is nested too deeply")
    fields, made = _fields(name), dict[str, Any]()
    for number, value in _values(data):
        field = fields.get(number)
        if field is None:
            continue
        if field.form == "{}":
            made.setdefault(field.name, {}).update([_entry(field.code, _bytes(value), room)])
        elif field.form == "[]":
            made.setdefault(field.name, []).extend(_items(field.code, value, room))
        else:
            _set(made, field, _value(field.code, value, room))
    return made


def _set(made: dict[str, Any], field: _Field, value: Any) -> None:
    if not field.name:
        made.update(value)
    elif field.tells_zero or (value not in _ZERO and value != {}):
        made[field.name] = value


def _items(code: str, value: Any, room: int) -> list[Any]:
    """One item of a list, or several packed numbers."""
    if code in ("i", "t") and isinstance(value, bytes):
        return [_value(code, number, room) for number in _packed(value)]
    return [_value(code, value, room)]


def _entry(code: str, data: bytes, room: int) -> tuple[str, Any]:
    parts = dict(_values(data))
    return _text(_bytes(parts.get(1, b""))), _value(code, parts[2], room) if 2 in parts else _absent(code)


def _absent(code: str) -> Any:
    if code in ("s", "y", "Q"):
        return "0" if code == "Q" else ""
    return {} if code.startswith("@") else 0


def _value(code: str, value: Any, room: int) -> Any:
    if code in ("i", "t"):
        if not isinstance(value, int):
            raise ValueError("a number is not written as one")
        return bool(value) if code == "t" else value - (1 << 64) if value >> 63 else value
    data = _bytes(value)
    if code.startswith("@"):
        return _message(code[1:], data, room - 1)
    if code == "s":
        return _text(data)
    if code == "y":
        return base64.b64encode(data).decode()
    if code == "d":
        return struct.unpack("<d" if len(data) == 8 else "<f", data)[0]
    return _special(code, data)


def _special(code: str, data: bytes) -> Any:
    """Types that JSON writes in a way of their own."""
    parts = dict(_values(data))
    if code == "Q":
        return _text(_bytes(parts.get(1, b"")))
    if code == "I":
        return _text(_bytes(parts.get(3, b""))) if parts.get(1) else _value("i", parts.get(2, 0), 0)
    if code in ("T", "U"):
        if not parts:
            return None
        seconds, nanos = (_value("i", parts.get(number, 0), 0) for number in (1, 2))
        return to_time(seconds * SECOND) if code == "T" else to_micro_time(seconds * SECOND + nanos // 1000)
    raw = _bytes(parts.get(1, b""))
    try:
        return msgspec.json.decode(raw) if raw else {}
    except msgspec.MsgspecError:
        raise ValueError("what it carries along is not JSON") from None


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a number stands where text, or a message, was expected")
    return value


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError("text in it is not UTF-8") from None


def _values(data: bytes) -> Iterator[tuple[int, Any]]:
    """Field numbers and what they carry: an integer, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value: Any
            value, at = _varint(data, at)
        else:
            if wire == 2:
                size, at = _varint(data, at)
            elif wire in _FIXED:
                size = _FIXED[wire]
            else:
                raise ValueError(f"it has a field of the unknown form {wire}")
            if at + size > len(data):
                raise ValueError("it ends within a field")
            value, at = data[at : at + size], at + size
        yield number, value


def _packed(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & ((1 << 64) - 1), at
        shift += 7
    raise ValueError("it ends within a number")
