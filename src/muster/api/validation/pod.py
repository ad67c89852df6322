"""Rules for pods on create, for pod templates, and for a pod's status. Updates: `pod_update`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.core import ContainerStatus, Pod, PodResourceClaim, PodSpec, PodTemplate, Resources
from muster.api.gates import FeatureGates
from muster.api.validation import checks, containers, extras, groups, meta, names, placement, pod_update, volumes
from muster.api.validation.checks import Errors
from muster.api.validation.field import SPEC, STATUS, FieldError, Path

PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_LONGEST_DEADLINE = (1 << 31) - 1


def pod(new: Mapping[str, Any], old: Mapping[str, Any] | None, gates: FeatureGates) -> Errors:
    """Every error of a pod; with `old`, what an update may not change too (V31)."""
    view = checks.typed(new, Pod)
    if isinstance(view, FieldError):
        return [view]
    if old is None:
        return meta.metadata(view.metadata, None) + pod_spec(view.spec, SPEC, gates)
    before = checks.typed(old, Pod)
    if isinstance(before, FieldError):
        return [before]
    errors = meta.metadata(view.metadata, before.metadata)
    if new.get("spec") == old.get("spec"):
        return errors
    errors += pod_spec(view.spec, SPEC, gates)
    return errors + pod_update.changes(new.get("spec", {}), old.get("spec", {}), view.spec, before.spec)


def pod_spec(spec: PodSpec, path: Path, gates: FeatureGates) -> Errors:
    """A pod's spec, its own or that of a template at `path`."""
    errors = containers.containers(spec, path)
    errors += placement.placement(spec, path, gates)
    errors += _life(spec, path)
    errors += _names(spec, path)
    if spec.host_users is False:
        errors += _own_users(spec, path, gates)
    if spec.overhead:
        errors += checks.quantities(spec.overhead, path / "overhead")
    if spec.resources is not None:
        errors += containers.pod_level(spec, path / "resources")
    if spec.volumes:
        errors += volumes.volumes(spec.volumes, path / "volumes")
    for field, given in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for i, container in enumerate(given):
            if container.volume_mounts or container.volume_devices:
                errors += volumes.uses(container, spec.volumes, path / field // i)
    if spec.ephemeral_containers or spec.readiness_gates or spec.host_aliases:
        errors += extras.extras(spec, path)
    if spec.resource_claims:
        errors += _claims(spec.resource_claims, path / "resourceClaims")
    return errors


def pod_template(template: PodTemplate, path: Path, gates: FeatureGates) -> Errors:
    """What a controller makes pods from: labels, annotations and a spec."""
    errors = checks.labels(template.metadata.labels, path / "metadata" / "labels")
    errors += checks.label_keys(
        (key.lower() for key in template.metadata.annotations), path / "metadata" / "annotations"
    )
    if template.spec.node_name and template.spec.scheduling_gates:
        return errors
    return errors + pod_spec(template.spec, path / "spec", gates)


def _life(spec: PodSpec, path: Path) -> Errors:
    errors: Errors = []
    if spec.restart_policy not in _RESTART_POLICIES:
        errors.append((path / "restartPolicy").not_supported(spec.restart_policy, _RESTART_POLICIES))
    if spec.dns_policy not in _DNS_POLICIES:
        errors.append((path / "dnsPolicy").not_supported(spec.dns_policy, _DNS_POLICIES))
    if (spec.termination_grace_period_seconds or 0) < 0:
        errors += checks.at_least(spec.termination_grace_period_seconds, path / "terminationGracePeriodSeconds", 0)
    if spec.active_deadline_seconds is not None:
        errors += checks.in_range(spec.active_deadline_seconds, path / "activeDeadlineSeconds", 1, _LONGEST_DEADLINE)
    if spec.preemption_policy is not None:
        errors += checks.one_of(spec.preemption_policy, path / "preemptionPolicy", groups.PREEMPTION_POLICIES)
    return errors


def _names(spec: PodSpec, path: Path) -> Errors:
    errors: Errors = []
    for field, value in (
        ("nodeName", spec.node_name),
        ("schedulerName", spec.scheduler_name),
        ("priorityClassName", spec.priority_class_name),
        ("serviceAccountName", spec.service_account_name),
        ("runtimeClassName", spec.runtime_class_name),
    ):
        if value and names.dns_subdomain(value):
            errors += checks.formatted(value, path / field, names.dns_subdomain)
    for field, value in (("hostname", spec.hostname), ("subdomain", spec.subdomain)):
        if value:
            errors += checks.formatted(value, path / field, names.dns_label)
    return errors


def _own_users(spec: PodSpec, path: Path, gates: FeatureGates) -> Errors:
    """A pod with a user namespace of its own shares no other namespace with its node (KEP-127, KEP-5607)."""
    shared = [("hostPID", spec.host_pid), ("hostIPC", spec.host_ipc)]
    if "UserNamespacesHostNetworkSupport" not in gates.on:
        shared.insert(0, ("hostNetwork", spec.host_network))
    return [(path / field).forbidden("when `hostUsers` is false") for field, used in shared if used]


def _claims(values: tuple[PodResourceClaim, ...], path: Path) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for i, claim in enumerate(values):
        at = path // i
        errors += checks.text(claim.name, at / "name", names.dns_label)
        if claim.name in seen:
            errors.append(at.duplicate(claim.name, "claim names must be unique"))
        seen.add(claim.name)
        errors += checks.union(claim, at, ("resource_claim_name", "resource_claim_template_name"))
    return errors


# --- status ------------------------------------------------------------------------------------------------------


def pod_status(new: Mapping[str, Any], old: Mapping[str, Any] | None, gates: FeatureGates) -> Errors:
    """What the scheduler and the controllers read of a pod's status can be read."""
    view = checks.typed(new, Pod)
    if isinstance(view, FieldError):
        return [view]
    status = view.status
    errors = checks.one_of(status.phase or "Pending", STATUS / "phase", PHASES)
    if status.nominated_node_name:
        errors += checks.formatted(status.nominated_node_name, STATUS / "nominatedNodeName", names.dns_subdomain)
    errors += checks.time(status.start_time, STATUS / "startTime")
    errors += checks.conditions(status.conditions, STATUS / "conditions")
    errors += _amounts(status.allocated_resources, status.resources, STATUS)
    for field, statuses in (
        ("containerStatuses", status.container_statuses),
        ("initContainerStatuses", status.init_container_statuses),
    ):
        errors += _container_statuses(statuses, STATUS / field)
    return errors


def _container_statuses(values: tuple[ContainerStatus, ...], path: Path) -> Errors:
    errors: Errors = []
    for i, value in enumerate(values):
        at = path // i
        errors += checks.text(value.name, at / "name", names.dns_label)
        errors += _amounts(value.allocated_resources, value.resources, at)
    return errors


def _amounts(allocated: Mapping[str, Any], actual: Resources | None, path: Path) -> Errors:
    errors = checks.quantities(allocated, path / "allocatedResources")
    if actual is not None:
        errors += checks.quantities(actual.requests, path / "resources" / "requests")
        errors += checks.quantities(actual.limits, path / "resources" / "limits")
    return errors
