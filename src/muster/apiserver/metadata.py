"""The part of an object that belongs to the server: identity, time stamps, generation, finalizers."""

from __future__ import annotations

from typing import Any
from zlib import crc32

from muster.api import catalog
from muster.api.instant import to_time
from muster.api.validation.field import METADATA, FieldError
from muster.apiserver import status
from muster.apiserver.custom.kinds import CustomKind
from muster.apiserver.log import Raw
from muster.apiserver.state import Call

Json = dict[str, Any]

GENERATED_BASE = 58
"""Characters of generateName that are kept, so that name and suffix fit into a DNS label."""
SUFFIX = 5
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
ATTEMPTS = 8
"""Names that are tried for one generateName, as in the real server."""

_USERS = ("labels", "annotations", "ownerReferences", "finalizers")
_IMMUTABLE = ("uid", "creationTimestamp", "generateName", "deletionTimestamp", "deletionGracePeriodSeconds")
_COUNTED = frozenset(
    kind.plural
    for kind in (
        catalog.POD,
        catalog.JOB,
        catalog.RESOURCE_SLICE,
        catalog.DEVICE_TAINT_RULE,
        catalog.REPLICA_SET,
        catalog.DEPLOYMENT,
        catalog.STATEFUL_SET,
        catalog.DAEMON_SET,
        catalog.POD_DISRUPTION_BUDGET,
        catalog.PRIORITY_CLASS,
        catalog.WORKLOAD,
        catalog.POD_GROUP,
        catalog.COMPOSITE_POD_GROUP,
        catalog.CUSTOM_RESOURCE_DEFINITION,
        catalog.CRON_JOB,
        catalog.REPLICATION_CONTROLLER,
        catalog.VALIDATING_ADMISSION_POLICY,
        catalog.VALIDATING_ADMISSION_POLICY_BINDING,
        catalog.VALIDATING_WEBHOOK_CONFIGURATION,
        catalog.MUTATING_WEBHOOK_CONFIGURATION,
    )
)
"""Resources whose generation counts changes of the spec."""


def for_create(call: Call, given: Raw) -> Json:
    """Metadata of a new object: what the user may say, and what the server says.

    Raises:
        Failure: 400 or 422; a field cannot be used on create, or there is no name.
    """
    if given.get("resourceVersion"):
        raise status.bad_request("metadata.resourceVersion must not be set on objects to be created")
    made: Json = {"name": _name(call, given)}
    if call.kind.namespaced:
        made["namespace"] = _namespace(call, given)
    elif given.get("namespace"):
        error = (METADATA / "namespace").forbidden("not allowed on this type")
        raise status.invalid(call.kind, made["name"], [error])
    made["uid"] = call.state.new_uid()
    made["creationTimestamp"] = to_time(call.now)
    if call.kind.resource in _COUNTED or isinstance(call.kind, CustomKind):
        made["generation"] = 1
    for key in ("generateName", *_USERS):
        if given.get(key):
            made[key] = given[key]
    return made


def _name(call: Call, given: Raw) -> str:
    name: str = given.get("name") or ""
    if not name and given.get("generateName"):
        name = _generated(call, given["generateName"])
    if not name:
        error = (METADATA / "name").required("name or generateName is required")
        raise status.invalid(call.kind, "", [error])
    if call.name and name != call.name:
        raise _other_name(call, name)
    if name in (".", "..") or "/" in name or "%" in name:
        error = (METADATA / "name").invalid(name, 'may not be "." or ".." and may not contain "/" or "%"')
        raise status.invalid(call.kind, name, [error])
    return name


def _generated(call: Call, base: str) -> str:
    """A name that is free; if ATTEMPTS are taken, the last one, which then is a conflict."""
    name = ""
    for _ in range(ATTEMPTS):
        name = base[:GENERATED_BASE] + suffix(call.state.new_uid())
        if call.store.get(call.kind.resource, call.namespace, name) is None:
            break
    return name


def suffix(uid: str) -> str:
    """Five letters and digits that look random, and are determined by the uid."""
    number, made = crc32(uid.encode()), ""
    for _ in range(SUFFIX):
        number, digit = divmod(number, len(ALPHABET))
        made += ALPHABET[digit]
    return made


def _namespace(call: Call, given: Raw) -> str:
    namespace: str = given.get("namespace") or call.namespace
    if namespace != call.namespace:
        raise status.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request: "
            f"{namespace!r} in metadata.namespace, {call.namespace!r} in the path"
        )
    return namespace


def _other_name(call: Call, name: str) -> status.Failure:
    return status.bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")


def for_update(call: Call, old: Raw, given: Raw) -> Json:
    """Metadata of a new version of the object with metadata `old`.

    Raises:
        Failure: 400, 409 or 422; it is another object, another version of it, or an immutable field changes.
    """
    if not given.get("name"):
        raise status.bad_request(f"the name of the object must be given: metadata.name, here {call.name!r}")
    if given["name"] != call.name:
        raise _other_name(call, given["name"])
    if call.kind.namespaced:
        _namespace(call, given)
    _check_identity(call, old, given)
    made = {key: value for key, value in old.items() if key not in _USERS}
    for key in _USERS:
        if given.get(key):
            made[key] = given[key]
    errors = _errors(old, given, made)
    if errors:
        raise status.invalid(call.kind, call.name, errors)
    return made


def _check_identity(call: Call, old: Raw, given: Raw) -> None:
    uid, revision = given.get("uid"), given.get("resourceVersion") or ""
    if revision and not (revision.isascii() and revision.isdigit()):
        raise status.bad_request(
            f"metadata.resourceVersion: want the one of the object that was read, not {revision!r}"
        )
    if uid and uid != old["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['uid']}"
        raise status.conflict(call.kind, call.name, why)
    if revision not in ("", "0") and revision != old["resourceVersion"]:
        raise status.modified(call.kind, call.name)


def check_revision(call: Call, given: Raw) -> None:
    """Refuses (422) a PUT that names no resourceVersion, where the kind wants one."""
    if call.kind.needs_revision and given.get("resourceVersion") in (None, "", "0"):
        error = (METADATA / "resourceVersion").invalid(0, "must be specified for an update")
        raise status.invalid(call.kind, call.name, [error])


def _errors(old: Raw, given: Raw, made: Raw) -> list[FieldError]:
    errors = []
    for key in _IMMUTABLE:
        if given.get(key, "") != "" and given[key] != old.get(key):
            errors.append((METADATA / key).invalid(given[key], "field is immutable"))
    if "deletionTimestamp" in old:
        added = [name for name in made.get("finalizers", ()) if name not in old.get("finalizers", ())]
        if added:
            why = f"no new finalizers can be added if the object is being deleted, found new finalizers {added}"
            errors.append((METADATA / "finalizers").forbidden(why))
    return errors


def next_generation(meta: Json) -> None:
    """Counts one change of the spec, where the kind counts them."""
    if "generation" in meta:
        meta["generation"] += 1


def finished(meta: Raw) -> bool:
    """Whether an object that is being deleted has nothing left to wait for."""
    return "deletionTimestamp" in meta and not meta.get("finalizers") and not meta.get("deletionGracePeriodSeconds")
