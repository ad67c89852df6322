"""Making a volume for a claim, as a driver of a real cluster would: where it may be, whether there is room, the object.

Where a made volume can be reached from is not known without a real driver. It is decided by the first of these that
says something: the class's allowedTopologies; the topology keys of the driver on the chosen node's CSINode; the chosen
node's zone; its hostname. With immediate binding and no allowedTopologies it can be reached from everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

from muster.api import quantity, selectors
from muster.api.object import Object
from muster.api.storage import (
    PROVISIONED_BY,
    VOLUME_PROTECTION,
    CsiNode,
    CsiStorageCapacity,
    StorageClass,
    TopologySelectorTerm,
)
from muster.api.validation.names import dns_subdomain
from muster.controllers.volumes.matching import claim_of, size_of

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
Labels = Mapping[str, str]


class Refusal(Exception):
    """The volume can't be had (there): says why."""


def volume_name(claim: Object) -> str:
    return f"pvc-{claim.uid}"


def volume(claim: Object, storage_class: Object, place: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The PersistentVolume made for the claim, reserved for it; `place` is the labels of the nodes that reach it."""
    kind, spec = storage_class.view(StorageClass), claim.raw["spec"]
    made: dict[str, Any] = {
        "capacity": {"storage": spec["resources"]["requests"]["storage"]},
        "accessModes": spec["accessModes"],
        "volumeMode": spec.get("volumeMode", "Filesystem"),
        "persistentVolumeReclaimPolicy": kind.reclaim_policy or "Delete",
        "storageClassName": storage_class.name,
        "claimRef": reference(claim),
        **_source(kind.provisioner, volume_name(claim)),
    }
    if kind.mount_options:
        made["mountOptions"] = list(kind.mount_options)
    if spec.get("volumeAttributesClassName"):
        made["volumeAttributesClassName"] = spec["volumeAttributesClassName"]
    if place:
        expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in place]
        made["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    meta = {
        "name": volume_name(claim),
        "annotations": {PROVISIONED_BY: kind.provisioner},
        "finalizers": [VOLUME_PROTECTION],
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": made}


def reference(claim: Object) -> dict[str, Any]:
    """The claimRef of a volume that is the claim's."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "resourceVersion": claim.revision,
    }


def _source(provisioner: str, handle: str) -> dict[str, Any]:
    """A CSI volume if the provisioner has the name of a driver; else a folder that no one will look for."""
    if dns_subdomain(provisioner) is None:
        return {"csi": {"driver": provisioner, "volumeHandle": handle}}
    return {"hostPath": {"path": f"/var/lib/volumes/{handle}"}}


# --- where -------------------------------------------------------------------------------------------------------


def place(
    claim: Object, storage_class: Object, node: Object | None, csi_node: Object | None
) -> Sequence[tuple[str, str]]:
    """The labels that nodes must have to reach the volume, empty for none.

    Raises:
        Refusal: the class does not allow the node.
    """
    kind = storage_class.view(StorageClass)
    if kind.allowed_topologies:
        return _allowed(kind.allowed_topologies, claim, node)
    if node is None:
        return ()
    labels: Labels = node.meta.get("labels") or {}
    for keys in (_keys_of_driver(csi_node, kind.provisioner), (ZONE,), (HOSTNAME,)):
        if keys and all(key in labels for key in keys):
            return [(key, labels[key]) for key in keys]
    return ()


def _keys_of_driver(csi_node: Object | None, provisioner: str) -> Sequence[str]:
    drivers = csi_node.view(CsiNode).spec.drivers if csi_node is not None else ()
    return next((driver.topology_keys for driver in drivers if driver.name == provisioner), ())


def _allowed(terms: Sequence[TopologySelectorTerm], claim: Object, node: Object | None) -> Sequence[tuple[str, str]]:
    """The node's values of a term's keys; without a node, values that depend on the claim's name, so that claims
    spread."""
    if node is None:
        turn = crc32(claim.name.encode())
        term = terms[turn % len(terms)]
        return [(each.key, each.values[turn % len(each.values)]) for each in term.match_label_expressions]
    labels: Labels = node.meta.get("labels") or {}
    for term in terms:
        if all(labels.get(each.key) in each.values for each in term.match_label_expressions):
            return [(each.key, labels[each.key]) for each in term.match_label_expressions]
    raise Refusal(f"allowedTopologies of the class do not admit node {node.name}")


# --- room --------------------------------------------------------------------------------------------------------


def check_room(claim: Object, storage_class: Object, node: Object | None, capacities: Iterable[Object]) -> None:
    """Looks for a CSIStorageCapacity of the class that is large enough, and reaches the node if there is one.

    Raises:
        Refusal: there is none.
    """
    wanted = size_of(claim_of(claim).spec.resources.requests)
    for obj in capacities:
        capacity = obj.view(CsiStorageCapacity)
        most = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
        if capacity.storage_class_name != storage_class.name or most is None or quantity.nanos(most) < wanted:
            continue
        if node is None or selectors.of(capacity.node_topology).matches(node.meta.get("labels") or {}):
            return
    amount = claim.raw["spec"]["resources"]["requests"]["storage"]
    where = f"that node {node.name} reaches" if node is not None else "anywhere"
    raise Refusal(f"no CSIStorageCapacity of class {storage_class.name} has room for {amount} {where}")
