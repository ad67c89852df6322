"""ValidatingAdmissionPolicies: what they refuse, warn of, let pass; their parameters, variables and conditions."""

from __future__ import annotations

from typing import Any

import pytest

from muster.testing.builders import pod_manifest

GROUP = "admissionregistration.k8s.io/v1"
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}


def policy(name: str = "small", *validations: Any, match: Any = None, **spec: Any) -> dict[str, Any]:
    match = {"resourceRules": [PODS]} | (match or {})
    spec = {"matchConstraints": match, "validations": list(validations), **spec}
    return {"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}


def binding(name: str = "all", policy: str = "small", actions: Any = ("Deny",), **spec: Any) -> dict[str, Any]:
    spec = {"policyName": policy, "validationActions": list(actions), **spec}
    return {"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": spec}


def pod(name: str = "p", **labels: str) -> dict[str, Any]:
    made = pod_manifest(name)
    made["metadata"]["labels"] = labels
    return made


APP = {"expression": "'app' in object.metadata.?labels.orValue({})"}


def test_a_pod_that_breaks_a_policy_is_refused_as_by_a_real_server(api):
    api.made(policy("small", APP))
    api.made(pod("before"))
    api.made(binding())
    answer = api.create(pod())
    said = f"failed expression: {APP['expression']}"
    why = f"pods \"p\" is forbidden: ValidatingAdmissionPolicy 'small' with binding 'all' denied request: {said}"
    assert (answer.status, answer.body["reason"], answer.body["message"]) == (422, "Invalid", why)
    assert answer.body["details"] == {"name": "p", "kind": "pods", "causes": [{"message": said}]}
    assert api.gone("pods", "p")
    assert api.create(pod("q", app="x")).status == 201


@pytest.mark.parametrize(
    ("reason", "code"), [("Unauthorized", 401), ("Forbidden", 403), ("Invalid", 422), ("RequestEntityTooLarge", 413)]
)
def test_a_validation_says_its_own_reason_and_message(api, reason, code):
    api.made(policy("small", {"expression": "false", "message": "never", "reason": reason}))
    api.made(binding())
    answer = api.create(pod())
    assert (answer.status, answer.body["reason"]) == (code, reason)
    assert answer.body["message"].endswith("denied request: never")


def test_messages_may_be_made_by_an_expression_that_falls_back(api):
    by_name = {"expression": "object.metadata.name != 'p'", "messageExpression": "'not ' + object.metadata.name"}
    broken = {"expression": "object.metadata.name != 'q'", "messageExpression": "object.nothing", "message": "no q"}
    api.made(policy("small", by_name, broken))
    api.made(binding())
    assert api.create(pod("p")).body["message"].endswith("denied request: not p")
    assert api.create(pod("q")).body["message"].endswith("denied request: no q")


def test_warnings_let_the_write_pass_and_audit_says_nothing(api):
    api.made(policy("small", {"expression": "false", "message": "never"}))
    api.made(binding("warns", actions=["Warn", "Audit"]))
    answer = api.create(pod())
    assert answer.status == 201
    said = "Validation failed for ValidatingAdmissionPolicy 'small' with binding 'warns': never"
    assert answer.headers["Warning"] == f'299 - "{said}"'


def test_variables_are_evaluated_where_they_are_mentioned(api):
    variables = [
        {"name": "labels", "expression": "object.metadata.?labels.orValue({})"},
        {"name": "team", "expression": "variables.labels.team"},
    ]
    check = {"expression": "!('team' in variables.labels) || variables.team == 'blue'"}
    api.made(policy("small", check, variables=variables))
    api.made(binding())
    assert api.create(pod("none")).status == 201
    assert api.create(pod("blue", team="blue")).status == 201
    assert api.create(pod("red", team="red")).status == 422


def test_a_condition_that_does_not_hold_spares_a_write(api):
    conditions = [{"name": "not-robots", "expression": "!object.metadata.name.startsWith('robot')"}]
    api.made(policy("small", {"expression": "false"}, matchConditions=conditions))
    api.made(binding())
    assert api.create(pod("robot-1")).status == 201
    assert api.create(pod("man")).status == 422


@pytest.mark.parametrize(("failure", "code"), [("Fail", 422), ("Ignore", 201)])
def test_an_expression_without_a_value_is_as_the_failure_policy_says(api, failure, code):
    api.made(policy("small", {"expression": "object.spec.nothing > 1"}, failurePolicy=failure))
    api.made(binding())
    answer = api.create(pod())
    assert answer.status == code
    if code == 422:
        said = "expression 'object.spec.nothing > 1' resulted in error: no such key: nothing"
        assert answer.body["message"].endswith(said)


@pytest.mark.parametrize(
    ("match", "code"),
    [
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, 422),
        ({"objectSelector": {"matchLabels": {"a": "c"}}}, 201),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, 422),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, 201),
        ({"excludeResourceRules": [{**PODS, "resourceNames": ["p"]}]}, 201),
        ({"excludeResourceRules": [{**PODS, "resourceNames": ["q"]}]}, 422),
        ({"resourceRules": [{**PODS, "resources": ["*"]}]}, 422),
        ({"resourceRules": [{**PODS, "resources": ["pods/status"]}]}, 201),
        ({"resourceRules": [{**PODS, "scope": "Cluster"}]}, 201),
        ({"resourceRules": [{**PODS, "operations": ["UPDATE"]}]}, 201),
    ],
)
def test_rules_and_selectors_choose_what_a_policy_is_about(api, match, code):
    api.made(policy("small", {"expression": "false"}, match=match))
    api.made(binding())
    assert api.create(pod("p", a="b")).status == code


def test_a_binding_narrows_its_policy(api):
    api.made(policy("small", {"expression": "false"}))
    api.made(binding(matchResources={"objectSelector": {"matchLabels": {"strict": "yes"}}}))
    assert api.create(pod("lax")).status == 201
    assert api.create(pod("strict", strict="yes")).status == 422


def test_parameters_come_from_the_object_that_the_binding_names(api):
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    api.made(policy("small", {"expression": "params.value < 10", "message": "too much"}, paramKind=kind))
    ref = {"name": "limit", "parameterNotFoundAction": "Deny"}
    api.made(binding(paramRef=ref))
    missing = api.create(pod())
    assert missing.status == 422 and "no params found" in missing.body["message"]
    api.made({**kind, "metadata": {"name": "limit"}, "value": 5})
    assert api.create(pod("a")).status == 201
    api.delete("priorityclasses", "limit")
    api.call("DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/limit")
    api.made({**kind, "metadata": {"name": "limit"}, "value": 50})
    assert api.create(pod("b")).body["message"].endswith("too much")


def test_updates_deletions_bindings_and_evictions_are_judged_too(api):
    rule = {**PODS, "operations": ["*"], "resources": ["*/*"]}
    checks = [
        {"expression": "request.operation != 'DELETE' || object == null", "message": "an object in a deletion"},
        {"expression": "request.operation != 'DELETE' || oldObject.metadata.name != 'kept'", "message": "kept"},
        {"expression": "request.operation != 'UPDATE' || object.metadata.labels == oldObject.metadata.labels"},
        {"expression": "request.?subResource.orValue('') != 'binding' || object.target.name != 'n2'", "message": "n2"},
        {"expression": "request.?subResource.orValue('') != 'eviction'", "message": "no evictions"},
    ]
    api.made(policy("small", *checks, match={"resourceRules": [rule]}))
    api.made(binding())
    api.made(pod("kept", a="b"))
    assert api.bind("kept", "n2").body["message"].endswith("n2")
    assert api.bind("kept", "n1").status == 201
    assert api.patch("pods", "kept", {"metadata": {"labels": {"a": "c"}}}).status == 422
    assert api.patch("pods", "kept", {"status": {"phase": "Running"}}, subresource="status").status == 200
    evicted = api.call("POST", api.path("pods", "kept", "eviction"), {"metadata": {"name": "kept"}})
    assert evicted.body["message"].endswith("no evictions")
    assert api.delete("pods", "kept").body["message"].endswith("kept")
    api.made(pod("free"))
    assert api.call("DELETE", api.path("pods")).status == 422
    assert api.names("pods") == ["free", "kept"]
    assert api.delete("pods", "free").status == 200


def test_whoever_is_broken_can_be_removed(api):
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    api.made(policy("small", {"expression": "false"}, match={"resourceRules": [rule]}))
    api.made(binding())
    assert api.create(pod()).status == 422
    path = f"/apis/{GROUP}/validatingadmissionpolicybindings/all"
    assert api.call("DELETE", path).status == 200
    assert api.create(pod()).status == 201


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"validations": [{"expression": "1 +"}]}, "spec.validations[0].expression"),
        ({"validations": [{"expression": "1"}]}, "spec.validations[0].expression"),
        ({"validations": [{"expression": ""}]}, "spec.validations[0].expression"),
        ({"validations": [{"expression": "params.x"}]}, "spec.validations[0].expression"),
        ({"validations": [{"expression": "variables.x"}]}, "spec.validations[0].expression"),
        ({"validations": [{"expression": "true", "messageExpression": "1"}]}, "spec.validations[0].messageExpression"),
        ({"validations": [{"expression": "true", "reason": "Gone"}]}, "spec.validations[0].reason"),
        ({"validations": []}, "spec.validations"),
        ({"matchConditions": [{"name": "x", "expression": "foo"}]}, "spec.matchConditions[0].expression"),
        ({"variables": [{"name": "a-b", "expression": "1"}]}, "spec.variables[0].name"),
        ({"matchConstraints": {"resourceRules": []}}, "spec.matchConstraints.resourceRules"),
        ({"failurePolicy": "Maybe"}, "spec.failurePolicy"),
        ({"paramKind": {"kind": "ConfigMap"}}, "spec.paramKind.apiVersion"),
    ],
)
def test_a_policy_that_cannot_work_is_refused_at_the_field(api, spec, field):
    given = policy("small", {"expression": "true"})
    given["spec"] |= spec
    answer = api.create(given)
    assert answer.status == 422
    assert field in [cause["field"] for cause in answer.body["details"]["causes"]]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"validationActions": []}, "spec.validationActions"),
        ({"validationActions": ["Deny", "Warn"]}, "spec.validationActions"),
        ({"validationActions": ["Shout"]}, "spec.validationActions[0]"),
        ({"policyName": ""}, "spec.policyName"),
        ({"paramRef": {"parameterNotFoundAction": "Deny"}}, "spec.paramRef"),
        ({"paramRef": {"name": "x"}}, "spec.paramRef.parameterNotFoundAction"),
    ],
)
def test_a_binding_that_cannot_work_is_refused_at_the_field(api, spec, field):
    given = binding()
    given["spec"] |= spec
    answer = api.create(given)
    assert answer.status == 422
    assert field in [cause["field"] for cause in answer.body["details"]["causes"]]
