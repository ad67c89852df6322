"""What is wrong with a value, by its structural schema: field paths, reasons and words as the real server has them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from muster.api.structure.formats import BOUNDS, FORMATS, pattern
from muster.api.validation.field import FieldError, Path, Type

Schema = Mapping[str, Any]
Errors = Iterator[FieldError]

INT_OR_STRING = "x-kubernetes-int-or-string"
PRESERVES = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
LIST_TYPE, MAP_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"


def errors(schema: Schema, value: Any, path: Path) -> list[FieldError]:
    """Everything that is wrong with `value`, which is at `path`."""
    return list(_errors(schema, value, path))


def type_of(value: Any) -> str:
    """The JSON type of a value; a number without a fraction is an integer."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def same(one: Any, other: Any) -> bool:
    """Equality of JSON values, where true is not 1."""
    return bool(_frozen(one) == _frozen(other))


def _frozen(value: Any) -> Any:
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list | bool) else value


def _errors(schema: Schema, value: Any, path: Path) -> Errors:
    if value is None and schema.get("nullable"):
        return
    kind = type_of(value)
    wrong = _wrong_type(schema, kind, path)
    if wrong is not None:
        yield wrong
        return
    if kind == "string":
        yield from _text(schema, value, path)
    elif kind in ("integer", "number"):
        yield from _number(schema, value, path)
    elif kind == "array":
        yield from _list(schema, value, path)
    elif kind == "object":
        yield from _object(schema, value, path)
    if "enum" in schema and not any(same(value, entry) for entry in schema["enum"]):
        yield _unsupported(schema["enum"], value, path)
    yield from _junctions(schema, value, path)


def _wrong_type(schema: Schema, kind: str, path: Path) -> FieldError | None:
    wanted = schema.get("type", "")
    if schema.get(INT_OR_STRING):
        if kind in ("integer", "string"):
            return None
        wanted = "integer,string"
    elif not wanted or kind == wanted or (kind == "integer" and wanted == "number"):
        return None
    return _of_type(path, wanted, kind)


def _of_type(path: Path, wanted: str, shown: Any) -> FieldError:
    said = json.dumps(shown, ensure_ascii=False)
    return FieldError(str(path), Type.TYPE_INVALID, f"{path} in body must be of type {wanted}: {said}", shown)


def _unsupported(allowed: list[Any], value: Any, path: Path) -> FieldError:
    shown = [entry if isinstance(entry, str) else json.dumps(entry) for entry in allowed]
    return path.not_supported(value, shown)


def _text(schema: Schema, value: str, path: Path) -> Errors:
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    if longest is not None and len(value) > longest:
        yield path.too_long(longest)
    if shortest is not None and len(value) < shortest:
        yield path.invalid(value, f"{path} in body should be at least {shortest} chars long")
    if "pattern" in schema:
        matches = pattern(schema["pattern"])
        if matches is not None and not matches(value):
            yield path.invalid(value, f"{path} in body should match '{schema['pattern']}'")
    check = FORMATS.get(schema.get("format", ""))
    if check is not None and not schema.get(INT_OR_STRING) and not check(value):
        yield _of_type(path, schema["format"], value)


def _number(schema: Schema, value: float, path: Path) -> Errors:
    low, high = schema.get("minimum"), schema.get("maximum")
    if high is not None and (value >= high if schema.get("exclusiveMaximum") else value > high):
        than = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        yield path.invalid(value, f"{path} in body should be {than} {_plain(high)}")
    if low is not None and (value <= low if schema.get("exclusiveMinimum") else value < low):
        than = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield path.invalid(value, f"{path} in body should be {than} {_plain(low)}")
    step = schema.get("multipleOf")
    if step and not _is_multiple(value, step):
        yield path.invalid(value, f"{path} in body should be a multiple of {_plain(step)}")
    form = schema.get("format")
    if form in BOUNDS and not BOUNDS[form][0] <= value <= BOUNDS[form][1]:
        wanted = schema.get("type", "integer")
        yield path.invalid(value, f"{path} in body must be of type {wanted} with format {form}")


def _is_multiple(value: float, step: float) -> bool:
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    times = value / step
    return abs(times - round(times)) < 1e-9


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _list(schema: Schema, value: list[Any], path: Path) -> Errors:
    most, least = schema.get("maxItems"), schema.get("minItems")
    if most is not None and len(value) > most:
        yield path.too_many(len(value), most)
    if least is not None and len(value) < least:
        yield path.invalid(len(value), f"{path} in body should have at least {least} items")
    if schema.get("uniqueItems") and len({_key(item) for item in value}) < len(value):
        yield path.invalid(value, f"{path} in body shouldn't contain duplicates")
    items = schema.get("items")
    if isinstance(items, Mapping):
        for index, item in enumerate(value):
            yield from _errors(items, item, path // index)
    yield from _repeated(schema, value, path)


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _repeated(schema: Schema, value: list[Any], path: Path) -> Errors:
    """Items of a set or of a list with keys that come twice."""
    how = schema.get(LIST_TYPE)
    if how not in ("set", "map"):
        return
    keys, seen = schema.get(MAP_KEYS, ()), set[str]()
    for index, item in enumerate(value):
        if how == "map" and not isinstance(item, dict):
            continue
        shown = item if how == "set" else {key: item[key] for key in keys if key in item}
        key = _key(shown)
        if key in seen:
            yield (path // index).duplicate(shown)
        seen.add(key)


def _object(schema: Schema, value: Mapping[str, Any], path: Path) -> Errors:
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if most is not None and len(value) > most:
        yield path.too_many(len(value), most)
    if least is not None and len(value) < least:
        yield path.invalid(len(value), f"{path} in body should have at least {least} properties")
    for name in schema.get("required", ()):
        if name not in value:
            yield (path / name).required()
    if schema.get(EMBEDDED):
        yield from _embedded(value, path)
    properties, values = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, inner in value.items():
        if name in properties:
            yield from _errors(properties[name], inner, path / name)
        elif isinstance(values, Mapping):
            yield from _errors(values, inner, path / name)


def _embedded(value: Mapping[str, Any], path: Path) -> Errors:
    """A whole object inside another says what it is."""
    for name in ("apiVersion", "kind"):
        found = value.get(name)
        if found is None or found == "":
            yield (path / name).required("must not be empty")
        elif not isinstance(found, str):
            yield _of_type(path / name, "string", type_of(found))
    if not isinstance(value.get("metadata", {}), dict):
        yield _of_type(path / "metadata", "object", type_of(value["metadata"]))


def _junctions(schema: Schema, value: Any, path: Path) -> Errors:
    """allOf, anyOf, oneOf and not."""
    alternatives = schema.get("anyOf")
    if alternatives and not any(_holds(one, value, path) for one in alternatives):
        yield path.invalid(_shown(value), f"{path} in body must validate at least one schema (anyOf)")
        yield from _errors(_nearest(alternatives, value, path), value, path)
    alternatives = schema.get("oneOf")
    if alternatives:
        count = sum(_holds(one, value, path) for one in alternatives)
        if count != 1:
            said = "Found none valid" if count == 0 else f"Found {count} valid alternatives"
            message = f"{path} in body must validate one and only one schema (oneOf). {said}"
            yield path.invalid(_shown(value), message)
        if count == 0:
            yield from _errors(_nearest(alternatives, value, path), value, path)
    alternatives = schema.get("allOf")
    if alternatives and not all(_holds(one, value, path) for one in alternatives):
        yield path.invalid(_shown(value), f"{path} in body must validate all the schemas (allOf)")
        for one in alternatives:
            yield from _errors(one, value, path)
    if schema.get("not") is not None and _holds(schema["not"], value, path):
        yield path.invalid(_shown(value), f"{path} in body must not validate the schema (not)")


def _shown(value: Any) -> Any:
    return "" if isinstance(value, dict | list) else value


def _holds(schema: Schema, value: Any, path: Path) -> bool:
    return next(_errors(schema, value, path), None) is None


def _nearest(alternatives: list[Schema], value: Any, path: Path) -> Schema:
    """The alternative with the fewest errors, which says best what is missing."""
    return min(alternatives, key=lambda one: len(errors(one, value, path)))
