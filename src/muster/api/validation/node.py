"""Rules for nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.core import Node, NodeSpec, NodeStatus, Taint
from muster.api.gates import FeatureGates
from muster.api.validation import checks, groups, meta, names
from muster.api.validation.checks import Errors
from muster.api.validation.field import SPEC, STATUS, FieldError, Path
from muster.api.validation.placement import EFFECTS

RESIZE_OWNERS = 20


def node(new: Mapping[str, Any], old: Mapping[str, Any] | None, gates: FeatureGates) -> Errors:
    """Every error of a node; a node brings its status along on create."""
    view = checks.typed(new, Node)
    if isinstance(view, FieldError):
        return [view]
    before = checks.typed(old, Node) if old is not None else None
    stored = before if isinstance(before, Node) else None
    errors = meta.metadata(view.metadata, stored.metadata if stored else None, namespaced=False)
    errors += _taints(view.spec.taints, SPEC / "taints")
    errors += _resize_policy(view.spec, stored.spec if stored else None, gates)
    return errors if stored else errors + _status(view.status)


def node_status(new: Mapping[str, Any], old: Mapping[str, Any] | None, gates: FeatureGates) -> Errors:
    view = checks.typed(new, Node)
    return [view] if isinstance(view, FieldError) else _status(view.status)


def _taints(taints: tuple[Taint, ...], path: Path) -> Errors:
    errors: Errors = []
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(taints):
        at = path // i
        errors += checks.text(taint.key, at / "key", names.label_key)
        errors += checks.formatted(taint.value, at / "value", names.label_value)
        if taint.effect:
            errors += checks.one_of(taint.effect, at / "effect", EFFECTS)
        else:
            errors.append((at / "effect").required(f"one of {', '.join(EFFECTS)}"))
        errors += checks.time(taint.time_added, at / "timeAdded")
        if (taint.key, taint.effect) in seen:
            errors.append(at.duplicate([taint.key, taint.effect], "taints must be unique by key and effect pair"))
        seen.add((taint.key, taint.effect))
    return errors


def _resize_policy(spec: NodeSpec, old: NodeSpec | None, gates: FeatureGates) -> Errors:
    """Owners that forbid resize preemption: at most 20 different label keys (R8), behind their gate (R13)."""
    policy = spec.pod_preemption_policy
    if policy is None:
        return []
    path = SPEC / "podPreemptionPolicy"
    if not gates.resize_preemption and (old is None or old.pod_preemption_policy is None):
        return [groups.gate_off(path, "InPlacePodVerticalScalingSchedulerPreemption")]
    owners, at = policy.disable_resize_preemption, path / "disableResizePreemption"
    if len(owners) > RESIZE_OWNERS:
        return [at.too_many(len(owners), RESIZE_OWNERS)]
    errors: Errors = []
    for i, owner in enumerate(owners):
        errors += checks.text(owner, at // i, names.label_key)
        if owner in owners[:i]:
            errors.append((at // i).duplicate(owner))
    return errors


def _status(status: NodeStatus) -> Errors:
    errors = checks.quantities(status.capacity, STATUS / "capacity")
    errors += checks.quantities(status.allocatable, STATUS / "allocatable")
    for i, image in enumerate(status.images):
        errors += checks.at_least(image.size_bytes, STATUS / "images" // i / "sizeBytes", 0)
    return errors + checks.conditions(status.conditions, STATUS / "conditions")
