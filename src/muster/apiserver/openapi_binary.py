"""/openapi/v2 in protobuf form, the only one that kubectl reads: definitions, and which options calls take.

The numbers are those of OpenAPIv2.proto of google/gnostic-models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

Json = Mapping[str, Any]

ASKED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
MEDIA_TYPE = ASKED.replace("@", ".")
"""What is asked for is no proper media type; the answer has to say one."""
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


def encoded(document: Json) -> bytes:
    """A document of `openapi.version_two`."""
    info = _field(1, document["info"]["title"]) + _field(2, document["info"]["version"])
    paths = b"".join(_field(2, _named(path, _item(item))) for path, item in document["paths"].items())
    known = b"".join(_field(1, _named(name, _schema(node))) for name, node in document["definitions"].items())
    return _field(1, document["swagger"]) + _field(2, info) + _field(8, paths) + _field(9, known)


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def _field(number: int, value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _named(name: str, value: bytes) -> bytes:
    return _field(1, name) + _field(2, value)


def _extensions(number: int, node: Json) -> bytes:
    """Members that begin with x-, each as YAML text (of which JSON is a part)."""
    return b"".join(
        _field(number, _named(key, _field(2, msgspec.json.encode(value))))
        for key, value in node.items()
        if key.startswith("x-")
    )


def _item(item: Json) -> bytes:
    return b"".join(_field(_METHODS[method], _operation(item[method])) for method in _METHODS if method in item)


def _operation(operation: Json) -> bytes:
    consumes = b"".join(_field(7, form) for form in operation.get("consumes", ()))
    return consumes + _parameters(operation.get("parameters", ())) + _extensions(13, operation)


def _parameters(parameters: Iterable[Json]) -> bytes:
    made = b""
    for parameter in parameters:
        query = _field(2, "query") + _field(4, parameter["name"]) + _field(6, parameter["type"])
        made += _field(8, _field(1, _field(2, _field(3, query))))
    return made


def _schema(node: Json) -> bytes:
    made = _field(1, node["$ref"]) if "$ref" in node else b""
    for key, number in (("format", 2), ("description", 4)):
        made += _field(number, node[key]) if key in node else b""
    values = node.get("additionalProperties")
    made += _field(21, _field(1, _schema(values))) if isinstance(values, Mapping) else b""
    made += _field(22, _field(1, node["type"])) if "type" in node else b""
    made += _field(23, _field(1, _schema(node["items"]))) if "items" in node else b""
    fields = node.get("properties")
    if fields:
        made += _field(25, b"".join(_field(1, _named(name, _schema(part))) for name, part in fields.items()))
    return made + _extensions(31, node)
