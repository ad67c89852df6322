"""Pruning and defaults: a value as its structural schema lets it be stored. Nothing is changed in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.structure.values import EMBEDDED, PRESERVES, Schema

_OF_EVERY_OBJECT = ("apiVersion", "kind", "metadata")


def pruned(schema: Schema, value: Any, unknown: list[str] | None = None) -> Any:
    """A whole object without what its schema does not know; the paths of that go into `unknown`."""
    return _pruned(schema, value, "", [] if unknown is None else unknown, of_every_object=True)


def _pruned(schema: Schema, value: Any, path: str, unknown: list[str], *, of_every_object: bool = False) -> Any:
    if isinstance(value, dict):
        return _pruned_object(schema, value, path, unknown, of_every_object or bool(schema.get(EMBEDDED)))
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, Mapping):
        return [_pruned(items, item, f"{path}[{index}]", unknown) for index, item in enumerate(value)]
    return value


def _pruned_object(
    schema: Schema, value: dict[str, Any], path: str, unknown: list[str], of_every_object: bool
) -> dict[str, Any]:
    properties, values = schema.get("properties") or {}, schema.get("additionalProperties")
    preserves = schema.get(PRESERVES) or values is True
    made = {}
    for name, inner in value.items():
        at = f"{path}.{name}" if path else name
        if of_every_object and name in _OF_EVERY_OBJECT:
            made[name] = inner
        elif name in properties:
            made[name] = _pruned(properties[name], inner, at, unknown)
        elif isinstance(values, Mapping):
            made[name] = _pruned(values, inner, at, unknown)
        elif preserves:
            made[name] = inner
        else:
            unknown.append(at)
    return made


def defaulted(schema: Schema, value: Any) -> Any:
    """A value with the defaults of what it does not say, and without nulls where none may be."""
    if isinstance(value, dict):
        return _defaulted_object(schema, value)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, Mapping):
        return [defaulted(items, item) for item in value]
    return value


def _defaulted_object(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    properties, values = schema.get("properties") or {}, schema.get("additionalProperties")
    made = {}
    for name, inner in value.items():
        below = properties.get(name)
        if below is None and isinstance(values, Mapping):
            below = values
        if below is None:
            made[name] = inner
        elif inner is not None or below.get("nullable"):
            made[name] = defaulted(below, inner)
        elif "default" not in below and name not in properties:
            made[name] = None  # of a mapping's values, nulls stay, and are wrong
    for name, below in properties.items():
        if name not in made and below.get("default") is not None:
            made[name] = defaulted(below, below["default"])
    return made
