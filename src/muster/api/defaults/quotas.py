"""Defaults of ResourceQuota and LimitRange."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.defaults.amounts import amounts
from muster.api.defaults.parts import Json, Raw
from muster.api.gates import FeatureGates

AMOUNTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def resource_quota(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """Canonical amounts."""
    spec = obj.get("spec")
    if isinstance(spec, Mapping) and "hard" in spec:
        obj["spec"] = {**spec, "hard": amounts(spec["hard"])}


def limit_range(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """Canonical amounts, and what a limit says of containers implicitly."""
    spec = obj.get("spec")
    if isinstance(spec, Mapping) and isinstance(spec.get("limits"), list):
        limits = [_limit(entry) if isinstance(entry, Mapping) else entry for entry in spec["limits"]]
        obj["spec"] = {**spec, "limits": limits}


def _limit(given: Raw) -> Json:
    """A container's default limit is the most it may have, its default request the default limit, or the least."""
    limit: Json = {**given, **{field: amounts(given[field]) for field in AMOUNTS if field in given}}
    if limit.get("type") != "Container":
        return limit
    most, least, default, request = (_listed(limit, field) for field in ("max", "min", "default", "defaultRequest"))
    if most or default:
        limit["default"] = default = most | default
    if least or default or request:
        limit["defaultRequest"] = least | default | request
    return limit


def _listed(limit: Raw, field: str) -> dict[str, Any]:
    value = limit.get(field)
    return dict(value) if isinstance(value, Mapping) else {}
