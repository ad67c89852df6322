"""x-kubernetes-validations: rules in CEL about the values of a structural schema.

Unlike the real server's, expressions are compiled without types: a field that no schema has is an error where the rule
is evaluated, not where it is defined. Times and durations are strings: `timestamp(self.at)` and `duration(self.every)`
are right on both. Costs are not estimated.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from muster.api.cel import programs
from muster.api.structure import jsonpath
from muster.api.structure.values import INT_OR_STRING, LIST_TYPE, MAP_KEYS, Schema, type_of
from muster.api.validation.field import FieldError, Path, Type

Errors = Iterator[FieldError]
Rule = Mapping[str, Any]

VALIDATIONS = "x-kubernetes-validations"
REASONS = {
    "FieldValueInvalid": Type.INVALID,
    "FieldValueForbidden": Type.FORBIDDEN,
    "FieldValueRequired": Type.REQUIRED,
    "FieldValueDuplicate": Type.DUPLICATE,
}
NOT_CHECKED = FieldError(
    "<nil>",
    Type.INVALID,
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation",
    "null",
)
_NAMES = frozenset({"self", "oldSelf"})
_OLD = re.compile(r"\boldSelf\b", re.ASCII)
_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")
_KEYWORDS = frozenset(
    ("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
     "let", "loop", "package", "namespace", "return", "var", "void", "while")
)  # fmt: skip
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_OF_ROOT = ("name", "generateName")


def used(schema: Any) -> bool:
    """Whether there is a rule anywhere in a schema."""
    if not isinstance(schema, Mapping):
        return False
    return bool(schema.get(VALIDATIONS)) or any(map(used, _inside(schema)))


def _inside(schema: Schema) -> Iterable[Any]:
    return (*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties"))


# --- what a rule may be ------------------------------------------------------------------------------------------


def rule_errors(schema: Any, path: Path, *, correlates: bool = True) -> Errors:
    """What is wrong with the rules in a schema: they must compile, and see an old value only where there can be one."""
    if not isinstance(schema, Mapping):
        return
    for index, rule in enumerate(schema.get(VALIDATIONS) or ()):
        yield from _rule_errors(rule, schema, path / VALIDATIONS // index, correlates)
    for name, inner in (schema.get("properties") or {}).items():
        yield from rule_errors(inner, (path / "properties").key(name), correlates=correlates)
    keyed = correlates and schema.get(LIST_TYPE) == "map"
    yield from rule_errors(schema.get("items"), path / "items", correlates=keyed)
    yield from rule_errors(schema.get("additionalProperties"), path / "additionalProperties", correlates=correlates)


def _rule_errors(rule: Rule, schema: Schema, path: Path, correlates: bool) -> Errors:
    text = rule.get("rule") or ""
    if not text.strip():
        yield (path / "rule").required("rule is not specified")
        return
    yield from _compiled(text, "bool", path / "rule")
    if rule.get("messageExpression"):
        yield from _compiled(rule["messageExpression"], "string", path / "messageExpression")
    elif "\n" in text and not rule.get("message"):
        yield (path / "message").required("message must be specified if rule contains line breaks")
    if "\n" in (rule.get("message") or ""):
        yield (path / "message").invalid(rule["message"], "message must not contain line breaks")
    if rule.get("reason") and rule["reason"] not in REASONS:
        yield (path / "reason").not_supported(rule["reason"], REASONS)
    if rule.get("fieldPath"):
        yield from _field_path(rule["fieldPath"], schema, path / "fieldPath")
    if is_transition(rule) and not correlates:
        yield (path / "rule").invalid(text, "oldSelf cannot be used on the uncorrelatable portion of the schema")
    if rule.get("optionalOldSelf") and not is_transition(rule):
        why = "may not be set if oldSelf is not used in rule"
        yield (path / "optionalOldSelf").invalid(True, why)


def _compiled(text: str, kind: str, path: Path) -> Errors:
    try:
        program = programs.compiled(text, _NAMES)
    except programs.CompileError as failure:
        yield path.invalid(text, str(failure))
        return
    if not program.yields(kind):
        yield path.invalid(text, f"cel expression must evaluate to a {kind}")


def _field_path(text: str, schema: Schema, path: Path) -> Errors:
    fields = jsonpath.fields(text)
    for name in fields or ():
        found = (schema.get("properties") or {}).get(name)
        if found is None:
            fields = None
            break
        schema = found
    if fields is None:
        yield path.invalid(text, "fieldPath must be a valid path: names of fields that the schema has, such as .a.b")


def is_transition(rule: Rule) -> bool:
    """Whether a rule is about the value of before, too."""
    return bool(_OLD.search(_QUOTED.sub("''", rule.get("rule") or "")))


# --- what rules say of a value -----------------------------------------------------------------------------------


def errors(schema: Schema, new: Any, old: Any, path: Path) -> list[FieldError]:
    """What the rules of a schema say against a whole object; `old` is None where there was none."""
    return list(_errors(schema, _of_rules(new), None if old is None else _of_rules(old), path))


def _of_rules(whole: Mapping[str, Any]) -> dict[str, Any]:
    """A whole object as rules see it: of the metadata only the name."""
    meta = whole.get("metadata") or {}
    return {**whole, "metadata": {key: meta[key] for key in _OF_ROOT if key in meta}}


def _errors(schema: Schema, value: Any, old: Any, path: Path) -> Errors:
    if value is None or not used(schema):
        return
    for rule in schema.get(VALIDATIONS) or ():
        yield from _judged(rule, schema, value, old, path)
    if isinstance(value, dict):
        properties, held = schema.get("properties") or {}, schema.get("additionalProperties")
        before = old if isinstance(old, dict) else {}
        for name, inner in value.items():
            below = properties.get(name, held)
            if isinstance(below, Mapping):
                at = path / name if name in properties else path.key(name)
                yield from _errors(below, inner, before.get(name), at)
    elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        keyed = _keyed(schema, old)
        for index, item in enumerate(value):
            yield from _errors(schema["items"], item, keyed.get(_key(schema, item)), path // index)


def _keyed(schema: Schema, old: Any) -> dict[Any, Any]:
    """The items of before by their keys, where a list has any."""
    if schema.get(LIST_TYPE) != "map" or not isinstance(old, list):
        return {}
    return {_key(schema, item): item for item in old}


def _key(schema: Schema, item: Any) -> Any:
    if not isinstance(item, dict) or schema.get(LIST_TYPE) != "map":
        return None
    return tuple((type_of(item.get(key)), item.get(key)) for key in schema.get(MAP_KEYS) or ())


def _judged(rule: Rule, schema: Schema, value: Any, old: Any, path: Path) -> Errors:
    transition = is_transition(rule)
    optional = bool(rule.get("optionalOldSelf"))
    if transition and old is None and not optional:
        return
    given = {"self": seen(schema, value)}
    if transition:
        before = None if old is None else seen(schema, old)
        text = rule["rule"]
        given["oldSelf"] = before
        if optional:
            text = _OLD.sub("optional.none()" if old is None else "optional.of(oldSelf)", text)
    else:
        text = rule["rule"]
    try:
        holds = programs.compiled(text, _NAMES).evaluate(given)
    except ValueError as failure:
        yield path.invalid(type_of(value), f"rule evaluation error: {failure}: rule {rule['rule']!r}")
        return
    if holds is not True:
        yield _broken(rule, given, value, path)


def _broken(rule: Rule, given: Mapping[str, Any], value: Any, path: Path) -> FieldError:
    message = rule.get("message") or f"failed rule: {rule['rule']}"
    if rule.get("messageExpression"):
        try:
            said = programs.compiled(rule["messageExpression"], _NAMES).evaluate(given)
            message = said if isinstance(said, str) and said.strip() and "\n" not in said else message
        except ValueError:
            pass  # the message stands in, as in the real server
    for name in jsonpath.fields(rule.get("fieldPath") or "") or ():
        path = path / name
    kind = REASONS[rule.get("reason") or "FieldValueInvalid"]
    return FieldError(str(path), kind, message, type_of(value))


def seen(schema: Schema, value: Any) -> Any:
    """A value as rules see it: numbers and bytes of their types, names of fields escaped."""
    if value is None or schema.get(INT_OR_STRING):
        return value
    if isinstance(value, dict):
        properties, held = schema.get("properties") or {}, schema.get("additionalProperties")
        made = {}
        for name, inner in value.items():
            below = properties.get(name, held)
            made[escaped(name) if properties else name] = seen(below, inner) if isinstance(below, Mapping) else inner
        return made
    if isinstance(value, list):
        items = schema.get("items")
        return [seen(items, item) for item in value] if isinstance(items, Mapping) else value
    return _scalar(schema, value)


def _scalar(schema: Schema, value: Any) -> Any:
    kind, form = schema.get("type"), schema.get("format")
    if kind == "number" and not isinstance(value, bool):
        return float(value)
    if kind == "integer" and isinstance(value, float):
        return int(value)
    if kind == "string" and form == "byte":
        return base64.b64decode(value)
    return value


def escaped(name: str) -> str:
    """The name of a field as expressions write it."""
    if name in _KEYWORDS:
        return f"__{name}__"
    for given, written in _ESCAPES:
        name = name.replace(given, written)
    return name
