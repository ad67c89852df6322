"""From API objects to what the scheduler knows of storage: volumes, claims, classes, drivers, free storage.

Raw JSON in, records out; `ingest` is the same for pods, nodes and groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from muster.api.quantity import whole
from muster.api.storage import (
    BETA_STORAGE_CLASS,
    BIND_COMPLETED,
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
)
from muster.model.keys import Key
from muster.model.neighbours import LabelRequirement
from muster.model.terms import Requirement, Term
from muster.model.volumes import (
    WHOLE,
    CapacityRecord,
    ClaimRecord,
    ClaimUse,
    ClassRecord,
    Disk,
    DriverRecord,
    PodVolumes,
    VolumeRecord,
)
from muster.scheduler.demands import labels_of

Raw = Mapping[str, Any]

_ZONES = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
_NOTHING: Raw = {}


def pod_volumes(pod: str, spec: Raw) -> PodVolumes | None:
    """What of a pod's volumes bears on where it can run; None: nothing does."""
    volumes = spec.get("volumes")
    if not volumes:
        return None
    claims: dict[ClaimUse, None] = {}
    disks: dict[Disk, int] = {}
    for volume in volumes:
        if "persistentVolumeClaim" in volume:
            claims[ClaimUse(volume["persistentVolumeClaim"]["claimName"])] = None
        elif "ephemeral" in volume:
            claims[ClaimUse(f"{pod}-{volume['name']}", ephemeral=True)] = None
        else:
            for disk, units in _disks(volume):
                disks[disk] = max(units, disks.get(disk, 0))
    return PodVolumes(tuple(claims), tuple(sorted(disks.items()))) if claims or disks else None


def _disks(volume: Raw) -> Iterator[tuple[Disk, int]]:
    """A disk that is named in the pod, with what is taken of it: all by who writes, a part by who reads only."""
    if (gce := volume.get("gcePersistentDisk")) is not None:
        yield Disk("GCE", gce["pdName"]), _units(gce)
    elif (ebs := volume.get("awsElasticBlockStore")) is not None:
        yield Disk("EBS", ebs["volumeID"]), WHOLE
    elif (iscsi := volume.get("iscsi")) is not None:
        yield Disk("iSCSI", iscsi["iqn"]), _units(iscsi)
    elif (rbd := volume.get("rbd")) is not None:
        for monitor in rbd.get("monitors") or ():
            yield Disk("RBD", f"{monitor}/{rbd.get('pool') or 'rbd'}/{rbd['image']}"), _units(rbd)


def _units(source: Raw) -> int:
    return 1 if source.get("readOnly") else WHOLE


def volume(raw: Raw) -> VolumeRecord:
    """A PersistentVolume."""
    meta, spec = raw["metadata"], raw["spec"]
    csi, claim = spec.get("csi") or _NOTHING, spec.get("claimRef")
    labels = labels_of(meta)
    return VolumeRecord(
        name=meta["name"],
        uid=meta["uid"],
        version=str(meta.get("resourceVersion", "")),
        size=_bytes(spec.get("capacity")),
        modes=tuple(sorted(spec.get("accessModes") or ())),
        block=spec.get("volumeMode") == "Block",
        class_name=spec.get("storageClassName") or _annotation(meta, BETA_STORAGE_CLASS),
        affinity=_affinity(spec.get("nodeAffinity") or _NOTHING),
        zones=tuple((key, tuple(sorted(value.split("__")))) for key, value in labels if key in _ZONES),
        driver=csi.get("driver") or "",
        handle=csi.get("volumeHandle") or "",
        labels=labels,
        claim=Key(claim.get("namespace") or "", claim.get("name") or "") if claim else None,
        claim_uid=(claim.get("uid") or "") if claim else "",
        available=(raw.get("status") or _NOTHING).get("phase") == "Available",
        terminating="deletionTimestamp" in meta,
        attributes=spec.get("volumeAttributesClassName") or "",
    )


def claim(raw: Raw) -> ClaimRecord:
    """A PersistentVolumeClaim."""
    meta, spec = raw["metadata"], raw["spec"]
    name = spec.get("storageClassName")
    owners = (o for o in meta.get("ownerReferences") or () if o.get("controller") and o.get("kind") == "Pod")
    return ClaimRecord(
        key=Key(meta["namespace"], meta["name"]),
        uid=meta["uid"],
        size=_bytes((spec.get("resources") or _NOTHING).get("requests")),
        modes=tuple(sorted(spec.get("accessModes") or ())),
        block=spec.get("volumeMode") == "Block",
        class_name=name if name is not None else _annotation(meta, BETA_STORAGE_CLASS) or None,
        selector=_selector(spec.get("selector") or _NOTHING),
        volume=spec.get("volumeName") or "",
        bound=BIND_COMPLETED in (meta.get("annotations") or _NOTHING),
        selected_node=_annotation(meta, SELECTED_NODE),
        owner=next((owner["uid"] for owner in owners), ""),
        terminating="deletionTimestamp" in meta,
        lost=(raw.get("status") or _NOTHING).get("phase") == "Lost",
        attributes=spec.get("volumeAttributesClassName") or "",
    )


def storage_class(raw: Raw) -> ClassRecord:
    """A StorageClass."""
    provisioner, allowed = raw.get("provisioner") or "", raw.get("allowedTopologies")
    terms = (term.get("matchLabelExpressions") or () for term in allowed or ())
    return ClassRecord(
        name=raw["metadata"]["name"],
        provisioner="" if provisioner == NO_PROVISIONER else provisioner,
        late=raw.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER,
        topologies=tuple(Term(tuple(_requirements(some))) for some in terms) if allowed else None,
    )


def driver(raw: Raw) -> DriverRecord:
    """A CSIDriver."""
    spec = raw.get("spec") or _NOTHING
    return DriverRecord(
        name=raw["metadata"]["name"],
        tracks_capacity=bool(spec.get("storageCapacity")),
        must_be_there=bool(spec.get("preventPodSchedulingIfMissing")),
    )


def drivers_of_node(raw: Raw) -> Mapping[str, int | None]:
    """A CSINode: its drivers with their limits."""
    drivers = (raw.get("spec") or _NOTHING).get("drivers") or ()
    return {one["name"]: (one.get("allocatable") or _NOTHING).get("count") for one in drivers}


def capacity(raw: Raw) -> CapacityRecord:
    """A CSIStorageCapacity."""
    meta, topology = raw["metadata"], raw.get("nodeTopology")
    there, largest = raw.get("capacity"), raw.get("maximumVolumeSize")
    return CapacityRecord(
        key=Key(meta["namespace"], meta["name"]),
        class_name=raw.get("storageClassName") or "",
        topology=None if topology is None else tuple(_node_selector(topology)),
        capacity=None if there is None else whole(there),
        largest=None if largest is None else whole(largest),
    )


def attachment(raw: Raw) -> tuple[str, str] | None:
    """(volume, node) of a VolumeAttachment; None: it is about no PersistentVolume."""
    spec = raw["spec"]
    name = (spec.get("source") or _NOTHING).get("persistentVolumeName")
    return (name, spec.get("nodeName") or "") if name else None


def _bytes(amounts: Raw | None) -> int:
    size = (amounts or _NOTHING).get("storage")
    return whole(size) if size is not None else 0


def _annotation(meta: Raw, key: str) -> str:
    return (meta.get("annotations") or _NOTHING).get(key) or ""


def _affinity(given: Raw) -> tuple[Term, ...] | None:
    required = given.get("required")
    if required is None:
        return None
    return terms_of(required)


def terms_of(selector: Raw) -> tuple[Term, ...]:
    """The alternatives of a NodeSelector."""
    return tuple(
        Term((*_requirements(term.get("matchExpressions")), *_named(term.get("matchFields"))))
        for term in selector.get("nodeSelectorTerms") or ()
    )


def _requirements(expressions: Iterable[Raw] | None) -> Iterator[Requirement]:
    """Without an operator (allowedTopologies) it is In."""
    for one in expressions or ():
        yield Requirement(one["key"], one.get("operator") or "In", tuple(one.get("values") or ()))


def _named(fields: Iterable[Raw] | None) -> Iterator[Requirement]:
    for one in fields or ():
        yield Requirement(None, one["operator"], tuple(one.get("values") or ()))


def _node_selector(selector: Raw) -> Iterator[Requirement]:
    for key, value in sorted((selector.get("matchLabels") or _NOTHING).items()):
        yield Requirement(key, "In", (value,))
    yield from _requirements(selector.get("matchExpressions"))


def _selector(selector: Raw) -> tuple[LabelRequirement, ...]:
    return tuple(LabelRequirement(r.key or "", r.operator, r.values) for r in _node_selector(selector))
