"""Typed views of volumes: the sources of pods and of PersistentVolumes, and what a claim asks for (v1)."""

# ruff: noqa: RUF012  (msgspec makes a new dict of an empty default for every instance)

from __future__ import annotations

import msgspec

from muster.api.meta import LabelSelector, ObjectMeta, Part, Quantity

Unread = dict[str, object] | None
"""A source whose content is the schema's business: set, or not."""

# --- sources that say which disk it is ---------------------------------------------------------------------------


class GcePersistentDisk(Part, frozen=True):
    pd_name: str = ""
    read_only: bool = False


class AwsElasticBlockStore(Part, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class AzureDisk(Part, frozen=True):
    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    read_only: bool = False


class Cinder(Part, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class Iscsi(Part, frozen=True):
    """Two are the same disk when their `iqn` is."""

    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    read_only: bool = False


class Rbd(Part, frozen=True):
    """Two are the same disk when they share a monitor, the pool and the image."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class VsphereVolume(Part, frozen=True):
    volume_path: str = ""


class PortworxVolume(Part, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class PathOnNode(Part, frozen=True):
    """hostPath and local."""

    path: str = ""


# --- what a claim asks for ---------------------------------------------------------------------------------------


class VolumeResources(Part, frozen=True):
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}


class PersistentVolumeClaimSpec(Part, frozen=True):
    """`storage_class_name` None asks for the default class, "" for none; `volume_mode` None is Filesystem."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    data_source: Unread = None
    data_source_ref: Unread = None


class PersistentVolumeClaimTemplate(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


# --- what a container does with volumes --------------------------------------------------------------------------


class VolumeMount(Part, frozen=True):
    name: str = ""
    mount_path: str = ""


class VolumeDevice(Part, frozen=True):
    """A volume as a raw block device."""

    name: str = ""
    device_path: str = ""


# --- a pod's volumes ---------------------------------------------------------------------------------------------


class ClaimVolume(Part, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class EphemeralVolume(Part, frozen=True):
    """A claim of the pod's own, named `<pod>-<volume>`, made from this template."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class InlineCsi(Part, frozen=True):
    driver: str = ""
    read_only: bool | None = None


class Volume(Part, frozen=True):
    """A name and exactly one source, in the order in which they are checked."""

    name: str = ""
    empty_dir: Unread = None
    host_path: PathOnNode | None = None
    git_repo: Unread = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    secret: Unread = None
    nfs: Unread = None
    iscsi: Iscsi | None = None
    glusterfs: Unread = None
    persistent_volume_claim: ClaimVolume | None = None
    rbd: Rbd | None = None
    flex_volume: Unread = None
    cinder: Cinder | None = None
    cephfs: Unread = None
    flocker: Unread = None
    downward_api: Unread = msgspec.field(default=None, name="downwardAPI")
    fc: Unread = None
    config_map: Unread = None
    azure_file: Unread = None
    vsphere_volume: VsphereVolume | None = None
    azure_disk: AzureDisk | None = None
    photon_persistent_disk: Unread = None
    storageos: Unread = None
    portworx_volume: PortworxVolume | None = None
    scale_io: Unread = msgspec.field(default=None, name="scaleIO")
    quobyte: Unread = None
    projected: Unread = None
    csi: InlineCsi | None = None
    ephemeral: EphemeralVolume | None = None
    image: Unread = None

    def claim_name(self, pod: str) -> str | None:
        """The claim behind this volume of the pod with that name; None if it has none."""
        if self.persistent_volume_claim is not None:
            return self.persistent_volume_claim.claim_name
        return f"{pod}-{self.name}" if self.ephemeral is not None else None


def sources(part: Part, other: frozenset[str]) -> list[str]:
    """The JSON names of the sources that are set: every member that is not one of `other` (Python names)."""
    encoded = zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True)
    return [shown for name, shown in encoded if name not in other and getattr(part, name) is not None]
