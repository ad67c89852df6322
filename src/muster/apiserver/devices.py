"""What the server adds to device taints, the time, and refuses of claims: administrators' access from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from muster.api import catalog
from muster.api.instant import to_time
from muster.api.validation.field import ROOT, SPEC, Path
from muster.apiserver import status
from muster.apiserver.log import Raw
from muster.apiserver.state import Call

Json = dict[str, Any]

RESOURCES = frozenset(
    kind.resource
    for kind in (
        catalog.RESOURCE_SLICE,
        catalog.DEVICE_TAINT_RULE,
        catalog.RESOURCE_CLAIM,
        catalog.RESOURCE_CLAIM_TEMPLATE,
    )
)
ADMIN_ACCESS = "resource.kubernetes.io/admin-access"
"""Label of namespaces from which devices may be had that others have."""


def on_write(call: Call, made: Json, old: Raw | None) -> None:
    """Completes an object.

    Raises:
        Failure: 422, it asks for access that its namespace does not give.
    """
    spec = made.get("spec") or {}
    if call.kind is catalog.DEVICE_TAINT_RULE:
        made["spec"] = _rule(spec, (old or {}).get("spec") or {}, to_time(call.now))
    elif call.kind is catalog.RESOURCE_SLICE:
        made["spec"] = _slice(spec, to_time(call.now))
    elif old is None:
        template = call.kind is catalog.RESOURCE_CLAIM_TEMPLATE
        _require_access(call, made, spec.get("spec") or {} if template else spec, SPEC / "spec" if template else SPEC)


def _rule(spec: Raw, old: Raw, now: str) -> Raw:
    """The time of a taint that names none is that of the write; it is another one once the effect is."""
    taint, was = spec.get("taint"), old.get("taint") or {}
    if not isinstance(taint, Mapping):
        return spec
    changed = bool(was) and taint.get("effect") != was.get("effect") and taint.get("timeAdded") == was.get("timeAdded")
    if taint.get("timeAdded") and not changed:
        return spec
    return {**spec, "taint": {**taint, "timeAdded": now}}


def _slice(spec: Raw, now: str) -> Raw:
    if not any(device.get("taints") for device in spec.get("devices") or ()):
        return spec
    return {**spec, "devices": [_timed(device, now) if device.get("taints") else device for device in spec["devices"]]}


def _timed(device: Raw, now: str) -> Json:
    return {**device, "taints": [{"timeAdded": now} | dict(taint) for taint in device["taints"]]}


def _require_access(call: Call, made: Raw, spec: Raw, path: Path) -> None:
    asked = list(_admin(spec, path / "devices" / "requests"))
    if not asked:
        return
    space = call.store.get(catalog.NAMESPACE.plural, "", call.namespace) or {}
    if ((space.get("metadata") or {}).get("labels") or {}).get(ADMIN_ACCESS) != "true":
        why = f"admin access to devices requires the `{ADMIN_ACCESS}: true` label on the containing namespace"
        where = ", ".join(map(str, asked))
        raise status.invalid(
            call.kind, made["metadata"]["name"], [ROOT.forbidden(f"{why}; it is asked for by {where}")]
        )


def _admin(spec: Raw, path: Path) -> Iterator[Path]:
    for i, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            yield path // i / "exactly" / "adminAccess"
