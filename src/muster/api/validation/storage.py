"""Rules for PersistentVolume and PersistentVolumeClaim, and what an update of them may change."""

from __future__ import annotations

from posixpath import normpath
from typing import Any

import msgspec

from muster.api import quantity
from muster.api.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec
from muster.api.validation import checks, names, placement, volumes
from muster.api.validation.checks import Errors
from muster.api.validation.field import SPEC, Path
from muster.api.validation.small import rules
from muster.api.volumes import PersistentVolumeClaimSpec, sources

RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_BESIDE_SOURCES = frozenset(
    ("capacity", "access_modes", "claim_ref", "persistent_volume_reclaim_policy", "storage_class_name",
     "mount_options", "volume_mode", "node_affinity", "volume_attributes_class_name")
)  # fmt: skip
SOURCES = tuple(name for name in PersistentVolumeSpec.__struct_fields__ if name not in _BESIDE_SOURCES)
_IMMUTABLE_CLAIM = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_REQUESTED = SPEC / "resources" / "requests" / "storage"


# --- PersistentVolume --------------------------------------------------------------------------------------------


def _volume(new: PersistentVolume, old: PersistentVolume | None) -> Errors:
    errors = volume_spec(new.spec, SPEC)
    return errors + (_volume_changes(new.spec, old.spec) if old is not None else [])


def volume_spec(spec: PersistentVolumeSpec, path: Path) -> Errors:
    """One source, an amount of storage, access modes; a local volume says where it is."""
    errors = volumes.access_modes(spec.access_modes, path / "accessModes", "")
    errors += _capacity(spec.capacity, path / "capacity")
    if spec.persistent_volume_reclaim_policy:
        at = path / "persistentVolumeReclaimPolicy"
        errors += checks.one_of(spec.persistent_volume_reclaim_policy, at, RECLAIM_POLICIES)
    errors += _source(spec, path)
    if spec.storage_class_name:
        errors += checks.formatted(spec.storage_class_name, path / "storageClassName", names.dns_subdomain)
    if spec.volume_mode is not None:
        errors += checks.one_of(spec.volume_mode, path / "volumeMode", volumes.VOLUME_MODES)
    if spec.node_affinity is not None:
        at = path / "nodeAffinity" / "required"
        required = spec.node_affinity.required
        errors += [at.required("must specify required node constraints")] if required is None else []
        errors += placement.node_selector(required, at) if required is not None else []
    elif spec.local is not None:
        errors.append((path / "nodeAffinity").required("Local volume requires node affinity"))
    return errors


def _capacity(amounts: dict[str, str | int | float], path: Path) -> Errors:
    if not amounts:
        return [path.required()]
    if set(amounts) != {"storage"}:
        return [path.not_supported(amounts, ("storage",))]
    return volumes.storage(amounts, path)


def _source(spec: PersistentVolumeSpec, path: Path) -> Errors:
    found = sources(spec, _BESIDE_SOURCES)
    errors = [] if found else [path.required("must specify a volume type")]
    errors += [(path / source).forbidden("may not specify more than 1 volume type") for source in found[1:]]
    errors += volumes.disk(spec, path)
    if spec.local is not None and not spec.local.path:
        errors.append((path / "local" / "path").required())
    if spec.csi is not None:
        errors += checks.text(spec.csi.driver, path / "csi" / "driver", names.dns_subdomain)
        if not spec.csi.volume_handle:
            errors.append((path / "csi" / "volumeHandle").required())
    recycled = spec.persistent_volume_reclaim_policy == "Recycle"
    if recycled and spec.host_path is not None and normpath(spec.host_path.path or ".") == "/":
        message = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append((path / "persistentVolumeReclaimPolicy").forbidden(message))
    return errors


def _volume_changes(new: PersistentVolumeSpec, old: PersistentVolumeSpec) -> Errors:
    errors: Errors = []
    if any(getattr(new, source) != getattr(old, source) for source in SOURCES):
        message = "spec.persistentvolumesource is immutable after creation"
        errors.append((SPEC / "persistentvolumesource").forbidden(message))
    errors += checks.unchanged(new.volume_mode, old.volume_mode, Path("volumeMode"))
    if old.node_affinity is not None:
        errors += checks.unchanged(new.node_affinity, old.node_affinity, SPEC / "nodeAffinity")
    return errors


# --- PersistentVolumeClaim ---------------------------------------------------------------------------------------


def _claim(new: PersistentVolumeClaim, old: PersistentVolumeClaim | None) -> Errors:
    errors = volumes.claim_spec(new.spec, SPEC)
    return errors + (_claim_changes(new, old) if old is not None else [])


def _claim_changes(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> Errors:
    """A volume and a class may be given to a claim that has none; a bound one may ask for more storage."""
    errors: Errors = []
    if _fixed(new.spec, old) != _fixed(old.spec, old):
        errors.append(SPEC.forbidden(_IMMUTABLE_CLAIM))
    wanted, before = _storage(new.spec.resources.requests), _storage(old.spec.resources.requests)
    if wanted < before and wanted <= _storage(old.status.capacity):
        errors.append(_REQUESTED.forbidden("field can not be less than status.capacity"))
    return errors


def _fixed(spec: PersistentVolumeClaimSpec, old: PersistentVolumeClaim) -> PersistentVolumeClaimSpec:
    """The spec without what may be changed."""
    free: dict[str, Any] = {}
    if not old.spec.volume_name:
        free["volume_name"] = ""
    if old.spec.storage_class_name is None:
        free["storage_class_name"] = None
    if old.status.phase == "Bound":
        amounts = {**spec.resources.requests, "storage": 0}
        free["resources"] = msgspec.structs.replace(spec.resources, requests=amounts)
        free["volume_attributes_class_name"] = None
    return msgspec.structs.replace(spec, **free) if free else spec


def _storage(amounts: dict[str, str | int | float]) -> int:
    try:
        return quantity.nanos(amounts.get("storage", 0))
    except ValueError:
        return 0  # said where it is


persistent_volume = rules(PersistentVolume, _volume, namespaced=False)
persistent_volume_claim = rules(PersistentVolumeClaim, _claim)
