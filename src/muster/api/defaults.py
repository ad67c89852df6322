"""Defaults, and what is dropped before validation.

Copy on write: a function here replaces the values along the path it changes and never writes into a nested value that
it was given, so an object may share structure with the store and with whoever sent it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Raw = Mapping[str, Any]
Json = dict[str, Any]


def without_nulls(raw: Raw) -> Json:
    """A new top level without members that are null, at any depth: to Kubernetes null is absent."""
    return {key: _pruned(value) for key, value in raw.items() if value is not None}


def _pruned(value: Any) -> Any:
    """`value` itself where it holds no null, else a copy without them; an entry of a list is never removed."""
    if type(value) is dict:
        for member in value.values():
            if member is None or (type(member) in (dict, list) and _pruned(member) is not member):
                return {key: _pruned(entry) for key, entry in value.items() if entry is not None}
        return value
    if type(value) is list:
        for entry in value:
            if type(entry) in (dict, list) and _pruned(entry) is not entry:
                return [_pruned(item) for item in value]
    return value


def settle_status(obj: Json, old: Raw | None, *, keeps: bool) -> None:
    """On create the status is emptied unless the kind `keeps` it; on update it is the stored one."""
    if old is None:
        if not keeps:
            obj.pop("status", None)
    elif "status" in old:
        obj["status"] = old["status"]
    else:
        obj.pop("status", None)
