"""Rules for parts of a pod that Muster stores and does not read: volumes, readiness gates, host aliases."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from muster.api.core import HostAlias, PodReadinessGate, PodSpec
from muster.api.validation import checks, names
from muster.api.validation.checks import Errors
from muster.api.validation.field import Path


def extras(spec: PodSpec, path: Path) -> Errors:
    """Everything here but volumes."""
    errors = _readiness_gates(spec.readiness_gates, path / "readinessGates")
    errors += _host_aliases(spec.host_aliases, path / "hostAliases")
    if spec.ephemeral_containers:
        message = "cannot be set on a new pod or a template, and Muster serves no way to add them later"
        errors.append((path / "ephemeralContainers").forbidden(message))
    return errors


def volumes(values: tuple[Mapping[str, object], ...], path: Path) -> Errors:
    """Each has a name of its own and exactly one source."""
    errors: Errors = []
    seen: set[str] = set()
    for i, volume in enumerate(values):
        at, name = path // i, str(volume.get("name") or "")
        errors += checks.text(name, at / "name", names.dns_label)
        if name and name in seen:
            errors.append((at / "name").duplicate(name, "volume names must be unique in the pod"))
        seen.add(name)
        sources = [member for member in volume if member != "name"]
        if not sources:
            errors.append(at.required("must specify a volume type"))
        errors += [(at / source).forbidden("may not specify more than 1 volume type") for source in sources[1:]]
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
