"""Rules for questions about access."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.gates import FeatureGates
from muster.api.reviews import (
    NonResourceAttributes,
    ResourceAttributes,
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
    SubjectAccessReview,
)
from muster.api.validation import checks
from muster.api.validation.checks import Errors
from muster.api.validation.field import SPEC, FieldError

Raw = Mapping[str, Any]


def own_access(new: Raw, old: Raw | None, gates: FeatureGates) -> Errors:
    view = checks.typed(new, SelfSubjectAccessReview)
    if isinstance(view, FieldError):
        return [view]
    return _one(view.spec.resource_attributes, view.spec.non_resource_attributes)


def access(new: Raw, old: Raw | None, gates: FeatureGates) -> Errors:
    """Of anybody."""
    view = checks.typed(new, SubjectAccessReview)
    if isinstance(view, FieldError):
        return [view]
    errors = _one(view.spec.resource_attributes, view.spec.non_resource_attributes)
    if not view.spec.user and not view.spec.groups:
        errors.append((SPEC / "user").invalid("", "at least one of user or group must be specified"))
    return errors


def local_access(new: Raw, old: Raw | None, gates: FeatureGates) -> Errors:
    """Of anybody, in the namespace that the call names."""
    errors = access(new, old, gates)
    view = checks.typed(new, SubjectAccessReview)
    if isinstance(view, FieldError):
        return errors
    at, asked = SPEC / "resourceAttributes" / "namespace", view.spec.resource_attributes
    if view.spec.non_resource_attributes is not None:
        errors.append((SPEC / "nonResourceAttributes").invalid("", "disallowed on this kind of request"))
    if asked is not None and asked.namespace != view.metadata.namespace:
        errors.append(at.invalid(asked.namespace, f"must match metadata.namespace: {view.metadata.namespace}"))
    return errors


def own_rules(new: Raw, old: Raw | None, gates: FeatureGates) -> Errors:
    view = checks.typed(new, SelfSubjectRulesReview)
    if isinstance(view, FieldError):
        return [view]
    return [] if view.spec.namespace else [(SPEC / "namespace").required()]


def _one(resource: ResourceAttributes | None, other: NonResourceAttributes | None) -> Errors:
    if (resource is None) == (other is None):
        return [(SPEC / "resourceAttributes").invalid("", "exactly one of nonResourceAttributes or resourceAttributes")]
    return []
