"""Rules for the status of ReplicaSets and Deployments: counts that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from muster.api import apps
from muster.api.gates import FeatureGates
from muster.api.meta import Part
from muster.api.validation import checks
from muster.api.validation.checks import Errors
from muster.api.validation.field import STATUS, FieldError

Raw = Mapping[str, Any]
P = TypeVar("P", bound=Part)
_REPLICA_SET = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_DEPLOYMENT = ("updatedReplicas", "readyReplicas", "availableReplicas")


def _rules(
    struct: type[P], rules: Callable[[P, P | None], Errors]
) -> Callable[[Raw, Raw | None, FeatureGates], Errors]:
    def validate(new: Raw, old: Raw | None, gates: FeatureGates) -> Errors:
        view = checks.typed(new, struct)
        if isinstance(view, FieldError):
            return [view]
        before = checks.typed(old, struct) if old is not None else None
        return rules(view, before if isinstance(before, struct) else None)

    return validate


def _replica_set(new: apps.ReplicaSet, old: apps.ReplicaSet | None) -> Errors:
    status = new.status
    parts = (status.fully_labeled_replicas, status.ready_replicas, status.available_replicas)
    errors = _parts(status.replicas, dict(zip(_REPLICA_SET, parts, strict=True)))
    return errors + _counts(status.observed_generation, status.terminating_replicas)


def _deployment(new: apps.Deployment, old: apps.Deployment | None) -> Errors:
    status = new.status
    parts = (status.updated_replicas, status.ready_replicas, status.available_replicas)
    errors = _parts(status.replicas, dict(zip(_DEPLOYMENT, parts, strict=True)))
    errors += checks.at_least(status.unavailable_replicas, STATUS / "unavailableReplicas", 0)
    collisions, at = status.collision_count, STATUS / "collisionCount"
    errors += checks.at_least(collisions, at, 0)
    if old is not None and (collisions or 0) < (old.status.collision_count or 0):
        errors.append(at.invalid(collisions, "cannot be decremented"))
    return errors + _counts(status.observed_generation, status.terminating_replicas)


def _parts(whole: int, parts: Mapping[str, int]) -> Errors:
    """None is more than all replicas, and no pod is available that is not ready."""
    errors = checks.at_least(whole, STATUS / "replicas", 0)
    for field, value in parts.items():
        errors += checks.at_least(value, STATUS / field, 0)
        if value > max(0, whole):
            errors.append((STATUS / field).invalid(value, "cannot be greater than status.replicas"))
    ready, available = parts["readyReplicas"], parts["availableReplicas"]
    if available > ready:
        errors.append((STATUS / "availableReplicas").invalid(available, "cannot be greater than readyReplicas"))
    return errors


def _counts(generation: int, terminating: int | None) -> Errors:
    errors = checks.at_least(generation, STATUS / "observedGeneration", 0)
    return errors + checks.at_least(terminating, STATUS / "terminatingReplicas", 0)


replica_set = _rules(apps.ReplicaSet, _replica_set)
deployment = _rules(apps.Deployment, _deployment)
