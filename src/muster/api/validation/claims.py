"""Rules for ResourceClaim, its status, ResourceClaimTemplate and DeviceClass."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from muster.api.resource import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    NetworkDeviceData,
    ResourceClaim,
    ResourceClaimConsumer,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from muster.api.validation import checks, devices, names, placement
from muster.api.validation.checks import Errors
from muster.api.validation.devices import at_most, unique
from muster.api.validation.field import SPEC, STATUS, Path
from muster.api.validation.small import rules

REQUESTS, CONSTRAINTS, CONFIGURATIONS, ALTERNATIVES, RESULTS, CONSUMERS = 32, 32, 32, 8, 32, 256
"""The most of each in one claim."""
MODES = ("All", "ExactCount")
SOURCES = ("FromClass", "FromClaim")
_CONDITIONS, _ADDRESSES = 8, 16
_LONGEST_INTERFACE, _LONGEST_ADDRESS = 256, 128


def _claim(new: ResourceClaim, old: ResourceClaim | None) -> Errors:
    errors = _spec(new.spec, SPEC)
    return errors + (checks.unchanged(new.spec, old.spec, SPEC) if old is not None else [])


def _claim_template(new: ResourceClaimTemplate, old: ResourceClaimTemplate | None) -> Errors:
    errors = _spec(new.spec.spec, SPEC / "spec")
    return errors + (checks.unchanged(new.spec, old.spec, SPEC) if old is not None else [])


def _device_class(new: DeviceClass, old: DeviceClass | None) -> Errors:
    errors = devices.selectors(new.spec.selectors, SPEC / "selectors")
    errors += at_most(new.spec.config, CONFIGURATIONS, SPEC / "config")
    for i, config in enumerate(new.spec.config):
        errors += devices.opaque(config.opaque, SPEC / "config" // i / "opaque")
    name, at = new.spec.extended_resource_name, SPEC / "extendedResourceName"
    if name is not None:
        errors += checks.text(name, at, names.label_key)
        if name and not errors and not names.is_extended_resource(name):
            errors.append(at.invalid(name, "must have a domain outside kubernetes.io, such as example.com/gpu"))
    return errors


# --- requests ----------------------------------------------------------------------------------------------------


def _spec(spec: ResourceClaimSpec, path: Path) -> Errors:
    at, claim = path / "devices", spec.devices
    errors = at_most(claim.requests, REQUESTS, at / "requests")
    if errors:
        return errors
    for i, request in enumerate(claim.requests):
        errors += _request(request, at / "requests" // i)
    errors += unique([request.name for request in claim.requests], at / "requests", "name")
    known = requested(spec)
    errors += at_most(claim.constraints, CONSTRAINTS, at / "constraints")
    for i, constraint in enumerate(claim.constraints):
        errors += _constraint(constraint, known, at / "constraints" // i)
    errors += at_most(claim.config, CONFIGURATIONS, at / "config")
    for i, config in enumerate(claim.config):
        errors += _known(config.requests, known, at / "config" // i / "requests")
        errors += devices.opaque(config.opaque, at / "config" // i / "opaque")
    return errors


def requested(spec: ResourceClaimSpec) -> dict[str, bool]:
    """What can be referred to, and whether it is one request, not a choice of several."""
    found: dict[str, bool] = {}
    for request in spec.devices.requests:
        found[request.name] = not request.first_available
        found |= {f"{request.name}/{choice.name}": True for choice in request.first_available}
    return found


def _request(request: DeviceRequest, path: Path) -> Errors:
    errors = checks.text(request.name, path / "name", names.dns_label)
    if (request.exactly is None) == (not request.first_available):
        errors.append(path.invalid(request.name, "must specify exactly one of exactly, firstAvailable"))
    if request.exactly is not None:
        errors += _exactly(request.exactly, path / "exactly")
    at = path / "firstAvailable"
    errors += at_most(request.first_available, ALTERNATIVES, at)
    for i, choice in enumerate(request.first_available):
        errors += checks.text(choice.name, at // i / "name", names.dns_label) + _exactly(choice, at // i)
    return errors + unique([choice.name for choice in request.first_available], at, "name")


def _exactly(request: ExactDeviceRequest | DeviceSubRequest, path: Path) -> Errors:
    errors = checks.text(request.device_class_name, path / "deviceClassName", names.dns_subdomain)
    errors += devices.selectors(request.selectors, path / "selectors")
    errors += devices.tolerations(request.tolerations, path / "tolerations")
    if request.allocation_mode == "All":
        if request.count:
            why = "must not be specified when allocationMode is 'All'"
            errors.append((path / "count").invalid(request.count, why))
    elif request.allocation_mode != "ExactCount":
        errors.append((path / "allocationMode").not_supported(request.allocation_mode, MODES))
    elif request.count <= 0:
        errors.append((path / "count").invalid(request.count, "must be greater than zero"))
    if request.capacity is not None:
        at = path / "capacity" / "requests"
        errors += checks.quantities(request.capacity.requests, at, devices.qualified)
    return errors


def _constraint(constraint: DeviceConstraint, known: dict[str, bool], path: Path) -> Errors:
    errors = _known(constraint.requests, known, path / "requests")
    named = {"matchAttribute": constraint.match_attribute, "distinctAttribute": constraint.distinct_attribute}
    given = {field: value for field, value in named.items() if value is not None}
    if len(given) != 1:
        return [*errors, path.invalid(constraint, "must specify exactly one of matchAttribute, distinctAttribute")]
    for field, value in given.items():
        errors += checks.text(value, path / field, devices.full_name)
    return errors


def _known(values: Sequence[str], known: dict[str, bool], path: Path) -> Errors:
    errors = at_most(values, REQUESTS, path) + unique(values, path)
    for i, value in enumerate(values):
        if value not in known:
            why = "must be the name of a request, or NAME/ALTERNATIVE of one with firstAvailable"
            errors.append((path // i).invalid(value, why))
    return errors


# --- status ------------------------------------------------------------------------------------------------------


def _claim_status(new: ResourceClaim, old: ResourceClaim | None) -> Errors:
    status = new.status
    errors = _consumers(status.reserved_for, STATUS / "reservedFor")
    if status.reserved_for and status.allocation is None:
        errors.append((STATUS / "reservedFor").forbidden("may not be specified when `allocated` is not set"))
    if status.allocation is not None:
        errors += _allocation(status.allocation, requested(new.spec), STATUS / "allocation")
        was = old.status.allocation if old is not None else None
        if was is not None:
            errors += checks.unchanged(status.allocation, was, STATUS / "allocation")
    had = {consumer.uid for consumer in old.status.reserved_for} if old is not None else set()
    joins = [consumer for consumer in status.reserved_for if consumer.uid not in had]
    if joins and new.metadata.deletion_timestamp is not None:
        errors.append(
            (STATUS / "reservedFor").forbidden("new entries may not be added while `deletionTimestamp` is set")
        )
    return errors + _device_statuses(status.devices, status.allocation, STATUS / "devices")


def _consumers(values: Sequence[ResourceClaimConsumer], path: Path) -> Errors:
    errors = at_most(values, CONSUMERS, path)
    for i, consumer in enumerate(values):
        for field, value in (("resource", consumer.resource), ("name", consumer.name), ("uid", consumer.uid)):
            if not value:
                errors.append((path // i / field).required())
        if consumer.api_group:
            errors += checks.formatted(consumer.api_group, path // i / "apiGroup", names.dns_subdomain)
    return errors + unique([consumer.uid for consumer in values], path, "uid")


def _allocation(value: AllocationResult, known: dict[str, bool], path: Path) -> Errors:
    at = path / "devices" / "results"
    errors = at_most(value.devices.results, RESULTS, at)
    for i, result in enumerate(value.devices.results):
        if not known.get(result.request):
            why = "must be the name of a request in the claim, or NAME/ALTERNATIVE of one with firstAvailable"
            errors.append((at // i / "request").invalid(result.request, why))
        errors += _place(result.driver, result.pool, result.device, at // i)
        for field, given in (
            ("bindingConditions", result.binding_conditions),
            ("bindingFailureConditions", result.binding_failure_conditions),
        ):
            errors += at_most(given, devices.BINDING_CONDITIONS, at // i / field)
    at = path / "devices" / "config"
    errors += at_most(value.devices.config, 2 * CONFIGURATIONS, at)
    for i, config in enumerate(value.devices.config):
        errors += checks.one_of(config.source, at // i / "source", SOURCES)
        errors += _known(config.requests, known, at // i / "requests")
        errors += devices.opaque(config.opaque, at // i / "opaque")
    if value.node_selector is not None:
        errors += placement.node_selector(value.node_selector, path / "nodeSelector")
    return errors


def _place(driver: str, pool: str, device: str, path: Path) -> Errors:
    errors = checks.text(driver, path / "driver", devices.driver)
    errors += checks.text(pool, path / "pool", devices.pool)
    return errors + checks.text(device, path / "device", names.dns_label)


def _device_statuses(values: Sequence[AllocatedDeviceStatus], got: AllocationResult | None, path: Path) -> Errors:
    """Drivers tell of devices that the claim has."""
    results = got.devices.results if got is not None else ()
    there = {(result.driver, result.pool, result.device, result.share_id) for result in results}
    errors: Errors = []
    seen: set[tuple[str, str, str, str | None]] = set()
    for i, value in enumerate(values):
        at = path // i
        key = (value.driver, value.pool, value.device, value.share_id)
        errors += _place(value.driver, value.pool, value.device, at)
        if key in seen:
            errors.append(at.duplicate("/".join(key[:3])))
        elif key not in there:
            errors.append(at.invalid("/".join(key[:3]), "must be an allocated device in the claim"))
        seen.add(key)
        errors += at_most(value.conditions, _CONDITIONS, at / "conditions")
        errors += checks.conditions(value.conditions, at / "conditions")
        if value.network_data is not None:
            errors += _network(value.network_data, at / "networkData")
    return errors


def _network(value: NetworkDeviceData, path: Path) -> Errors:
    errors = at_most(value.ips, _ADDRESSES, path / "ips") + unique(value.ips, path / "ips")
    if len(value.interface_name) > _LONGEST_INTERFACE:
        errors.append((path / "interfaceName").too_long(_LONGEST_INTERFACE))
    if len(value.hardware_address) > _LONGEST_ADDRESS:
        errors.append((path / "hardwareAddress").too_long(_LONGEST_ADDRESS))
    for i, text in enumerate(value.ips):
        errors += checks.formatted(text, path / "ips" // i, _interface)
    return errors


def _interface(value: str) -> str | None:
    try:
        if "/" in value:
            ipaddress.ip_interface(value)
            return None
    except ValueError:
        pass
    return "must be a valid address with the size of its network, such as 10.9.8.0/24 or 2001:db8::/64"


resource_claim = rules(ResourceClaim, _claim)
resource_claim_status = rules(ResourceClaim, _claim_status)
resource_claim_template = rules(ResourceClaimTemplate, _claim_template)
device_class = rules(DeviceClass, _device_class, namespaced=False)
