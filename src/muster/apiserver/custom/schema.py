"""The schema of a user's kind in the forms that decoding and ownership want."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.structure import filling
from muster.api.structure.values import EMBEDDED, INT_OR_STRING, PRESERVES
from muster.apiserver.custom.kinds import CustomKind
from muster.apiserver.schema import Findings, Node, Schema, fields_of_metadata
from muster.apiserver.shapes import Shape

METADATA = "#/$defs/apis.meta.v1.ObjectMeta"
_KEPT = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", PRESERVES, "default")


class CustomSchema(Schema):
    """What decoding asks of a schema: unknown fields go, metadata must be metadata. The rest is for validation."""

    def __init__(self, kind: CustomKind) -> None:
        self.root = node(kind.structure, embedded=True)
        self._structure = kind.structure

    def fits(self, value: Any) -> bool:
        return False

    def clean(self, value: Any) -> tuple[Any, Findings]:
        findings = Findings()
        made = filling.pruned(self._structure, value, findings.unknown)
        if "metadata" in made:
            made["metadata"] = fields_of_metadata(made["metadata"], findings)
        return made, findings


def schema_of(kind: CustomKind) -> CustomSchema:
    return CustomSchema(kind)


def shape_of(kind: CustomKind) -> Shape:
    """How each place of an object is owned."""
    return Shape(node(kind.structure, embedded=True))


def node(structure: Mapping[str, Any], *, embedded: bool = False) -> Node:
    """A place of a structural schema as the schema file would have it."""
    if structure.get(INT_OR_STRING):
        return {"type": "string"}
    if "type" not in structure:
        return {PRESERVES: True}
    made: dict[str, Any] = {key: structure[key] for key in _KEPT if key in structure}
    made["type"] = structure["type"]
    if structure["type"] == "array":
        made["items"] = node(structure["items"])
    if structure["type"] != "object":
        return made
    properties = {name: node(inner) for name, inner in (structure.get("properties") or {}).items()}
    if embedded or structure.get(EMBEDDED):
        text = {"type": "string"}
        properties |= {"apiVersion": text, "kind": text, "metadata": {"$ref": METADATA}}
    held = structure.get("additionalProperties")
    if properties:
        made["properties"] = properties
    elif isinstance(held, Mapping):
        made["additionalProperties"] = node(held)
    return made
