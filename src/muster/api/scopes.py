"""Scopes of ResourceQuotas: which pods, and which claims, a quota speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from muster.api import qos
from muster.api.core import Pod, PodAffinityTerm
from muster.api.quotas import ResourceQuotaSpec, ScopedResourceSelectorRequirement

TERMINATING = "Terminating"
NOT_TERMINATING = "NotTerminating"
BEST_EFFORT = "BestEffort"
NOT_BEST_EFFORT = "NotBestEffort"
PRIORITY_CLASS = "PriorityClass"
CROSS_NAMESPACE = "CrossNamespacePodAffinity"
VOLUME_ATTRIBUTES = "VolumeAttributesClass"
KNOWN = (
    TERMINATING, NOT_TERMINATING, BEST_EFFORT, NOT_BEST_EFFORT, PRIORITY_CLASS, CROSS_NAMESPACE, VOLUME_ATTRIBUTES,
)  # fmt: skip
ONLY_EXISTS = (TERMINATING, NOT_TERMINATING, BEST_EFFORT, NOT_BEST_EFFORT, CROSS_NAMESPACE)
"""Scopes without values to choose from."""

COMPUTE = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_PODS = frozenset(("pods", *COMPUTE))
BOUNDED_BY: Mapping[str, frozenset[str]] = MappingProxyType(
    dict.fromkeys((TERMINATING, NOT_TERMINATING, NOT_BEST_EFFORT, PRIORITY_CLASS, CROSS_NAMESPACE), _PODS)
    | {BEST_EFFORT: frozenset(["pods"]), VOLUME_ATTRIBUTES: frozenset(["persistentvolumeclaims", "requests.storage"])}
)
"""The standard resources that each scope may be combined with."""


def requirements(spec: ResourceQuotaSpec) -> tuple[ScopedResourceSelectorRequirement, ...]:
    """All that must hold of an object; none: every object counts."""
    named = tuple(ScopedResourceSelectorRequirement(scope, "Exists") for scope in spec.scopes)
    return named + (spec.scope_selector.match_expressions if spec.scope_selector else ())


def pod_in(pod: Pod, wanted: ScopedResourceSelectorRequirement) -> bool:
    """Whether a scope holds of a pod."""
    spec = pod.spec
    match wanted.scope_name:
        case "Terminating":
            return _terminating(pod)
        case "NotTerminating":
            return not _terminating(pod)
        case "BestEffort":
            return qos.qos_class(spec) == qos.BEST_EFFORT
        case "NotBestEffort":
            return qos.qos_class(spec) != qos.BEST_EFFORT
        case "PriorityClass":
            return _chosen(wanted, [spec.priority_class_name] if spec.priority_class_name else [])
        case "CrossNamespacePodAffinity":
            return _crosses(pod)
    return False


def claim_in(classes: list[str], wanted: ScopedResourceSelectorRequirement) -> bool:
    """Whether a scope holds of a PersistentVolumeClaim with these VolumeAttributesClasses: wanted, had, on the way."""
    return wanted.scope_name == VOLUME_ATTRIBUTES and _chosen(wanted, classes)


def _chosen(wanted: ScopedResourceSelectorRequirement, names: list[str]) -> bool:
    match wanted.operator:
        case "Exists":
            return bool(names)
        case "DoesNotExist":
            return not names
        case "In":
            return any(name in wanted.values for name in names)
        case "NotIn":
            return not names or any(name not in wanted.values for name in names)
    return False


def _terminating(pod: Pod) -> bool:
    return pod.spec.active_deadline_seconds is not None


def _crosses(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if part is None:
            continue
        weighted = (entry.pod_affinity_term for entry in part.preferred)
        if any(_elsewhere(term) for term in (*part.required, *weighted)):
            return True
    return False


def _elsewhere(term: PodAffinityTerm) -> bool:
    return bool(term.namespaces) or term.namespace_selector is not None
