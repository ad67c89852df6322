"""Server-side apply: PATCH with application/apply-patch+yaml, which also creates."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from muster.api.validation.field import FieldError, Path
from muster.apiserver import decode, fieldsets, ownership, status
from muster.apiserver.custom.kinds import CustomKind
from muster.apiserver.custom.schema import shape_of
from muster.apiserver.ownership import Applied, Author
from muster.apiserver.patch import APPLY_PATCH as MEDIA_TYPE
from muster.apiserver.shapes import Shape
from muster.apiserver.state import Call

__all__ = ["MEDIA_TYPE", "author", "merged", "refuse_force"]

Json = dict[str, Any]


KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class _Loader(yaml.SafeLoader):
    """YAML as JSON could have it: times stay text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def wanted(call: Call) -> tuple[Json, Author]:
    """What a call applies, and for whom.

    Raises:
        Failure: 400 or 422; it is malformed, or does not say who applies.
    """
    manager = call.request.query.get("fieldManager") or ""
    if not manager:
        raise _options(Path("fieldManager").required("is required for apply patch"))
    decode.validation(call)
    config = decode.checked(call, _body(call))
    meta = config["metadata"] = dict(config.get("metadata") or {})
    if meta.get(ownership.KEY):
        raise status.bad_request("metadata.managedFields must be nil")
    meta.setdefault("name", call.name)
    if call.kind.namespaced:
        meta.setdefault("namespace", call.namespace)
    return config, author(call, manager, ownership.APPLY)


def author(call: Call, manager: str, operation: str) -> Author:
    kind = call.kind
    resets = kind.has_status and not call.subresource
    if isinstance(kind, CustomKind):
        return Author(manager, operation, call.subresource, call.now, resets, shape_of(kind), kind.api_version)
    return Author(manager, operation, call.subresource, call.now, resets)


def _body(call: Call) -> Any:
    given = call.request.body
    if not isinstance(given, bytes | bytearray | memoryview):
        return given
    if len(given) > decode.MAX_BODY:
        raise status.too_large(decode.MAX_BODY)
    text = bytes(given)
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return _from_yaml(text)
    return decode.text(call)


def _from_yaml(text: bytes) -> Any:
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, _Loader)):
            raise status.bad_request("the body uses YAML aliases, which are not served here")
        value = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as failure:
        raise status.bad_request(f"error decoding YAML: {str(failure).splitlines()[0]}") from None
    try:
        return decode.from_bytes(msgspec.json.encode(value))
    except (TypeError, RecursionError):
        raise status.bad_request("error decoding YAML: it is more than JSON can say") from None


def merged(call: Call, live: Json | None, before: ownership.Entries) -> Applied:
    """The object after the apply.

    Raises:
        Failure: 400, 409 (others own what it changes, and it does not force) or 422.
    """
    config, who = wanted(call)
    if live is None and (config["metadata"].get("uid") or config["metadata"].get("resourceVersion")):
        why = "uid mismatch: the provided object specified uid or resourceVersion, and no existing object was found"
        raise status.conflict(call.kind, call.name, why)
    made = ownership.applied(live, before, config, who)
    forced = call.flag("force")
    conflicts = made.conflicts
    if conflicts and not forced and live is not None and who.manager == KUBECTL:
        conflicts = ownership.beyond(conflicts, _applied_by_client(live, who.of or ownership.shape_of(live)))
    if conflicts and not forced:
        raise status.apply_conflict(ownership.conflict_message(conflicts), ownership.conflict_causes(conflicts))
    if who.manager == KUBECTL:
        _note_last_applied(made.object, config)
    return made


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
