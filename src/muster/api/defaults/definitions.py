"""Defaults of CustomResourceDefinitions: names that follow from the kind, no conversion."""

from __future__ import annotations

from typing import Any

from muster.api.defaults.parts import Json, Raw
from muster.api.gates import FeatureGates


def definition(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """The singular is the kind in lower case, lists are called KINDList, objects are converted by name only."""
    spec = dict(obj.get("spec") or {})
    names: dict[str, Any] = dict(spec.get("names") or {})
    kind = names.get("kind") or ""
    if kind:
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    spec["names"] = names
    conversion = spec.get("conversion") or {}
    spec["conversion"] = conversion if conversion.get("strategy") else {**conversion, "strategy": "None"}
    if not spec.get("preserveUnknownFields"):
        spec.pop("preserveUnknownFields", None)
    obj["spec"] = spec
