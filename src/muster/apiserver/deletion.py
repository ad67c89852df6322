"""Deleting: preconditions, grace, finalizers, collections, and namespaces with all that is in them."""

from __future__ import annotations

from typing import Any

from muster.api import catalog
from muster.api.calls import Response
from muster.api.catalog import Kind
from muster.api.instant import SECOND, Instant, to_time
from muster.api.validation.field import Path
from muster.apiserver import admission_chain, decode, priority, status
from muster.apiserver.custom import definitions, dependents, registry
from muster.apiserver.custom.kinds import CustomKind
from muster.apiserver.custom.registry import DEFINITIONS
from muster.apiserver.log import Raw
from muster.apiserver.schema import schema
from muster.apiserver.state import RESERVED_NAMESPACES, Call
from muster.apiserver.storage import Store

Json = dict[str, Any]

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
"""Finalizers that ask the garbage collector to let dependents go, or to delete them first."""
_FINALIZER_OF = {"Orphan": ORPHAN, "Foreground": FOREGROUND, "Background": None}
DEFAULT_GRACE = 30
LONGEST_GRACE = 1 << 31
"""Seconds (68 years): any time that a clock shows still has a date after so long."""
NAMESPACE_FINALIZER = "kubernetes"


def delete(call: Call) -> Response:
    """DELETE of one object: 200 with the object while it is not gone (pods: always), else with a Status."""
    options = read_options(call)
    call.stored()
    raw = call.store.get(call.kind.resource, call.namespace, call.name) or {}
    dry_run = call.dry_run(options)
    admission_chain.deleting(call, call.kind.shown(raw), options, dry_run=dry_run)
    last, gone = delete_object(call.store, call.kind, raw, options, call.now, dry_run=dry_run)
    if call.kind is catalog.POD or not gone:
        return Response(200, call.kind.shown(last))
    return status.success(call.kind, call.name, raw["metadata"]["uid"])


def read_options(call: Call) -> Json:
    """DeleteOptions from the body, completed from the query.

    Raises:
        Failure: 400 or 422.
    """
    options = decode.options(call, schema("v1", "DeleteOptions"))
    grace = call.number("gracePeriodSeconds")
    if grace is not None:
        options = {**options, "gracePeriodSeconds": grace}
    policy = call.request.query.get("propagationPolicy")
    if policy:
        options = {**options, "propagationPolicy": policy}
    if call.request.query.get("orphanDependents"):
        options = {**options, "orphanDependents": call.flag("orphanDependents")}
    check_options(call, options)
    return options


def check_options(call: Call, options: Json) -> None:
    """Refuses options that contradict themselves or name what there is not.

    Raises:
        Failure: 422.
    """
    errors = []
    policy = options.get("propagationPolicy")
    if policy is not None and policy not in _FINALIZER_OF:
        errors.append(Path("propagationPolicy").not_supported(policy, _FINALIZER_OF))
    if policy is not None and options.get("orphanDependents") is not None:
        why = "orphanDependents and propagationPolicy cannot be both set"
        errors.append(Path("propagationPolicy").invalid(policy, why))
    grace = options.get("gracePeriodSeconds")
    if grace is not None and not 0 <= grace <= LONGEST_GRACE:
        errors.append(Path("gracePeriodSeconds").invalid(grace, "must be 0 or more seconds, and at most 2^31"))
    if errors:
        raise status.unprocessable_options(errors[0], "DeleteOptions")


def delete_object(
    store: Store, kind: Kind, raw: Raw, options: Json, now: Instant, *, dry_run: bool = False
) -> tuple[Raw, bool]:
    """Deletes an object, or begins to: its last state, and whether it is gone.

    Raises:
        Failure: 403 or 409, it may not be deleted, or is not the one that was meant.
    """
    _check_not_of_the_system(kind, raw)
    check_to_delete(kind, raw, options.get("preconditions") or {})
    if kind is catalog.NAMESPACE:
        return _delete_namespace(store, raw, options, now, dry_run)
    if kind is catalog.CUSTOM_RESOURCE_DEFINITION:
        return _delete_definition(store, raw, now, dry_run)
    meta = raw["metadata"]
    grace = _grace(kind, raw, options)
    finalizers = _finalizers(kind, meta, options)
    if grace == 0 and not finalizers:
        if dry_run:
            return raw, True
        return remove(store, kind, meta.get("namespace", ""), meta["name"], now), True
    marked = _marked(meta, finalizers, grace, now)
    if marked == meta:
        return raw, False
    made = {**raw, "metadata": marked}
    if dry_run:
        return made, False
    stored = store.put(kind.resource, meta.get("namespace", ""), meta["name"], made)
    return _cascaded(store, kind, stored, now) if isinstance(kind, CustomKind) else (stored, False)


def _check_not_of_the_system(kind: Kind, raw: Raw) -> None:
    name = raw["metadata"]["name"]
    if kind is catalog.PRIORITY_CLASS and name in priority.SYSTEM:
        raise status.forbidden(kind, name, "this is a system priority class and cannot be deleted")


def check_preconditions(kind: Kind, raw: Raw, wanted: Raw) -> None:
    """Refuses (409) unless `raw` has the uid and resourceVersion that are `wanted`."""
    meta = raw["metadata"]
    for key, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if wanted.get(key) and wanted[key] != meta[key]:
            why = f"Precondition failed: {word} in precondition: {wanted[key]}, {word} in object meta: {meta[key]}"
            raise status.conflict(kind, meta["name"], why)


def check_to_delete(kind: Kind, raw: Raw, wanted: Raw) -> None:
    """Likewise before a deletion, in the words for that; the Status names the kind and no resource, as upstream."""
    meta = raw["metadata"]
    for key, word, why in _UNLIKE:
        if wanted.get(key) and wanted[key] != meta[key]:
            said = f"the {word} in the precondition ({wanted[key]}) does not match the {word} in record ({meta[key]})"
            raise status.deletion_conflict(kind, meta["name"], f"{said}. {why}")


_UNLIKE = (
    ("uid", "UID", "The object might have been deleted and then recreated"),
    ("resourceVersion", "ResourceVersion", "The object might have been modified"),
)


def _grace(kind: Kind, raw: Raw, options: Json) -> int:
    """Seconds that the object has left. Only pods have any, and only while a kubelet looks after them."""
    if kind is not catalog.POD:
        return 0
    asked: int | None = options.get("gracePeriodSeconds")
    if asked is None:
        own: int = raw["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE)
        asked = min(own, LONGEST_GRACE) if own >= 0 else 1
    if not raw["spec"].get("nodeName") or raw.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    return asked


def _finalizers(kind: Kind, meta: Raw, options: Json) -> list[str]:
    """The object's finalizers, with the one that the propagation policy asks for."""
    kept = list(meta.get("finalizers", ()))
    policy = options.get("propagationPolicy")
    if policy is None and options.get("orphanDependents") is not None:
        policy = "Orphan" if options["orphanDependents"] else "Background"
    if policy is None:
        if kind is not catalog.JOB or ORPHAN in kept or FOREGROUND in kept:
            return kept
        policy = "Orphan"  # batch/v1 keeps the pods of a deleted Job unless it is told otherwise
    kept = [name for name in kept if name not in (ORPHAN, FOREGROUND)]
    wanted = _FINALIZER_OF[policy]
    return [*kept, wanted] if wanted else kept


def _marked(meta: Raw, finalizers: list[str], grace: int, now: Instant) -> Json:
    """Metadata of an object that is being deleted; a deletion under way can only be made shorter."""
    made = {**meta, "finalizers": finalizers}
    if not finalizers:
        del made["finalizers"]
    if "deletionTimestamp" in meta and meta.get("deletionGracePeriodSeconds", 0) <= grace:
        return made
    if "deletionTimestamp" not in meta and "generation" in made:
        made["generation"] += 1
    made["deletionTimestamp"] = to_time(now + grace * SECOND)
    made["deletionGracePeriodSeconds"] = grace
    return made


def remove(store: Store, kind: Kind, namespace: str, name: str, now: Instant) -> Raw:
    """Takes an object out of the store, and with it what waited for that: its namespace, its definition."""
    last = store.remove(kind.resource, namespace, name)
    if store.count(DEFINITIONS, ""):
        _collect(store, kind, last, now)
    if namespace:
        finish_namespace(store, namespace)
    if isinstance(kind, CustomKind):
        definitions.finish(store, kind.resource, now)
    elif kind is catalog.CUSTOM_RESOURCE_DEFINITION:
        definitions.resettle(store, last["spec"]["group"], now)
    return last


# --- owners and dependents of users' kinds -----------------------------------------------------------------------


def _collect(store: Store, kind: Kind, gone: Raw, now: Instant) -> None:
    """Deletes what an object owned alone, and lets go of the owners that waited for it."""
    for each, raw in dependents.of(store, kind, gone):
        _drop(store, each, raw, gone["metadata"]["uid"], now)
    for owner_kind, owner in dependents.waiting_owners(store, gone):
        _finish_foreground(store, owner_kind, owner, now)


def _drop(store: Store, kind: Kind, raw: Raw, uid: str, now: Instant) -> None:
    meta = raw["metadata"]
    if store.get(kind.resource, meta.get("namespace", ""), meta["name"]) is not raw:
        return  # it has gone with another
    left = dependents.without_owner(raw, uid)
    if left is not None:
        store.put(kind.resource, meta.get("namespace", ""), meta["name"], left)
    else:
        delete_object(store, kind, raw, {"propagationPolicy": "Background"}, now)


def _cascaded(store: Store, kind: CustomKind, owner: Raw, now: Instant) -> tuple[Raw, bool]:
    """Does what the finalizers of an owner that is being deleted ask of the garbage collector."""
    meta = owner["metadata"]
    space, name = meta.get("namespace", ""), meta["name"]
    asked = meta.get("finalizers") or ()
    for each, raw in dependents.of(store, kind, owner) if {ORPHAN, FOREGROUND} & set(asked) else ():
        if ORPHAN in asked:
            inner = raw["metadata"]
            store.put(each.resource, inner.get("namespace", ""), inner["name"], dependents.disowned(raw, meta["uid"]))
        else:
            _drop(store, each, raw, meta["uid"], now)
    if ORPHAN in asked:
        _release(store, kind, owner, ORPHAN, now)
    elif FOREGROUND in asked and store.get(kind.resource, space, name) is owner:
        _finish_foreground(store, kind, owner, now)
    left = store.get(kind.resource, space, name)
    return (owner, True) if left is None else (left, False)


def _finish_foreground(store: Store, kind: CustomKind, owner: Raw, now: Instant) -> None:
    uid = owner["metadata"]["uid"]
    if not any(dependents.blocks(raw, uid) for _, raw in dependents.of(store, kind, owner)):
        _release(store, kind, owner, FOREGROUND, now)


def _release(store: Store, kind: CustomKind, owner: Raw, finalizer: str, now: Instant) -> None:
    made = dependents.released(owner, finalizer)
    meta = made["metadata"]
    if meta.get("finalizers"):
        store.put(kind.resource, meta.get("namespace", ""), meta["name"], made)
    else:
        remove(store, kind, meta.get("namespace", ""), meta["name"], now)


def delete_collection(call: Call, selected: list[Raw]) -> Response:
    """DELETE of a collection: deletes what was selected; 200 with a list of what it was."""
    options = read_options(call)
    dry_run = call.dry_run(options)
    deleted = []
    for raw in selected:
        _check_not_of_the_system(call.kind, raw)
        admission_chain.deleting(call, raw, options, dry_run=dry_run)
    for raw in selected:
        meta = raw["metadata"]
        there = call.store.get(call.kind.resource, meta.get("namespace", ""), meta["name"])
        if there is not None and there["metadata"] is meta:
            deleted.append(delete_object(call.store, call.kind, there, options, call.now, dry_run=dry_run)[0])
    deleted = list(map(call.kind.shown, deleted))
    meta = {"resourceVersion": str(call.store.revision)}
    body = {"kind": call.kind.list_kind, "apiVersion": call.kind.api_version, "metadata": meta, "items": deleted}
    return Response(200, body)


def _delete_definition(store: Store, raw: Raw, now: Instant, dry_run: bool) -> tuple[Raw, bool]:
    """Begins to delete a definition: its objects are deleted, and when the last of them has gone, so does it."""
    made = definitions.marked(raw, now)
    if dry_run:
        return made, False
    name = raw["metadata"]["name"]
    stored: Raw = raw if "deletionTimestamp" in raw["metadata"] else store.put(DEFINITIONS, "", name, made)
    for kind, each in definitions.objects(store, stored):
        delete_object(store, kind, each, {"propagationPolicy": "Background"}, now)
    definitions.finish(store, name, now)
    return stored, store.get(DEFINITIONS, "", name) is None


# --- namespaces --------------------------------------------------------------------------------------------------


def first_namespace_parts(made: Json) -> Json:
    """Spec and status of a new namespace."""
    finalizers = [name for name in made.get("spec", {}).get("finalizers", ()) if name != NAMESPACE_FINALIZER]
    spec = {**made.get("spec", {}), "finalizers": [*finalizers, NAMESPACE_FINALIZER]}
    return {"spec": spec, "status": {"phase": "Active"}}


def _namespaced(store: Store) -> list[Kind]:
    """Every kind whose objects are in namespaces, those that users have defined too."""
    return [kind for kind in (*catalog.KINDS, *registry.all_storing(store)) if kind.namespaced]


def _delete_namespace(store: Store, raw: Raw, options: Json, now: Instant, dry_run: bool) -> tuple[Raw, bool]:
    """Begins to delete a namespace: everything in it is deleted, and when the last of it has gone, so does it.

    Done again, it goes on with what is still there.
    """
    meta = raw["metadata"]
    name = meta["name"]
    if name in RESERVED_NAMESPACES[:3]:
        raise status.forbidden(catalog.NAMESPACE, name, "this namespace may not be deleted")
    begun = "deletionTimestamp" in meta
    marked = meta if begun else _marked(meta, list(meta.get("finalizers", ())), 0, now)
    made: Json = {**raw, "metadata": marked, "status": {**raw.get("status", {}), "phase": "Terminating"}}
    if dry_run:
        return made, False
    stored = raw if begun else store.put("namespaces", "", name, made)
    for kind in _namespaced(store):
        for inside in list(store.all(kind.resource, name)):
            delete_object(store, kind, inside, {"propagationPolicy": "Background"}, now)
    finish_namespace(store, name)
    return stored, store.get("namespaces", "", name) is None


def finish_namespace(store: Store, name: str) -> None:
    """Removes a namespace that is being deleted and is empty by now."""
    raw = store.get("namespaces", "", name)
    if raw is None or "deletionTimestamp" not in raw["metadata"]:
        return
    if any(store.count(kind.resource, name) for kind in _namespaced(store)):
        return
    others = [entry for entry in raw["spec"].get("finalizers", ()) if entry != NAMESPACE_FINALIZER]
    if raw["metadata"].get("finalizers") or others:
        return
    store.remove("namespaces", "", name)
