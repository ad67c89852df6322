"""Calls of the API server, built: what machines put into `machine.Write`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api import catalog
from muster.api.calls import JSON, MERGE_PATCH, Request


def create(obj: Mapping[str, Any], *, dry_run: bool = False) -> Request:
    """POST of a new object; its namespace (or `default`) says where.

    Raises:
        ValueError: its apiVersion and kind are in no catalog.
    """
    kind = _kind_of(obj)
    query = {"dryRun": "All"} if dry_run else {}
    return Request("POST", kind.path(_namespace(obj)), query, obj)


def update(obj: Mapping[str, Any], *, subresource: str | None = None) -> Request:
    """PUT of a whole object; with metadata.resourceVersion set, refused (409) if the stored one has moved on."""
    kind = _kind_of(obj)
    return Request("PUT", kind.path(_namespace(obj), obj["metadata"]["name"], subresource), body=obj)


def status(obj: Mapping[str, Any]) -> Request:
    """PUT of an object's status."""
    return update(obj, subresource="status")


def patch(
    resource: str,
    namespace: str,
    name: str,
    body: Any,
    content_type: str = MERGE_PATCH,
    *,
    subresource: str | None = None,
) -> Request:
    """PATCH of an object. `resource` is a plural or a kind of the catalog; `namespace` is ignored for cluster kinds."""
    kind = catalog.named(resource)
    return Request("PATCH", kind.path(namespace, name, subresource), body=body, content_type=content_type)


def patch_status(resource: str, namespace: str, name: str, status: Mapping[str, Any]) -> Request:
    """Merge patch of `status` fields."""
    return patch(resource, namespace, name, {"status": status}, subresource="status")


def delete(
    resource: str,
    namespace: str,
    name: str,
    *,
    uid: str | None = None,
    revision: str | None = None,
    grace_seconds: int | None = None,
    propagation: str | None = None,
) -> Request:
    """DELETE of an object; with `uid` (and `revision`) only that incarnation, else 409.

    `propagation` is Foreground, Background or Orphan; `grace_seconds` None means the object's own.
    """
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    preconditions = {key: value for key, value in (("uid", uid), ("resourceVersion", revision)) if value}
    if preconditions:
        body["preconditions"] = preconditions
    if grace_seconds is not None:
        body["gracePeriodSeconds"] = grace_seconds
    if propagation is not None:
        body["propagationPolicy"] = propagation
    return Request("DELETE", catalog.named(resource).path(namespace, name), body=body)


def bind(namespace: str, pod: str, uid: str, node: str) -> Request:
    """POST of a Binding: the pod of this uid goes to this node; 409 if it is another pod by now, or bound."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, "namespace": namespace, "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    return Request("POST", catalog.POD.path(namespace, pod, "binding"), body=body, content_type=JSON)


def evict(namespace: str, pod: str, *, uid: str | None = None, grace_seconds: int | None = None) -> Request:
    """POST of an Eviction, which a PodDisruptionBudget may refuse (429)."""
    options: dict[str, Any] = {}
    if uid:
        options["preconditions"] = {"uid": uid}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    body: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace},
    }
    if options:
        body["deleteOptions"] = options
    return Request("POST", catalog.POD.path(namespace, pod, "eviction"), body=body)


def get(resource: str, namespace: str, name: str) -> Request:
    return Request("GET", catalog.named(resource).path(namespace, name))


def list_all(
    resource: str, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
) -> Request:
    """GET of a collection; `namespace` None: all of them."""
    query = {
        key: value for key, value in (("labelSelector", label_selector), ("fieldSelector", field_selector)) if value
    }
    return Request("GET", catalog.named(resource).path(namespace), query)


def watch(resource: str, revision: str, namespace: str | None = None, *, bookmarks: bool = True) -> Request:
    """GET of a watch from after `revision` on."""
    query = {"watch": "true", "resourceVersion": revision, "allowWatchBookmarks": "true" if bookmarks else "false"}
    return Request("GET", catalog.named(resource).path(namespace), query)


def _kind_of(obj: Mapping[str, Any]) -> catalog.Kind:
    return catalog.by_kind(obj.get("apiVersion", ""), obj.get("kind", ""))


def _namespace(obj: Mapping[str, Any]) -> str:
    return obj.get("metadata", {}).get("namespace") or "default"
