"""Structural schemas: values that are generated from a schema fit it; pruning and defaults do what they do once."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.api.structure import filling, jsonpath, rules, values
from muster.api.structure.formats import FORMATS, pattern
from muster.api.validation.field import ROOT, Path

NAMES = ("a", "b", "c")
SCALARS = {
    "string": st.text("xyz", max_size=3),
    "integer": st.integers(-5, 5),
    "boolean": st.booleans(),
    "number": st.sampled_from([0, 1, 0.5, -2.5]),
}


@st.composite
def schemas(draw, depth=3):
    """A structural schema, with defaults that fit."""
    kind = draw(st.sampled_from([*SCALARS, *(["object", "object", "array"] if depth else [])]))
    made = {"type": kind}
    if kind == "object":
        how = draw(st.sampled_from(["properties", "properties", "values", "open"]))
        if how == "values":
            made["additionalProperties"] = draw(schemas(depth - 1))
        else:
            names = draw(st.lists(st.sampled_from(NAMES), unique=True))
            made["properties"] = {name: draw(schemas(depth - 1)) for name in names}
            made["required"] = [name for name in names if draw(st.booleans())]
            if how == "open":
                made["x-kubernetes-preserve-unknown-fields"] = True
    elif kind == "array":
        made["items"] = draw(schemas(depth - 1))
        if made["items"]["type"] in SCALARS and "nullable" not in made["items"] and draw(st.booleans()):
            made["x-kubernetes-list-type"] = "set"
    elif draw(st.booleans()):
        made["nullable"] = True
    if draw(st.booleans()):
        default = draw(fitting(made))
        if default is not None:
            made["default"] = filling.defaulted(made, default)
    return made


@st.composite
def fitting(draw, schema):
    """A value that a schema takes."""
    kind = schema["type"]
    if schema.get("nullable") and draw(st.integers(0, 4)) == 0:
        return None
    if kind in SCALARS:
        return draw(SCALARS[kind])
    if kind == "array":
        found = draw(st.lists(fitting(schema["items"]), max_size=2))
        if schema.get("x-kubernetes-list-type") == "set":
            found = [item for n, item in enumerate(found) if not any(values.same(item, one) for one in found[:n])]
        return found
    if "additionalProperties" in schema:
        return draw(st.dictionaries(st.sampled_from(NAMES), fitting(schema["additionalProperties"]), max_size=2))
    made = {}
    for name, inner in schema["properties"].items():
        if name in schema["required"] or draw(st.booleans()):
            made[name] = draw(fitting(inner))
    return made


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("xyz", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from([*NAMES, "z"]), inner, max_size=3),
    max_leaves=8,
)
QUICK = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def wrapped(schema):
    return {"type": "object", "properties": {"spec": schema}}


@QUICK
@given(st.data())
def test_generated_schemas_are_structural_and_take_what_is_made_for_them(data):
    schema = data.draw(schemas())
    assert rules.errors(wrapped(schema), ROOT) == []
    value = data.draw(fitting(schema))
    assert values.errors(schema, value, ROOT) == []
    unknown: list[str] = []
    assert filling.pruned(schema, value, unknown) == value and unknown == []
    assert values.errors(schema, filling.defaulted(schema, value), ROOT) == [], "defaults keep it valid"


@QUICK
@given(schemas(), ANYTHING)
def test_pruning_and_defaults_change_nothing_the_second_time_whatever_the_value(schema, value):
    before = json.dumps(value)
    once = filling.pruned(schema, value)
    assert filling.pruned(schema, once) == once
    filled = filling.defaulted(schema, once)
    assert filling.defaulted(schema, filled) == filled
    assert filling.pruned(schema, filled) == filled, "defaults are known fields"
    assert json.dumps(value) == before, "nothing is changed in place"
    values.errors(schema, value, ROOT)


@pytest.mark.parametrize(
    ("schema", "value", "wrong"),
    [
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"b": 1}, []),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, ["", "a"]),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": 1, "b": 1}, [""]),
        ({"allOf": [{"minimum": 1}, {"maximum": 3}]}, 4, ["", ""]),
        ({"not": {"enum": [1]}}, 1, [""]),
        ({"enum": [1, "a", True]}, 1.0, []),
        ({"enum": [1]}, True, [""]),
        ({"type": "integer"}, 2.0, []),
        ({"type": "integer", "format": "int32"}, 1 << 31, [""]),
        ({"type": "string", "nullable": True}, None, []),
        ({"type": "string"}, None, [""]),
        ({"type": "object", "minProperties": 1}, {}, [""]),
        ({"type": "string", "format": "unheard-of"}, "x", []),
    ],
)
def test_values_are_judged_by_every_keyword(schema, value, wrong):
    assert [error.field for error in values.errors(schema, value, Path(""))] == wrong


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        ("date-time", "2026-01-02T03:04:05Z", "2026-01-02"),
        ("date", "2026-01-02", "2026-13-02"),
        ("duration", "1h30m", "soon"),
        ("ipv4", "10.0.0.1", "::1"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("uuid", "8f14e45f-ceea-467f-a8f4-3c0f1b2c1a11", "8f14"),
        ("email", "a@b.example", "a"),
        ("hostname", "a.example", "a_b"),
        ("mac", "00:11:22:aa:bb:cc", "00:11"),
        ("byte", "aGk=", "a"),
        ("uri", "https://a.example/x", "x"),
        ("hexcolor", "#fff", "red"),
    ],
)
def test_formats_tell_good_from_bad(form, good, bad):
    assert FORMATS[form](good) and not FORMATS[form](bad)


@pytest.mark.parametrize(
    ("text", "value", "matches"),
    [
        ("^a$", "a\n", False),
        (r"^(\d+|\*)$", "*", True),
        ("(?i)^ab", "ABc", True),
        ("^(?i)[a-z]([-a-z]*[a-z])?$", "Ab-C", True),
        (r"a\z", "ba", True),
        ("b", "abc", True),
    ],
)
def test_patterns_are_those_of_the_real_server(text, value, matches):
    assert pattern(text)(value) is matches


def test_a_pattern_that_explodes_elsewhere_is_quick_here():
    assert pattern("^(a+)+$")("a" * 40 + "!") is False


@pytest.mark.parametrize("text", ["(", "(?=a)b", r"(a)\1"])
def test_what_is_no_pattern_of_the_real_server_is_none(text):
    assert pattern(text) is None


OBJECT = {
    "spec": {"n": 3, "list": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "m": {"x.y/z": "deep"}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.n", [3]),
        ("{.spec.n}", [3]),
        (".spec.list[1].v", [2]),
        (".spec.list[-1].k", ["b"]),
        (".spec.list[*].k", ["a", "b"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Gone')].status", []),
        (".spec.list[?(@.v!=1)].k", ["b"]),
        (r".spec.m.x\.y/z", ["deep"]),
        (".spec.m['x.y/z']", ["deep"]),
        (".spec.none.deeper", []),
    ],
)
def test_paths_of_columns_lead_where_they_say(path, found):
    assert jsonpath.found(jsonpath.path(path), OBJECT) == found


@pytest.mark.parametrize("text", ["..n", ".a[?(@.b<1)]", ".a[", "a b"])
def test_what_is_no_path_is_refused(text):
    with pytest.raises(ValueError, match="cannot be read"):
        jsonpath.path(text)
