"""URL paths: which kind, namespace, object and subresource a call is about."""

from __future__ import annotations

from typing import NamedTuple

from muster.api import catalog
from muster.api.catalog import Kind
from muster.apiserver import status
from muster.apiserver.custom import registry
from muster.apiserver.storage import Store

KUBELET = {
    catalog.POD.plural: ("log", "exec", "attach", "portforward", "proxy", "ephemeralcontainers"),
    catalog.NODE.plural: ("proxy",),
}
"""Subresources behind which a real server asks the kubelet; hollow nodes have none."""


class Target(NamedTuple):
    """A resource path, taken apart. Empty strings where the path says nothing."""

    kind: Kind
    namespace: str
    name: str
    subresource: str


def parse(path: str, store: Store) -> Target | None:
    """The resource that a path names; None if it is not of the form of a resource path (discovery, /version …).

    Raises:
        Failure: 404, it has the form but names no kind that is there, or more than a subresource.
    """
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if rest[0] == "namespaces" and len(rest) > 2 and rest[1] and rest[2] not in catalog.NAMESPACE.subresources:
        return _target(group, version, rest[1], rest[2:], path, store)
    return _target(group, version, "", rest, path, store)


def _target(group: str, version: str, namespace: str, rest: list[str], path: str, store: Store) -> Target:
    if rest == ["bindings"] and namespace and not group:
        return Target(catalog.POD, namespace, "", "binding")  # the older path: the body names the pod
    kind = catalog.by_path(group, version, rest[0]) or registry.find(store, group, version, rest[0])
    behind = KUBELET.get(kind.resource, ()) if kind is not None and len(rest) > 2 else ()
    if behind and rest[2] == "proxy":
        rest = rest[:3]
    if kind is None or len(rest) > 3 or not all(rest) or (namespace and not kind.namespaced):
        raise status.no_such_path(f"the server could not find the requested resource: nothing is served at {path}")
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in (*kind.subresources, *behind):
        raise status.no_such_path(f"{kind.plural} have no subresource {subresource!r}")
    if name and kind.namespaced and not namespace:
        raise status.no_such_path(
            f"{kind.plural} are namespaced: want {kind.path('NAMESPACE', name, subresource or None)}, not {path}"
        )
    return Target(kind, namespace, name, subresource)
