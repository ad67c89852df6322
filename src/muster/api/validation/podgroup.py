"""Rules for PodGroup and CompositePodGroup (V15, V16, V18, V19, V23-V27, V29, V30)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.gates import FeatureGates
from muster.api.scheduling import CompositePodGroup, CompositePodGroupSpec, PodGroup, PodGroupSpec
from muster.api.validation import checks, groups, meta, names
from muster.api.validation.checks import Errors
from muster.api.validation.field import SPEC, STATUS, FieldError

_FIXED = (
    "parent_composite_pod_group_name",
    "workload_ref",
    "scheduling_constraints",
    "disruption_mode",
    "priority_class_name",
    "priority",
    "preemption_policy",
)


def pod_group(new: Mapping[str, Any], old: Mapping[str, Any] | None, gates: FeatureGates) -> Errors:
    """Every error of a PodGroup; on update only the size of its gang may differ (V29)."""
    view = checks.typed(new, PodGroup)
    if isinstance(view, FieldError):
        return [view]
    before = checks.typed(old, PodGroup) if old is not None else None
    stored = before if isinstance(before, PodGroup) else None
    errors = meta.metadata(view.metadata, stored.metadata if stored else None)
    errors += groups.policy(view.spec.scheduling_policy, SPEC / "schedulingPolicy")
    errors += groups.claims(view.spec.resource_claims, SPEC / "resourceClaims")
    errors += _place_in_tree(view.spec, stored.spec if stored else None, gates)
    errors += groups.common(view.spec, stored.spec if stored else None, SPEC, gates)
    if stored is not None:
        policy = SPEC / "schedulingPolicy"
        errors += groups.policy_update(view.spec.scheduling_policy, stored.spec.scheduling_policy, policy)
        errors += checks.immutable_fields(view.spec, stored.spec, SPEC, (*_FIXED, "resource_claims"))
    return errors


def composite_pod_group(new: Mapping[str, Any], old: Mapping[str, Any] | None, gates: FeatureGates) -> Errors:
    """Every error of a CompositePodGroup; nothing in its spec may change, minGroupCount not before v1.38 (V30)."""
    view = checks.typed(new, CompositePodGroup)
    if isinstance(view, FieldError):
        return [view]
    before = checks.typed(old, CompositePodGroup) if old is not None else None
    stored = before if isinstance(before, CompositePodGroup) else None
    errors = meta.metadata(view.metadata, stored.metadata if stored else None)
    errors += groups.composite_policy(view.spec.scheduling_policy, SPEC / "schedulingPolicy")
    if view.spec.workload_ref is None:
        errors.append((SPEC / "workloadRef").required("a composite group belongs to a Workload"))
    errors += _place_in_tree(view.spec, stored.spec if stored else None, gates)
    errors += groups.common(view.spec, stored.spec if stored else None, SPEC, gates)
    if stored is not None:
        fixed: tuple[str, ...] = _FIXED
        if gates.checks_hierarchies:
            new_policy, old_policy = view.spec.scheduling_policy, stored.spec.scheduling_policy
            errors += groups.policy_update(new_policy, old_policy, SPEC / "schedulingPolicy")
        else:
            fixed = (*_FIXED, "scheduling_policy")
        errors += checks.immutable_fields(view.spec, stored.spec, SPEC, fixed)
    return errors


def _place_in_tree(
    spec: PodGroupSpec | CompositePodGroupSpec,
    old: PodGroupSpec | CompositePodGroupSpec | None,
    gates: FeatureGates,
) -> Errors:
    """Parent and Workload reference: a group with a parent needs the reference (V23); neither need exist (V35)."""
    errors: Errors = []
    parent, at = spec.parent_composite_pod_group_name, SPEC / "parentCompositePodGroupName"
    if parent is not None:
        if not gates.composite_pod_group and (old is None or old.parent_composite_pod_group_name is None):
            return [groups.gate_off(at, "CompositePodGroup")]
        errors += checks.formatted(parent, at, names.dns_subdomain)
        if spec.workload_ref is None and isinstance(spec, PodGroupSpec):
            errors.append((SPEC / "workloadRef").required("a group with a parent belongs to a Workload"))
    if spec.workload_ref is not None:
        errors += groups.workload_reference(spec.workload_ref, SPEC / "workloadRef")
    return errors


def pod_group_status(new: Mapping[str, Any], old: Mapping[str, Any] | None, gates: FeatureGates) -> Errors:
    """Claim statuses belong to claims of the spec, and have different names (V27)."""
    view = checks.typed(new, PodGroup)
    if isinstance(view, FieldError):
        return [view]
    errors: Errors = []
    known = {claim.name for claim in view.spec.resource_claims}
    seen: set[str] = set()
    for i, status in enumerate(view.status.resource_claim_statuses):
        at = STATUS / "resourceClaimStatuses" // i
        if status.name in seen:
            errors.append(at.duplicate(status.name, "claim statuses must have different names"))
        seen.add(status.name)
        if status.name not in known:
            errors.append((at / "name").invalid(status.name, "must be the name of an entry in spec.resourceClaims"))
        if status.resource_claim_name is not None:
            errors += checks.formatted(status.resource_claim_name, at / "resourceClaimName", names.dns_subdomain)
    return errors + checks.conditions(view.status.conditions, STATUS / "conditions")


def composite_pod_group_status(new: Mapping[str, Any], old: Mapping[str, Any] | None, gates: FeatureGates) -> Errors:
    view = checks.typed(new, CompositePodGroup)
    if isinstance(view, FieldError):
        return [view]
    return checks.conditions(view.status.conditions, STATUS / "conditions")
