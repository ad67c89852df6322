"""Defaults of claims, their templates, and ResourceSlices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.defaults.amounts import amounts
from muster.api.defaults.parts import Json, Raw
from muster.api.gates import FeatureGates


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
    if isinstance(made.get("tolerations"), list):
        made["tolerations"] = [
            {"operator": "Equal"} | dict(entry) if isinstance(entry, Mapping) else entry
            for entry in made["tolerations"]
        ]
    capacity = made.get("capacity")
    if isinstance(capacity, Mapping) and "requests" in capacity:
        made["capacity"] = {**capacity, "requests": amounts(capacity["requests"])}
    return made


def resource_slice(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """Canonical amounts of capacities and counters."""
    spec = obj.get("spec")
    if not isinstance(spec, Mapping):
        return
    made = dict(spec)
    for field, inner in (("devices", _device), ("sharedCounters", _counting)):
        if isinstance(made.get(field), list):
            made[field] = [inner(entry) if isinstance(entry, Mapping) else entry for entry in made[field]]
    obj["spec"] = made


def _device(device: Raw) -> Raw:
    made = dict(device)
    if isinstance(made.get("capacity"), Mapping):
        made["capacity"] = _valued(made["capacity"])
    if isinstance(made.get("consumesCounters"), list):
        made["consumesCounters"] = [
            _counting(entry) if isinstance(entry, Mapping) else entry for entry in made["consumesCounters"]
        ]
    return made


def _counting(holder: Raw) -> Raw:
    counters = holder.get("counters")
    return {**holder, "counters": _valued(counters)} if isinstance(counters, Mapping) else holder


def _valued(entries: Raw) -> Raw:
    return {
        name: {**entry, **_value(entry)} if isinstance(entry, Mapping) else entry for name, entry in entries.items()
    }


def _value(entry: Raw) -> Raw:
    found: Raw = amounts({"value": entry["value"]}) if "value" in entry else {}
    return found
