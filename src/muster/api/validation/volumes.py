"""Rules for the volumes of a pod, and for what a claim asks for, in a claim of its own or in a pod's template."""

from __future__ import annotations

from collections.abc import Mapping

from muster.api import quantity
from muster.api.core import Container
from muster.api.validation import checks, names
from muster.api.validation.checks import Errors
from muster.api.validation.field import Path
from muster.api.volumes import (
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimTemplate,
    Volume,
    sources,
)

ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
ALONE = "ReadWriteOncePod"
_BESIDE_SOURCES = frozenset({"name"})


def volumes(values: tuple[Volume, ...], path: Path) -> Errors:
    """Each has a name of its own and exactly one source."""
    errors: Errors = []
    seen: set[str] = set()
    for i, volume in enumerate(values):
        at, name = path // i, volume.name
        errors += checks.text(name, at / "name", names.dns_label)
        if name and name in seen:
            errors.append((at / "name").duplicate(name, "volume names must be unique in the pod"))
        seen.add(name)
        found = sources(volume, _BESIDE_SOURCES)
        if not found:
            errors.append(at.required("must specify a volume type"))
        errors += [(at / source).forbidden("may not specify more than 1 volume type") for source in found[1:]]
        errors += _source(volume, at)
    return errors


def _source(volume: Volume, path: Path) -> Errors:
    """What a source must say for Muster to know which claim, disk or driver it is."""
    errors: Errors = []
    if volume.persistent_volume_claim is not None:
        name = volume.persistent_volume_claim.claim_name
        errors += checks.text(name, path / "persistentVolumeClaim" / "claimName", names.dns_subdomain)
    if volume.ephemeral is not None:
        at = path / "ephemeral" / "volumeClaimTemplate"
        template = volume.ephemeral.volume_claim_template
        errors += [at.required()] if template is None else _claim_template(template, at)
    if volume.csi is not None:
        errors += checks.text(volume.csi.driver, path / "csi" / "driver", names.dns_subdomain)
    return errors + disk(volume, path)


def disk(holder: object, path: Path) -> Errors:
    """The fields that say which disk it is, in a pod's volume and in a PersistentVolume alike."""
    errors: Errors = []
    for source, fields in _DISKS.items():
        found = getattr(holder, source)
        if found is None:
            continue
        shown = dict(zip(found.__struct_fields__, found.__struct_encode_fields__, strict=True))
        at = path / _SHOWN[source]
        errors += [(at / shown[field]).required() for field in fields if not getattr(found, field)]
    return errors


_DISKS = {
    "gce_persistent_disk": ("pd_name",),
    "aws_elastic_block_store": ("volume_id",),
    "azure_disk": ("disk_name", "disk_uri"),
    "cinder": ("volume_id",),
    "iscsi": ("target_portal", "iqn"),
    "rbd": ("monitors", "image"),
    "vsphere_volume": ("volume_path",),
    "portworx_volume": ("volume_id",),
    "host_path": ("path",),
}
_SHOWN = dict(zip(Volume.__struct_fields__, Volume.__struct_encode_fields__, strict=True))


def _claim_template(template: PersistentVolumeClaimTemplate, path: Path) -> Errors:
    errors = checks.labels(template.metadata.labels, path / "metadata" / "labels")
    return errors + claim_spec(template.spec, path / "spec")


def uses(container: Container, there: tuple[Volume, ...], path: Path) -> Errors:
    """Mounts and devices are of volumes of the pod, each at a place of its own; a device is of a claim."""
    by_name = {volume.name: volume for volume in there}
    errors: Errors = []
    places: set[str] = set()
    for i, mount in enumerate(container.volume_mounts):
        at = path / "volumeMounts" // i
        errors += _use(mount.name, by_name, at / "name") + _place(mount.mount_path, places, at / "mountPath")
    mounted = {mount.name for mount in container.volume_mounts}
    for i, device in enumerate(container.volume_devices):
        at = path / "volumeDevices" // i
        errors += _use(device.name, by_name, at / "name") + _place(device.device_path, places, at / "devicePath")
        volume = by_name.get(device.name)
        if volume is not None and volume.persistent_volume_claim is None and volume.ephemeral is None:
            message = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append((at / "name").invalid(device.name, message))
        if device.name in mounted:
            errors.append((at / "name").invalid(device.name, "must not already exist in volumeMounts"))
    return errors


def _use(name: str, by_name: Mapping[str, Volume], path: Path) -> Errors:
    if not name:
        return [path.required()]
    return [] if name in by_name else [path.not_found(name)]


def _place(where: str, places: set[str], path: Path) -> Errors:
    if not where:
        return [path.required()]
    if where in places:
        return [path.invalid(where, "must be unique")]
    places.add(where)
    return []


def claim_spec(spec: PersistentVolumeClaimSpec, path: Path) -> Errors:
    """Access modes and an amount of storage are a must; names, modes and the selector have their forms."""
    errors = access_modes(spec.access_modes, path / "accessModes", "at least 1 access mode is required")
    errors += checks.selector(spec.selector, path / "selector")
    errors += storage(spec.resources.requests, path / "resources" / "requests")
    if spec.storage_class_name:
        errors += checks.formatted(spec.storage_class_name, path / "storageClassName", names.dns_subdomain)
    if spec.volume_mode is not None:
        errors += checks.one_of(spec.volume_mode, path / "volumeMode", VOLUME_MODES)
    return errors


def access_modes(values: tuple[str, ...], path: Path, none: str) -> Errors:
    """At least one known mode; ReadWriteOncePod goes with no other."""
    if not values:
        return [path.required(none)]
    errors: Errors = []
    for i, value in enumerate(values):
        errors += checks.one_of(value, path // i, ACCESS_MODES)
    if ALONE in values and len(set(values)) > 1:
        errors.append(path.forbidden("may not use ReadWriteOncePod with other access modes"))
    return errors


def storage(amounts: dict[str, str | int | float], path: Path) -> Errors:
    """More than nothing of `storage`, the only resource a volume has."""
    at = path.key("storage")
    if "storage" not in amounts:
        return [at.required()]
    problem = checks.quantity_problem("storage", amounts["storage"])
    if problem is None and quantity.nanos(amounts["storage"]) == 0:
        problem = "must be greater than zero"
    return [at.invalid(amounts["storage"], problem)] if problem else []
