"""Typed views of what bounds a namespace: ResourceQuota and LimitRange."""

# ruff: noqa: RUF012  (msgspec makes a new dict of an empty default for every instance)

from __future__ import annotations

import msgspec

from muster.api.meta import ObjectMeta, Part, Quantity


class ScopedResourceSelectorRequirement(Part, frozen=True):
    """`operator` is In, NotIn, Exists or DoesNotExist."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(Part, frozen=True):
    """All must hold."""

    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] = ()


class ResourceQuotaSpec(Part, frozen=True):
    """An object counts if all of `scopes` and all of `scope_selector` hold for it."""

    hard: dict[str, Quantity] = {}
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Part, frozen=True):
    hard: dict[str, Quantity] = {}
    used: dict[str, Quantity] = {}


class ResourceQuota(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class LimitRangeItem(Part, frozen=True):
    """`type` is Pod, Container, PersistentVolumeClaim, or a qualified name that nobody enforces here."""

    type: str = ""
    max: dict[str, Quantity] = {}
    min: dict[str, Quantity] = {}
    default: dict[str, Quantity] = {}
    """Limits of containers that name none."""
    default_request: dict[str, Quantity] = {}
    max_limit_request_ratio: dict[str, Quantity] = msgspec.field(default_factory=dict)


class LimitRangeSpec(Part, frozen=True):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()
