"""What a schema of a custom resource may be: structural, with list and map types, defaults that are valid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from muster.api.structure import filling, values
from muster.api.structure.expressions import VALIDATIONS
from muster.api.structure.formats import pattern
from muster.api.structure.values import EMBEDDED, INT_OR_STRING, LIST_TYPE, MAP_KEYS, PRESERVES, Schema
from muster.api.validation.field import ROOT, FieldError, Path

Errors = Iterator[FieldError]

MAP_TYPE = "x-kubernetes-map-type"
TYPES = ("array", "boolean", "integer", "number", "object", "string")
JUNCTIONS = ("allOf", "anyOf", "oneOf")
DEEPEST = 60
"""Levels of a schema."""

_NEVER = {
    "$ref": "$ref is not supported",
    "definitions": "definitions is not supported",
    "dependencies": "dependencies is not supported",
    "id": "id is not supported",
    "patternProperties": "patternProperties is not supported",
    "additionalItems": "additionalItems is not supported",
}
_ONLY_OUTSIDE = (
    "additionalProperties", "default", "description", "nullable", "title", "type",
    EMBEDDED, INT_OR_STRING, LIST_TYPE, MAP_KEYS, MAP_TYPE, PRESERVES,
)  # fmt: skip
"""What says how values are built; inside allOf, anyOf, oneOf and not only rules about values may stand."""
_META = frozenset({"name", "generateName"})
_LIMITS = ("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties")


def errors(schema: Schema, path: Path) -> list[FieldError]:
    """Everything that keeps a schema from being structural, or makes it contradict itself."""
    return [*_root(schema, path), *_node(schema, path, 0, root=True)]


def _root(schema: Schema, path: Path) -> Errors:
    kind = schema.get("type", "")
    if not kind:
        yield (path / "type").required("must not be empty at the root")
    elif kind != "object":
        yield (path / "type").invalid(kind, "must be object at the root")
    if schema.get("nullable"):
        yield (path / "nullable").forbidden("nullable cannot be true at the root")
    if "default" in schema:
        yield (path / "default").forbidden("must not be set at the root")


def _node(schema: Schema, path: Path, depth: int, *, root: bool = False, where: str = "") -> Errors:
    if depth > DEEPEST:
        yield path.forbidden(f"schemas have at most {DEEPEST} levels")
        return
    yield from _own(schema, path)
    if not root:
        yield from _typed(schema, path, where)
    yield from _extensions(schema, path)
    if root or schema.get(EMBEDDED):
        yield from _of_metadata(schema, path)
    yield from _list(schema, path)
    yield from _inside(schema, path, depth)
    if not root and "default" in schema:
        yield from _default(schema, path / "default")


def _inside(schema: Schema, path: Path, depth: int) -> Errors:
    for name, inner in (schema.get("properties") or {}).items():
        yield from _node(inner, (path / "properties").key(name), depth + 1, where="specified object fields")
    items = schema.get("items")
    if isinstance(items, Mapping):
        yield from _node(items, path / "items", depth + 1, where="specified array items")
    held = schema.get("additionalProperties")
    if isinstance(held, Mapping):
        yield from _node(held, path / "additionalProperties", depth + 1, where="specified object fields")
    for name in JUNCTIONS:
        for index, one in enumerate(schema.get(name) or ()):
            yield from _value_rules(one, schema, path / name // index, path, name)
    if schema.get("not") is not None:
        yield from _value_rules(schema["not"], schema, path / "not", path, "not")


def _own(schema: Schema, path: Path) -> Errors:
    """What is no matter of where a node stands."""
    for name, why in _NEVER.items():
        if schema.get(name):
            yield (path / name).forbidden(why)
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield (path / "uniqueItems").forbidden(why)
    if schema.get("properties") and schema.get("additionalProperties") is not None:
        yield (path / "additionalProperties").forbidden("additionalProperties and properties are mutual exclusive")
    if schema.get("additionalProperties") is False:
        yield (path / "additionalProperties").forbidden("additionalProperties cannot be set to false")
    if "pattern" in schema and pattern(schema["pattern"]) is None:
        yield (path / "pattern").invalid(schema["pattern"], "must be a valid regular expression")
    for name in _LIMITS:
        if (schema.get(name) or 0) < 0:
            yield (path / name).invalid(schema[name], "must be greater than or equal to 0")
    if "multipleOf" in schema and schema["multipleOf"] <= 0:
        yield (path / "multipleOf").invalid(schema["multipleOf"], "must be greater than 0")
    for index, entry in enumerate(schema.get("enum") or ()):
        if any(values.same(entry, other) for other in schema["enum"][:index]):
            yield (path / "enum" // index).duplicate(entry)


def _typed(schema: Schema, path: Path, where: str) -> Errors:
    kind = schema.get("type", "")
    if schema.get(INT_OR_STRING):
        if kind:
            yield (path / "type").invalid(kind, "must be empty if x-kubernetes-int-or-string is true")
    elif not kind:
        if not schema.get(PRESERVES):
            yield (path / "type").required(f"must not be empty for {where}")
    elif kind not in TYPES:
        yield (path / "type").not_supported(kind, TYPES)


def _extensions(schema: Schema, path: Path) -> Errors:
    if schema.get(PRESERVES) is False:
        yield (path / PRESERVES).invalid(False, "must be true or undefined")
    if schema.get(EMBEDDED):
        if schema.get("type") != "object":
            yield (path / "type").invalid(
                schema.get("type", ""), "must be object if x-kubernetes-embedded-resource is true"
            )
        if not schema.get("properties") and not schema.get(PRESERVES):
            why = f"must not be empty if {EMBEDDED} is true without {PRESERVES}"
            yield (path / "properties").required(why)
    how = schema.get(MAP_TYPE)
    if how is not None:
        if schema.get("type") != "object":
            yield (path / "type").invalid(
                schema.get("type", ""), "must be object if x-kubernetes-map-type is specified"
            )
        if how not in ("atomic", "granular"):
            yield (path / MAP_TYPE).not_supported(how, ("atomic", "granular"))


def _of_metadata(schema: Schema, path: Path) -> Errors:
    """Metadata is the same everywhere; only what names may be can be said."""
    properties = schema.get("properties") or {}
    for name in ("apiVersion", "kind"):
        if name in properties and properties[name].get("type") != "string":
            at = (path / "properties").key(name) / "type"
            yield at.invalid(properties[name].get("type", ""), "must be string")
    meta = properties.get("metadata")
    if meta is None:
        return
    at = (path / "properties").key("metadata")
    if meta.get("type") != "object":
        yield (at / "type").invalid(meta.get("type", ""), "must be object")
    others = set(meta) - {"type", "description", "properties"}
    if others or set(meta.get("properties") or ()) - _META:
        yield at.forbidden(
            "must not specify anything other than name and generateName, but metadata is implicitly specified"
        )


def _list(schema: Schema, path: Path) -> Errors:
    items, how = schema.get("items"), schema.get(LIST_TYPE)
    if schema.get("type") == "array" and not isinstance(items, Mapping):
        yield (path / "items").required("must be specified")
        return
    keys = schema.get(MAP_KEYS) or ()
    if how is None and not keys:
        return
    if schema.get("type") != "array":
        yield (path / "type").invalid(schema.get("type", ""), "must be array if x-kubernetes-list-type is specified")
        return
    if how not in ("atomic", "set", "map"):
        yield (path / LIST_TYPE).not_supported(how or "", ("atomic", "map", "set"))
    if how != "map" and keys:
        yield (path / MAP_KEYS).forbidden("must be empty unless x-kubernetes-list-type is map")
    assert isinstance(items, Mapping)
    if how == "map":
        yield from _keyed(schema, items, keys, path)
    elif how == "set":
        yield from _set(items, path / "items")


def _keyed(schema: Schema, items: Schema, keys: Any, path: Path) -> Errors:
    if not keys:
        yield (path / MAP_KEYS).required("must not be empty if x-kubernetes-list-type is map")
    if items.get("type") != "object":
        why = "must be object if parent array's x-kubernetes-list-type is map"
        yield (path / "items" / "type").invalid(items.get("type", ""), why)
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        at = (path / "items" / "properties").key(key)
        if key in keys[:index]:
            yield (path / MAP_KEYS // index).duplicate(key)
        elif key not in properties:
            yield (path / MAP_KEYS // index).invalid(key, "entries must all be names of item properties")
        elif properties[key].get("type") in ("array", "object"):
            why = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield (at / "type").invalid(properties[key]["type"], why)
        elif key not in (items.get("required") or ()) and "default" not in properties[key]:
            why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            yield (at / "default").required(why)


def _set(items: Schema, path: Path) -> Errors:
    kind = items.get("type")
    if items.get("nullable"):
        yield (path / "nullable").forbidden("cannot be nullable when x-kubernetes-list-type is set")
    if kind == "object" and items.get(MAP_TYPE) != "atomic":
        why = "must be atomic as item of a list with x-kubernetes-list-type=set"
        yield (path / MAP_TYPE).invalid(items.get(MAP_TYPE), why)
    elif kind == "array" and items.get(LIST_TYPE, "atomic") != "atomic":
        why = "must be atomic as item of a list with x-kubernetes-list-type=set"
        yield (path / LIST_TYPE).invalid(items.get(LIST_TYPE), why)


def _value_rules(schema: Schema, outside: Schema | None, path: Path, owner: Path, junction: str) -> Errors:
    """A schema inside a junction: rules about values only, about fields that the schema outside has too."""
    either = outside is not None and outside.get(INT_OR_STRING) and set(schema) == {"type"}
    for name in _ONLY_OUTSIDE:
        if schema.get(name) not in (None, "", False) and not (either and junction in ("anyOf", "allOf")):
            yield (path / name).forbidden("must be empty to be structural")
    yield from _own({key: value for key, value in schema.items() if key != "additionalProperties"}, path)
    if schema.get(VALIDATIONS):
        yield (path / VALIDATIONS).forbidden("must be empty to be structural")
    known = (outside or {}).get("properties") or {}
    for name, inner in (schema.get("properties") or {}).items():
        at = (path / "properties").key(name)
        beside = known.get(name)
        if beside is None and not (outside or {}).get(PRESERVES) and not (outside or {}).get("additionalProperties"):
            yield (owner / "properties").key(name).required(f"because it is defined in {at}")
        yield from _value_rules(inner, beside, at, (owner / "properties").key(name), junction)
    items = schema.get("items")
    if isinstance(items, Mapping):
        beside = (outside or {}).get("items")
        if beside is None:
            yield (owner / "items").required(f"because it is defined in {path / 'items'}")
        yield from _value_rules(items, beside, path / "items", owner / "items", junction)
    for name in JUNCTIONS:
        for index, one in enumerate(schema.get(name) or ()):
            yield from _value_rules(one, outside, path / name // index, owner, name)
    if schema.get("not") is not None:
        yield from _value_rules(schema["not"], outside, path / "not", owner, "not")


def _default(schema: Schema, path: Path) -> Errors:
    """A default is a value that the schema takes as it is."""
    default = schema["default"]
    if default is None:
        if not schema.get("nullable"):
            yield path.invalid(default, "must not be null unless nullable is true")
        return
    unknown: list[str] = []
    filling.pruned(schema, default, unknown)
    if unknown:
        yield path.invalid(default, f"must not have unknown fields: {', '.join(sorted(unknown)[:10])}")
    for error in values.errors(schema, filling.defaulted(schema, default), ROOT):
        yield FieldError(f"{path}.{error.field}" if error.field else str(path), error.type, error.message, error.value)
