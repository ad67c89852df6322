"""Rules for the kinds of storage.k8s.io/v1: StorageClass, CSINode, CSIDriver, CSIStorageCapacity, VolumeAttachment."""

from __future__ import annotations

import msgspec

from muster.api.storage import (
    CsiDriver,
    CsiNode,
    CsiNodeDriver,
    CsiStorageCapacity,
    StorageClass,
    TopologySelectorTerm,
    VolumeAttachment,
)
from muster.api.validation import checks, names, storage
from muster.api.validation.checks import Errors
from muster.api.validation.field import ROOT, SPEC, Path
from muster.api.validation.small import rules

BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
RECLAIM_POLICIES = ("Delete", "Retain")
LIFECYCLES = ("Ephemeral", "Persistent")
GROUP_POLICIES = ("ReadWriteOnceWithFSType", "File", "None")
PARAMETERS, PARAMETERS_SIZE = 512, 256 * 1024
NODE_ID = 192
"""Bytes of a node's name at its driver."""
DRIVER_NAME = 63
SHORTEST_PERIOD = 10
"""Seconds between two looks at how many volumes a node takes."""


# --- StorageClass ------------------------------------------------------------------------------------------------


def _storage_class(new: StorageClass, old: StorageClass | None) -> Errors:
    errors = checks.text(new.provisioner, ROOT / "provisioner", lambda value: names.label_key(value.lower()))
    errors += _parameters(new.parameters, ROOT / "parameters")
    errors += checks.one_of(new.reclaim_policy or "Delete", ROOT / "reclaimPolicy", RECLAIM_POLICIES)
    if new.volume_binding_mode is None:
        errors.append((ROOT / "volumeBindingMode").required())
    else:
        errors += checks.one_of(new.volume_binding_mode, ROOT / "volumeBindingMode", BINDING_MODES)
    errors += _topologies(new.allowed_topologies, ROOT / "allowedTopologies")
    return errors + (_class_changes(new, old) if old is not None else [])


def _parameters(values: dict[str, str], path: Path) -> Errors:
    errors: Errors = []
    if len(values) > PARAMETERS:
        errors.append(path.too_many(len(values), PARAMETERS))
    if "" in values:
        errors.append(path.invalid("", "field can not be empty"))
    if sum(len(key.encode()) + len(value.encode()) for key, value in values.items()) > PARAMETERS_SIZE:
        errors.append(path.too_long(PARAMETERS_SIZE))
    return errors


def _topologies(terms: tuple[TopologySelectorTerm, ...], path: Path) -> Errors:
    errors: Errors = []
    for i, term in enumerate(terms):
        if term in terms[:i]:
            errors.append((path // i / "matchLabelExpressions").duplicate(""))
        seen: set[str] = set()
        for j, expression in enumerate(term.match_label_expressions):
            at = path // i / "matchLabelExpressions" // j
            errors += checks.text(expression.key, at / "key", names.label_key)
            if expression.key in seen:
                errors.append((at / "key").duplicate(expression.key))
            seen.add(expression.key)
            if not expression.values:
                errors.append((at / "values").required())
            for k, value in enumerate(expression.values):
                errors += [(at / "values" // k).duplicate(value)] if value in expression.values[:k] else []
                errors += checks.formatted(value, at / "values" // k, names.label_value)
    return errors


def _class_changes(new: StorageClass, old: StorageClass) -> Errors:
    errors: Errors = []
    for field in ("parameters", "provisioner"):
        if getattr(new, field) != getattr(old, field):
            errors.append((ROOT / field).forbidden(f"updates to {field} are forbidden."))
    return errors + checks.immutable_fields(
        new, old, ROOT, ("reclaim_policy", "volume_binding_mode", "allowed_topologies")
    )


# --- CSI ---------------------------------------------------------------------------------------------------------


def _driver_name(value: str) -> str | None:
    if len(value) > DRIVER_NAME:
        return f"must be no more than {DRIVER_NAME} characters"
    return names.dns_subdomain(value.lower())


def _csi_node(new: CsiNode, old: CsiNode | None) -> Errors:
    errors: Errors = []
    stored = {driver.name: driver for driver in old.spec.drivers} if old is not None else {}
    seen: set[str] = set()
    for i, driver in enumerate(new.spec.drivers):
        at = SPEC / "drivers" // i
        errors += _node_driver(driver, at)
        if driver.name in seen:
            errors.append((at / "name").duplicate(driver.name))
        seen.add(driver.name)
        before = stored.get(driver.name)
        if before is not None and msgspec.structs.replace(driver, allocatable=before.allocatable) != before:
            errors.append(at.invalid(driver, checks.IMMUTABLE))
    return errors


def _node_driver(driver: CsiNodeDriver, path: Path) -> Errors:
    errors = checks.text(driver.name, path / "name", _driver_name)
    if not driver.node_id:
        errors.append((path / "nodeID").required())
    elif len(driver.node_id.encode()) > NODE_ID:
        errors.append((path / "nodeID").invalid(driver.node_id, f"must be {NODE_ID} characters or less"))
    if driver.allocatable is not None:
        errors += checks.at_least(driver.allocatable.count, path / "allocatable" / "count", 0)
    for i, key in enumerate(driver.topology_keys):
        at = path / "topologyKeys" // i
        errors += [at.duplicate(key)] if key in driver.topology_keys[:i] else []
        errors += checks.text(key, at, names.label_key)
    return errors


def _csi_driver(new: CsiDriver, old: CsiDriver | None) -> Errors:
    spec = new.spec
    errors: Errors = []
    for field, value in (("attachRequired", spec.attach_required), ("storageCapacity", spec.storage_capacity)):
        errors += [(SPEC / field).required()] if value is None else []
    for i, mode in enumerate(spec.volume_lifecycle_modes):
        errors += checks.one_of(mode, SPEC / "volumeLifecycleModes" // i, LIFECYCLES)
    if spec.fs_group_policy is not None:
        errors += checks.one_of(spec.fs_group_policy, SPEC / "fsGroupPolicy", GROUP_POLICIES)
    at = SPEC / "nodeAllocatableUpdatePeriodSeconds"
    errors += checks.at_least(spec.node_allocatable_update_period_seconds, at, SHORTEST_PERIOD)
    if old is not None:
        errors += checks.immutable_fields(spec, old.spec, SPEC, ("attach_required", "volume_lifecycle_modes"))
    return errors


def _csi_storage_capacity(new: CsiStorageCapacity, old: CsiStorageCapacity | None) -> Errors:
    errors = checks.text(new.storage_class_name, ROOT / "storageClassName", names.dns_subdomain)
    errors += checks.selector(new.node_topology, ROOT / "nodeTopology")
    for field, value in (("capacity", new.capacity), ("maximumVolumeSize", new.maximum_volume_size)):
        if value is not None and (problem := checks.quantity_problem("storage", value)):
            errors.append((ROOT / field).invalid(value, problem))
    if old is not None:
        errors += checks.immutable_fields(new, old, ROOT, ("node_topology", "storage_class_name"))
    return errors


def _volume_attachment(new: VolumeAttachment, old: VolumeAttachment | None) -> Errors:
    spec = new.spec
    errors = checks.text(spec.attacher, SPEC / "attacher", _driver_name)
    errors += [] if spec.node_name else [(SPEC / "nodeName").required()]
    inline, name = spec.source.inline_volume_spec, spec.source.persistent_volume_name
    at = SPEC / "source"
    if inline is None and not name:
        errors.append(at.required("must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
    elif inline is not None and name:
        errors.append(at.forbidden("must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
    elif inline is not None:
        errors += storage.volume_spec(inline, at / "inlineVolumeSpec")
    return errors + (checks.unchanged(spec, old.spec, SPEC) if old is not None else [])


storage_class = rules(StorageClass, _storage_class, namespaced=False)
csi_node = rules(CsiNode, _csi_node, namespaced=False)
csi_driver = rules(CsiDriver, _csi_driver, namespaced=False, name=_driver_name)
csi_storage_capacity = rules(CsiStorageCapacity, _csi_storage_capacity)
volume_attachment = rules(VolumeAttachment, _volume_attachment, namespaced=False)
