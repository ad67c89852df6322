"""Rules that templates, groups and a Job's scheduling block share (V8-V12, V15-V19, V25, V26)."""

from __future__ import annotations

from typing import Protocol

from muster.api.gates import FeatureGates
from muster.api.scheduling import (
    CompositeSchedulingPolicy,
    DisruptionMode,
    GroupResourceClaim,
    SchedulingConstraints,
    SchedulingPolicy,
    WorkloadReference,
)
from muster.api.validation import checks, names
from muster.api.validation.checks import Errors
from muster.api.validation.field import FieldError, Path

CLAIMS = 4
TOPOLOGY_KEYS = 1
HIGHEST_PRIORITY = 1_000_000_000
PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")


class Common(Protocol):
    """What every template and every group has."""

    @property
    def scheduling_constraints(self) -> SchedulingConstraints | None: ...
    @property
    def disruption_mode(self) -> DisruptionMode | None: ...
    @property
    def priority_class_name(self) -> str: ...
    @property
    def priority(self) -> int | None: ...
    @property
    def preemption_policy(self) -> str | None: ...


def common(new: Common, old: Common | None, path: Path, gates: FeatureGates) -> Errors:
    """Constraints, disruption mode, priority and preemption policy; what the stored object has is let be (V26)."""
    errors: Errors = []
    if new.scheduling_constraints is not None:
        kept = old is not None and old.scheduling_constraints is not None
        errors += constraints(new.scheduling_constraints, path / "schedulingConstraints", gates, kept=kept)
    if new.disruption_mode is not None:
        errors += disruption_mode(new.disruption_mode, path / "disruptionMode")
    errors += _priority(new, path)
    if new.preemption_policy is not None:
        at = path / "preemptionPolicy"
        if not gates.pod_group_preemption_policy and (old is None or old.preemption_policy is None):
            errors.append(gate_off(at, "PodGroupPreemptionPolicy"))
        else:
            errors += checks.one_of(new.preemption_policy, at, PREEMPTION_POLICIES)
    return errors


def _priority(new: Common, path: Path) -> Errors:
    errors: Errors = []
    if new.priority_class_name:
        errors += checks.formatted(new.priority_class_name, path / "priorityClassName", names.dns_subdomain)
    if new.priority is not None and new.priority > HIGHEST_PRIORITY:
        message = f"must be less than or equal to {HIGHEST_PRIORITY}"
        errors.append((path / "priority").invalid(new.priority, message))
    return errors


def policy(value: SchedulingPolicy, path: Path) -> Errors:
    """Exactly one of basic and gang; minCount at least 1, where 0 is taken as missing (V19)."""
    errors = checks.union(value, path, ("basic", "gang"))
    if value.gang is not None:
        errors += count(value.gang.min_count, path / "gang" / "minCount")
    return errors


def composite_policy(value: CompositeSchedulingPolicy, path: Path) -> Errors:
    errors = checks.union(value, path, ("basic", "gang"))
    if value.gang is not None:
        errors += count(value.gang.min_group_count, path / "gang" / "minGroupCount")
    return errors


def count(value: int, path: Path) -> Errors:
    return checks.at_least(value, path, 1) if value else [path.required("must be at least 1")]


def policy_update(
    new: SchedulingPolicy | CompositeSchedulingPolicy, old: SchedulingPolicy | CompositeSchedulingPolicy, path: Path
) -> Errors:
    """Only the number of a gang may change (V28, V29): which policy it is, may not."""
    errors: Errors = []
    if (new.basic is None) != (old.basic is None):
        errors.append((path / "basic").invalid(new.basic, checks.IMMUTABLE))
    if (new.gang is None) != (old.gang is None):
        errors.append((path / "gang").invalid(new.gang, checks.IMMUTABLE))
    return errors


def constraints(value: SchedulingConstraints, path: Path, gates: FeatureGates, *, kept: bool = False) -> Errors:
    """At most one topology key (V10); Forbidden while the gate is off, unless the stored object has them (`kept`)."""
    if not gates.topology and not kept:
        return [gate_off(path, "TopologyAwareWorkloadScheduling")]
    at = path / "topology"
    if len(value.topology) > TOPOLOGY_KEYS:
        return [at.too_many(len(value.topology), TOPOLOGY_KEYS)]
    errors: Errors = []
    for i, constraint in enumerate(value.topology):
        errors += checks.text(constraint.key, at // i / "key", names.label_key)
    return errors


def disruption_mode(value: DisruptionMode, path: Path) -> Errors:
    return checks.union(value, path, ("single", "all"))


def claims(values: tuple[GroupResourceClaim, ...], path: Path) -> Errors:
    """At most four, with different names, each with exactly one source (V11, V15)."""
    if len(values) > CLAIMS:
        return [path.too_many(len(values), CLAIMS)]
    errors: Errors = []
    seen: set[str] = set()
    for i, claim in enumerate(values):
        at = path // i
        if claim.name in seen:
            errors.append(at.duplicate(claim.name, "claim names must be unique"))
        elif claim.name:
            seen.add(claim.name)
        errors += checks.text(claim.name, at / "name", names.dns_label)
        errors += checks.union(claim, at, ("resource_claim_name", "resource_claim_template_name"))
        for field, source in (
            ("resourceClaimName", claim.resource_claim_name),
            ("resourceClaimTemplateName", claim.resource_claim_template_name),
        ):
            if source is not None:
                errors += checks.formatted(source, at / field, names.dns_subdomain)
    return errors


def workload_reference(value: WorkloadReference, path: Path) -> Errors:
    """Both names are needed; whether they exist is nobody's business (V35)."""
    errors = checks.text(value.workload_name, path / "workloadName", names.dns_subdomain)
    return errors + checks.text(value.template_name, path / "templateName", names.dns_label)


def gate_off(path: Path, gate: str) -> FieldError:
    return path.forbidden(f"may be set only while the feature gate {gate} is on")
