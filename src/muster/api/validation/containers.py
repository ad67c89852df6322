"""Rules for containers: names, images, ports, resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from muster.api import quantity
from muster.api.core import Container, ContainerPort, PodSpec, Resources
from muster.api.meta import Quantity
from muster.api.requests import is_pod_level
from muster.api.validation import checks, names
from muster.api.validation.checks import Errors
from muster.api.validation.field import Path

_NATIVE = ("cpu", "memory", "ephemeral-storage")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")


def containers(spec: PodSpec, path: Path) -> Errors:
    """Both lists of containers of a pod: there is one, names differ, each is right, host ports do not clash."""
    if not spec.containers:
        return [(path / "containers").required("a pod needs at least one container")]
    errors: Errors = []
    claims = {claim.name for claim in spec.resource_claims}
    seen: set[str] = set()
    for at, container in _each(spec, path):
        errors += _container(container, at, claims)
        if container.name and container.name in seen:
            errors.append((at / "name").duplicate(container.name, "container names must be unique in the pod"))
        seen.add(container.name)
    if any(container.ports for container in (*spec.containers, *spec.init_containers)):
        errors += _host_ports(spec, path)
    return errors


def _each(spec: PodSpec, path: Path) -> Iterator[tuple[Path, Container]]:
    for field, group in (("initContainers", spec.init_containers), ("containers", spec.containers)):
        for i, container in enumerate(group):
            yield path / field // i, container


def _container(container: Container, path: Path, claims: set[str]) -> Errors:
    errors: Errors = []
    if names.dns_label(container.name):
        errors += checks.text(container.name, path / "name", names.dns_label)
    if not container.image:
        errors.append((path / "image").required("name the image to run"))
    elif container.image != container.image.strip():
        errors.append((path / "image").invalid(container.image, "must not have leading or trailing whitespace"))
    if container.image_pull_policy and container.image_pull_policy not in _PULL_POLICIES:
        errors.append((path / "imagePullPolicy").not_supported(container.image_pull_policy, _PULL_POLICIES))
    if container.restart_policy is not None:
        errors += checks.one_of(container.restart_policy, path / "restartPolicy", _RESTART_POLICIES)
    if container.ports:
        errors += _ports(container.ports, path / "ports")
    errors += resources(container.resources, path / "resources")
    for i, use in enumerate(container.resources.claims):
        if use.name not in claims:
            at = path / "resources" / "claims" // i / "name"
            errors.append(at.invalid(use.name, "must be the name of an entry in the pod's spec.resourceClaims"))
    return errors


# --- ports -------------------------------------------------------------------------------------------------------


def _ports(ports: tuple[ContainerPort, ...], path: Path) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for i, port in enumerate(ports):
        at = path // i
        if port.name:
            errors += checks.formatted(port.name, at / "name", names.port_name)
            if port.name in seen:
                errors.append((at / "name").duplicate(port.name, "port names must be unique in the container"))
            seen.add(port.name)
        if not port.container_port:
            errors.append((at / "containerPort").required("must be between 1 and 65535"))
        else:
            errors += checks.in_range(port.container_port, at / "containerPort", 1, 65535)
        if port.host_port:
            errors += checks.in_range(port.host_port, at / "hostPort", 1, 65535)
        errors += checks.one_of(port.protocol or "TCP", at / "protocol", _PROTOCOLS)
    return errors


def _host_ports(spec: PodSpec, path: Path) -> Errors:
    """No host port twice; on the host's network a container's port is the host's."""
    errors: Errors = []
    taken: set[tuple[str, str, int]] = set()
    for at, container in _each(spec, path):
        for i, port in enumerate(container.ports):
            if not port.host_port:
                continue
            where = (port.host_ip, port.protocol or "TCP", port.host_port)
            field = at / "ports" // i
            # Init containers run one after the other: their ports never clash.
            if not container.sidecar and container in spec.init_containers:
                continue
            if where in taken:
                message = "host address, protocol and port must be unique in the pod"
                errors.append((field / "hostPort").duplicate(port.host_port, message))
            taken.add(where)
            if spec.host_network and port.host_port != port.container_port:
                message = "must match hostPort when hostNetwork is true"
                errors.append((field / "containerPort").invalid(port.container_port, message))
    return errors


# --- resources ---------------------------------------------------------------------------------------------------


def resource_name(name: str) -> str | None:
    """What is wrong with the name of something that a container may ask for."""
    if name in _NATIVE:
        return None
    if problem := names.label_key(name):
        return problem
    if "/" not in name and not names.is_huge_page(name):
        return f"must be {', '.join(_NATIVE)}, hugepages-<size> or a qualified name such as example.com/gpu"
    if name.startswith("requests."):
        return "must not start with requests."
    return None


def resources(value: Resources, path: Path) -> Errors:
    """Names and amounts; requests within limits; what cannot be overcommitted has a limit equal to its request."""
    if not value.requests and not value.limits:
        return []
    errors: Errors = []
    if value.limits:
        errors += checks.quantities(value.limits, path / "limits", resource_name)
    errors += checks.quantities(value.requests, path / "requests", resource_name)
    if errors:
        return errors
    return _within_limits(value.requests, value.limits, path)


def _within_limits(requests: Mapping[str, Quantity], limits: Mapping[str, Quantity], path: Path) -> Errors:
    errors: Errors = []
    for name, request in requests.items():
        limit = limits.get(name)
        if limit == request:
            continue
        exact = names.is_extended_resource(name) or names.is_huge_page(name)
        if limit is None:
            if exact:
                message = f"a limit must be set for {name}, which cannot be overcommitted: set it to {request}"
                errors.append((path / "limits").required(message))
        elif exact and quantity.nanos(request) != quantity.nanos(limit):
            errors.append((path / "requests").invalid(request, f"must be equal to {name} limit of {limit}"))
        elif quantity.nanos(request) > quantity.nanos(limit):
            message = f"must be less than or equal to {name} limit of {limit}"
            errors.append((path / "requests").invalid(request, message))
    return errors


def _pod_resource_name(name: str) -> str | None:
    if is_pod_level(name):
        return None
    return "only cpu, memory and hugepages-<size> may be given for a whole pod; set it on a container"


def pod_level(spec: PodSpec, path: Path) -> Errors:
    """Pod-level resources (KEP-2837): few names, and no less than the containers ask for together."""
    value = spec.resources
    if value is None:
        return []
    errors = checks.quantities(value.limits, path / "limits", _pod_resource_name)
    errors += checks.quantities(value.requests, path / "requests", _pod_resource_name)
    if errors:
        return errors
    errors = _within_limits(value.requests, value.limits, path)
    for name, request in value.requests.items():
        asked = sum(_asked(container, name) for container in spec.containers)
        if asked > quantity.nanos(request):
            message = f"must be greater than or equal to the {name} requests of the containers together"
            errors.append((path / "requests").key(name).invalid(request, message))
    return errors


def _asked(container: Container, name: str) -> int:
    return quantity.nanos(container.resources.requests.get(name, 0)) if _readable(container, name) else 0


def _readable(container: Container, name: str) -> bool:
    """Amounts that do not parse are reported where they stand, not here."""
    return checks.quantity_problem(name, container.resources.requests.get(name, 0)) is None
