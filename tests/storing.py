"""Records of pods with claims, and of what is there for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from muster.model.keys import Key
from muster.model.records import PodRecord
from muster.model.snapshot import Snapshot
from muster.model.volumes import (
    CapacityRecord,
    ClaimRecord,
    ClaimUse,
    ClassRecord,
    Disk,
    DriverRecord,
    PodVolumes,
    VolumeRecord,
    Volumes,
)
from muster.testing import builders

ONCE = ("ReadWriteOnce",)


def key(name: str) -> Key:
    return Key("default", name)


def storing(
    name: str, *claims: str, disks: Iterable[tuple[Disk, int]] = (), ephemeral: Iterable[str] = (), **fields: Any
) -> PodRecord:
    """A pod that uses these claims."""
    uses = (*(ClaimUse(claim) for claim in claims), *(ClaimUse(claim, ephemeral=True) for claim in ephemeral))
    record = builders.pod(name, **fields)
    return replace(record, cls=replace(record.cls, stores=True), volumes=PodVolumes(uses, tuple(disks)))


def claim(name: str, class_name: str | None = "late", *, size: int = 1, volume: str = "", **fields: Any) -> ClaimRecord:
    """A claim; with a volume it is bound to it."""
    values = {"modes": ONCE, "bound": bool(volume), **fields}
    return ClaimRecord(key(name), f"uid-{name}", size, class_name=class_name, volume=volume, **values)


def volume(name: str, class_name: str = "late", *, size: int = 1, **fields: Any) -> VolumeRecord:
    """A free volume."""
    values = {"modes": ONCE, "available": True, **fields}
    return VolumeRecord(name, f"uid-{name}", size, class_name=class_name, **values)


def at(*nodes: str) -> Any:
    """The node affinity of a volume that is reached from these nodes."""
    return (builders.term((builders.HOSTNAME, "In", nodes)),)


def in_zone(*zones: str) -> Any:
    return (builders.term(("zone", "In", zones)),)


def stored(
    snapshot: Snapshot,
    *records: ClaimRecord | VolumeRecord | ClassRecord | DriverRecord | CapacityRecord,
    mounts: dict[Key, dict[str, int]] | None = None,
    **fields: Any,
) -> Snapshot:
    """The snapshot with these records in it."""
    known: dict[type, dict[Any, Any]] = {}
    for record in records:
        known.setdefault(type(record), {})[record.key if hasattr(record, "key") else record.name] = record
    volumes = Volumes(
        1,
        known.get(ClaimRecord, {}),
        known.get(VolumeRecord, {}),
        known.get(ClassRecord, {}),
        known.get(DriverRecord, {}),
        known.get(CapacityRecord, {}),
        mounts or {},
        **fields,
    )
    return replace(snapshot, volumes=volumes)
