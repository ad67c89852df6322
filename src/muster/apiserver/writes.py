"""Create, update and patch: the road of an object into the store."""

from __future__ import annotations

from typing import Any

from muster.api import catalog
from muster.api.calls import STRATEGIC_PATCH, Response
from muster.api.validation import pod_update
from muster.api.validation.field import METADATA
from muster.apiserver import (
    admission,
    admission_chain,
    admitted,
    apply,
    decode,
    deletion,
    limits,
    metadata,
    ownership,
    patch,
    quota,
    status,
)
from muster.apiserver.custom import definitions
from muster.apiserver.custom.kinds import CustomKind
from muster.apiserver.log import Raw
from muster.apiserver.state import Call

Json = dict[str, Any]


def create(call: Call) -> Response:
    """POST to a collection: 201 and the stored object."""
    if call.kind.namespaced and not call.namespace:
        path = call.kind.path("NAMESPACE")
        raise status.method_not_allowed(f"{call.kind.plural} are created in a namespace: POST to {path}")
    return _create(call, decode.new_object(call))


def _create(call: Call, given: Json, entries: ownership.Entries | None = None) -> Response:
    dry_run = call.dry_run()
    meta = metadata.for_create(call, given.get("metadata") or {})
    made = call.kind.prepare(_arranged(call, given, meta), None, call.gates)
    if call.kind is catalog.NAMESPACE:
        made |= deletion.first_namespace_parts(made)
    elif call.kind is catalog.CUSTOM_RESOURCE_DEFINITION:
        made.pop("status", None)
    elif isinstance(call.kind, CustomKind) and definitions.is_terminating(call.store, call.kind.resource):
        raise status.method_not_allowed("create not allowed while custom resource definition is terminating")
    given_to_admission = admitted.before(made)
    admission.on_create(call, made)
    made = admission_chain.mutating(call, made, None)
    admission.last_on_create(call, made)
    errors = call.kind.validate(made, None, call.gates)
    if errors:
        raise status.invalid(call.kind, meta["name"], errors)
    admission_chain.validating(call, made, None)
    if call.store.get(call.kind.resource, call.namespace, meta["name"]) is not None:
        raise status.already_exists(call.kind, meta["name"])
    _bounded(call, made, None)
    _with_status(call, made)
    if entries is not None:
        made["metadata"][ownership.KEY] = ownership.Deferred(None, None, entries)
    elif call.store.author is not None:
        call.store.author = ownership.but_for_admission(call.store.author, given_to_admission, made)
    if dry_run:
        call.store.claim(made, None)
        return Response(201, made)
    return Response(201, call.keep(meta["name"], made))


def _bounded(call: Call, made: Raw, old: Raw | None) -> None:
    """What a namespace allows is the last thing that a write may be refused for."""
    limits.check(call, made, old)
    quota.check(call, made, old)


def _with_status(call: Call, made: Json) -> None:
    """The status of kinds whose controller is the server itself."""
    if call.kind is catalog.CUSTOM_RESOURCE_DEFINITION:
        made["status"] = definitions.settled(call.store, made, call.now)
    elif call.kind is catalog.RESOURCE_QUOTA:
        made["status"] = quota.first_status(call, made)


def update(call: Call) -> Response:
    """PUT of an object or a subresource of it: 200 and the stored object; 201 if it has made one."""
    if call.kind.created_by_update and call.present() is None:
        return _create(call, decode.new_object(call))
    old = call.stored()
    given = decode.new_object(call)
    metadata.check_revision(call, given.get("metadata") or {})
    return replace(call, old, given)


def apply_patch(call: Call) -> Response:
    """PATCH of an object or a subresource of it: 200 and the stored object; 201 if an apply has made it."""
    if decode.content_type(call.request.content_type) == apply.MEDIA_TYPE:
        return _apply(call)
    old = call.stored()
    media_type = patch.media_type(call.request.content_type)
    if media_type == STRATEGIC_PATCH and isinstance(call.kind, CustomKind):
        raise status.unsupported_media_type(media_type, [form for form in patch.MEDIA_TYPES if form != media_type])
    apply.refuse_force(call)
    text = decode.text(call)
    changed = patch.patched(media_type, call.schema, _as_read(old, text), text)
    if changed is None:
        raise status.unprocessable("the patch leaves no object")
    return replace(call, old, decode.checked(call, changed))


def _as_read(old: Raw, body: Any) -> Raw:
    """An object as a patch sees it: who owns what is only made out where the patch is about that."""
    if isinstance(body, dict):
        told = ownership.KEY in (body.get("metadata") or ())
    else:
        told = ownership.KEY in repr(body)
    return ownership.dressed(old) if told else ownership.undressed(old)


def _apply(call: Call) -> Response:
    old = call.present()
    if old is None:
        if call.subresource:
            raise status.not_found(call.kind, call.name)
        made = apply.merged(call, None, ())
        return _create(call, made.object, made.entries)
    made = apply.merged(call, ownership.undressed(old), ownership.entries_of(old))
    return replace(call, old, made.object, made.entries)


def _claimed(call: Call, old: Raw, given: Json) -> ownership.Entries | None:
    """Who owns what, where the body says something else of it than the stored object; entries of before this write.

    Raises:
        Failure: 422, it is malformed.
    """
    told = (given.get("metadata") or {}).get(ownership.KEY)
    if not told:
        return None
    if any(not entry for entry in told):
        return ()
    try:
        read = ownership.read(told)
    except ValueError as failure:
        error = (METADATA / ownership.KEY).invalid("", str(failure))
        raise status.invalid(call.kind, call.name, [error]) from None
    return None if read == ownership.entries_of(old) else read


def replace(call: Call, old: Raw, given: Json, entries: ownership.Entries | None = None) -> Response:
    """Makes `given` the new version, as far as the subresource may change it; nothing happens if nothing differs.

    With `entries`, those say who owns what afterwards.
    """
    dry_run = call.dry_run()
    base = _claimed(call, old, given) if entries is None else None
    meta = metadata.for_update(call, old["metadata"], given.get("metadata") or {})
    made = _VERSIONS.get(call.subresource, _whole)(call, old, given, meta)
    meta = made["metadata"]
    if call.subresource != "scale":
        admission_chain.validating(call, made, old)
    if made != old:
        _bounded(call, made, old)
    if call.kind.changed(old, made):
        metadata.next_generation(meta)
    elif made == old and base is None and (entries is None or ownership.same(entries, ownership.entries_of(old))):
        return Response(200, old)
    if base is not None and call.store.author is not None:
        entries = ownership.updated(base, old, made, call.store.author)
    if entries is not None:
        made["metadata"][ownership.KEY] = ownership.Deferred(None, None, entries)
    if dry_run:
        call.store.claim(made, old)
        return Response(200, made)
    if call.kind is catalog.NAMESPACE:
        stored = call.store.put(call.kind.resource, "", call.name, made)
        deletion.finish_namespace(call.store, call.name)
    elif metadata.finished(meta):
        stored = call.kind.shown(deletion.remove(call.store, call.kind, call.namespace, call.name, call.now))
    else:
        stored = call.keep(call.name, made)
    if call.kind is catalog.CUSTOM_RESOURCE_DEFINITION:
        definitions.resettle(call.store, made["spec"]["group"], call.now)
    return Response(200, stored)


def _whole(call: Call, old: Raw, given: Json, meta: Json) -> Json:
    made = call.kind.prepare(_arranged(call, given, meta), old, call.gates)
    if made != old:
        admission.on_update(call, made, old)
    if call.subresource != "scale":
        made = admission_chain.mutating(call, made, old)
    if made != old:
        _refuse(call, call.kind.validate(made, old, call.gates))
    _with_status(call, made)
    return made


def _status(call: Call, old: Raw, given: Json, meta: Json) -> Json:
    """Only the status, and of most kinds metadata but for the owners."""
    if call.kind.status_keeps_metadata:
        _keep_all(old, meta)
    else:
        _keep_owners(old, meta)
    if isinstance(call.kind, CustomKind):
        made = call.kind.with_status(old, given, meta)
    else:
        made = {**old, "metadata": meta, "status": dict.fromkeys(call.kind.counts, 0) | given.get("status", {})}
    made = admission_chain.mutating(call, made, old)
    _refuse(call, call.kind.validate_status(made, old, call.gates))
    return made


def _resize(call: Call, old: Raw, given: Json, meta: Json) -> Json:
    """Only resources of containers and of the pod; metadata stays, and other changes are left out."""
    _keep_all(old, meta)
    spec = pod_update.resized(given.get("spec") or {}, old.get("spec") or {})
    made: Json = {**old, "metadata": meta, "spec": spec}
    made = admission_chain.mutating(call, made, old)
    _refuse(call, pod_update.resize(made, old, call.gates))
    return made


def _finalize(call: Call, old: Raw, given: Json, meta: Json) -> Json:
    """Only the finalizers in the spec of a namespace."""
    finalizers = (given.get("spec") or {}).get("finalizers") or []
    return {**old, "metadata": meta, "spec": {**old.get("spec", {}), "finalizers": finalizers}}


_VERSIONS = {"status": _status, "resize": _resize, "finalize": _finalize}


def _keep_all(old: Raw, meta: Json) -> None:
    meta.clear()
    meta.update(old["metadata"])


def _keep_owners(old: Raw, meta: Json) -> None:
    meta.pop("ownerReferences", None)
    if "ownerReferences" in old["metadata"]:
        meta["ownerReferences"] = old["metadata"]["ownerReferences"]


def _refuse(call: Call, errors: list[Any]) -> None:
    if errors:
        raise status.invalid(call.kind, call.name, errors)


def _arranged(call: Call, given: Json, meta: Json) -> Json:
    """A new top level in the usual order. A pod always has a spec, so that admission need not ask."""
    made = {"apiVersion": given["apiVersion"], "kind": given["kind"], "metadata": meta}
    if call.kind is catalog.POD:
        made["spec"] = {}
    return made | {key: value for key, value in given.items() if key not in ("apiVersion", "kind", "metadata")}
