"""Bodies: from bytes or a decoded value to an object that has only fields the kind has, of the right types."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from muster.api.calls import JSON
from muster.api.validation.field import Path
from muster.apiserver import ownership, protobuf, status
from muster.apiserver.schema import Schema
from muster.apiserver.state import Call

APPLY_PATCH = "application/apply-patch+yaml"
MAX_BODY = 3 * 1024 * 1024
"""Bytes, the limit of the real server."""
MAX_DEPTH = 100
"""Levels of nesting; no API type needs more than about 20."""
VALIDATIONS = ("Strict", "Warn", "Ignore")
MOST_COMPLAINTS = 20


def content_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


def body(call: Call) -> Any:
    """The JSON value that the request carries.

    Raises:
        Failure: 400 for what is no JSON, 413 for too much of it.
    """
    given = call.request.body
    if not isinstance(given, bytes | bytearray | memoryview):
        return given
    if not given:
        raise status.bad_request("the request has no body, and needs one: a JSON value")
    if len(given) > MAX_BODY:
        raise status.too_large(MAX_BODY)
    if content_type(call.request.content_type) == protobuf.MEDIA_TYPE:
        return _from_protobuf(bytes(given))
    return from_bytes(bytes(given))


def _from_protobuf(text: bytes) -> dict[str, Any]:
    try:
        return protobuf.decoded(text)
    except ValueError as failure:
        raise status.bad_request(f"the body is not a valid object in protobuf form: {failure}") from None


def from_bytes(text: bytes) -> Any:
    """A JSON value of at most MAX_DEPTH levels.

    Raises:
        Failure: 400.
    """
    try:
        value = msgspec.json.decode(text)
    except RecursionError:
        raise nested_too_deep() from None
    except msgspec.MsgspecError as failure:
        raise status.bad_request(f"the body is not valid JSON: {failure}") from None
    if text.count(b"{") + text.count(b"[") > MAX_DEPTH and too_deep(value):
        raise nested_too_deep()
    return value


def too_deep(value: Any, levels: int = MAX_DEPTH) -> bool:
    """Whether a value has more than so many levels."""
    level = [value]
    for _ in range(levels):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return False
    return True


def _children(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def nested_too_deep() -> status.Failure:
    return status.bad_request(f"the body is nested more than {MAX_DEPTH} levels deep")


def text(call: Call) -> Any:
    """The JSON value that the request carries, with a complaint about members that come twice.

    Raises:
        Failure: 400 or 413.
    """
    validation(call)
    value = body(call)
    _note_duplicates(call, value)
    return value


def _note_duplicates(call: Call, value: Any) -> None:
    given = call.request.body
    if (
        isinstance(given, bytes)
        and validation(call) != "Ignore"
        and content_type(call.request.content_type) != protobuf.MEDIA_TYPE
        and may_repeat(given, value)
    ):
        _complain(call, [f'duplicate field "{path}"' for path in duplicates(given)])


def validation(call: Call) -> str:
    """What is done about unknown and duplicate fields: the query parameter fieldValidation.

    Raises:
        Failure: 422, it is none of VALIDATIONS.
    """
    mode = call.request.query.get("fieldValidation") or "Warn"
    if mode not in VALIDATIONS:
        error = Path("fieldValidation").not_supported(mode, sorted(VALIDATIONS))
        raise status.bad_options(call.request.method, error)
    return mode


def new_object(call: Call) -> dict[str, Any]:
    """The object of the call's kind in the body of a POST or PUT.

    Raises:
        Failure: 400 or 415; says which field is wrong.
    """
    given = content_type(call.request.content_type)
    if given not in (JSON, "", protobuf.MEDIA_TYPE):
        raise status.unsupported_media_type(call.request.content_type, [JSON, protobuf.MEDIA_TYPE])
    return checked(call, text(call))


def checked(call: Call, value: Any) -> dict[str, Any]:
    """`value` as an object of the call's kind: apiVersion and kind match, unknown fields and nulls are gone.

    Raises:
        Failure: 400; says which field is wrong.
    """
    kind = call.kind
    value = _mapping(value, f"an object of kind {kind.kind}")
    if value.get("apiVersion") != kind.api_version or value.get("kind") != kind.kind:
        value = {"apiVersion": kind.api_version, "kind": kind.kind, **_matching(value, kind.api_version, kind.kind)}
    return _fields(call, call.schema, value)


def part(call: Call, schema: Schema, api_version: str, kind: str, given: Any = None) -> dict[str, Any]:
    """The body of a subresource that takes a kind of its own (Binding, Eviction); `given` where it is read already.

    Raises:
        Failure: 400; says which field is wrong.
    """
    value = _matching(_mapping(text(call) if given is None else given, f"an object of kind {kind}"), api_version, kind)
    return _fields(call, schema, value)


def cleaned(call: Call, schema: Schema, value: Any) -> dict[str, Any]:
    """A value, such as the outcome of a patch, as a body of this schema.

    Raises:
        Failure: 400; says which field is wrong.
    """
    return _fields(call, schema, _mapping(value, "the outcome of the patch"))


def options(call: Call, schema: Schema) -> dict[str, Any]:
    """The DeleteOptions in the body of a DELETE; none is fine.

    Raises:
        Failure: 400.
    """
    given = call.request.body
    value = body(call) if given is not None and given != b"" else None
    if value is None:
        return {}
    value = _mapping(value, "DeleteOptions")
    if value.get("kind", "DeleteOptions") != "DeleteOptions":
        raise status.bad_request(f"the body of a DELETE is of kind DeleteOptions, not {value['kind']!r}")
    return _fields(call, schema, value)


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    raise status.bad_request(f"the body must be a JSON object: {what}")


def _matching(value: dict[str, Any], api_version: str, kind: str) -> dict[str, Any]:
    for field, wanted in (("apiVersion", api_version), ("kind", kind)):
        given = value.get(field)
        if given is not None and given != "" and given != wanted:
            raise status.bad_request(
                f"{field} in the data ({given}) does not match what this path takes ({wanted}): "
                f"want apiVersion {api_version}, kind {kind}"
            )
    return {key: part for key, part in value.items() if part or key not in ("apiVersion", "kind")}


def _fields(call: Call, schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    meta = value.get("metadata")
    if isinstance(meta, dict) and isinstance(meta.get(ownership.KEY), ownership.Deferred):
        value = ownership.undressed(value)  # a stored object that comes back in process
    if schema.fits(value):
        return value
    if too_deep(value):
        raise nested_too_deep()
    cleaned, findings = schema.clean(value)
    if findings.wrong:
        wrong = findings.wrong[:MOST_COMPLAINTS]
        causes = [
            {"reason": "FieldValueTypeInvalid", "message": error.message, "field": error.field} for error in wrong
        ]
        raise status.bad_request(f"{call.kind.kind} cannot be read: {'; '.join(map(str, wrong))}", causes)
    _complain(call, [f'unknown field "{path}"' for path in findings.unknown])
    made: dict[str, Any] = cleaned
    return made


def _complain(call: Call, complaints: list[str]) -> None:
    """Refuses, warns of, or ignores what is not clean, as the query parameter fieldValidation says."""
    mode = validation(call)
    if mode == "Strict" and complaints:
        said = f"strict decoding error: {', '.join(complaints[:MOST_COMPLAINTS])}"
        if call.request.method == "PATCH" and content_type(call.request.content_type) != APPLY_PATCH:
            raise status.unprocessable_patch(call.request.body, said)
        if call.request.method == "PATCH":
            raise status.bad_request(said)
        kind = call.kind
        raise status.bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {said}')
    if mode == "Warn":
        call.warnings.extend(complaints[: MOST_COMPLAINTS - len(call.warnings)])


class _Repeating(dict[str, Any]):
    """An object of JSON text in which a member came more than once."""

    repeated: tuple[str, ...] = ()


def may_repeat(text: bytes, value: Any) -> bool:
    """Whether JSON text may have more members than the value that was read from it; less work than `duplicates`.

    Without escapes, `":` stands behind the name of each member, and where a text begins with a colon: both as often in
    the value's own JSON, unless a member was lost.
    """
    if b"\\" in text or b" :" in text or b"\t:" in text or b"\n:" in text or b"\r:" in text:
        return True  # not to be counted like this
    return text.count(b'":') != msgspec.json.encode(value).count(b'":')


def duplicates(text: bytes) -> list[str]:
    """Paths of the members that JSON text has more than once in one object."""
    met = False

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal met
        made = dict(pairs)
        if len(made) == len(pairs):
            return made
        met = True
        names = [name for name, _ in pairs]
        repeating = _Repeating(made)
        repeating.repeated = tuple(name for name in made if names.count(name) > 1)
        return repeating

    value = json.loads(text, object_pairs_hook=build)
    return list(_repeated(value, "")) if met else []


def _repeated(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name in getattr(value, "repeated", ()):
            yield f"{path}.{name}" if path else name
        for name, inner in value.items():
            yield from _repeated(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _repeated(inner, f"{path}[{index}]")
