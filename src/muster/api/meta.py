"""What every Kubernetes object carries: metadata, owners, label selectors, conditions.

Typed views hold the fields Muster reads or checks and no others; everything else survives in `object.Object.raw`.
Absent and empty are the same (a tuple or mapping that defaults to empty), except where the API tells them apart: those
fields default to None.
"""

from __future__ import annotations

import msgspec

Quantity = str | int | float
"""An amount as JSON has it; `quantity` reads it. The API server writes the string form."""


class Part(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Base of all typed views: frozen, camelCase in JSON, nothing written that has its default."""


class Empty(Part, frozen=True):
    """A marker without fields, `{}` in JSON: a union member that is set by being there."""


class OwnerReference(Part, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Part, frozen=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class LabelSelectorRequirement(Part, frozen=True):
    """`operator` is In, NotIn, Exists or DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Part, frozen=True):
    """All must hold; an empty selector matches everything."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Condition(Part, frozen=True):
    """A condition of any kind; `status` is "True", "False" or "Unknown"."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None
