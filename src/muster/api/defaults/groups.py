"""Defaults of PodGroup, CompositePodGroup and Workload (V26, V33)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.defaults import parts
from muster.api.defaults.parts import Json, Raw
from muster.api.gates import FeatureGates


def pod_group(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """Pods may be evicted one by one unless the group says otherwise (V33); claims go while their gate is off (V26)."""
    if not parts.is_mapping(obj, "spec"):
        return
    spec = parts.copied(obj, "spec")
    if not gates.workload_resource_claims and not parts.at(old, "spec").get("resourceClaims"):
        spec.pop("resourceClaims", None)
    spec.setdefault("disruptionMode", {"single": {}})
    obj["spec"] = spec


def workload(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """Claims of templates go while their gate is off, unless the stored template has them (V26)."""
    if gates.workload_resource_claims or not isinstance(obj.get("spec"), Mapping):
        return
    kept = _names_with_claims(parts.at(old, "spec"))
    obj["spec"] = _without_claims(obj["spec"], kept)


def _without_claims(owner: Raw, kept: set[str]) -> Raw:
    made = dict(owner)
    for template in _templates(owner, "podGroupTemplates"):
        if "resourceClaims" in template and template.get("name") not in kept:
            made["podGroupTemplates"] = [_without_own_claims(leaf, kept) for leaf in owner["podGroupTemplates"]]
            break
    composites = _templates(owner, "compositePodGroupTemplates")
    if composites:
        made["compositePodGroupTemplates"] = [
            _without_claims(child, kept) if isinstance(child, Mapping) else child
            for child in owner["compositePodGroupTemplates"]
        ]
    return made


def _without_own_claims(leaf: Any, kept: set[str]) -> Any:
    if not isinstance(leaf, Mapping) or leaf.get("name") in kept:
        return leaf
    return {key: value for key, value in leaf.items() if key != "resourceClaims"}


def _names_with_claims(owner: Raw) -> set[str]:
    own = {leaf.get("name", "") for leaf in _templates(owner, "podGroupTemplates") if leaf.get("resourceClaims")}
    return own.union(*map(_names_with_claims, _templates(owner, "compositePodGroupTemplates")))


def _templates(owner: Raw, field: str) -> list[Raw]:
    given = owner.get(field)
    return [entry for entry in given if isinstance(entry, Mapping)] if isinstance(given, list) else []
