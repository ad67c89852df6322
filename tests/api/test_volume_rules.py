"""Volumes, claims, storage classes and the CSI kinds: what is filled in, what is refused and where, what may change."""

from __future__ import annotations

from typing import Any

import pytest
from api_manifests import ALL, GONE, errors, pairs, pod, spoiled

from muster.api import catalog

Json = dict[str, Any]


def made(api_version: str, kind: str, namespace: str | None = None, **fields: Any) -> Json:
    meta = {"name": "x"} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **fields}


def volume(source: Json | None = None, **spec: Any) -> Json:
    given = source or {"hostPath": {"path": "/mnt"}}
    whole = {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], **given, **spec}
    return made("v1", "PersistentVolume", spec=whole)


def claim(**spec: Any) -> Json:
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return made("v1", "PersistentVolumeClaim", "default", spec=whole)


def storage(kind: str, **fields: Any) -> Json:
    return made("storage.k8s.io/v1", kind, "default" if kind == "CSIStorageCapacity" else None, **fields)


CLASS = storage("StorageClass", provisioner="example.com/disk", parameters={"type": "fast"})
CSI_NODE = storage("CSINode", spec={"drivers": [{"name": "csi.example.com", "nodeID": "n1", "topologyKeys": ["zone"]}]})
DRIVER = storage("CSIDriver", spec={})
CAPACITY = storage("CSIStorageCapacity", storageClassName="fast", nodeTopology={}, capacity="10Gi")
ATTACHMENT = storage(
    "VolumeAttachment", spec={"attacher": "csi.example.com", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}
)
TEMPLATE = "spec.volumes[0].ephemeral.volumeClaimTemplate"
EPHEMERAL = pod(volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim()["spec"]}}}])
LOCAL = {"local": {"path": "/d"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{}]}}}
CSI = {"csi": {"driver": "csi.example.com", "volumeHandle": "h"}}
FIRST, MAIN = "spec.volumes[0]", "spec.containers[0]"
TWICE = [{"name": "v", "mountPath": "/"}] * 2
MOUNTED = pod(
    volumes=[{"name": "v", "emptyDir": {}}],
    containers=[{"name": "c", "image": "pause", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
)


def prepared(manifest: Json, old: Json | None = None) -> Json:
    kind = catalog.by_kind(manifest["apiVersion"], manifest["kind"])
    return kind.prepare(manifest, old, ALL)


def change(old: Json, path: str, value: Any, **status: Any) -> set[tuple[str, str]]:
    """(field, type) of what is wrong with this change of a stored object."""
    kind = catalog.by_kind(old["apiVersion"], old["kind"])
    stored = prepared(old)
    if status:
        stored = {**stored, "status": status}
    return {
        (error.field, str(error.type))
        for error in kind.validate(prepared(spoiled(old, path, value), stored), stored, ALL)
    }


WRONG = [
    (
        pod(), "spec.volumes", [{"name": "v", "persistentVolumeClaim": {}}],
        f"{FIRST}.persistentVolumeClaim.claimName", "Required",
    ),
    (pod(), "spec.volumes", [{"name": "v", "csi": {"driver": ""}}], "spec.volumes[0].csi.driver", "Required"),
    (pod(), "spec.volumes", [{"name": "v", "iscsi": {"targetPortal": "a:1"}}], "spec.volumes[0].iscsi.iqn", "Required"),
    (pod(), "spec.volumes", [{"name": "v", "rbd": {"image": "i"}}], "spec.volumes[0].rbd.monitors", "Required"),
    (pod(), "spec.volumes", [{"name": "v", "gcePersistentDisk": {}}], f"{FIRST}.gcePersistentDisk.pdName", "Required"),
    (pod(), f"{MAIN}.volumeMounts", [{"name": "v", "mountPath": "/v"}], f"{MAIN}.volumeMounts[0].name", "NotFound"),
    (MOUNTED, f"{MAIN}.volumeMounts[0].mountPath", GONE, f"{MAIN}.volumeMounts[0].mountPath", "Required"),
    (MOUNTED, f"{MAIN}.volumeMounts", TWICE, f"{MAIN}.volumeMounts[1].mountPath", "Invalid"),
    (MOUNTED, f"{MAIN}.volumeDevices", [{"name": "v", "devicePath": "/d"}], f"{MAIN}.volumeDevices[0].name", "Invalid"),
    (EPHEMERAL, TEMPLATE, GONE, TEMPLATE, "Required"),
    (EPHEMERAL, f"{TEMPLATE}.spec.accessModes", [], f"{TEMPLATE}.spec.accessModes", "Required"),
    (volume(), "spec.hostPath", GONE, "spec", "Required"),
    (volume(), "spec.nfs", {"server": "s", "path": "/"}, "spec.nfs", "Forbidden"),
    (volume(), "spec.capacity", GONE, "spec.capacity", "Required"),
    (volume(), "spec.capacity", {"storage": "1Gi", "cpu": "1"}, "spec.capacity", "NotSupported"),
    (volume(), "spec.capacity", {"storage": "0"}, "spec.capacity[storage]", "Invalid"),
    (volume(), "spec.accessModes", GONE, "spec.accessModes", "Required"),
    (volume(), "spec.accessModes", ["ReadWriteOncePod", "ReadWriteOnce"], "spec.accessModes", "Forbidden"),
    (volume(), "spec.persistentVolumeReclaimPolicy", "Keep", "spec.persistentVolumeReclaimPolicy", "NotSupported"),
    (volume(), "spec.nodeAffinity", {}, "spec.nodeAffinity.required", "Required"),
    (
        volume(), "spec.nodeAffinity", {"required": {"nodeSelectorTerms": []}},
        "spec.nodeAffinity.required.nodeSelectorTerms", "Required",
    ),
    (
        volume(LOCAL), "spec.nodeAffinity", GONE, "spec.nodeAffinity", "Required",
    ),
    (volume(CSI), "spec.csi.volumeHandle", "", "spec.csi.volumeHandle", "Required"),
    (claim(), "spec.accessModes", [], "spec.accessModes", "Required"),
    (claim(), "spec.accessModes", ["ReadSometimes"], "spec.accessModes[0]", "NotSupported"),
    (claim(), "spec.resources", GONE, "spec.resources.requests[storage]", "Required"),
    (claim(), "spec.resources.requests", {"storage": "-1Gi"}, "spec.resources.requests[storage]", "Invalid"),
    (claim(), "spec.storageClassName", "A B", "spec.storageClassName", "Invalid"),
    (claim(), "spec.volumeMode", "Tape", "spec.volumeMode", "NotSupported"),
    (
        claim(), "spec.selector", {"matchExpressions": [{"key": "a", "operator": "In"}]},
        "spec.selector.matchExpressions[0].values", "Required",
    ),
    (CLASS, "provisioner", GONE, "provisioner", "Required"),
    (CLASS, "volumeBindingMode", "Sometime", "volumeBindingMode", "NotSupported"),
    (CLASS, "reclaimPolicy", "Recycle", "reclaimPolicy", "NotSupported"),
    (
        CLASS, "allowedTopologies", [{"matchLabelExpressions": [{"key": "zone", "values": []}]}],
        "allowedTopologies[0].matchLabelExpressions[0].values", "Required",
    ),
    (CSI_NODE, "spec.drivers[0].nodeID", "", "spec.drivers[0].nodeID", "Required"),
    (CSI_NODE, "spec.drivers[0].allocatable", {"count": -1}, "spec.drivers[0].allocatable.count", "Invalid"),
    (CSI_NODE, "spec.drivers", [{"name": "d", "nodeID": "n"}] * 2, "spec.drivers[1].name", "Duplicate"),
    (DRIVER, "spec.volumeLifecycleModes", ["Brief"], "spec.volumeLifecycleModes[0]", "NotSupported"),
    (CAPACITY, "storageClassName", "", "storageClassName", "Required"),
    (CAPACITY, "capacity", "-1", "capacity", "Invalid"),
    (ATTACHMENT, "spec.source", {}, "spec.source", "Required"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("manifest", "path", "value", "field", "kind"), WRONG, ids=[f"{i}-{entry[3]}" for i, entry in enumerate(WRONG)]
)
def test_a_wrong_volume_is_refused_at_its_field(manifest: Json, path: str, value: Any, field: str, kind: str) -> None:
    assert errors(manifest) == []
    assert (field, kind) in pairs(errors(spoiled(manifest, path, value)))


def test_what_is_left_out_is_filled_in() -> None:
    assert prepared(volume())["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert prepared(volume())["status"] == {"phase": "Pending"}
    assert prepared(claim())["spec"]["volumeMode"] == "Filesystem"
    assert prepared(CLASS)["volumeBindingMode"] == "Immediate"
    assert prepared(CLASS)["reclaimPolicy"] == "Delete"
    assert prepared(DRIVER)["spec"]["attachRequired"] is True
    assert prepared(DRIVER)["spec"]["volumeLifecycleModes"] == ["Persistent"]
    template = prepared(EPHEMERAL)["spec"]["volumes"][0]["ephemeral"]["volumeClaimTemplate"]
    assert template["spec"]["volumeMode"] == "Filesystem"


def test_a_claim_takes_a_volume_and_a_class_once_and_nothing_else() -> None:
    assert change(claim(), "spec.volumeName", "pv") == set()
    assert change(claim(), "spec.storageClassName", "fast") == set()
    assert change(claim(volumeName="pv"), "spec.volumeName", "other") == {("spec", "Forbidden")}
    assert change(claim(storageClassName="slow"), "spec.storageClassName", "fast") == {("spec", "Forbidden")}
    assert change(claim(), "spec.accessModes", ["ReadWriteMany"]) == {("spec", "Forbidden")}


def test_only_a_bound_claim_may_ask_for_more_and_never_for_less_than_it_has() -> None:
    more, less = {"storage": "2Gi"}, {"storage": "1Mi"}
    held = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    assert change(claim(), "spec.resources.requests", more) == {("spec", "Forbidden")}
    assert change(claim(), "spec.resources.requests", more, **held) == set()
    assert change(claim(), "spec.resources.requests", less, **held) == {
        ("spec.resources.requests.storage", "Forbidden")
    }


def test_a_volume_keeps_its_source_and_its_place_but_may_be_given_to_a_claim() -> None:
    place = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "Exists"}]}]}}
    elsewhere = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "y", "operator": "Exists"}]}]}}
    assert change(volume(), "spec.claimRef", {"namespace": "default", "name": "c"}) == set()
    assert change(volume(), "spec.hostPath", {"path": "/other"}) == {("spec.persistentvolumesource", "Forbidden")}
    assert change(volume(), "spec.nodeAffinity", place) == set()
    assert change(volume(nodeAffinity=place), "spec.nodeAffinity", elsewhere) == {("spec.nodeAffinity", "Invalid")}


def test_a_class_a_driver_and_a_capacity_keep_what_others_rely_on() -> None:
    assert change(CLASS, "parameters", {}) == {("parameters", "Forbidden")}
    assert change(CLASS, "provisioner", "other") == {("provisioner", "Forbidden")}
    assert change(CLASS, "reclaimPolicy", "Retain") == {("reclaimPolicy", "Invalid")}
    assert change(CLASS, "allowVolumeExpansion", True) == set()
    assert change(DRIVER, "spec.attachRequired", False) == {("spec.attachRequired", "Invalid")}
    assert change(DRIVER, "spec.storageCapacity", True) == set()
    assert change(CAPACITY, "storageClassName", "slow") == {("storageClassName", "Invalid")}
    assert change(CAPACITY, "capacity", "1Gi") == set()
    assert change(CSI_NODE, "spec.drivers[0].nodeID", "n2") == {("spec.drivers[0]", "Invalid")}
    assert change(CSI_NODE, "spec.drivers[0].allocatable", {"count": 3}) == set()
    assert change(ATTACHMENT, "spec.nodeName", "m") == {("spec", "Invalid")}
