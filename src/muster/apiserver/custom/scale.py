"""The subresource scale of a user's kind: at the paths that its definition names."""

from __future__ import annotations

from typing import Any

from muster.api.structure import jsonpath
from muster.apiserver import status
from muster.apiserver.custom.kinds import CustomKind
from muster.apiserver.log import Raw
from muster.apiserver.state import Call

Json = dict[str, Any]


def read(call: Call, raw: Raw) -> tuple[int, Json]:
    """How many replicas there are to be, and the status of the Scale.

    Raises:
        Failure: 500, what is at a path is no number.
    """
    assert isinstance(call.kind, CustomKind)
    paths = call.kind.scale
    wanted, present = (_number(raw, paths[key]) for key in ("specReplicasPath", "statusReplicasPath"))
    told: Json = {"replicas": present or 0}
    selector = _at(raw, paths["labelSelectorPath"]) if paths.get("labelSelectorPath") else None
    if isinstance(selector, str) and selector:
        told["selector"] = selector
    if wanted is None:
        why = f"the spec replicas field {paths['specReplicasPath']!r} does not exist"
        raise status.internal_error(why)
    return wanted, told


def written(kind: CustomKind, old: Raw, replicas: int) -> Json:
    """The object with another number of replicas."""
    fields = jsonpath.fields(kind.scale["specReplicasPath"]) or ()
    made: Json = _with(old, fields, replicas)
    return made


def _with(holder: Any, fields: tuple[str, ...], value: int) -> Any:
    if not fields:
        return value
    inner = holder if isinstance(holder, dict) else {}
    return {**inner, fields[0]: _with(inner.get(fields[0]), fields[1:], value)}


def _at(raw: Raw, path: str) -> Any:
    value: Any = raw
    for name in jsonpath.fields(path) or ():
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _number(raw: Raw, path: str) -> int | None:
    value = _at(raw, path)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise status.internal_error(f"the field {path} is no whole number")
    return value
