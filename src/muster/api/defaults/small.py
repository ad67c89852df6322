"""Defaults of nodes, namespaces and priority classes."""

from __future__ import annotations

from collections.abc import Mapping

from muster.api.defaults import parts
from muster.api.defaults.amounts import amounts
from muster.api.defaults.parts import Json, Raw
from muster.api.gates import FeatureGates


def node(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """Canonical amounts; without an allocatable, all of the capacity is. Declared features go with their gate."""
    if not isinstance(obj.get("status"), Mapping):
        return
    status = dict(obj["status"])
    for field in ("capacity", "allocatable"):
        if field in status:
            status[field] = amounts(status[field])
    if "NodeDeclaredFeatures" not in gates.on and "declaredFeatures" not in parts.at(old, "status"):
        status.pop("declaredFeatures", None)
    if "capacity" in status:
        status.setdefault("allocatable", status["capacity"])
    obj["status"] = status


def namespace(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """Its own name as a label, and what keeps it until it is empty, which only `finalize` may change."""
    if not (parts.is_mapping(obj, "metadata") and parts.is_mapping(obj, "spec")):
        return
    metadata = parts.copied(obj, "metadata")
    if parts.is_mapping(metadata, "labels"):
        own = {"kubernetes.io/metadata.name": metadata.get("name", "")}
        obj["metadata"] = metadata | {"labels": parts.copied(metadata, "labels") | own}
    if old is not None:
        obj["spec"] = old.get("spec", {})
    else:
        obj["spec"] = {"finalizers": ["kubernetes"]} | parts.copied(obj, "spec")
        obj["status"] = {"phase": "Active"}


def priority_class(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
    obj.setdefault("value", 0)
