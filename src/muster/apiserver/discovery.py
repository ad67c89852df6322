"""What the server serves, as clients ask for it: /api, /apis, /version, and aggregated discovery."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from muster.api.calls import JSON, Request, Response
from muster.api.catalog import Kind, version_order
from muster.apiserver import openapi, openapi_binary, status

Json = dict[str, Any]

AGGREGATED = "as=APIGroupDiscoveryList"
AGGREGATED_TYPE = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
MAJOR, MINOR = "1", "37"
VERSION: Json = {
    "major": MAJOR,
    "minor": MINOR,
    "gitVersion": f"v{MAJOR}.{MINOR}.0+muster",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "cpython",
    "platform": "any",
}
HEALTH = ("/healthz", "/livez", "/readyz")

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_NO_COLLECTIONS = [verb for verb in _VERBS if verb != "deletecollection"]
_SUBRESOURCES: dict[str, tuple[str, str, str, list[str]]] = {
    "binding": ("", "v1", "Binding", ["create"]),
    "eviction": ("policy", "v1", "Eviction", ["create"]),
    "scale": ("autoscaling", "v1", "Scale", ["get", "patch", "update"]),
}
"""Subresources that take a kind of their own: group, version, kind, verbs."""
_VERBS_OF = {"finalize": ["update"]}
_IN_ALL = (
    "pods",
    "jobs",
    "cronjobs",
    "services",
    "replicationcontrollers",
    "replicasets",
    "statefulsets",
    "deployments",
    "daemonsets",
)
"""What `kubectl get all` shows."""
_PARENT_VERBS = ["get", "patch", "update"]


def discover(request: Request, served: Iterable[Kind]) -> Response:
    """The answer to a path that is no resource.

    Raises:
        Failure: 404 nothing is there, 405 it can only be read.
    """
    path = request.path.rstrip("/") or "/"
    kinds = list(served)
    answer: Any = None
    if path == "/version":
        answer = VERSION
    elif path in HEALTH:
        answer = "ok"
    elif path == "/":
        answer = {
            "paths": sorted(
                {"/api", "/apis", "/version", openapi.V2, openapi.ROOT, *HEALTH, *(f"/{_root(kind)}" for kind in kinds)}
            )
        }
    elif path in ("/api", "/apis"):
        return _roots(request, path, kinds)
    elif serves_binary(request) and request.method in ("GET", "HEAD"):
        body = openapi_binary.encoded(openapi.version_two(kinds))
        return Response(200, body, {"Content-Type": openapi_binary.MEDIA_TYPE})
    elif path.startswith("/openapi/"):
        answer = _documents(path, kinds)
    elif path.startswith(("/api/", "/apis/")):
        answer = _inside(path, kinds)
    if answer is None:
        raise status.no_such_path(f"the server could not find the requested resource: nothing is served at {path}")
    if request.method not in ("GET", "HEAD"):
        raise status.method_not_allowed(f"{path} can only be read, not {request.method}")
    return Response(200, answer)


def serves_binary(request: Request) -> bool:
    """Whether what is asked for is the one document that there is in protobuf form."""
    return request.path == openapi.V2 and (
        openapi_binary.ASKED in request.accept or openapi_binary.MEDIA_TYPE in request.accept
    )


def _documents(path: str, kinds: list[Kind]) -> Any:
    if path == openapi.V2:
        return openapi.version_two(kinds)
    if path == openapi.ROOT:
        return openapi.index(kinds)
    text = openapi.encoded(path.removeprefix(f"{openapi.ROOT}/"), kinds)
    return msgspec.Raw(text) if text else None


def _verbs(kind: Kind) -> list[str]:
    if kind.asked:
        return ["create"]
    return _VERBS if kind.deletes_collections else _NO_COLLECTIONS


def _root(kind: Kind) -> str:
    return f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}"


def _roots(request: Request, path: str, kinds: list[Kind]) -> Response:
    if request.method not in ("GET", "HEAD"):
        raise status.method_not_allowed(f"{path} can only be read, not {request.method}")
    core = path == "/api"
    if AGGREGATED in request.accept:
        groups = [""] if core else _groups(kinds)
        items = [_aggregated_group(group, kinds) for group in groups]
        body = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
        return Response(200, body, {"Content-Type": AGGREGATED_TYPE})
    if core:
        address = {"clientCIDR": "0.0.0.0/0", "serverAddress": ""}
        versions = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}
        return Response(200, versions)
    groups_body = {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(name, kinds) for name in _groups(kinds)],
    }
    return Response(200, groups_body)


def _inside(path: str, kinds: list[Kind]) -> Json | None:
    """/api/v1, /apis/GROUP or /apis/GROUP/VERSION; None if nothing of it is served."""
    wanted = path.removeprefix("/apis/").removeprefix("/api/")
    here = [kind for kind in kinds if f"/{_root(kind)}" == path]
    if here:
        resources = [entry for kind in here for entry in _resources(kind)]
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": wanted, "resources": resources}
    if path.startswith("/apis/") and wanted in _groups(kinds):
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(wanted, kinds)}
    return None


def _groups(kinds: list[Kind]) -> list[str]:
    return sorted({kind.group for kind in kinds if kind.group})


def _versions(group: str, kinds: list[Kind]) -> list[str]:
    """Stable ones first, then beta, then alpha."""
    found = {kind.version for kind in kinds if kind.group == group}
    return sorted(found, key=version_order)


def _group(group: str, kinds: list[Kind]) -> Json:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in _versions(group, kinds)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resources(kind: Kind) -> list[Json]:
    entry: Json = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if categories := _categories(kind):
        entry["categories"] = categories
    return [entry, *(_subresource(kind, name) for name in kind.subresources)]


def _categories(kind: Kind) -> list[str]:
    return ["all"] if kind.resource in _IN_ALL else list(kind.categories)


def _subresource(kind: Kind, name: str) -> Json:
    entry: Json = {"name": f"{kind.plural}/{name}", "singularName": "", "namespaced": kind.namespaced}
    own = _SUBRESOURCES.get(name)
    if own is None:
        return entry | {"kind": kind.kind, "verbs": _VERBS_OF.get(name, _PARENT_VERBS)}
    group, version, own_kind, verbs = own
    return entry | {"group": group, "version": version, "kind": own_kind, "verbs": verbs}


def _aggregated_group(group: str, kinds: list[Kind]) -> Json:
    versions = []
    for version in _versions(group, kinds):
        here = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
        resources = [_aggregated_resource(kind) for kind in here]
        versions.append({"version": version, "resources": resources, "freshness": "Current"})
    return {"metadata": {"name": group} if group else {}, "versions": versions}


def _aggregated_resource(kind: Kind) -> Json:
    entry: Json = {
        "resource": kind.plural,
        "responseKind": _response_kind(kind.group, kind.version, kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if categories := _categories(kind):
        entry["categories"] = categories
    if kind.subresources:
        entry["subresources"] = [_aggregated_subresource(kind, name) for name in kind.subresources]
    return entry


def _aggregated_subresource(kind: Kind, name: str) -> Json:
    own = _SUBRESOURCES.get(name)
    verbs = _VERBS_OF.get(name, _PARENT_VERBS)
    group, version, own_kind, verbs = own or (kind.group, kind.version, kind.kind, verbs)
    return {"subresource": name, "responseKind": _response_kind(group, version, own_kind), "verbs": verbs}


def _response_kind(group: str, version: str, kind: str) -> Json:
    return {"group": group, "version": version, "kind": kind}
