"""Typed views of PersistentVolume, PersistentVolumeClaim (v1) and of the kinds of storage.k8s.io/v1."""

# ruff: noqa: RUF012  (msgspec makes a new dict of an empty default for every instance)

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from muster.api.core import NodeSelector, ObjectReference
from muster.api.meta import Condition, LabelSelector, ObjectMeta, Part, Quantity
from muster.api.volumes import (
    AwsElasticBlockStore,
    AzureDisk,
    Cinder,
    GcePersistentDisk,
    Iscsi,
    PathOnNode,
    PersistentVolumeClaimSpec,
    PortworxVolume,
    Rbd,
    Unread,
    VsphereVolume,
)

# --- annotations and names of the v1 API ------------------------------------------------------------------------

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


def default_class(classes: Iterable[Mapping[str, Any]]) -> str | None:
    """The name of the StorageClass (as JSON) marked as the default: of several the newest, then the first by name."""
    marked = [each["metadata"] for each in classes if _is_default(each["metadata"].get("annotations") or {})]
    if not marked:
        return None
    newest = max(meta.get("creationTimestamp") or "" for meta in marked)
    return min(str(meta["name"]) for meta in marked if (meta.get("creationTimestamp") or "") == newest)


def _is_default(annotations: Mapping[str, str]) -> bool:
    return "true" in (annotations.get(DEFAULT_CLASS), annotations.get(BETA_DEFAULT_CLASS))


# --- v1 ----------------------------------------------------------------------------------------------------------


class CsiVolume(Part, frozen=True):
    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False


class VolumeNodeAffinity(Part, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Part, frozen=True):
    """Exactly one source; `volume_mode` None is Filesystem."""

    capacity: dict[str, Quantity] = {}
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    mount_options: tuple[str, ...] = ()
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CsiVolume | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: Cinder | None = None
    iscsi: Iscsi | None = None
    rbd: Rbd | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None
    host_path: PathOnNode | None = None
    local: PathOnNode | None = None
    azure_file: Unread = None
    cephfs: Unread = None
    fc: Unread = None
    flex_volume: Unread = None
    flocker: Unread = None
    glusterfs: Unread = None
    nfs: Unread = None
    photon_persistent_disk: Unread = None
    quobyte: Unread = None
    scale_io: Unread = msgspec.field(default=None, name="scaleIO")
    storageos: Unread = None


class PersistentVolumeStatus(Part, frozen=True):
    """`phase` is Pending, Available, Bound, Released or Failed."""

    phase: str = ""
    message: str = ""
    reason: str = ""


class PersistentVolume(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class PersistentVolumeClaimStatus(Part, frozen=True):
    """`phase` is Pending, Bound or Lost."""

    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: dict[str, Quantity] = {}
    conditions: tuple[Condition, ...] = ()


class PersistentVolumeClaim(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


# --- storage.k8s.io/v1 -------------------------------------------------------------------------------------------


class TopologySelectorLabelRequirement(Part, frozen=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Part, frozen=True):
    """All requirements must hold; a list of terms is a choice, an empty list no restriction."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    parameters: dict[str, str] = {}
    reclaim_policy: str | None = None
    mount_options: tuple[str, ...] = ()
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(Part, frozen=True):
    """`count` None: no limit is known."""

    count: int | None = None


class CsiNodeDriver(Part, frozen=True):
    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CsiNodeSpec(Part, frozen=True):
    drivers: tuple[CsiNodeDriver, ...] = ()


class CsiNode(Part, frozen=True):
    """CSINode: which drivers a node of the same name has."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CsiNodeSpec = CsiNodeSpec()


class CsiDriverSpec(Part, frozen=True):
    attach_required: bool | None = None
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None
    volume_lifecycle_modes: tuple[str, ...] = ()
    fs_group_policy: str | None = None
    node_allocatable_update_period_seconds: int | None = None


class CsiDriver(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CsiDriverSpec = CsiDriverSpec()


class CsiStorageCapacity(Part, frozen=True):
    """Room for volumes of a class on the nodes of `node_topology`; None matches no node, an empty one all."""

    metadata: ObjectMeta = ObjectMeta()
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(Part, frozen=True):
    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Part, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachmentStatus(Part, frozen=True):
    attached: bool = False


class VolumeAttachment(Part, frozen=True):
    """A driver's order to attach a volume to a node; the scheduler counts those whose pod is gone already."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
