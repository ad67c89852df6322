"""What a pod asks of its neighbours, from its raw spec: pod affinity and anti-affinity, topology spread constraints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from muster.api import core
from muster.api.meta import LabelSelector
from muster.model.neighbours import (
    LabelRequirement,
    Labels,
    PodDemands,
    PodSelector,
    PodTerm,
    SpreadConstraint,
    WeightedTerm,
)

_KINDS = ("podAffinity", "podAntiAffinity")


def labels_of(meta: Mapping[str, Any]) -> Labels:
    """
    Raises:
        TypeError: a key or value is no text.
    """
    labels = meta.get("labels")
    if not labels:
        return ()
    if not all(type(key) is str and type(value) is str for key, value in labels.items()):
        raise TypeError("metadata.labels holds something that is no text")
    return tuple(sorted(labels.items()))


def looked_at(meta: Mapping[str, Any], spec: Mapping[str, Any]) -> Any:
    """The parts of a pod that its demands depend on, but for its affinity itself; None where it has none."""
    affinity, spread = spec.get("affinity"), spec.get("topologySpreadConstraints")
    if not spread and not (affinity and any(kind in affinity for kind in _KINDS)):
        return None
    labels = meta.get("labels") or {}
    keys = {key for entry in _entries(affinity, spread) for key in _label_keys(entry)}
    return spread, meta.get("namespace"), [(key, labels.get(key)) for key in sorted(keys)]


def _entries(affinity: Any, spread: Any) -> Iterable[Mapping[str, Any]]:
    yield from spread or ()
    for kind in _KINDS:
        for terms in ((affinity or {}).get(kind) or {}).values():
            yield from (term.get("podAffinityTerm", term) for term in terms or ())


def _label_keys(entry: Mapping[str, Any]) -> Iterable[str]:
    return (*(entry.get("matchLabelKeys") or ()), *(entry.get("mismatchLabelKeys") or ()))


def demands_of(pod: core.Pod) -> PodDemands | None:
    """None: it asks nothing of others."""
    affinity = pod.spec.affinity or core.Affinity()
    near, far = affinity.pod_affinity or core.PodAffinity(), affinity.pod_anti_affinity or core.PodAffinity()
    demands = PodDemands(
        tuple(_term(pod, term) for term in near.required),
        tuple(_term(pod, term) for term in far.required),
        (
            *(WeightedTerm(wish.weight, _term(pod, wish.pod_affinity_term)) for wish in near.preferred),
            *(WeightedTerm(-wish.weight, _term(pod, wish.pod_affinity_term)) for wish in far.preferred),
        ),
        tuple(_constraint(pod, constraint) for constraint in pod.spec.topology_spread_constraints),
    )
    return demands if any(demands) else None


def _term(pod: core.Pod, term: core.PodAffinityTerm) -> PodTerm:
    """Without namespaces and namespace selector, the pod's own namespace is meant."""
    requirements = _requirements(term.label_selector)
    if requirements is not None:
        near = _own(pod, term.match_label_keys, "In", requirements)
        requirements += near + _own(pod, term.mismatch_label_keys, "NotIn", requirements)
    own = not term.namespaces and term.namespace_selector is None
    namespaces = (pod.metadata.namespace,) if own else tuple(sorted(set(term.namespaces)))
    selector = PodSelector(_sorted(requirements), namespaces, _sorted(_requirements(term.namespace_selector)))
    return PodTerm(selector, term.topology_key)


def _constraint(pod: core.Pod, constraint: core.TopologySpreadConstraint) -> SpreadConstraint:
    requirements = _requirements(constraint.label_selector)
    if requirements is not None:
        requirements += _own(pod, constraint.match_label_keys, "In", requirements)
    return SpreadConstraint(
        PodSelector(_sorted(requirements), (pod.metadata.namespace,)),
        constraint.topology_key,
        constraint.max_skew,
        constraint.when_unsatisfiable != "ScheduleAnyway",
        constraint.min_domains or 1,
        constraint.node_affinity_policy != "Ignore",
        constraint.node_taints_policy == "Honor",
    )


def _requirements(selector: LabelSelector | None) -> tuple[LabelRequirement, ...] | None:
    if selector is None:
        return None
    equal = tuple(LabelRequirement(key, "In", (value,)) for key, value in selector.match_labels.items())
    return equal + tuple(
        LabelRequirement(e.key, e.operator, tuple(sorted(e.values))) for e in selector.match_expressions
    )


def _own(
    pod: core.Pod, keys: Iterable[str], operator: str, known: tuple[LabelRequirement, ...]
) -> tuple[LabelRequirement, ...]:
    """The pod's own values of these labels, as requirements; keys that it lacks are left out (KEP-3633, KEP-3243).

    So are those that the API server has merged on create: a pod that is relabelled since keeps its first values.
    """
    labels = pod.metadata.labels
    merged = {one.key for one in known if one.operator == operator and len(one.values) == 1}
    return tuple(LabelRequirement(key, operator, (labels[key],)) for key in keys if key in labels and key not in merged)


def _sorted(requirements: tuple[LabelRequirement, ...] | None) -> tuple[LabelRequirement, ...] | None:
    return None if requirements is None else tuple(sorted(set(requirements)))
