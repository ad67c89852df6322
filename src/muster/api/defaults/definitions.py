"""Defaults of CustomResourceDefinitions: names that follow from the kind, no conversion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.defaults import parts
from muster.api.defaults.parts import Json, Raw
from muster.api.gates import FeatureGates


def definition(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """The singular is the kind in lower case, lists are called KINDList, objects are converted by name only."""
    spec = parts.copied(obj, "spec")
    if not (parts.is_mapping(obj, "spec") and parts.is_mapping(spec, "names") and parts.is_mapping(spec, "conversion")):
        return
    names = parts.copied(spec, "names")
    kind = names.get("kind")
    if kind and isinstance(kind, str):
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    spec["names"] = names
    conversion = parts.copied(spec, "conversion")
    spec["conversion"] = conversion if conversion.get("strategy") else {**conversion, "strategy": "None"}
    if not spec.get("preserveUnknownFields"):
        spec.pop("preserveUnknownFields", None)
    versions = spec.get("versions")
    if isinstance(versions, list):
        spec["versions"] = [_version(version) for version in versions]
    obj["spec"] = spec


def _version(version: Any) -> Any:
    """A version whose schema has no nulls, which are as good as absent."""
    if not isinstance(version, Mapping):
        return version
    validation = version.get("schema")
    if not (isinstance(validation, Mapping) and isinstance(validation.get("openAPIV3Schema"), Mapping)):
        return version
    told = _plain(validation["openAPIV3Schema"])
    return (
        version
        if told == validation["openAPIV3Schema"]
        else {**version, "schema": {**validation, "openAPIV3Schema": told}}
    )


def _plain(node: Any) -> Any:
    if not isinstance(node, Mapping):
        return node
    made = {key: value for key, value in node.items() if value is not None}
    for key in ("items", "additionalProperties", "not"):
        if key in made:
            made[key] = _plain(made[key])
    for key in ("allOf", "anyOf", "oneOf"):
        if isinstance(made.get(key), list):
            made[key] = [_plain(one) for one in made[key]]
    if isinstance(made.get("properties"), Mapping):
        made["properties"] = {name: _plain(inner) for name, inner in made["properties"].items()}
    return made
