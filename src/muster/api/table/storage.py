"""Volumes and claims of the core group, and storage.k8s.io."""

from __future__ import annotations

from muster.api import storage
from muster.api.defaults import storage as storage_defaults
from muster.api.kind import Kind
from muster.api.validation import storage as storage_rules
from muster.api.validation import storage_classes

PERSISTENT_VOLUME = Kind(
    "PersistentVolume", "", "v1", "persistentvolumes", "persistentvolume", storage.PersistentVolume, ("pv",), False,
    ("status",), defaults=storage_defaults.persistent_volume, validate=storage_rules.persistent_volume,
)  # fmt: skip
PERSISTENT_VOLUME_CLAIM = Kind(
    "PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", "persistentvolumeclaim",
    storage.PersistentVolumeClaim, ("pvc",), True, ("status",),
    defaults=storage_defaults.persistent_volume_claim, validate=storage_rules.persistent_volume_claim,
)  # fmt: skip
STORAGE_CLASS = Kind(
    "StorageClass", "storage.k8s.io", "v1", "storageclasses", "storageclass", storage.StorageClass, ("sc",), False,
    defaults=storage_defaults.storage_class, validate=storage_classes.storage_class,
)  # fmt: skip
CSI_NODE = Kind(
    "CSINode", "storage.k8s.io", "v1", "csinodes", "csinode", storage.CsiNode, (), False,
    validate=storage_classes.csi_node,
)  # fmt: skip
CSI_DRIVER = Kind(
    "CSIDriver", "storage.k8s.io", "v1", "csidrivers", "csidriver", storage.CsiDriver, (), False,
    defaults=storage_defaults.csi_driver, validate=storage_classes.csi_driver,
)  # fmt: skip
CSI_STORAGE_CAPACITY = Kind(
    "CSIStorageCapacity", "storage.k8s.io", "v1", "csistoragecapacities", "csistoragecapacity",
    storage.CsiStorageCapacity, validate=storage_classes.csi_storage_capacity,
)  # fmt: skip
VOLUME_ATTACHMENT = Kind(
    "VolumeAttachment", "storage.k8s.io", "v1", "volumeattachments", "volumeattachment", storage.VolumeAttachment,
    (), False, ("status",), validate=storage_classes.volume_attachment,
)  # fmt: skip
