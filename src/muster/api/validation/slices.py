"""Rules for ResourceSlice and DeviceTaintRule."""

from __future__ import annotations

import re
from collections.abc import Mapping

from muster.api import quantity
from muster.api.core import NodeSelector
from muster.api.meta import Quantity
from muster.api.resource import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceTaintRule,
    ResourceSlice,
    ResourceSliceSpec,
)
from muster.api.validation import checks, devices, names, placement
from muster.api.validation.checks import Errors
from muster.api.validation.devices import at_most, unique
from muster.api.validation.field import SPEC, STATUS, Path
from muster.api.validation.small import rules

DEVICES, HEAVY_DEVICES = 128, 64
"""The most devices of a slice: plain ones, and if any has taints or takes of counters."""
PROPERTIES, COUNTER_SETS, COUNTERS, CONSUMPTIONS, TAINTS, CONDITIONS, VALUES = 32, 8, 32, 2, 16, 8, 10
"""The most of each in its place; attributes and capacities count together."""
LONGEST_VALUE = 64
_VERSION = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?"
    r"(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
_PLACES = ("node_name", "node_selector", "all_nodes", "per_device_node_selection")


def _slice(new: ResourceSlice, old: ResourceSlice | None) -> Errors:
    spec = new.spec
    errors = checks.text(spec.driver, SPEC / "driver", devices.driver)
    errors += checks.text(spec.pool.name, SPEC / "pool" / "name", devices.pool)
    errors += checks.at_least(spec.pool.generation, SPEC / "pool" / "generation", 0)
    if spec.pool.resource_slice_count <= 0:
        at = SPEC / "pool" / "resourceSliceCount"
        errors.append(at.invalid(spec.pool.resource_slice_count, "must be greater than zero"))
    errors += _where(spec) + _devices(spec) + _counter_sets(spec)
    if spec.devices and spec.shared_counters:
        errors.append(SPEC.invalid(spec.driver, "only one of `devices` and `sharedCounters` may be set"))
    if old is not None:
        errors += checks.immutable_fields(spec, old.spec, SPEC, ("driver", "node_name"))
        errors += checks.unchanged(spec.pool.name, old.spec.pool.name, SPEC / "pool" / "name")
    return errors


def _where(spec: ResourceSliceSpec) -> Errors:
    said = [name for name in _PLACES if getattr(spec, name) not in (None, False, "")]
    errors: Errors = []
    if len(said) != 1:
        why = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
        errors.append(SPEC.invalid(", ".join(said) or "none", why))
    if spec.node_name:
        errors += checks.formatted(spec.node_name, SPEC / "nodeName", names.dns_subdomain)
    if spec.node_selector is not None:
        errors += _one_term(spec.node_selector, SPEC / "nodeSelector")
    return errors


def _one_term(value: NodeSelector, path: Path) -> Errors:
    errors = placement.node_selector(value, path)
    if len(value.node_selector_terms) != 1:
        why = "must have exactly one node selector term"
        errors.append((path / "nodeSelectorTerms").invalid(len(value.node_selector_terms), why))
    return errors


# --- devices -----------------------------------------------------------------------------------------------------


def _devices(spec: ResourceSliceSpec) -> Errors:
    at = SPEC / "devices"
    heavy = any(device.taints or device.consumes_counters for device in spec.devices)
    errors = at_most(spec.devices, HEAVY_DEVICES if heavy else DEVICES, at)
    if errors:
        return errors
    for i, device in enumerate(spec.devices):
        errors += _device(device, bool(spec.per_device_node_selection), at // i)
    return errors + unique([device.name for device in spec.devices], at, "name")


def _device(device: Device, places_itself: bool, path: Path) -> Errors:
    errors = checks.text(device.name, path / "name", names.dns_label)
    if len(device.attributes) + len(device.capacity) > PROPERTIES:
        why = f"the total number of attributes and capacities must not exceed {PROPERTIES}"
        errors.append(path.invalid(len(device.attributes) + len(device.capacity), why))
    for name, attribute in device.attributes.items():
        errors += _attribute(name, attribute, (path / "attributes").key(name))
    for name, capacity in device.capacity.items():
        errors += _capacity(name, capacity, bool(device.allow_multiple_allocations), (path / "capacity").key(name))
    errors += _consumptions(device, path / "consumesCounters")
    errors += at_most(device.taints, TAINTS, path / "taints")
    for i, taint in enumerate(device.taints):
        errors += devices.taint(taint, path / "taints" // i)
    return errors + _device_place(device, places_itself, path) + _binding(device, path)


def _device_place(device: Device, places_itself: bool, path: Path) -> Errors:
    said = [name for name in _PLACES[:3] if getattr(device, name) not in (None, False, "")]
    errors: Errors = []
    if said and not places_itself:
        why = "`nodeName`, `nodeSelector`, `allNodes` may only be set when `perDeviceNodeSelection` is true"
        errors.append(path.invalid(device.name, why))
    elif places_itself and len(said) != 1:
        why = "exactly one of `nodeName`, `nodeSelector`, `allNodes` is required when `perDeviceNodeSelection` is true"
        errors.append(path.invalid(device.name, why))
    if device.node_name:
        errors += checks.formatted(device.node_name, path / "nodeName", names.dns_subdomain)
    if device.node_selector is not None:
        errors += _one_term(device.node_selector, path / "nodeSelector")
    return errors


def _binding(device: Device, path: Path) -> Errors:
    errors: Errors = []
    given = (
        ("bindingConditions", device.binding_conditions),
        ("bindingFailureConditions", device.binding_failure_conditions),
    )
    for field, values in given:
        errors += at_most(values, devices.BINDING_CONDITIONS, path / field)
        for i, value in enumerate(values):
            errors += checks.text(value, path / field // i, names.label_key)
    return errors


def _attribute(name: str, value: DeviceAttribute, path: Path) -> Errors:
    errors = checks.formatted(name, path, devices.qualified)
    if sum(getattr(value, field) is not None for field in value.__struct_fields__) != 1:
        return [*errors, path.invalid(value, "exactly one value must be specified")]
    for text in (*((value.string,) if value.string is not None else ()), *(value.strings or ())):
        if len(text) > LONGEST_VALUE:
            errors.append((path / "string").too_long(LONGEST_VALUE))
    for text in (*((value.version,) if value.version is not None else ()), *(value.versions or ())):
        if len(text) > LONGEST_VALUE:
            errors.append((path / "version").too_long(LONGEST_VALUE))
        elif not _VERSION.fullmatch(text):
            errors.append((path / "version").invalid(text, "must be a string compatible with semver.org spec 2.0.0"))
    return errors


def _amount(value: Quantity | None, path: Path) -> Errors:
    if value is None:
        return []
    problem = checks.quantity_problem("", value)
    return [path.invalid(value, problem)] if problem else []


def _capacity(name: str, value: DeviceCapacity, shared: bool, path: Path) -> Errors:
    errors = checks.formatted(name, path, devices.qualified) + _amount(value.value, path / "value")
    policy = value.request_policy
    if policy is None:
        return errors
    at = path / "requestPolicy"
    if not shared:
        errors.append(at.forbidden("allowMultipleAllocations must be true"))
    listed = (("default", policy.default), *((f"validValues[{i}]", each) for i, each in enumerate(policy.valid_values)))
    span = policy.valid_range
    if span is not None:
        listed += (("validRange.min", span.min), ("validRange.max", span.max), ("validRange.step", span.step))
    for field, amount in listed:
        errors += _amount(amount, at / field)
    if not errors:
        errors += _policy(value, at)
    return errors


def _policy(value: DeviceCapacity, path: Path) -> Errors:
    """What a share may be: some values, or a range with steps, and what it is if nobody says."""
    policy = value.request_policy
    assert policy is not None
    if policy.valid_values and policy.valid_range is not None:
        return [path.invalid(policy, "only one of validValues and validRange may be set")]
    if policy.default is None:
        bounded = policy.valid_values or policy.valid_range is not None
        return [(path / "default").required("with validValues or validRange")] if bounded else []
    whole, default = quantity.nanos(value.value), quantity.nanos(policy.default)
    values = [quantity.nanos(each) for each in policy.valid_values]
    errors = at_most(values, VALUES, path / "validValues")
    if default > whole:
        errors.append((path / "default").invalid(policy.default, f"must not exceed the capacity {value.value}"))
    if values and sorted(set(values)) != values:
        errors.append((path / "validValues").invalid(policy.valid_values, "must be sorted in ascending order"))
    if values and default not in values:
        errors.append((path / "default").invalid(policy.default, "must be one of validValues"))
    if values and values[-1] > whole:
        errors.append(
            (path / "validValues").invalid(policy.valid_values, f"must not exceed the capacity {value.value}")
        )
    return errors + (_range(value, whole, default, path) if policy.valid_range is not None else [])


def _range(value: DeviceCapacity, whole: int, default: int, path: Path) -> Errors:
    policy = value.request_policy
    assert policy is not None and policy.valid_range is not None
    span, at = policy.valid_range, path / "validRange"
    if span.min is None:
        return [(at / "min").required()]
    low, high = quantity.nanos(span.min), whole if span.max is None else quantity.nanos(span.max)
    errors: Errors = []
    if high > whole:
        errors.append((at / "max").invalid(span.max, f"must not exceed the capacity {value.value}"))
    if low > high:
        errors.append((at / "min").invalid(span.min, "must not be greater than the maximum"))
    if not low <= default <= high:
        errors.append((path / "default").invalid(policy.default, "must be within validRange"))
    if span.step is not None:
        step = quantity.nanos(span.step)
        if step <= 0 or low + step > whole:
            errors.append((at / "step").invalid(span.step, "min and one step must not exceed the capacity"))
        elif (default - low) % step or (high - low) % step:
            errors.append((at / "step").invalid(span.step, "default and max must be min and some steps"))
    return errors


# --- counters ----------------------------------------------------------------------------------------------------


def _counter_sets(spec: ResourceSliceSpec) -> Errors:
    at = SPEC / "sharedCounters"
    errors = at_most(spec.shared_counters, COUNTER_SETS, at)
    for i, each in enumerate(spec.shared_counters):
        errors += _counter_set(each, at // i)
    return errors + unique([each.name for each in spec.shared_counters], at, "name")


def _counter_set(value: CounterSet, path: Path) -> Errors:
    errors = checks.text(value.name, path / "name", names.dns_label)
    return errors + _counters(value.counters, path / "counters")


def _counters(values: Mapping[str, Counter], path: Path) -> Errors:
    if not values:
        return [path.required()]
    errors = [path.too_many(len(values), COUNTERS)] if len(values) > COUNTERS else []
    for name, counter in values.items():
        errors += checks.formatted(name, path.key(name), names.dns_label) + _amount(counter.value, path.key(name))
    return errors


def _consumptions(device: Device, path: Path) -> Errors:
    errors = at_most(device.consumes_counters, CONSUMPTIONS, path)
    for i, each in enumerate(device.consumes_counters):
        errors += checks.text(each.counter_set, path // i / "counterSet", names.dns_label)
        errors += _counters(each.counters, path // i / "counters")
    return errors + unique([each.counter_set for each in device.consumes_counters], path, "counterSet")


# --- DeviceTaintRule ---------------------------------------------------------------------------------------------


def _taint_rule(new: DeviceTaintRule, old: DeviceTaintRule | None) -> Errors:
    errors = devices.taint(new.spec.taint, SPEC / "taint")
    selector, at = new.spec.device_selector, SPEC / "deviceSelector"
    if selector is not None:
        named = (("driver", selector.driver), ("pool", selector.pool), ("device", selector.device))
        forms = {"driver": devices.driver, "pool": devices.pool, "device": names.dns_label}
        for field, value in named:
            if value is not None:
                errors += checks.text(value, at / field, forms[field])
    return errors


def _taint_rule_status(new: DeviceTaintRule, old: DeviceTaintRule | None) -> Errors:
    errors = at_most(new.status.conditions, CONDITIONS, STATUS / "conditions")
    return errors + checks.conditions(new.status.conditions, STATUS / "conditions")


resource_slice = rules(ResourceSlice, _slice, namespaced=False)
device_taint_rule = rules(DeviceTaintRule, _taint_rule, namespaced=False)
device_taint_rule_status = rules(DeviceTaintRule, _taint_rule_status, namespaced=False)
