"""The columns of volumes, what provides them, and devices."""

from __future__ import annotations

from muster.apiserver.cells import AGE, NAME, WIDE, Cell, at, flag
from muster.apiserver.log import Raw
from muster.apiserver.sheet import NONE, UNSET, Column, Sheet

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def _modes(path: str) -> Cell:
    inner = at(path, ())
    return lambda raw, sheet: ",".join(_MODES.get(mode, mode) for mode in inner(raw, sheet))


def _volume_status(raw: Raw, sheet: Sheet) -> str:
    phase: str = raw.get("status", {}).get("phase") or ""
    return "Terminating" if "deletionTimestamp" in raw["metadata"] else phase


def _claim(volume: Raw, sheet: Sheet) -> str:
    claim = volume.get("spec", {}).get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _class_name(raw: Raw, sheet: Sheet) -> str:
    annotations = raw["metadata"].get("annotations") or {}
    name: str = raw["metadata"]["name"]
    return f"{name} (default)" if annotations.get(_DEFAULT_CLASS) == "true" else name


def _claim_state(claim: Raw, sheet: Sheet) -> str:
    status = claim.get("status") or {}
    states = ["deleted"] if "deletionTimestamp" in claim["metadata"] else []
    states += ["allocated"] if status.get("allocation") else []
    states += ["reserved"] if status.get("reservedFor") else []
    return ",".join(states) or "pending"


_ATTRIBUTES = Column("VolumeAttributesClass", at("spec.volumeAttributesClassName", UNSET))
_VOLUME_MODE = Column("VolumeMode", at("spec.volumeMode", UNSET), priority=WIDE)
VOLUME = (
    NAME,
    Column("Capacity", at("spec.capacity.storage")),
    Column("Access Modes", _modes("spec.accessModes")),
    Column("Reclaim Policy", at("spec.persistentVolumeReclaimPolicy")),
    Column("Status", _volume_status),
    Column("Claim", _claim),
    Column("StorageClass", at("spec.storageClassName")),
    _ATTRIBUTES,
    Column("Reason", at("status.reason")),
    AGE,
    _VOLUME_MODE,
)
CLAIM = (
    NAME,
    Column("Status", _volume_status),
    Column("Volume", at("spec.volumeName")),
    Column("Capacity", at("status.capacity.storage")),
    Column("Access Modes", _modes("status.accessModes")),
    Column("StorageClass", at("spec.storageClassName")),
    _ATTRIBUTES,
    AGE,
    _VOLUME_MODE,
)
STORAGE_CLASS = (
    Column("Name", _class_name),
    Column("Provisioner", at("provisioner")),
    Column("ReclaimPolicy", at("reclaimPolicy", "Delete")),
    Column("VolumeBindingMode", at("volumeBindingMode", "Immediate")),
    Column("AllowVolumeExpansion", flag("allowVolumeExpansion")),
    AGE,
)
CSI_DRIVER = (
    NAME,
    Column("AttachRequired", flag("spec.attachRequired", True), "boolean"),
    Column("PodInfoOnMount", flag("spec.podInfoOnMount"), "boolean"),
    Column("StorageCapacity", flag("spec.storageCapacity"), "boolean"),
    AGE,
)
CSI_NODE = (NAME, Column("Drivers", lambda raw, sheet: len(raw.get("spec", {}).get("drivers") or ()), "integer"), AGE)
CAPACITY = (NAME, Column("StorageClassName", at("storageClassName")), Column("Capacity", at("capacity")), AGE)
ATTACHMENT = (
    NAME,
    Column("Attacher", at("spec.attacher")),
    Column("PV", at("spec.source.persistentVolumeName")),
    Column("Node", at("spec.nodeName")),
    Column("Attached", flag("status.attached"), "boolean"),
    AGE,
)
RESOURCE_CLAIM = (NAME, Column("State", _claim_state), AGE)
RESOURCE_SLICE = (
    NAME,
    Column("Node", at("spec.nodeName", NONE)),
    Column("Driver", at("spec.driver")),
    Column("Pool", at("spec.pool.name")),
    AGE,
)
