"""Checks that rules of several kinds are made of: each returns a list of errors, empty if all is well."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from muster.api import instant, quantity
from muster.api.meta import Condition, LabelSelector, Part
from muster.api.validation import names
from muster.api.validation.field import FieldError, Path, Type

P = TypeVar("P", bound=Part)
Errors = list[FieldError]
Format = Callable[[str], str | None]

IMMUTABLE = "field is immutable"
_WRONG_TYPE = re.compile(r"(?P<what>.*) - at `\$\.?(?P<field>.*)`$", re.DOTALL)


def typed(raw: Mapping[str, Any], struct: type[P]) -> P | FieldError:
    """The typed view of an object, or the error that says which field has another JSON type than the API's."""
    try:
        return msgspec.convert(raw, struct)
    except msgspec.ValidationError as error:
        found = _WRONG_TYPE.match(str(error))
        what, field = (found["what"], found["field"]) if found else (str(error), "")
        return FieldError(field, Type.INVALID, what.replace("`", ""), _at(raw, field))
    except RecursionError:
        return FieldError("", Type.INVALID, "nested too deeply")


def _at(raw: Any, field: str) -> Any:
    """The value at a path such as `spec.containers[0].name`; None where it can't be followed."""
    for step in re.findall(r"[^.\[\]]+", field):
        if isinstance(raw, Mapping):
            raw = raw.get(step)
        elif isinstance(raw, list) and step.isdigit() and int(step) < len(raw):
            raw = raw[int(step)]
        else:
            return None
    return raw


def text(value: str, path: Path, form: Format) -> Errors:
    """A required string of some format."""
    return formatted(value, path, form) if value else [path.required()]


def formatted(value: str, path: Path, form: Format) -> Errors:
    problem = form(value)
    return [path.invalid(value, problem)] if problem else []


def one_of(value: str, path: Path, supported: Sequence[str]) -> Errors:
    return [] if value in supported else [path.not_supported(value, supported)]


def at_least(value: int | None, path: Path, minimum: int) -> Errors:
    if value is None or value >= minimum:
        return []
    return [path.invalid(value, f"must be greater than or equal to {minimum}")]


def in_range(value: int | None, path: Path, low: int, high: int) -> Errors:
    return [] if value is None or low <= value <= high else [path.invalid(value, f"must be between {low} and {high}")]


def union(part: Part, path: Path, members: Sequence[str]) -> Errors:
    """Exactly one member of a union must be set (V18): none and several are both Invalid at the union itself."""
    if sum(getattr(part, member) is not None for member in members) == 1:
        return []
    shown = ", ".join(part.__struct_encode_fields__[part.__struct_fields__.index(member)] for member in members)
    return [path.invalid(part, f"must specify exactly one of {shown}")]


def unchanged(new: Any, old: Any, path: Path) -> Errors:
    return [] if new == old else [path.invalid(new, IMMUTABLE)]


def immutable_fields(new: Part, old: Part, path: Path, fields: Iterable[str]) -> Errors:
    """Invalid at each of these fields (Python names) whose value changed."""
    encoded = dict(zip(new.__struct_fields__, new.__struct_encode_fields__, strict=True))
    return [
        path.__truediv__(encoded[name]).invalid(getattr(new, name), IMMUTABLE)
        for name in fields
        if getattr(new, name) != getattr(old, name)
    ]


def label_keys(keys: Iterable[str], path: Path) -> Errors:
    errors: Errors = []
    for key in keys:
        if problem := names.label_key(key):
            errors.append(path.invalid(key, problem))
    return errors


def labels(values: Mapping[str, str], path: Path) -> Errors:
    errors: Errors = []
    for key, value in values.items():
        if problem := names.label_key(key):
            errors.append(path.invalid(key, problem))
        if problem := names.label_value(value):
            errors.append(path.key(key).invalid(value, problem))
    return errors


def selector(value: LabelSelector | None, path: Path) -> Errors:
    """A label selector's keys, operators and values."""
    if value is None:
        return []
    errors = labels(value.match_labels, path / "matchLabels")
    for i, requirement in enumerate(value.match_expressions):
        errors += requirement_errors(
            requirement.key, requirement.operator, requirement.values, path / "matchExpressions" // i
        )
    return errors


def requirement_errors(
    key: str, operator: str, values: Sequence[str], path: Path, numeric: Collection[str] = ()
) -> Errors:
    """One expression of a label or node selector; `numeric` operators compare with exactly one value."""
    errors: Errors = []
    if operator in ("In", "NotIn"):
        if not values:
            errors.append((path / "values").required(f"must be specified when operator is {operator}"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.append((path / "values").forbidden(f"may not be specified when operator is {operator}"))
    elif operator in numeric:
        if len(values) != 1:
            errors.append((path / "values").required(f"a single value must be specified when operator is {operator}"))
    else:
        supported = ("In", "NotIn", "Exists", "DoesNotExist", *numeric)
        errors.append((path / "operator").not_supported(operator, supported))
    errors += text(key, path / "key", names.label_key)
    for i, value in enumerate(values):
        errors += formatted(value, path / "values" // i, names.label_value)
    return errors


def quantities(values: Mapping[str, Any], path: Path, name_form: Format = names.label_key) -> Errors:
    """A resource list: names, amounts that parse and are not negative, whole numbers where only those make sense."""
    errors: Errors = []
    for name, value in values.items():
        if problem := name_form(name):
            errors.append(path.key(name).invalid(name, problem))
        if problem := quantity_problem(name, value):
            errors.append(path.key(name).invalid(value, problem))
    return errors


def quantity_problem(name: str, value: Any) -> str | None:
    """What is wrong with an amount of the resource `name`."""
    try:
        nanos = quantity.nanos(value)
    except ValueError as error:
        return str(error).partition(": ")[2]
    if nanos < 0:
        return "must be greater than or equal to 0"
    if nanos % quantity.NANOS and (name == "pods" or names.is_extended_resource(name)):
        return "must be an integer"
    return None


def time(value: str | None, path: Path) -> Errors:
    """An RFC 3339 time, if there is one."""
    if value:
        try:
            instant.from_time(value)
        except ValueError:
            return [path.invalid(value, "must be an RFC 3339 time, for example 2026-11-30T21:14:09Z")]
    return []


def conditions(values: Iterable[Condition], path: Path) -> Errors:
    """Types are there and unique, statuses known, times readable."""
    errors: Errors = []
    seen: set[str] = set()
    for i, condition in enumerate(values):
        at = path // i
        if not condition.type:
            errors.append((at / "type").required())
        elif condition.type in seen:
            errors.append(at.duplicate(condition.type, "condition types must be unique"))
        seen.add(condition.type)
        errors += one_of(condition.status, at / "status", ("True", "False", "Unknown"))
        errors += time(condition.last_transition_time, at / "lastTransitionTime")
    return errors
