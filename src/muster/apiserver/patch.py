"""JSON patch (RFC 6902), merge patch (RFC 7386) and strategic merge patch, all without touching the original."""

from __future__ import annotations

from typing import Any

import jsonpatch
import msgspec

from muster.api.calls import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from muster.apiserver import decode, status
from muster.apiserver.schema import Schema
from muster.apiserver.strategic import strategic_merge

MEDIA_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)
MAX_OPERATIONS = 10_000
_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")


def patched(content_type: str, schema: Schema, original: Any, patch: Any) -> Any:
    """`original` after `patch`, sharing what stayed the same.

    Raises:
        Failure: 415 for another kind of patch, 400 for a malformed one, 422 for one that cannot be applied.
    """
    media_type = decode.content_type(content_type)
    if media_type == JSON_PATCH:
        return json_patched(original, patch)
    if media_type not in (MERGE_PATCH, STRATEGIC_PATCH):
        raise status.unsupported_media_type(content_type, MEDIA_TYPES)
    if not isinstance(patch, dict):
        raise status.bad_request(f"a patch of type {media_type} is a JSON object, not {type(patch).__name__}")
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
    document = msgspec.json.decode(msgspec.json.encode(original))
    copied = 0
    for index, step in enumerate(patch):
        if step.get("op") == "copy":
            copied += _size(document, step)
            if copied > decode.MAX_BODY:
                raise status.too_large(decode.MAX_BODY)
        document = _applied(document, step, index)
    return document


def _applied(document: Any, step: dict[str, Any], index: int) -> Any:
    if step.get("op") not in _OPERATIONS:
        raise status.bad_request(f"[{index}].op: want one of {', '.join(_OPERATIONS)}, not {step.get('op')!r}")
    try:
        return jsonpatch.JsonPatch([step]).apply(document, in_place=True)
    except jsonpatch.InvalidJsonPatch as failure:
        raise status.bad_request(f"operation {index} of the JSON patch is malformed: {failure}") from None
    except (
        jsonpatch.JsonPatchException,
        jsonpatch.JsonPointerException,
        TypeError,
        ValueError,
        LookupError,
    ) as failure:
        where = f"{step['op']} {step.get('path')}"
        raise status.unprocessable(
            f"operation {index} of the JSON patch ({where}) cannot be applied: {failure}"
        ) from None


def _size(document: Any, step: dict[str, Any]) -> int:
    """Bytes that a copy operation adds; repeated copies of copies would otherwise grow without bound."""
    try:
        value = jsonpatch.JsonPointer(str(step.get("from"))).resolve(document)
    except (jsonpatch.JsonPointerException, TypeError, AttributeError):
        return 0
    return len(msgspec.json.encode(value))
