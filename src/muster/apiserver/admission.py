"""Admission: what a write must find, and what the server adds, before an object is validated.

Namespace lifecycle, LimitRanger's defaults, Priority, DefaultTolerationSeconds, DefaultStorageClass,
PodGroupProtection. Functions get an object with a private top level and metadata, and replace what they change.
"""

from __future__ import annotations

from typing import Any

from muster.api import catalog
from muster.api.catalog import Kind
from muster.api.defaults import keys
from muster.apiserver import default_class, devices, limits, priority, status
from muster.apiserver.log import Raw
from muster.apiserver.state import Call

Json = dict[str, Any]

PROTECTION = {
    catalog.POD_GROUP.plural: "scheduling.k8s.io/podgroup-protection",
    catalog.COMPOSITE_POD_GROUP.plural: "scheduling.k8s.io/compositepodgroup-protection",
}
"""The finalizer that keeps a deleted group until its members are gone (V36)."""

TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
TOLERATED_SECONDS = 300
_WITH_KEYS = ("affinity", "topologySpreadConstraints")
_DEFAULT_TOLERATIONS = {
    key: {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATED_SECONDS}
    for key in TOLERATED
}
_BOTH_TOLERATIONS = list(_DEFAULT_TOLERATIONS.values())


def on_create(call: Call, made: Json) -> None:
    """Completes a new object.

    Raises:
        Failure: 403 or 404, it may not be created here or like this.
    """
    if call.kind.namespaced:
        _require_namespace(call, made)
    if call.kind is catalog.POD:
        _require_group(call, made, catalog.POD_GROUP, _group_of(made["spec"]))
        made["spec"] = tolerating(made["spec"])
        limits.on_create(call, made)
    elif call.kind.resource in devices.RESOURCES:
        devices.on_write(call, made, None)
    elif call.kind is catalog.PERSISTENT_VOLUME_CLAIM:
        default_class.on_create(call, made)
    elif call.kind.resource in PROTECTION:
        parent = made.get("spec", {}).get("parentCompositePodGroupName")
        _require_group(call, made, catalog.COMPOSITE_POD_GROUP, parent)
        _protect(call.kind, made["metadata"])
    if call.state.priority_admission:
        priority.on_create(call, made)


def last_on_create(call: Call, made: Json) -> None:
    """Completes a new object by what webhooks have left of it: they see label keys unmerged, and may change both."""
    if call.kind is catalog.POD and not made["spec"].keys().isdisjoint(_WITH_KEYS):
        made["spec"] = dict(made["spec"])
        keys.merged(made["spec"], made["metadata"].get("labels"), call.gates)


def on_update(call: Call, made: Json, old: Raw) -> None:
    """Completes a new version.

    Raises:
        Failure: 403.
    """
    if call.kind is catalog.POD:
        if made["spec"].get("tolerations") != old["spec"].get("tolerations"):
            made["spec"] = tolerating(made["spec"])
    elif call.kind.resource in devices.RESOURCES:
        devices.on_write(call, made, old)
    elif call.kind is catalog.PRIORITY_CLASS and call.state.priority_admission:
        priority.on_update(call, made)


def _require_namespace(call: Call, made: Json) -> None:
    """A namespace must exist, and nothing is created in one that is being deleted."""
    space = call.store.get("namespaces", "", call.namespace)
    if space is None:
        raise status.not_found(catalog.NAMESPACE, call.namespace)
    if "deletionTimestamp" in space["metadata"]:
        why = f"unable to create new content in namespace {call.namespace} because it is being terminated"
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {call.namespace} is being terminated",
            "field": "metadata.namespace",
        }
        raise status.forbidden(call.kind, made["metadata"]["name"], why, [cause])


def _group_of(spec: Raw) -> str | None:
    name: str | None = (spec.get("schedulingGroup") or {}).get("podGroupName")
    return name


def _require_group(call: Call, made: Json, kind: Kind, name: str | None) -> None:
    """Nothing joins a group that is being deleted (V36); a group that does not exist may come later (V13)."""
    group = call.store.get(kind.resource, call.namespace, name) if name else None
    if group is not None and "deletionTimestamp" in group["metadata"]:
        why = f"{kind.kind} {name} cannot get new members because it is being deleted"
        raise status.forbidden(call.kind, made["metadata"]["name"], why)


def _protect(kind: Kind, meta: Json) -> None:
    finalizer = PROTECTION[kind.resource]
    present = meta.get("finalizers", [])
    if finalizer not in present:
        meta["finalizers"] = [*present, finalizer]


def tolerating(spec: Raw) -> Json:
    """The pod stays for five minutes on a node that is not ready or unreachable, unless it says itself for how long."""
    present = spec.get("tolerations")
    if not present:
        return {**spec, "tolerations": _BOTH_TOLERATIONS}
    missing = [_DEFAULT_TOLERATIONS[key] for key in TOLERATED if not any(_tolerates(entry, key) for entry in present)]
    return {**spec, "tolerations": [*present, *missing]} if missing else dict(spec)


def _tolerates(toleration: Raw, key: str) -> bool:
    own = toleration.get("key") or key
    return own == key and toleration.get("effect") in (None, "", "NoExecute")
