"""The subresource scale: how many replicas there are to be, in a form that is the same for every kind."""

from __future__ import annotations

from typing import Any

from muster.api.calls import STRATEGIC_PATCH, Response
from muster.api.validation.field import Path
from muster.apiserver import admission_chain, apply, decode, ownership, patch, scale_owners, status, writes
from muster.apiserver.custom import scale as custom_scale
from muster.apiserver.custom.kinds import CustomKind
from muster.apiserver.log import Raw
from muster.apiserver.schema import Schema, schema
from muster.apiserver.sheet import NONE, selector
from muster.apiserver.state import Call

Json = dict[str, Any]

API_VERSION, KIND = "autoscaling/v1", "Scale"
_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def get(call: Call) -> Response:
    """GET: the Scale of an object."""
    return Response(200, scale_of(call, call.stored()))


def update(call: Call) -> Response:
    """PUT of a Scale: 200 and the Scale afterwards."""
    old = call.stored()
    return _written(call, old, decode.part(call, _schema(), API_VERSION, KIND))


def apply_patch(call: Call) -> Response:
    """PATCH of a Scale: 200 and the Scale afterwards."""
    old = call.stored()
    media_type = patch.media_type(call.request.content_type)
    if media_type == apply.MEDIA_TYPE:
        return _applied(call, old)
    apply.refuse_force(call)
    if media_type == STRATEGIC_PATCH and isinstance(call.kind, CustomKind):
        raise status.unsupported_media_type(media_type, [form for form in patch.MEDIA_TYPES if form != media_type])
    changed = patch.patched(media_type, _schema(), scale_of(call, old), decode.text(call))
    if not isinstance(changed, dict):
        raise status.unprocessable("the patch leaves no object")
    return _written(call, old, decode.cleaned(call, _schema(), changed))


def _applied(call: Call, old: Raw) -> Response:
    """Server-side apply: who applies a number of replicas owns it."""
    manager = apply.manager_of(call)
    config = decode.part(call, _schema(), API_VERSION, KIND, apply.body(call))
    config = apply.completed(call, {**config, "apiVersion": API_VERSION, "kind": KIND})
    author = ownership.Author(manager, ownership.APPLY, call.subresource, call.now)
    entries, places = ownership.entries_of(old), scale_owners.places(call)
    before = scale_owners.of_scale(entries, places, API_VERSION)
    made = ownership.applied(scale_of(call, old), before, config, author)
    apply.refuse_conflicts(call, made.conflicts)
    owners = scale_owners.of_object(entries, made.entries, places, call.kind.api_version)
    return _written(call, old, made.object, owners)


def scale_of(call: Call, raw: Raw) -> Json:
    """An object as a Scale."""
    if isinstance(call.kind, CustomKind):
        replicas, told = custom_scale.read(call, raw)
    else:
        replicas, told = raw.get("spec", {}).get("replicas", 1), _told(raw)
    return {
        "kind": KIND,
        "apiVersion": API_VERSION,
        "metadata": {key: raw["metadata"][key] for key in _META if key in raw["metadata"]},
        "spec": {"replicas": replicas},
        "status": told,
    }


def _told(raw: Raw) -> Json:
    given = raw.get("spec", {}).get("selector")
    if given and raw["kind"] == "ReplicationController":
        given = {"matchLabels": given}
    shown = selector(given)
    return {"replicas": raw.get("status", {}).get("replicas", 0)} | ({} if shown == NONE else {"selector": shown})


def _schema() -> Schema:
    return schema(API_VERSION, KIND)


def _written(call: Call, old: Raw, scale: Raw, owners: ownership.Entries | None = None) -> Response:
    about = ("autoscaling", "v1", KIND)
    scale = admission_chain.connected(call, scale, about, scale_of(call, old), dry_run=call.dry_run())
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        error = Path("spec.replicas").invalid(replicas, "must be greater than or equal to 0")
        raise status.invalid(call.kind, call.name, [error])
    if isinstance(call.kind, CustomKind):
        given = custom_scale.written(call.kind, old, replicas)
    else:
        given = {**old, "spec": {**old["spec"], "replicas": replicas}}
    said = scale.get("metadata") or {}
    meta = ownership.bare(old["metadata"])
    told = {key: said[key] for key in ("name", "namespace", "uid") if key in said}
    given["metadata"] = {**meta, **told, "resourceVersion": said.get("resourceVersion", "")}
    stored = writes.replace(call, old, given, owners).body
    return Response(200, scale_of(call, stored))
