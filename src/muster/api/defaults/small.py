"""Defaults of nodes, namespaces, priority classes and claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


def resource_claim(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    if isinstance(obj.get("spec"), Mapping):
        obj["spec"] = _claim_spec(obj["spec"])


def resource_claim_template(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    spec = obj.get("spec")
    if isinstance(spec, Mapping) and isinstance(spec.get("spec"), Mapping):
        obj["spec"] = {**spec, "spec": _claim_spec(spec["spec"])}


def _claim_spec(spec: Raw) -> Raw:
    """A request is for one device unless it says otherwise."""
    devices = spec.get("devices")
    if not isinstance(devices, Mapping) or not isinstance(devices.get("requests"), list):
        return spec
    requests = [_device_request(request) for request in devices["requests"]]
    return {**spec, "devices": {**devices, "requests": requests}}


def _device_request(request: Any) -> Any:
    if not isinstance(request, Mapping):
        return request
    made = dict(request)
    if isinstance(made.get("exactly"), Mapping):
        made["exactly"] = _exact_request(made["exactly"])
    if isinstance(made.get("firstAvailable"), list):
        made["firstAvailable"] = [
            _exact_request(choice) if isinstance(choice, Mapping) else choice for choice in made["firstAvailable"]
        ]
    return made


def _exact_request(request: Raw) -> Json:
    made = {"allocationMode": "ExactCount"} | dict(request)
    if made["allocationMode"] == "ExactCount":
        made.setdefault("count", 1)
    return made
