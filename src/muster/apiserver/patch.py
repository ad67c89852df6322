"""JSON patch (RFC 6902), merge patch (RFC 7386) and strategic merge patch, all without touching the original."""

from __future__ import annotations

from typing import Any, NamedTuple

import jsonpatch
import msgspec

from muster.api.calls import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from muster.apiserver import decode, status
from muster.apiserver.schema import Schema
from muster.apiserver.strategic import strategic_merge

APPLY_PATCH = decode.APPLY_PATCH
MEDIA_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
MAX_OPERATIONS = 10_000
LONGEST_SHOWN = 200
"""Characters of a path that a message repeats."""
_NEEDS: dict[str, tuple[str, ...]] = {
    "add": ("value",),
    "remove": (),
    "replace": ("value",),
    "move": ("from",),
    "copy": ("from",),
    "test": ("value",),
}
"""Members that an operation has beside `op` and `path`."""


def media_type(content_type: str) -> str:
    """The kind of patch that a request carries.

    Raises:
        Failure: 415, it is none of MEDIA_TYPES.
    """
    found = decode.content_type(content_type)
    if found not in MEDIA_TYPES:
        raise status.unsupported_media_type(content_type, MEDIA_TYPES)
    return found


def patched(media_type: str, schema: Schema, original: Any, patch: Any) -> Any:
    """`original` after `patch`, which is of one of MEDIA_TYPES but an apply, sharing what stayed the same.

    Raises:
        Failure: 400 for a malformed patch, 413 for one that is too much, 422 for one that cannot be applied.
    """
    if media_type == JSON_PATCH:
        return json_patched(original, patch)
    if not isinstance(patch, dict):
        raise status.bad_request(f"a patch of type {media_type} is a JSON object")
    if media_type == MERGE_PATCH:
        return merged(original, patch)
    return strategic_merge(schema.root, original, patch)


def merged(original: Any, patch: Any) -> Any:
    """RFC 7386: objects are merged, null removes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    made = dict(original) if isinstance(original, dict) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = merged(made.get(name), value)
    return made


def json_patched(original: Any, patch: Any) -> Any:
    """RFC 6902: all operations or none.

    Raises:
        Failure: 400 malformed, 413 too much, 422 an operation does not apply or a test failed.
    """
    if not isinstance(patch, list) or not all(isinstance(step, dict) for step in patch):
        raise status.bad_request("a JSON patch is an array of operations")
    if len(patch) > MAX_OPERATIONS:
        message = f"a JSON patch has at most {MAX_OPERATIONS} operations, not {len(patch)}"
        raise status.Failure(413, "RequestEntityTooLarge", message)
    steps = [_read(step, index) for index, step in enumerate(patch)]
    document = msgspec.json.decode(msgspec.json.encode(original))
    copied = 0
    for step in steps:
        if step.op in ("copy", "move"):
            copied += _weight(document, step)
            if copied > decode.MAX_BODY:
                raise status.too_large(decode.MAX_BODY)
        elif "value" in step.raw and decode.too_deep(step.raw["value"], _room(step.path)):
            raise decode.nested_too_deep()
        document = _applied(document, step)
    return document


class _Step(NamedTuple):
    """One operation of a JSON patch, of the right form."""

    number: int
    op: str
    path: str
    raw: dict[str, Any]

    def __str__(self) -> str:
        return f"operation {self.number} of the JSON patch ({self.op} {_short(self.path)})"


def _read(raw: dict[str, Any], index: int) -> _Step:
    op = raw.get("op")
    if not isinstance(op, str) or op not in _NEEDS:
        raise status.bad_request(f"operation {index} of the JSON patch: op must be one of {', '.join(_NEEDS)}")
    for member in ("path", *_NEEDS[op]):
        if member not in raw or (member != "value" and not isinstance(raw[member], str)):
            wanted = "a value" if member == "value" else f"a JSON pointer as its {member}"
            where = f"{op} {_short(raw['path'])}" if member != "path" else op
            raise status.bad_request(f"operation {index} of the JSON patch ({where}) is malformed: it needs {wanted}")
    return _Step(index, op, raw["path"], raw)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _applied(document: Any, step: _Step) -> Any:
    try:
        return jsonpatch.JsonPatch([step.raw]).apply(document, in_place=True)
    except (
        jsonpatch.JsonPatchException,
        jsonpatch.JsonPointerException,
        TypeError,
        ValueError,
        LookupError,
        AttributeError,
    ):
        raise status.unprocessable(f"{step} cannot be applied: {_why(step)}") from None


def _why(step: _Step) -> str:
    """What an operation that does not apply has met, without showing the object."""
    if step.op == "test":
        return "another value is there, or none"
    if step.op in ("remove", "replace"):
        return "nothing is there"
    if step.op == "add":
        return "what it would be part of is not there, or has no such place"
    return f"nothing is at {_short(step.raw['from'])}, or what it would be part of is not there"


def _room(path: str) -> int:
    """Levels that a value may have at this place."""
    return max(0, decode.MAX_DEPTH - path.count("/"))


def _weight(document: Any, step: _Step) -> int:
    """Bytes that a copy adds, or that a move takes deeper; repeated, they would otherwise grow without bound.

    Raises:
        Failure: 400, the value would be nested too deeply.
    """
    source = step.raw["from"]
    if step.op == "move" and step.path.count("/") <= source.count("/"):
        return 0
    try:
        value = jsonpatch.JsonPointer(source).resolve(document)
    except (jsonpatch.JsonPointerException, TypeError, ValueError, LookupError, AttributeError):
        return 0
    if decode.too_deep(value, _room(step.path)):
        raise decode.nested_too_deep()
    return len(msgspec.json.encode(value))
