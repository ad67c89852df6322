"""Every kind Muster serves, in one table, and the ways to look one up. The rows are in `muster.api.table`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from muster.api.kind import Defaults, Kind, Raw, Validator, version_order
from muster.api.table.core import (
    CONFIG_MAP,
    EVENT,
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    POD,
    RESOURCE_QUOTA,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
)
from muster.api.table.devices import (
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
)
from muster.api.table.extension import (
    CUSTOM_RESOURCE_DEFINITION,
    MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_ADMISSION_POLICY,
    VALIDATING_ADMISSION_POLICY_BINDING,
    VALIDATING_WEBHOOK_CONFIGURATION,
)
from muster.api.table.scheduling import (
    COMPOSITE_POD_GROUP,
    LEASE,
    POD_GROUP,
    PRIORITY_CLASS,
    RUNTIME_CLASS,
    WORKLOAD,
)
from muster.api.table.storage import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
)
from muster.api.table.views import (
    EVENTS_EVENT,
    LOCAL_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
    SUBJECT_ACCESS_REVIEW,
    VIEWS,
)
from muster.api.table.workloads import (
    CONTROLLER_REVISION,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    POD_DISRUPTION_BUDGET,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)

__all__ = [
    "COMPOSITE_POD_GROUP",
    "CONFIG_MAP",
    "CONTROLLER_REVISION",
    "CRON_JOB",
    "CSI_DRIVER",
    "CSI_NODE",
    "CSI_STORAGE_CAPACITY",
    "CUSTOM_RESOURCE_DEFINITION",
    "DAEMON_SET",
    "DEPLOYMENT",
    "DEVICE_CLASS",
    "DEVICE_TAINT_RULE",
    "EVENT",
    "EVENTS_EVENT",
    "JOB",
    "KINDS",
    "LEASE",
    "LIMIT_RANGE",
    "LOCAL_SUBJECT_ACCESS_REVIEW",
    "MUTATING_WEBHOOK_CONFIGURATION",
    "NAMESPACE",
    "NODE",
    "PERSISTENT_VOLUME",
    "PERSISTENT_VOLUME_CLAIM",
    "POD",
    "POD_DISRUPTION_BUDGET",
    "POD_GROUP",
    "PRIORITY_CLASS",
    "REPLICATION_CONTROLLER",
    "REPLICA_SET",
    "RESOURCE_CLAIM",
    "RESOURCE_CLAIM_TEMPLATE",
    "RESOURCE_QUOTA",
    "RESOURCE_SLICE",
    "RUNTIME_CLASS",
    "SECRET",
    "SELF_SUBJECT_ACCESS_REVIEW",
    "SELF_SUBJECT_REVIEW",
    "SELF_SUBJECT_RULES_REVIEW",
    "SERVED",
    "SERVICE",
    "SERVICE_ACCOUNT",
    "STATEFUL_SET",
    "STORAGE_CLASS",
    "SUBJECT_ACCESS_REVIEW",
    "VALIDATING_ADMISSION_POLICY",
    "VALIDATING_ADMISSION_POLICY_BINDING",
    "VALIDATING_WEBHOOK_CONFIGURATION",
    "VOLUME_ATTACHMENT",
    "WORKLOAD",
    "Defaults",
    "Kind",
    "Raw",
    "Validator",
    "by_kind",
    "by_path",
    "by_resource",
    "named",
    "version_order",
]

KINDS: tuple[Kind, ...] = (
    NAMESPACE,
    NODE,
    POD,
    EVENT,
    PRIORITY_CLASS,
    WORKLOAD,
    POD_GROUP,
    COMPOSITE_POD_GROUP,
    JOB,
    POD_DISRUPTION_BUDGET,
    RUNTIME_CLASS,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    DEVICE_CLASS,
    RESOURCE_SLICE,
    DEVICE_TAINT_RULE,
    LEASE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    CSI_NODE,
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    VOLUME_ATTACHMENT,
    SERVICE,
    REPLICATION_CONTROLLER,
    REPLICA_SET,
    STATEFUL_SET,
    DEPLOYMENT,
    DAEMON_SET,
    CONTROLLER_REVISION,
    CRON_JOB,
    CONFIG_MAP,
    SECRET,
    SERVICE_ACCOUNT,
    RESOURCE_QUOTA,
    LIMIT_RANGE,
    CUSTOM_RESOURCE_DEFINITION,
    VALIDATING_ADMISSION_POLICY,
    VALIDATING_ADMISSION_POLICY_BINDING,
    VALIDATING_WEBHOOK_CONFIGURATION,
    MUTATING_WEBHOOK_CONFIGURATION,
)

SERVED: tuple[Kind, ...] = (*KINDS, *VIEWS)
"""`KINDS`, which are stored, and what is served beside them."""

_BY_PLURAL: Mapping[str, Kind] = MappingProxyType({kind.plural: kind for kind in KINDS})
_BY_PATH = MappingProxyType({(kind.group, kind.version, kind.plural): kind for kind in SERVED})
_BY_KIND = MappingProxyType({(kind.api_version, kind.kind): kind for kind in SERVED})
_BY_NAME = MappingProxyType(
    {f"{kind.plural}.{kind.group}": kind for kind in VIEWS}
    | {
        name.lower(): kind
        for kind in KINDS
        for name in (kind.plural, kind.singular, kind.kind, *kind.short_names, f"{kind.plural}.{kind.group}")
    }
)


def by_resource(plural: str) -> Kind:
    """The kind of a plural name, as machines name resources.

    Raises:
        KeyError: there is none.
    """
    return _BY_PLURAL[plural]


def by_path(group: str, version: str, plural: str) -> Kind | None:
    """The kind behind a URL path; group "" is the core group."""
    return _BY_PATH.get((group, version, plural))


def by_kind(api_version: str, kind: str) -> Kind:
    """The kind of an object.

    Raises:
        ValueError: it is unknown; names the version it is served in, or the kinds there are.
    """
    found = _BY_KIND.get((api_version, kind))
    if found is not None:
        return found
    same = [other.api_version for other in SERVED if other.kind == kind]
    if same:
        raise ValueError(f"kind {kind} is served as apiVersion {', '.join(same)}, not {api_version!r}")
    raise ValueError(
        f"no kind {kind!r} in apiVersion {api_version!r}; known kinds: {', '.join(other.kind for other in KINDS)}"
    )


def named(name: str) -> Kind:
    """The kind a person names: plural, singular, kind or short name, in any case.

    Raises:
        ValueError: it is unknown; lists the plurals there are.
    """
    found = _BY_NAME.get(name) or _BY_NAME.get(name.lower())
    if found is None:
        raise ValueError(f"unknown resource {name!r}; known: {', '.join(sorted(_BY_PLURAL))}")
    return found
