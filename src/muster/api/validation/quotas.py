"""Rules for ResourceQuota and LimitRange."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import chain

from muster.api import quantity, scopes
from muster.api.meta import Quantity
from muster.api.quotas import LimitRange, LimitRangeItem, ResourceQuota, ResourceQuotaSpec, ScopeSelector
from muster.api.validation import checks, containers, names
from muster.api.validation.checks import Errors
from muster.api.validation.field import SPEC, STATUS, Path
from muster.api.validation.small import rules

WHOLE = (
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
)  # fmt: skip
"""Quotas that count objects."""
STANDARD = frozenset(
    (*WHOLE, *scopes.COMPUTE, "ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage",
     "requests.storage")
)  # fmt: skip
"""What a quota may bound without naming a domain."""
_HUGE = ("hugepages-", "requests.hugepages-")
_OPPOSITES = ((scopes.BEST_EFFORT, scopes.NOT_BEST_EFFORT), (scopes.TERMINATING, scopes.NOT_TERMINATING))
_LIMITED = ("Pod", "Container", "PersistentVolumeClaim")


# --- ResourceQuota -----------------------------------------------------------------------------------------------


def _quota(new: ResourceQuota, old: ResourceQuota | None) -> Errors:
    spec = new.spec
    errors = amounts(spec.hard, SPEC / "hard") + _scopes(spec, SPEC / "scopes")
    if spec.scope_selector is not None:
        errors += _scope_selector(spec.scope_selector, spec, SPEC / "scopeSelector" / "matchExpressions")
    if old is not None and set(spec.scopes) != set(old.spec.scopes):
        errors.append((SPEC / "scopes").invalid(spec.scopes, checks.IMMUTABLE))
    return errors


def _quota_status(new: ResourceQuota, old: ResourceQuota | None) -> Errors:
    return amounts(new.status.hard, STATUS / "hard") + amounts(new.status.used, STATUS / "used")


def amounts(values: Mapping[str, Quantity], path: Path) -> Errors:
    """What may be bounded, and by how much."""
    errors: Errors = []
    for name, value in values.items():
        if problem := names.label_key(name):
            errors.append(path.key(name).invalid(name, problem))
        elif "/" not in name and name not in STANDARD and not name.startswith(_HUGE):
            errors.append(path.key(name).invalid(name, _standard(name)))
        problem = checks.quantity_problem("pods" if name in WHOLE else name, value)
        if problem:
            errors.append(path.key(name).invalid(value, problem))
    return errors


def _standard(name: str) -> str:
    return (
        "must be a standard resource for quota, such as requests.cpu, limits.memory, pods or services, or a qualified "
        "name: requests.<extended resource>, count/<resource>.<group>, <class>.storageclass.storage.k8s.io/<resource>"
    )


def _scopes(spec: ResourceQuotaSpec, path: Path) -> Errors:
    errors: Errors = []
    for i, scope in enumerate(spec.scopes):
        errors += _scope(scope, spec, path // i)
    return errors + _together(spec.scopes, path)


def _scope(scope: str, spec: ResourceQuotaSpec, path: Path) -> Errors:
    if scope not in scopes.KNOWN:
        return [path.not_supported(scope, scopes.KNOWN)]
    bounded = [name for name in spec.hard if name in STANDARD or name.startswith(_HUGE)]
    unfit = sorted(name for name in bounded if name not in scopes.BOUNDED_BY[scope])
    if unfit:
        return [path.invalid(scope, f"unsupported scope applied to resource: it does not apply to {', '.join(unfit)}")]
    return []


def _together(named: Iterable[str], path: Path) -> Errors:
    both = [f"{one} and {other}" for one, other in _OPPOSITES if {one, other} <= set(named)]
    return [path.invalid(tuple(named), f"conflicting scopes: {said}") for said in both]


def _scope_selector(selector: ScopeSelector, spec: ResourceQuotaSpec, path: Path) -> Errors:
    errors: Errors = []
    for i, entry in enumerate(selector.match_expressions):
        at = path // i
        errors += _scope(entry.scope_name, spec, at / "scopeName")
        if entry.scope_name in scopes.ONLY_EXISTS and entry.operator != "Exists":
            errors.append((at / "operator").invalid(entry.operator, f"must be Exists for scope {entry.scope_name}"))
        if entry.operator in ("In", "NotIn"):
            if not entry.values:
                errors.append((at / "values").required(f"must be at least one value when operator is {entry.operator}"))
        elif entry.operator not in ("Exists", "DoesNotExist"):
            errors.append((at / "operator").not_supported(entry.operator, ("In", "NotIn", "Exists", "DoesNotExist")))
        elif entry.values:
            errors.append((at / "values").invalid(entry.values, f"must be none when operator is {entry.operator}"))
    return errors + _together((entry.scope_name for entry in selector.match_expressions), path)


# --- LimitRange --------------------------------------------------------------------------------------------------


def _limit_range(new: LimitRange, old: LimitRange | None) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for i, limit in enumerate(new.spec.limits):
        at = SPEC / "limits" // i
        errors += _type(limit.type, at / "type")
        if limit.type in seen:
            errors.append((at / "type").duplicate(limit.type))
        seen.add(limit.type)
        errors += _limit(limit, at)
    return errors


def _type(value: str, path: Path) -> Errors:
    errors = checks.text(value, path, names.label_key)
    if errors or "/" in value or value in _LIMITED:
        return errors
    return [path.invalid(value, f"must be {', '.join(_LIMITED)} or fully qualified")]


def _limit(limit: LimitRangeItem, path: Path) -> Errors:
    errors: Errors = []
    for field, values in _lists(limit).items():
        if limit.type == "Pod" and field in ("default", "defaultRequest"):
            errors += [(path / field).forbidden("may not be specified when `type` is 'Pod'")] if values else []
            continue
        for name, value in values.items():
            at = (path / field).key(name)
            problem = _name_problem(limit.type, name)
            errors += [at.invalid(name, problem)] if problem else []
            problem = checks.quantity_problem("", value)
            errors += [at.invalid(value, problem)] if problem else []
    if limit.type == "PersistentVolumeClaim" and not {"storage"} & (limit.min.keys() | limit.max.keys()):
        why = "either minimum or maximum storage value is required, but neither was provided"
        errors.append((path / "limits").required(why))
    return errors if errors else _consistent(limit, path)


def _lists(limit: LimitRangeItem) -> dict[str, dict[str, Quantity]]:
    return {
        "max": limit.max,
        "min": limit.min,
        "default": limit.default,
        "defaultRequest": limit.default_request,
        "maxLimitRequestRatio": limit.max_limit_request_ratio,
    }


def _name_problem(type_: str, name: str) -> str | None:
    if type_ in ("Pod", "Container"):
        return containers.resource_name(name)
    problem = names.label_key(name)
    if problem or "/" in name or name in STANDARD or name == "storage" or name.startswith(_HUGE):
        return problem
    return "must be a standard resource type or fully qualified"


_ORDER = (
    ("min", "max", "min"),
    ("min", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "max", "defaultRequest"),
    ("defaultRequest", "default", "defaultRequest"),
    ("min", "default", "default"),
    ("default", "max", "default"),
)
"""What may not be greater than what, and where that is said."""
_WORD = {"min": "min", "max": "max", "default": "default limit", "defaultRequest": "default request"}


def _consistent(limit: LimitRangeItem, path: Path) -> Errors:
    errors: Errors = []
    lists = _lists(limit)
    for name in sorted(set(chain(*lists.values()))):
        said = {field: values[name] for field, values in lists.items() if name in values}
        size = {field: quantity.nanos(value) for field, value in said.items()}
        for low, high, where in _ORDER:
            if low in said and high in said and size[low] > size[high]:
                why = f"{_WORD[low]} value {said[low]} is greater than {_WORD[high]} value {said[high]}"
                errors.append((path / where).key(name).invalid(said[where], why))
        errors += _ratio(said, size, (path / "maxLimitRequestRatio").key(name))
        exact = names.is_extended_resource(name) or names.is_huge_page(name)
        if exact and {"default", "defaultRequest"} <= said.keys() and size["default"] != size["defaultRequest"]:
            why = f"default value {said['default']} must equal to defaultRequest value {said['defaultRequest']}"
            errors.append((path / "defaultRequest").key(name).invalid(said["defaultRequest"], why))
    return errors


def _ratio(said: Mapping[str, Quantity], size: Mapping[str, int], path: Path) -> Errors:
    ratio = said.get("maxLimitRequestRatio")
    if ratio is None:
        return []
    if size["maxLimitRequestRatio"] < quantity.NANOS:
        return [path.invalid(ratio, f"ratio {ratio} is less than 1")]
    if not size.get("min") or "max" not in size:
        return []
    widest = Fraction(size["max"], size["min"])
    if Fraction(size["maxLimitRequestRatio"], quantity.NANOS) > widest:
        return [path.invalid(ratio, f"ratio {ratio} is greater than max/min = {float(widest):f}")]
    return []


resource_quota = rules(ResourceQuota, _quota)
resource_quota_status = rules(ResourceQuota, _quota_status)
limit_range = rules(LimitRange, _limit_range)
