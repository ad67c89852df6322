"""Rules for Jobs, with v1.37's `spec.scheduling` (B16, B18; V26)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from muster.api.batch import Job, JobScheduling, JobSpec
from muster.api.core import PodSpec, PodTemplate
from muster.api.defaults.jobs import CONTROLLER_UID
from muster.api.gates import FeatureGates
from muster.api.meta import LabelSelector, ObjectMeta
from muster.api.scheduling import WorkloadPodGroupSchedulingPolicy
from muster.api.validation import checks, groups, meta, names
from muster.api.validation.checks import Errors
from muster.api.validation.field import SPEC, STATUS, FieldError, Path
from muster.api.validation.pod import pod_template

MOST_INDEXES = 100_000
LONGEST_MANAGER = 63
"""Characters of managedBy."""
_MODES = ("NonIndexed", "Indexed")
_RESTART_POLICIES = ("OnFailure", "Never")
_REPLACEMENT = ("TerminatingOrFailed", "Failed")
_COUNTS = (
    ("parallelism", "parallelism"),
    ("completions", "completions"),
    ("backoffLimit", "backoff_limit"),
    ("backoffLimitPerIndex", "backoff_limit_per_index"),
    ("maxFailedIndexes", "max_failed_indexes"),
    ("activeDeadlineSeconds", "active_deadline_seconds"),
    ("ttlSecondsAfterFinished", "ttl_seconds_after_finished"),
)
_FIXED = ("completion_mode", "backoff_limit_per_index", "selector", "pod_replacement_policy", "managed_by")
_ADJUSTABLE = ("node_selector", "affinity", "tolerations", "scheduling_gates")
"""What a queue controller may still set on the template of a suspended Job that has not started."""


def job(new: Mapping[str, Any], old: Mapping[str, Any] | None, gates: FeatureGates) -> Errors:
    """Every error of a Job, on create or (with `old`) on update."""
    view = checks.typed(new, Job)
    if isinstance(view, FieldError):
        return [view]
    before = checks.typed(old, Job) if old is not None else None
    stored = before if isinstance(before, Job) else None
    errors = meta.metadata(view.metadata, stored.metadata if stored else None, name=_name)
    errors += job_spec(view.spec, gates)
    if stored is None:
        errors += _generated_selector(view.spec, view.metadata.uid, SPEC / "selector")
    errors += _scheduling(view.spec.scheduling, stored.spec.scheduling if stored else None, gates)
    if stored is not None:
        errors += _update(view.spec, stored)
    return errors


def _name(value: str) -> str | None:
    """A subdomain that is short enough for the label that its pods get."""
    return names.label_value(value) or names.dns_subdomain(value)


def job_status(new: Mapping[str, Any], old: Mapping[str, Any] | None, gates: FeatureGates) -> Errors:
    view = checks.typed(new, Job)
    if isinstance(view, FieldError):
        return [view]
    errors: Errors = []
    for field in ("active", "ready", "succeeded", "failed", "terminating"):
        errors += checks.at_least(getattr(view.status, field), STATUS / field, 0)
    errors += checks.time(view.status.start_time, STATUS / "startTime")
    errors += checks.time(view.status.completion_time, STATUS / "completionTime")
    return errors + checks.conditions(view.status.conditions, STATUS / "conditions")


def job_spec(spec: JobSpec, gates: FeatureGates, path: Path = SPEC) -> Errors:
    """What holds for the spec of every Job, and for the one in a template of Jobs at `path`."""
    errors: Errors = []
    for field, name in _COUNTS:
        errors += checks.at_least(getattr(spec, name), path / field, 0)
    errors += checks.one_of(spec.completion_mode, path / "completionMode", _MODES)
    errors += _indexes(spec, path)
    errors += checks.selector(spec.selector, path / "selector")
    if spec.pod_replacement_policy is not None:
        errors += checks.one_of(spec.pod_replacement_policy, path / "podReplacementPolicy", _REPLACEMENT)
    if spec.managed_by is not None:
        errors += _managed_by(spec.managed_by, path / "managedBy")
    return errors + _template(spec.template, path / "template", gates)


def _managed_by(value: str, path: Path) -> Errors:
    """The name of another controller: a domain, a slash, a path."""
    if len(value) > LONGEST_MANAGER:
        return [path.too_long(LONGEST_MANAGER)]
    domain, slash, name = value.partition("/")
    if not slash or not name or names.dns_subdomain(domain):
        return [path.invalid(value, "must be a domain-prefixed path (such as acme.io/foo)")]
    return []


def _generated_selector(spec: JobSpec, uid: str, path: Path) -> Errors:
    """Without manualSelector the selector is the server's business, so that Jobs do not share pods."""
    if spec.manual_selector or spec.selector is None:
        return []
    if spec.selector == LabelSelector(match_labels={CONTROLLER_UID: uid}):
        return []
    message = "`selector` not auto-generated: leave it out, or say manualSelector: true"
    return [path.invalid(spec.selector, message)]


def _indexes(spec: JobSpec, path: Path) -> Errors:
    """An Indexed Job needs to know how many indexes there are; a limit per index needs indexes."""
    errors: Errors = []
    indexed = spec.completion_mode == "Indexed"
    if indexed and spec.completions is None:
        errors.append((path / "completions").required("when completionMode is Indexed"))
    if indexed:
        for field, value in (("completions", spec.completions), ("parallelism", spec.parallelism)):
            if value is not None and value > MOST_INDEXES:
                message = f"must be less than or equal to {MOST_INDEXES} when completionMode is Indexed"
                errors.append((path / field).invalid(value, message))
    if spec.backoff_limit_per_index is not None and not indexed:
        message = "requires indexed completion mode"
        errors.append((path / "backoffLimitPerIndex").invalid(spec.backoff_limit_per_index, message))
    if spec.max_failed_indexes is not None and spec.backoff_limit_per_index is None:
        errors.append((path / "backoffLimitPerIndex").required("when maxFailedIndexes is specified"))
    return errors


def _template(template: PodTemplate, path: Path, gates: FeatureGates) -> Errors:
    errors = pod_template(template, path, gates)
    if template.spec.restart_policy not in _RESTART_POLICIES:
        at = path / "spec" / "restartPolicy"
        errors.append(at.not_supported(template.spec.restart_policy, _RESTART_POLICIES))
    return errors


# --- scheduling --------------------------------------------------------------------------------------------------


def _scheduling(value: JobScheduling | None, old: JobScheduling | None, gates: FeatureGates) -> Errors:
    path = SPEC / "scheduling"
    errors: Errors = []
    if value is not None:
        if not gates.workload_with_job and old is None:
            return [groups.gate_off(path, "WorkloadWithJob")]
        errors += scheduling(value, path, gates, old)
    if value is not None and old is not None:
        errors += _scheduling_update(value, old, path)
    return errors


def scheduling(value: JobScheduling, path: Path, gates: FeatureGates, old: JobScheduling | None = None) -> Errors:
    """The building blocks of one leaf group at `path`; a gang may leave its size to the controller (V14, B21)."""
    errors: Errors = []
    if value.scheduling_policy is not None:
        errors += _policy(value.scheduling_policy, path / "schedulingPolicy")
    if value.scheduling_constraints is not None:
        kept = old is not None and old.scheduling_constraints is not None
        errors += groups.constraints(value.scheduling_constraints, path / "schedulingConstraints", gates, kept=kept)
    if value.disruption_mode is not None:
        errors += groups.disruption_mode(value.disruption_mode, path / "disruptionMode")
        errors += _basic_is_not_all(value, path)
    return errors + groups.claims(value.resource_claims, path / "resourceClaims")


def _policy(value: WorkloadPodGroupSchedulingPolicy, path: Path) -> Errors:
    errors = checks.union(value, path, ("basic", "gang"))
    if value.gang is not None:
        errors += checks.at_least(value.gang.min_count, path / "gang" / "minCount", 1)
    return errors


def _basic_is_not_all(value: JobScheduling, path: Path) -> Errors:
    """Pods that start one by one cannot be evicted only all together (B16)."""
    policy, mode = value.scheduling_policy, value.disruption_mode
    basic = policy is None or (policy.basic is not None and policy.gang is None)
    if basic and mode is not None and mode.all is not None and mode.single is None:
        return [(path / "disruptionMode").invalid(mode, "all needs the gang policy: use single, or a gang")]
    return []


def _scheduling_update(new: JobScheduling, old: JobScheduling, path: Path) -> Errors:
    """Only the size of the gang may change (B18)."""
    errors = checks.immutable_fields(new, old, path, ("scheduling_constraints", "disruption_mode", "resource_claims"))
    after = new.scheduling_policy or WorkloadPodGroupSchedulingPolicy()
    before = old.scheduling_policy or WorkloadPodGroupSchedulingPolicy()
    at = path / "schedulingPolicy"
    for field, value, was in (("basic", after.basic, before.basic), ("gang", after.gang, before.gang)):
        if (value is None) != (was is None):
            errors.append((at / field).invalid(value, checks.IMMUTABLE))
    return errors


# --- update ------------------------------------------------------------------------------------------------------


def _update(new: JobSpec, stored: Job) -> Errors:
    old = stored.spec
    errors = checks.immutable_fields(new, old, SPEC, _FIXED)
    if (new.scheduling is None) != (old.scheduling is None):
        errors.append((SPEC / "scheduling").invalid(new.scheduling, checks.IMMUTABLE))
    if new.completions != old.completions and not _elastic(new):
        message = "may change only in an Indexed Job, together with parallelism and to the same value"
        errors.append((SPEC / "completions").invalid(new.completions, message))
    return errors + _template_update(new.template, stored)


def _elastic(spec: JobSpec) -> bool:
    return spec.completion_mode == "Indexed" and spec.completions is not None and spec.completions == spec.parallelism


def _template_update(new: PodTemplate, stored: Job) -> Errors:
    old = stored.spec.template
    if stored.spec.suspend and stored.status.start_time is None:
        old = PodTemplate(metadata=_with_labels(old.metadata, new.metadata), spec=_with_placement(old.spec, new.spec))
    if new == old:
        return []
    message = (
        f"{checks.IMMUTABLE}, but for node selection, tolerations and labels while the Job is suspended and not started"
    )
    return [(SPEC / "template").invalid(new, message)]


def _with_placement(spec: PodSpec, source: PodSpec) -> PodSpec:
    return msgspec.structs.replace(spec, **{name: getattr(source, name) for name in _ADJUSTABLE})


def _with_labels(metadata: ObjectMeta, source: ObjectMeta) -> ObjectMeta:
    return msgspec.structs.replace(metadata, labels=source.labels, annotations=source.annotations)
