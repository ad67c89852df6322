"""Rules for parts of a pod that Muster stores and does not read: readiness gates, host aliases."""

from __future__ import annotations

import ipaddress

from muster.api.core import HostAlias, PodReadinessGate, PodSpec
from muster.api.validation import checks, names
from muster.api.validation.checks import Errors
from muster.api.validation.field import Path


def extras(spec: PodSpec, path: Path) -> Errors:
    """All of them."""
    errors = _readiness_gates(spec.readiness_gates, path / "readinessGates")
    errors += _host_aliases(spec.host_aliases, path / "hostAliases")
    if spec.ephemeral_containers:
        message = "cannot be set on a new pod or a template, and Muster serves no way to add them later"
        errors.append((path / "ephemeralContainers").forbidden(message))
    return errors


def _readiness_gates(values: tuple[PodReadinessGate, ...], path: Path) -> Errors:
    errors: Errors = []
    for i, gate in enumerate(values):
        errors += checks.text(gate.condition_type, path // i / "conditionType", names.label_key)
    return errors


def _host_aliases(values: tuple[HostAlias, ...], path: Path) -> Errors:
    errors: Errors = []
    for i, alias in enumerate(values):
        errors += checks.text(alias.ip, path // i / "ip", _address)
        for j, host in enumerate(alias.hostnames):
            errors += checks.formatted(host, path // i / "hostnames" // j, names.dns_subdomain)
    return errors


def _address(value: str) -> str | None:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return "must be a valid IP address, such as 10.9.8.7 or 2001:db8::ffff"
    return None
