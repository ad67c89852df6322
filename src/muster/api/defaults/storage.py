"""Defaults of volumes, claims, storage classes and CSI drivers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.defaults import parts
from muster.api.defaults.amounts import amounts
from muster.api.defaults.parts import Json, Raw
from muster.api.gates import FeatureGates


def persistent_volume(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """Kept when its claim goes, a file system, and Pending until the volume controller has looked at it."""
    if isinstance(obj.get("spec"), Mapping):
        spec = dict(obj["spec"])
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        spec.setdefault("volumeMode", "Filesystem")
        if "capacity" in spec:
            spec["capacity"] = amounts(spec["capacity"])
        if isinstance(spec.get("claimRef"), Mapping):
            spec["claimRef"] = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"} | dict(spec["claimRef"])
        obj["spec"] = spec
    if old is None:
        obj["status"] = {"phase": "Pending"}


def persistent_volume_claim(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """A file system; Pending until a volume is bound."""
    if isinstance(obj.get("spec"), Mapping):
        obj["spec"] = claim_spec(obj["spec"])
    if old is None:
        obj["status"] = {"phase": "Pending"}


def claim_spec(given: Raw) -> Json:
    """What a claim asks for, completed: in a claim of its own, and in a pod's template."""
    spec = dict(given)
    spec.setdefault("volumeMode", "Filesystem")
    resources = spec.get("resources")
    if isinstance(resources, Mapping):
        spec["resources"] = {
            field: amounts(value) if field in ("limits", "requests") else value for field, value in resources.items()
        }
    return spec


def pod_volumes(given: Any) -> Any:
    """A pod's volumes with completed claim templates; the same list if there are none."""
    if not isinstance(given, list) or not any(isinstance(each, Mapping) and "ephemeral" in each for each in given):
        return given
    return [_with_template(each) if isinstance(each, Mapping) else each for each in given]


def _with_template(volume: Raw) -> Raw:
    template = parts.at(volume, "ephemeral", "volumeClaimTemplate")
    if not isinstance(template.get("spec"), Mapping):
        return volume
    made = {**template, "spec": claim_spec(template["spec"])}
    return {**volume, "ephemeral": {**volume["ephemeral"], "volumeClaimTemplate": made}}


def storage_class(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def csi_driver(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    if not isinstance(obj.get("spec"), Mapping):
        return
    spec = dict(obj["spec"])
    for field, value in _DRIVER.items():
        spec.setdefault(field, value)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]
    obj["spec"] = spec


_DRIVER: Mapping[str, Any] = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "requiresRepublish": False,
    "seLinuxMount": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
}
