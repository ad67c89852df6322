"""Users' schemas as OpenAPI has them, for explain and for the checks of clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.structure.values import EMBEDDED, INT_OR_STRING, PRESERVES
from muster.apiserver.custom.kinds import CustomKind

Json = dict[str, Any]

_NOT_IN_V2 = ("nullable", "oneOf", "anyOf", "allOf", "not", "default")
_OBJECT = {
    "apiVersion": "The version of the schema of this representation of an object.",
    "kind": "The kind of the object.",
}


def name_of(kind: CustomKind) -> str:
    """The name of the definition: the group backwards, version and kind."""
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def definition(kind: CustomKind, metadata: str, *, v2: bool) -> Json:
    """The definition of a kind; `metadata` is the reference to that of ObjectMeta."""
    made = node(kind.structure, metadata, v2=v2, whole=True)
    made["x-kubernetes-group-version-kind"] = [{"group": kind.group, "version": kind.version, "kind": kind.kind}]
    return made


def node(schema: Mapping[str, Any], metadata: str, *, v2: bool, whole: bool = False) -> Json:
    """One place of a schema. In v2, what clients of that would misread is left out, as the real server does."""
    made: Json = {
        key: value
        for key, value in schema.items()
        if key not in ("properties", "items", "additionalProperties") and not (v2 and key in _NOT_IN_V2)
    }
    if v2 and (schema.get(PRESERVES) or schema.get("nullable")):
        made = {key: value for key, value in made.items() if key.startswith("x-") or key == "description"}
        if not whole:
            return made
        made["type"] = "object"
    properties = {name: node(inner, metadata, v2=v2) for name, inner in (schema.get("properties") or {}).items()}
    if whole or schema.get(EMBEDDED):
        for name, text in _OBJECT.items():
            properties[name] = {"type": "string", "description": text}
        properties["metadata"] = {"$ref": metadata} if v2 else {"allOf": [{"$ref": metadata}]}
    if properties:
        made["properties"] = properties
    if isinstance(schema.get("items"), Mapping):
        made["items"] = node(schema["items"], metadata, v2=v2)
    held = schema.get("additionalProperties")
    if isinstance(held, Mapping):
        made["additionalProperties"] = node(held, metadata, v2=v2)
    if schema.get(INT_OR_STRING) and not v2:
        made.setdefault("oneOf", [{"type": "integer"}, {"type": "string"}])
    return made
