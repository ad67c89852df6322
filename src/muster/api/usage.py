"""What objects take of a ResourceQuota: pure measuring, in billionths of each unit, so that nothing is rounded.

`measured` is the one rule, for charging, for checking and for recounting. A quota's names say which resource they are
about (`counted_from`), and only that resource's objects take anything of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from muster.api import catalog, quantity, requests, scopes
from muster.api.catalog import Raw
from muster.api.core import Pod
from muster.api.quantity import NANOS
from muster.api.quotas import ScopedResourceSelectorRequirement
from muster.api.storage import BETA_STORAGE_CLASS
from muster.api.validation import names

Usage = dict[str, int]
"""Billionths by the names of a quota."""

REQUIRED = frozenset(scopes.COMPUTE)
"""What every container has to say itself where a quota bounds it."""
BY_CLASS = ".storageclass.storage.k8s.io/"
DEVICES = ".deviceclass.resource.k8s.io/devices"
ALL_DEVICES = 32
"""What a request for all devices is charged with: the most that one claim can get."""

_PODS, _CLAIMS = catalog.POD.plural, catalog.PERSISTENT_VOLUME_CLAIM.plural
_SERVICES, _DEVICE_CLAIMS = catalog.SERVICE.plural, catalog.RESOURCE_CLAIM.plural
_BY_NUMBER = frozenset(
    (_SERVICES, _CLAIMS, "secrets", "configmaps", catalog.REPLICATION_CONTROLLER.plural, "resourcequotas")
)
"""Core resources whose own names count them."""
_FREE = frozenset((catalog.EVENT.plural,))
"""Never counted: what tells of a refusal must not be refused."""
_NAMES_OF = {
    "services.loadbalancers": _SERVICES, "services.nodeports": _SERVICES, "requests.storage": _CLAIMS,
    **{name: name for name in _BY_NUMBER},
}  # fmt: skip
_COUNTS = {
    f"count/{kind.plural}{'.' if kind.group else ''}{kind.group}": kind.plural
    for kind in catalog.KINDS
    if kind.namespaced and kind.plural not in _FREE
}
_NAME_OF_COUNT = {resource: name for name, resource in _COUNTS.items()}
_OVER = ("Succeeded", "Failed")


@lru_cache(maxsize=4_096)
def counted_from(name: str) -> str:
    """The resource, as the store calls it, whose objects take of a quota's `name`."""
    if name in _NAMES_OF:
        return _NAMES_OF[name]
    if name.startswith("count/"):
        return _COUNTS.get(name, name.removeprefix("count/"))
    if BY_CLASS in name:
        return _CLAIMS
    return _DEVICE_CLAIMS if name.endswith(DEVICES) else _PODS


def measured(resource: str, raw: Raw) -> Usage:
    """Everything that an object takes. `resource` is what the store calls it."""
    if resource in _FREE:
        return {}
    taken = {_NAME_OF_COUNT.get(resource) or f"count/{resource}": NANOS}
    if resource == _PODS:
        if (raw.get("status") or {}).get("phase") not in _OVER:
            taken |= _pod(_viewed(raw))
    elif resource == _CLAIMS:
        taken |= _claim(raw)
    elif resource == _SERVICES:
        taken |= _service(raw.get("spec") or {})
    elif resource == _DEVICE_CLAIMS:
        taken |= _devices(raw.get("spec") or {})
    elif resource in _BY_NUMBER:
        taken[resource] = NANOS
    return taken


def inside(resource: str, raw: Raw, wanted: tuple[ScopedResourceSelectorRequirement, ...]) -> bool:
    """Whether an object is in all of these scopes. Scopes are of pods and claims; nothing else is in any."""
    if not wanted:
        return True
    if resource == _PODS:
        pod = _viewed(raw)
        return all(scopes.pod_in(pod, each) for each in wanted)
    if resource == _CLAIMS:
        classes = _attribute_classes(raw)
        return all(scopes.claim_in(classes, each) for each in wanted)
    return False


def unsaid(raw: Raw, bounded: frozenset[str]) -> dict[str, list[str]]:
    """Of what a quota bounds, what neither the pod nor its containers say: names of these by the quota's names."""
    spec = _viewed(raw).spec
    whole = _compute(spec.resources.requests, spec.resources.limits) if spec.resources else set()
    missing: dict[str, list[str]] = {}
    for container in (*spec.containers, *spec.init_containers):
        said = whole | _compute(container.resources.requests, container.resources.limits)
        for name in sorted(bounded - said):
            missing.setdefault(name, []).append(container.name)
    return missing


def _compute(asked: Mapping[str, Any], limited: Mapping[str, Any]) -> set[str]:
    plain = {name for name in ("cpu", "memory") if name in asked}
    limits = {f"limits.{name}" for name in ("cpu", "memory") if name in limited}
    return plain | {f"requests.{name}" for name in plain} | limits


def _viewed(raw: Raw) -> Pod:
    return msgspec.convert(raw, Pod)


# --- pods --------------------------------------------------------------------------------------------------------


def _pod(pod: Pod) -> Usage:
    taken = {"pods": NANOS}
    for name, amount in requests.pod_usage(pod).items():
        value = _exact(name, amount)
        if name in ("cpu", "memory", "ephemeral-storage") or names.is_huge_page(name):
            taken[name] = taken[f"requests.{name}"] = value
        elif names.is_extended_resource(name):
            taken[f"requests.{name}"] = value
    for name, amount in requests.pod_limits(pod).items():
        if name in ("cpu", "memory", "ephemeral-storage"):
            taken[f"limits.{name}"] = _exact(name, amount)
    return taken


def _exact(name: str, amount: int) -> int:
    return amount * (NANOS // 1000 if name == "cpu" else NANOS)


# --- volumes, services, devices ----------------------------------------------------------------------------------


def _claim(raw: Raw) -> Usage:
    """A claim counts with what it asks for, or with what is being made for it if that is more."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    taken = {_CLAIMS: NANOS}
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if asked is not None:
        allocated = (status.get("allocatedResources") or {}).get("storage", "0")
        taken["requests.storage"] = NANOS * max(quantity.whole(asked), quantity.whole(allocated))
    annotations = raw["metadata"].get("annotations") or {}
    name = annotations.get(BETA_STORAGE_CLASS) or spec.get("storageClassName")
    if name:
        taken |= {f"{name}{BY_CLASS}{bound}": value for bound, value in taken.items()}
    return taken


def _attribute_classes(raw: Raw) -> list[str]:
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    target = (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName")
    found = (spec.get("volumeAttributesClassName"), status.get("currentVolumeAttributesClassName"), target)
    return [name for name in found if name]


def _service(spec: Raw) -> Usage:
    taken = {_SERVICES: NANOS}
    ports, kind = spec.get("ports") or (), spec.get("type")
    if kind == "LoadBalancer":
        taken["services.loadbalancers"] = NANOS
        if spec.get("allocateLoadBalancerNodePorts") is False:
            ports = [port for port in ports if port.get("nodePort")]
    if kind in ("NodePort", "LoadBalancer"):
        taken["services.nodeports"] = NANOS * len(ports)
    return taken


def _devices(spec: Raw) -> Usage:
    """Devices by class. Of alternatives, the one that takes most of each class counts."""
    taken: Usage = {}
    for request in (spec.get("devices") or {}).get("requests") or ():
        choices = [request["exactly"]] if request.get("exactly") else request.get("firstAvailable") or ()
        most: Usage = {}
        for choice in choices:
            count = ALL_DEVICES if choice.get("allocationMode") == "All" else choice.get("count", 1)
            name = f"{choice.get('deviceClassName', '')}{DEVICES}"
            most[name] = max(most.get(name, 0), count * NANOS)
        for name, value in most.items():
            taken[name] = taken.get(name, 0) + value
    return taken


# --- amounts as text ---------------------------------------------------------------------------------------------


def shown(name: str, nanos: int) -> str:
    """An amount of usage as the API writes it: memory and storage in binary units where they are even."""
    binary = any(part in name for part in ("memory", "storage", "hugepages-")) and not name.startswith("count/")
    whole, rest = divmod(nanos, NANOS)
    if binary and not rest and whole % 1024 == 0:
        return quantity.format_binary(whole)
    return quantity.canonical(f"{nanos}n")
