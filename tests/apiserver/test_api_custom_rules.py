"""Rules in CEL of users' kinds (x-kubernetes-validations)."""

from __future__ import annotations

import copy

import pytest
from custom import PATH, SPEC, definition, run, version

from muster.api.calls import MERGE_PATCH

AT = "spec.versions[0].schema.openAPIV3Schema.properties[spec]"


def with_rules(*rules, of="", **more):
    spec = copy.deepcopy(SPEC)
    spec["properties"] |= more
    at = spec["properties"][of] if of else spec
    at["x-kubernetes-validations"] = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    return definition(version(spec=spec))


def causes(answer):
    assert answer.status == 422, answer.body
    return [(cause["field"], cause["reason"], cause["message"]) for cause in answer.body["details"]["causes"]]


def create(api, **spec):
    return api.call("POST", PATH, run(**spec))


def test_a_rule_that_does_not_hold_is_said_with_its_message(api):
    api.made(
        with_rules(
            {"rule": "self.workers % 2 == 0 || self.mode == 'async'", "message": "workers come in pairs"},
            {"rule": "!has(self.port) || self.port != 80", "fieldPath": ".port", "reason": "FieldValueForbidden"},
            {"rule": "self.workers < 10", "messageExpression": "'too many: ' + string(self.workers)"},
        )
    )
    assert create(api).status == 201
    assert causes(create(api, workers=3)) == [
        ("spec", "FieldValueInvalid", 'Invalid value: "object": workers come in pairs')
    ]
    assert causes(create(api, port=80))[0] == (
        "spec.port",
        "FieldValueForbidden",
        "Forbidden: failed rule: !has(self.port) || self.port != 80",
    )
    assert causes(create(api, workers=12))[0][2] == 'Invalid value: "object": too many: 12'


def test_a_rule_about_the_value_of_before_is_asked_on_updates(api):
    api.made(with_rules({"rule": "self == oldSelf", "message": "image stays"}, of="image"))
    assert create(api).status == 201
    answer = api.call("PATCH", f"{PATH}/a", {"spec": {"image": "y"}}, {}, MERGE_PATCH)
    assert causes(answer) == [("spec.image", "FieldValueInvalid", 'Invalid value: "string": image stays')]
    assert api.call("PATCH", f"{PATH}/a", {"spec": {"workers": 3}}, {}, MERGE_PATCH).status == 200


def test_an_old_value_that_may_be_absent_is_an_optional(api):
    rule = {"rule": "!oldSelf.hasValue() ? self < 5 : self >= oldSelf.value()", "optionalOldSelf": True}
    api.made(with_rules(rule, of="workers"))
    assert create(api, workers=6).status == 422
    assert create(api, workers=4).status == 201
    assert api.call("PATCH", f"{PATH}/a", {"spec": {"workers": 3}}, {}, MERGE_PATCH).status == 422
    assert api.call("PATCH", f"{PATH}/a", {"spec": {"workers": 9}}, {}, MERGE_PATCH).status == 200


def test_items_with_keys_are_compared_with_themselves(api):
    crd = with_rules()
    env = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["env"]
    env["items"]["x-kubernetes-validations"] = [{"rule": "!has(oldSelf.value) || self.value == oldSelf.value"}]
    api.made(crd)
    assert create(api, env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]).status == 201
    turned = {"spec": {"env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]}}
    assert api.call("PATCH", f"{PATH}/a", turned, {}, MERGE_PATCH).status == 200
    changed = {"spec": {"env": [{"name": "B", "value": "3"}, {"name": "C", "value": "1"}]}}
    answer = api.call("PATCH", f"{PATH}/a", changed, {}, MERGE_PATCH)
    assert [field for field, _, _ in causes(answer)] == ["spec.env[0]"]


def test_values_have_the_types_of_their_schema_and_fields_escaped_names(api):
    more = {
        "namespace": {"type": "string"},
        "a-b": {"type": "integer"},
        "span": {"type": "string", "format": "duration"},
        "raw": {"type": "string", "format": "byte"},
    }
    api.made(
        with_rules(
            "!has(self.until) || self.until == null || timestamp(self.until) > timestamp('2026-01-01T00:00:00Z')",
            "!has(self.rate) || self.rate / 2.0 < 5.0",
            "!has(self.__namespace__) || self.__namespace__ != 'kube-system'",
            "!has(self.a__dash__b) || self.a__dash__b > 0",
            "!has(self.span) || duration(self.span) < duration('1h')",
            "!has(self.raw) || self.raw != b'no'",
            "!has(self.limits) || self.limits.all(name, self.limits[name] >= 0)",
            **more,
        )
    )
    good = {"until": "2027-01-01T00:00:00Z", "rate": 4, "namespace": "a", "a-b": 1, "span": "30m", "limits": {"x": 1}}
    assert create(api, **good).status == 201
    for name, value in {
        "until": "2025-01-01T00:00:00Z", "rate": 12, "namespace": "kube-system", "a-b": 0, "span": "2h",
        "limits": {"x": -1}, "raw": "bm8=",
    }.items():  # fmt: skip
        assert len(causes(create(api, **{**good, name: value}))) == 1, name


def test_rules_are_not_asked_about_what_the_schema_refuses(api):
    api.made(with_rules("self.workers > 1"))
    found = causes(create(api, workers="3"))
    assert [field for field, _, _ in found] == ["spec.workers", "<nil>"]
    assert "some validation rules were not checked" in found[1][2]


def test_a_rule_that_comes_to_no_value_refuses(api):
    api.made(with_rules("self.nothing > 1"))
    (found,) = causes(create(api))
    assert found[0] == "spec" and "rule evaluation error" in found[2]


@pytest.mark.parametrize(
    ("rule", "field", "reason"),
    [
        ({"rule": "self.a >"}, "rule", "FieldValueInvalid"),
        ({"rule": ""}, "rule", "FieldValueRequired"),
        ({"rule": "'text'"}, "rule", "FieldValueInvalid"),
        ({"rule": "unheard(self)"}, "rule", "FieldValueInvalid"),
        ({"rule": "true", "messageExpression": "1"}, "messageExpression", "FieldValueInvalid"),
        ({"rule": "true", "reason": "Because"}, "reason", "FieldValueNotSupported"),
        ({"rule": "true", "fieldPath": ".none"}, "fieldPath", "FieldValueInvalid"),
        ({"rule": "true", "message": "two\nlines"}, "message", "FieldValueInvalid"),
        ({"rule": "true", "optionalOldSelf": True}, "optionalOldSelf", "FieldValueInvalid"),
    ],
)
def test_a_rule_must_be_one(api, rule, field, reason):
    found = causes(api.create(with_rules(rule)))
    assert (f"{AT}.x-kubernetes-validations[0].{field}", reason) in [each[:2] for each in found]


def test_items_that_nobody_can_tell_apart_have_no_old_value(api):
    crd = with_rules()
    tags = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["tags"]
    tags["items"]["x-kubernetes-validations"] = [{"rule": "self == oldSelf"}]
    (found,) = causes(api.create(crd))
    assert found[0] == f"{AT}.properties[tags].items.x-kubernetes-validations[0].rule"
