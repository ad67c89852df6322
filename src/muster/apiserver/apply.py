"""Server-side apply: PATCH with application/apply-patch+yaml, which also creates."""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec

from muster.api.validation.field import FieldError, Path
from muster.apiserver import decode, fieldsets, ownership, status, yaml_bodies
from muster.apiserver.custom.kinds import CustomKind
from muster.apiserver.custom.schema import shape_of
from muster.apiserver.ownership import Applied, Author
from muster.apiserver.patch import APPLY_PATCH as MEDIA_TYPE
from muster.apiserver.shapes import Shape
from muster.apiserver.state import Call

__all__ = [
    "MEDIA_TYPE",
    "author",
    "body",
    "completed",
    "manager_of",
    "merged",
    "refuse_conflicts",
    "refuse_force",
]

Json = dict[str, Any]
MOST_MISTAKES = 10

KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def wanted(call: Call) -> tuple[Json, Author]:
    """What a call applies, and for whom.

    Raises:
        Failure: 400 or 422; it is malformed, or does not say who applies.
    """
    manager = manager_of(call)
    return completed(call, decode.checked(call, body(call))), author(call, manager, ownership.APPLY)


def manager_of(call: Call) -> str:
    """Who applies.

    Raises:
        Failure: 422, it is not said.
    """
    manager = call.request.query.get("fieldManager") or ""
    if not manager:
        raise _options(Path("fieldManager").required("is required for apply patch"))
    decode.validation(call)
    return manager


def completed(call: Call, config: Json) -> Json:
    """A configuration with the name and namespace that the path says.

    Raises:
        Failure: 400, it says who owns what.
    """
    meta = config["metadata"] = dict(config.get("metadata") or {})
    if meta.get(ownership.KEY):
        raise status.bad_request("metadata.managedFields must be nil")
    meta.setdefault("name", call.name)
    if call.kind.namespaced:
        meta.setdefault("namespace", call.namespace)
    return config


def author(call: Call, manager: str, operation: str) -> Author:
    kind = call.kind
    resets = kind.status_keeps_metadata if call.subresource == "status" else kind.has_status and not call.subresource
    if isinstance(kind, CustomKind):
        return Author(manager, operation, call.subresource, call.now, resets, shape_of(kind), kind.api_version)
    return Author(manager, operation, call.subresource, call.now, resets)


def body(call: Call) -> Any:
    """The configuration that a call carries, in JSON or YAML.

    Raises:
        Failure: 400 or 413.
    """
    given = call.request.body
    if not isinstance(given, bytes | bytearray | memoryview):
        return given
    if len(given) > decode.MAX_BODY:
        raise status.too_large(decode.MAX_BODY)
    text = bytes(given)
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return yaml_bodies.value_of(text)
    return decode.text(call)


def merged(call: Call, live: Json | None, before: ownership.Entries) -> Applied:
    """The object after the apply.

    Raises:
        Failure: 400, 409 (others own what it changes, and it does not force) or 422.
    """
    config, who = wanted(call)
    if live is None and (config["metadata"].get("uid") or config["metadata"].get("resourceVersion")):
        why = "uid mismatch: the provided object specified uid or resourceVersion, and no existing object was found"
        raise status.conflict(call.kind, call.name, why)
    _refuse_mistakes(call, config, who)
    made = ownership.applied(live, before, config, who)
    conflicts = made.conflicts
    if conflicts and live is not None and who.manager == KUBECTL:
        conflicts = ownership.beyond(conflicts, _applied_by_client(live, who.of or ownership.shape_of(live)))
    refuse_conflicts(call, conflicts)
    if who.manager == KUBECTL:
        _note_last_applied(made.object, config)
    return made


def _refuse_mistakes(call: Call, config: Json, who: Author) -> None:
    """Applies no list whose items are not told apart, as the real server does not, with its words and its code.

    Raises:
        Failure: 500.
    """
    found = list(islice(fieldsets.mistakes(who.of or ownership.shape_of(config), config), MOST_MISTAKES))
    if found:
        group, _, version = config["apiVersion"].rpartition("/")
        what = f"{call.namespace}/{call.name}; {group}/{version}, Kind={config['kind']}"
        said = found[0] if len(found) == 1 else "errors:\n" + "\n".join(f"  {each}" for each in found)
        raise status.Failure(500, "", f"failed to create typed patch object ({what}): {said}")


def refuse_conflicts(call: Call, conflicts: ownership.Conflicts) -> None:
    """Lets nobody change what others own but by force.

    Raises:
        Failure: 409.
    """
    if conflicts and not call.flag("force"):
        raise status.apply_conflict(ownership.conflict_message(conflicts), ownership.conflict_causes(conflicts))


def _applied_by_client(live: Json, shape: Shape) -> set[fieldsets.Path]:
    """What kubectl's apply on the client has said, as far as it is still so: kubectl may take that over."""
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED, "")
    try:
        said = msgspec.json.decode(text, type=dict[str, Any])
        changes = fieldsets.compare(shape, said, live)
        return fieldsets.fields_of(shape, said) - changes.added - changes.modified - changes.removed
    except (msgspec.MsgspecError, RecursionError, AttributeError, KeyError, TypeError):
        return set()


def _note_last_applied(made: Json, config: Json) -> None:
    """Keeps the annotation of kubectl's apply on the client up to date where there is one."""
    annotations = made["metadata"].get("annotations") or {}
    if LAST_APPLIED in annotations:
        said = {**config, "metadata": {"annotations": {}, **config["metadata"]}}
        text = msgspec.json.encode(said).decode() + "\n"
        made["metadata"] = {**made["metadata"], "annotations": {**annotations, LAST_APPLIED: text}}


def refuse_force(call: Call) -> None:
    """Only an apply can be forced (422)."""
    if call.request.query.get("force"):
        raise _options(Path("force").forbidden("may not be specified for non-apply patch"))


def _options(error: FieldError) -> status.Failure:
    return status.unprocessable_options(error, "PatchOptions")
