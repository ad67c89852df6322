"""Rules for where a pod may run: node selectors, affinity, tolerations, spread, scheduling gates and group."""

from __future__ import annotations

import re

from muster.api.core import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    Toleration,
    TopologySpreadConstraint,
)
from muster.api.gates import FeatureGates
from muster.api.meta import LabelSelector
from muster.api.validation import checks, names
from muster.api.validation.checks import Errors
from muster.api.validation.field import Path

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_COMPARISONS = ("Lt", "Gt")
_WHEN = ("DoNotSchedule", "ScheduleAnyway")
_NODE_POLICIES = ("Honor", "Ignore")
_INTEGER = re.compile(r"0|-?[1-9]\d*", re.ASCII)


def placement(spec: PodSpec, path: Path, gates: FeatureGates) -> Errors:
    """Everything in a pod's spec that says where, when and with whom it is scheduled."""
    errors: Errors = []
    if spec.node_selector:
        errors += checks.labels(spec.node_selector, path / "nodeSelector")
    if spec.affinity is not None:
        errors += affinity(spec.affinity, path / "affinity")
    if spec.tolerations:
        errors += tolerations(spec.tolerations, path / "tolerations", gates)
    if spec.topology_spread_constraints:
        errors += _spread(spec.topology_spread_constraints, path / "topologySpreadConstraints", gates)
    if spec.scheduling_gates:
        errors += _scheduling_gates(spec, path)
    if spec.scheduling_group is not None:
        at = path / "schedulingGroup"
        errors += checks.union(spec.scheduling_group, at, ("pod_group_name",))
        if spec.scheduling_group.pod_group_name is not None:
            errors += checks.formatted(spec.scheduling_group.pod_group_name, at / "podGroupName", names.dns_subdomain)
    return errors


def _scheduling_gates(spec: PodSpec, path: Path) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for i, gate in enumerate(spec.scheduling_gates):
        at = path / "schedulingGates" // i
        errors += checks.text(gate.name, at / "name", names.label_key)
        if gate.name in seen:
            errors.append(at.duplicate(gate.name, "scheduling gates must be unique"))
        seen.add(gate.name)
    if spec.node_name:
        message = "cannot be set until all schedulingGates have been cleared"
        errors.append((path / "nodeName").forbidden(message))
    return errors


# --- affinity ----------------------------------------------------------------------------------------------------


def affinity(value: Affinity, path: Path) -> Errors:
    errors: Errors = []
    if value.node_affinity is not None:
        errors += _node_affinity(value.node_affinity, path / "nodeAffinity")
    for field, pods in (("podAffinity", value.pod_affinity), ("podAntiAffinity", value.pod_anti_affinity)):
        if pods is not None:
            errors += _pod_affinity(pods, path / field)
    return errors


def _node_affinity(value: NodeAffinity, path: Path) -> Errors:
    errors: Errors = []
    if value.required is not None:
        errors += node_selector(value.required, path / "requiredDuringSchedulingIgnoredDuringExecution")
    for i, preferred in enumerate(value.preferred):
        at = path / "preferredDuringSchedulingIgnoredDuringExecution" // i
        errors += checks.in_range(preferred.weight, at / "weight", 1, 100)
        errors += _node_term(preferred.preference, at / "preference")
    return errors


def node_selector(value: NodeSelector, path: Path) -> Errors:
    """At least one term, each well formed."""
    at = path / "nodeSelectorTerms"
    errors: Errors = []
    if not value.node_selector_terms:
        errors.append(at.required("must have at least one node selector term"))
    for i, term in enumerate(value.node_selector_terms):
        errors += _node_term(term, at // i)
    return errors


def _node_term(term: NodeSelectorTerm, path: Path) -> Errors:
    errors: Errors = []
    for i, requirement in enumerate(term.match_expressions):
        at = path / "matchExpressions" // i
        errors += checks.requirement_errors(requirement.key, requirement.operator, requirement.values, at, ("Gt", "Lt"))
    for i, requirement in enumerate(term.match_fields):
        at = path / "matchFields" // i
        if requirement.key != "metadata.name":
            errors.append((at / "key").invalid(requirement.key, "not a valid field selector key: use metadata.name"))
        errors += checks.one_of(requirement.operator, at / "operator", ("In", "NotIn"))
        if len(requirement.values) != 1:
            errors.append((at / "values").required("must be exactly one value"))
        for j, value in enumerate(requirement.values):
            errors += checks.formatted(value, at / "values" // j, names.dns_subdomain)
    return errors


def _pod_affinity(value: PodAffinity, path: Path) -> Errors:
    errors: Errors = []
    for i, term in enumerate(value.required):
        errors += _pod_term(term, path / "requiredDuringSchedulingIgnoredDuringExecution" // i)
    for i, weighted in enumerate(value.preferred):
        at = path / "preferredDuringSchedulingIgnoredDuringExecution" // i
        errors += checks.in_range(weighted.weight, at / "weight", 1, 100)
        errors += _pod_term(weighted.pod_affinity_term, at / "podAffinityTerm")
    return errors


def _pod_term(term: PodAffinityTerm, path: Path) -> Errors:
    errors = checks.text(term.topology_key, path / "topologyKey", names.label_key)
    errors += checks.selector(term.label_selector, path / "labelSelector")
    errors += checks.selector(term.namespace_selector, path / "namespaceSelector")
    for i, namespace in enumerate(term.namespaces):
        errors += checks.formatted(namespace, path / "namespaces" // i, names.dns_label)
    return errors + _label_keys(term.match_label_keys, term.mismatch_label_keys, term.label_selector, path)


def _label_keys(
    matching: tuple[str, ...], mismatching: tuple[str, ...], selector: LabelSelector | None, path: Path
) -> Errors:
    """Rules for label keys that the server has put into the selector: a key that is in there twice was there before."""
    errors: Errors = []
    for field, keys in (("matchLabelKeys", matching), ("mismatchLabelKeys", mismatching)):
        if keys and selector is None:
            errors.append((path / field).forbidden("must not be specified when labelSelector is not set"))
            continue
        for i, key in enumerate(keys):
            errors += checks.formatted(key, path / field // i, names.label_key)
    seen = set(selector.match_labels) if selector is not None else set()
    for expression in selector.match_expressions if selector is not None else ():
        if expression.key in matching and expression.key in seen:
            at = path // matching.index(expression.key)
            errors.append(at.invalid(expression.key, "exists in both matchLabelKeys and labelSelector"))
        seen.add(expression.key)
    for i, key in enumerate(matching):
        if key in mismatching:
            at = path / "matchLabelKeys" // i
            errors.append(at.invalid(key, "exists in both matchLabelKeys and mismatchLabelKeys"))
    return errors


# --- tolerations, spread -----------------------------------------------------------------------------------------


def tolerations(values: tuple[Toleration, ...], path: Path, gates: FeatureGates) -> Errors:
    errors: Errors = []
    comparisons = _COMPARISONS if "TaintTolerationComparisonOperators" in gates.on else ()
    for i, toleration in enumerate(values):
        errors += _toleration(toleration, path // i, comparisons)
    return errors


def _toleration(value: Toleration, path: Path, comparisons: tuple[str, ...]) -> Errors:
    operator = value.operator or "Equal"
    errors: Errors = []
    if value.key:
        if names.label_key(value.key):
            errors += checks.formatted(value.key, path / "key", names.label_key)
    elif operator != "Exists":
        errors.append(
            (path / "operator").invalid(value.operator, "must be Exists when key is empty, to match all keys")
        )
    if value.effect and value.effect not in EFFECTS:
        errors.append((path / "effect").not_supported(value.effect, EFFECTS))
    if value.toleration_seconds is not None and value.effect != "NoExecute":
        errors.append((path / "effect").invalid(value.effect, "must be NoExecute when tolerationSeconds is set"))
    return errors + _toleration_value(operator, value.value, path, comparisons)


def _toleration_value(operator: str, value: str, path: Path, comparisons: tuple[str, ...]) -> Errors:
    if operator == "Equal":
        return checks.formatted(value, path / "value", names.label_value)
    if operator == "Exists":
        return [(path / "operator").invalid(value, "value must be empty when operator is Exists")] if value else []
    if operator in comparisons:
        if not _INTEGER.fullmatch(value) or abs(int(value)) > 1 << 63:
            return [(path / "value").invalid(value, f"must be a 64-bit integer when operator is {operator}")]
        return []
    return [(path / "operator").not_supported(operator, ("Equal", "Exists", *comparisons))]


def _spread(values: tuple[TopologySpreadConstraint, ...], path: Path, gates: FeatureGates) -> Errors:
    errors: Errors = []
    seen: set[tuple[str, str]] = set()
    for i, value in enumerate(values):
        at = path // i
        if value.max_skew <= 0:
            errors.append((at / "maxSkew").invalid(value.max_skew, "must be greater than zero"))
        errors += checks.text(value.topology_key, at / "topologyKey", names.label_key)
        errors += checks.one_of(value.when_unsatisfiable, at / "whenUnsatisfiable", _WHEN)
        errors += checks.at_least(value.min_domains, at / "minDomains", 1)
        if value.min_domains is not None and value.when_unsatisfiable != "DoNotSchedule":
            message = "can only be set when whenUnsatisfiable is DoNotSchedule"
            errors.append((at / "minDomains").invalid(value.min_domains, message))
        errors += checks.one_of(value.node_affinity_policy, at / "nodeAffinityPolicy", _NODE_POLICIES)
        errors += checks.one_of(value.node_taints_policy, at / "nodeTaintsPolicy", _NODE_POLICIES)
        errors += checks.selector(value.label_selector, at / "labelSelector")
        if gates.merges_spread_keys:
            errors += _label_keys(value.match_label_keys, (), value.label_selector, at)
        else:
            errors += _unmerged_keys(value.match_label_keys, value.label_selector, at / "matchLabelKeys")
        pair = (value.topology_key, value.when_unsatisfiable)
        if pair in seen:
            errors.append(at.duplicate(list(pair), "topologyKey and whenUnsatisfiable must be unique together"))
        seen.add(pair)
    return errors


def _unmerged_keys(keys: tuple[str, ...], selector: LabelSelector | None, path: Path) -> Errors:
    """Rules where only the scheduler reads the keys: none may be in the selector."""
    if not keys:
        return []
    if selector is None:
        return [path.forbidden("must not be specified when labelSelector is not set")]
    errors: Errors = []
    present = {*selector.match_labels, *(expression.key for expression in selector.match_expressions)}
    for i, key in enumerate(keys):
        errors += checks.formatted(key, path // i, names.label_key)
        if key in present:
            errors.append((path // i).invalid(key, "exists in both matchLabelKeys and labelSelector"))
    return errors
