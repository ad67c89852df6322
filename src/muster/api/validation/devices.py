"""What rules of resource.k8s.io are made of: names of drivers, pools and attributes, selectors, taints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from muster.api.cel.devices import LONGEST, device_program
from muster.api.cel.programs import CompileError
from muster.api.resource import DeviceSelector, DeviceTaint, DeviceToleration, OpaqueDeviceConfiguration
from muster.api.validation import checks, names
from muster.api.validation.checks import Errors
from muster.api.validation.field import Path

SELECTORS, TOLERATIONS, BINDING_CONDITIONS = 32, 16, 4
"""The most of each in one place."""
LONGEST_DRIVER, LONGEST_POOL, LONGEST_ID, LONGEST_PARAMETERS = 63, 253, 32, 10 * 1024
EFFECTS = ("None", "NoSchedule", "NoExecute")
_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def driver(value: str) -> str | None:
    """The name of a driver, which plugins on nodes have too."""
    if len(value) > LONGEST_DRIVER:
        return f"must be no more than {LONGEST_DRIVER} characters"
    return names.dns_subdomain(value)


def pool(value: str) -> str | None:
    """Subdomains with slashes between them."""
    if len(value) > LONGEST_POOL:
        return f"must be no more than {LONGEST_POOL} characters"
    return next((problem for part in value.split("/") if (problem := names.dns_subdomain(part))), None)


def qualified(value: str) -> str | None:
    """The name of an attribute or capacity: an identifier, behind a domain where it is not the driver's own."""
    domain, slash, name = value.rpartition("/")
    if slash and (problem := driver(domain)):
        return f"the domain {problem}"
    if len(name) > LONGEST_ID:
        return f"the name must be no more than {LONGEST_ID} characters"
    if not _ID.fullmatch(name):
        return "the name must be a C identifier (letters, digits and '_', for example my_name or MyName)"
    return None


def full_name(value: str) -> str | None:
    """The same with its domain."""
    return qualified(value) if "/" in value else "must include a domain, for example example.com/name"


def at_most(values: Sequence[object], most: int, path: Path) -> Errors:
    return [path.too_many(len(values), most)] if len(values) > most else []


def unique(values: Iterable[str], path: Path, field: str = "") -> Errors:
    """No value of a list stands twice."""
    errors: Errors = []
    seen: set[str] = set()
    for i, value in enumerate(values):
        if value in seen:
            errors.append((path // i / field if field else path // i).duplicate(value))
        seen.add(value)
    return errors


def selectors(values: Sequence[DeviceSelector], path: Path) -> Errors:
    """Each an expression over a device."""
    errors = at_most(values, SELECTORS, path)
    for i, selector in enumerate(values):
        at = path // i / "cel"
        if selector.cel is None:
            errors.append(at.required())
        elif not selector.cel.expression:
            errors.append((at / "expression").required())
        elif len(selector.cel.expression) > LONGEST:
            errors.append((at / "expression").too_long(LONGEST))
        else:
            errors += _compiles(selector.cel.expression, at / "expression")
    return errors


def _compiles(text: str, path: Path) -> Errors:
    try:
        device_program(text)
    except CompileError as problem:
        return [path.invalid(text, str(problem))]
    return []


def tolerations(values: Sequence[DeviceToleration], path: Path) -> Errors:
    errors = at_most(values, TOLERATIONS, path)
    for i, value in enumerate(values):
        at = path // i
        if value.key:
            errors += checks.formatted(value.key, at / "key", names.label_key)
        if value.operator == "Exists":
            if value.value:
                errors.append((at / "value").invalid(value.value, "must be empty for operator `Exists`"))
        elif value.operator != "Equal":
            errors.append((at / "operator").not_supported(value.operator, ("Equal", "Exists")))
        else:
            errors += checks.formatted(value.value, at / "value", names.label_value)
            if not value.key:
                errors.append((at / "operator").invalid("Equal", "must be Exists when `key` is empty"))
        if value.effect:
            errors += checks.one_of(value.effect, at / "effect", EFFECTS)
        if value.toleration_seconds is not None and value.effect != "NoExecute":
            why = "may only be given for effect NoExecute"
            errors.append((at / "tolerationSeconds").invalid(value.toleration_seconds, why))
    return errors


def taint(value: DeviceTaint, path: Path) -> Errors:
    errors = checks.text(value.key, path / "key", names.label_key)
    if value.value:
        errors += checks.formatted(value.value, path / "value", names.label_value)
    if not value.effect:
        errors.append((path / "effect").required())
    elif value.effect not in EFFECTS:
        errors.append((path / "effect").not_supported(value.effect, EFFECTS))
    return errors


def opaque(value: OpaqueDeviceConfiguration | None, path: Path) -> Errors:
    """The one form of a configuration that there is."""
    if value is None:
        return [path.required()]
    errors = checks.text(value.driver, path / "driver", driver)
    if not isinstance(value.parameters, dict) or not value.parameters:
        errors.append((path / "parameters").required("want an object with apiVersion and kind"))
    elif len(msgspec.json.encode(value.parameters)) > LONGEST_PARAMETERS:
        errors.append((path / "parameters").too_long(LONGEST_PARAMETERS))
    return errors
