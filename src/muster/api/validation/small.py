"""Rules for the small kinds: Namespace, PriorityClass, PodDisruptionBudget, RuntimeClass, Lease."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from muster.api import core
from muster.api.gates import FeatureGates
from muster.api.meta import ObjectMeta, Part
from muster.api.validation import checks, groups, meta, names
from muster.api.validation.checks import Errors, Format
from muster.api.validation.field import METADATA, ROOT, SPEC, FieldError, Path

Raw = Mapping[str, Any]
P = TypeVar("P", bound=Part)
Validator = Callable[[Raw, Raw | None, FeatureGates], Errors]

SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_PERCENT = re.compile(r"\d+%", re.ASCII)
_UNHEALTHY = ("IfHealthyBudget", "AlwaysAllow")


def rules(
    struct: type[P],
    spec: Callable[[P, P | None], Errors],
    *,
    namespaced: bool = True,
    name: Format = names.dns_subdomain,
) -> Validator:
    """A validator: metadata, then `spec(new, old)` on typed views."""

    def validate(new: Raw, old: Raw | None, gates: FeatureGates) -> Errors:
        view = checks.typed(new, struct)
        if isinstance(view, FieldError):
            return [view]
        before = checks.typed(old, struct) if old is not None else None
        stored = before if isinstance(before, struct) else None
        metadata: ObjectMeta = view.metadata  # type: ignore[attr-defined]
        was: ObjectMeta | None = stored.metadata if stored else None  # type: ignore[attr-defined]
        return meta.metadata(metadata, was, namespaced=namespaced, name=name) + spec(view, stored)

    return validate


def _nothing(new: Part, old: Part | None) -> Errors:
    return []


# --- scheduling.k8s.io/v1, policy/v1 -----------------------------------------------------------------------------


def _priority_class(new: core.PriorityClass, old: core.PriorityClass | None) -> Errors:
    errors: Errors = []
    name, value = new.metadata.name, new.value
    if name.startswith("system-"):
        if SYSTEM_CLASSES.get(name) != value:
            known = ", ".join(f"{known} ({number})" for known, number in SYSTEM_CLASSES.items())
            errors.append((METADATA / "name").forbidden(f"the prefix system- is reserved; known are {known}"))
    elif value > groups.HIGHEST_PRIORITY:
        message = f"maximum allowed value of a user defined priority is {groups.HIGHEST_PRIORITY}"
        errors.append((ROOT / "value").forbidden(message))
    if new.preemption_policy is not None:
        errors += checks.one_of(new.preemption_policy, ROOT / "preemptionPolicy", groups.PREEMPTION_POLICIES)
    if old is not None and value != old.value:
        errors.append((ROOT / "value").forbidden("may not be changed in an update; make a new class"))
    if old is not None:
        errors += checks.unchanged(new.preemption_policy, old.preemption_policy, ROOT / "preemptionPolicy")
    return errors


def _disruption_budget(new: core.PodDisruptionBudget, old: core.PodDisruptionBudget | None) -> Errors:
    spec = new.spec
    errors: Errors = []
    if spec.min_available is not None and spec.max_unavailable is not None:
        errors.append(SPEC.invalid(spec, "minAvailable and maxUnavailable cannot be both set"))
    for field, value in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
        errors += count_or_percent(value, SPEC / field)
    if spec.unhealthy_pod_eviction_policy is not None:
        errors += checks.one_of(spec.unhealthy_pod_eviction_policy, SPEC / "unhealthyPodEvictionPolicy", _UNHEALTHY)
    return errors + checks.selector(spec.selector, SPEC / "selector")


def count_or_percent(value: int | str | None, path: Path) -> Errors:
    if not isinstance(value, str):
        return checks.at_least(value, path, 0)
    if not _PERCENT.fullmatch(value):
        return [path.invalid(value, "must be a number of pods, or a percentage such as 50%")]
    return [path.invalid(value, "must not be greater than 100%")] if int(value[:-1]) > 100 else []


# --- v1, node.k8s.io, coordination.k8s.io ------------------------------------------------------------------------


def _runtime_class(new: core.RuntimeClass, old: core.RuntimeClass | None) -> Errors:
    errors = checks.text(new.handler, ROOT / "handler", names.dns_label)
    if new.overhead is not None:
        errors += checks.quantities(new.overhead.pod_fixed, ROOT / "overhead" / "podFixed")
    if old is not None:
        errors += checks.unchanged(new.handler, old.handler, ROOT / "handler")
    return errors


def _lease(new: core.Lease, old: core.Lease | None) -> Errors:
    """An empty holderIdentity is how a leader lets go."""
    spec = new.spec
    errors = checks.at_least(spec.lease_duration_seconds, SPEC / "leaseDurationSeconds", 1)
    errors += checks.at_least(spec.lease_transitions, SPEC / "leaseTransitions", 0)
    errors += checks.time(spec.acquire_time, SPEC / "acquireTime")
    return errors + checks.time(spec.renew_time, SPEC / "renewTime")


namespace = rules(core.Namespace, _nothing, namespaced=False, name=names.dns_label)
priority_class = rules(core.PriorityClass, _priority_class, namespaced=False)
disruption_budget = rules(core.PodDisruptionBudget, _disruption_budget)
runtime_class = rules(core.RuntimeClass, _runtime_class, namespaced=False)
lease = rules(core.Lease, _lease)
