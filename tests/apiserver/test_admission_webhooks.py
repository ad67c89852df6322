"""Webhooks: who is asked what, what answers do, and that a request that waits has written nothing."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from muster.api.calls import MERGE_PATCH, Request
from muster.apiserver.asking import Heard, Paused
from muster.testing.builders import pod_manifest

GROUP = "admissionregistration.k8s.io/v1"
RULE = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}


def hook(name: str = "check", **spec: Any) -> dict[str, Any]:
    client = {"url": f"https://hooks.example/{name}"}
    return {
        "name": f"{name}.hooks.example",
        "clientConfig": client,
        "rules": [RULE],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **spec,
    }


def configuration(kind: str, *hooks: Any, name: str = "hooks") -> dict[str, Any]:
    return {
        "apiVersion": GROUP,
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": list(hooks),
    }


def allowed(**response: Any) -> Heard:
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return Heard({**review, "response": {"allowed": True, **response}})


def patching(*operations: Any) -> Heard:
    return allowed(patchType="JSONPatch", patch=base64.b64encode(json.dumps(operations).encode()).decode())


def label(key: str, value: str) -> Heard:
    return patching({"op": "add", "path": f"/metadata/labels/{key}", "value": value})


class Table:
    """Answers by webhook, and what was asked."""

    def __init__(self, api: Any, **answers: Any) -> None:
        self.asked: list[dict[str, Any]] = []
        self._answers = answers
        api.server.answers = self

    def __call__(self, ask: Any) -> Heard:
        self.asked.append({"webhook": ask.webhook.partition(".")[0], "url": ask.url, **ask.review["request"]})
        answer = self._answers.get(ask.webhook.partition(".")[0], allowed())
        return answer(ask.review["request"]) if callable(answer) else answer


def pod(name: str = "p") -> dict[str, Any]:
    made = pod_manifest(name)
    made["metadata"]["labels"] = {"app": "x"}
    return made


def test_a_validating_webhook_is_told_all_and_may_deny(api):
    table = Table(api, check=allowed(allowed=False, status={"message": "not today", "code": 418}))
    api.made(configuration("Validating", hook()))
    answer = api.create(pod(), fieldManager="me")
    why = 'admission webhook "check.hooks.example" denied the request: not today'
    assert (answer.status, answer.body["message"]) == (418, why)
    assert api.gone("pods", "p")
    (asked,) = table.asked
    assert asked["url"] == "https://hooks.example/check?timeout=10s"
    assert (asked["operation"], asked["namespace"], asked["name"]) == ("CREATE", "default", "p")
    assert asked["resource"] == {"group": "", "version": "v1", "resource": "pods"}
    assert asked["kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert asked["object"]["metadata"]["labels"] == {"app": "x"} and asked["oldObject"] is None
    assert asked["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"}
    assert asked["dryRun"] is False and asked["uid"]


def test_a_denial_without_a_word_is_400(api):
    Table(api, check=allowed(allowed=False))
    api.made(configuration("Validating", hook()))
    answer = api.create(pod())
    assert answer.status == 400
    assert answer.body["message"] == 'admission webhook "check.hooks.example" denied the request without explanation'


def test_a_waiting_request_has_written_nothing_and_goes_on_with_the_same_uids(api):
    api.made(configuration("Mutating", hook("one"), hook("two")))
    api.made(configuration("Validating", hook("a"), hook("b")))
    before = api.server.revision
    path = api.path("pods")
    turns = []
    paused = api.server.begin(Request("POST", path, {}, {**pod(), "metadata": {"generateName": "w-"}}), api.now)
    while isinstance(paused, Paused):
        assert api.server.revision == before
        turns.append([(ask.webhook.partition(".")[0], ask.review["request"]["object"]) for ask in paused.asks])
        paused = api.server.resume(paused, [allowed()] * len(paused.asks))
    assert [[name for name, _ in turn] for turn in turns] == [["one"], ["two"], ["a", "b"]]
    assert paused.status == 201
    seen = {(made["metadata"]["uid"], made["metadata"]["name"]) for turn in turns for _, made in turn}
    assert seen == {(paused.body["metadata"]["uid"], paused.body["metadata"]["name"])}


def test_mutating_webhooks_change_one_after_the_other_what_validating_ones_see(api):
    table = Table(api, one=label("one", "1"), two=label("two", "2"))
    api.made(configuration("Mutating", hook("one"), hook("two")))
    api.made(configuration("Validating", hook("check")))
    made = api.made(pod())
    assert made["metadata"]["labels"] == {"app": "x", "one": "1", "two": "2"}
    assert [asked["webhook"] for asked in table.asked] == ["one", "two", "check"]
    assert table.asked[1]["object"]["metadata"]["labels"] == {"app": "x", "one": "1"}
    assert table.asked[2]["object"]["metadata"]["labels"] == made["metadata"]["labels"]


def test_one_that_wants_it_is_asked_once_more_when_others_have_changed_the_object(api):
    table = Table(api, one=label("one", "1"), two=label("two", "2"))
    api.made(configuration("Mutating", hook("one", reinvocationPolicy="IfNeeded"), hook("two")))
    api.made(pod())
    assert [asked["webhook"] for asked in table.asked] == ["one", "two", "one"]
    assert table.asked[2]["object"]["metadata"]["labels"] == {"app": "x", "one": "1", "two": "2"}


def test_what_a_webhook_makes_is_validated_and_keeps_its_identity(api):
    bad = patching({"op": "replace", "path": "/spec/restartPolicy", "value": "Sometimes"})
    Table(api, one=bad)
    api.made(configuration("Mutating", hook("one")))
    answer = api.create(pod())
    assert answer.status == 422 and "spec.restartPolicy" in answer.body["message"]
    Table(api, one=patching({"op": "replace", "path": "/metadata/uid", "value": "x"}))
    assert api.made(pod())["metadata"]["uid"] != "x"


def test_label_keys_are_merged_by_what_webhooks_have_made_of_the_labels(api):
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["app"]}
    given = pod() | {"spec": pod()["spec"] | {"topologySpreadConstraints": [spread | {"labelSelector": {}}]}}
    table = Table(api, one=patching({"op": "replace", "path": "/metadata/labels/app", "value": "y"}))
    api.made(configuration("Mutating", hook("one")))
    made = api.made(given)
    assert table.asked[0]["object"]["spec"]["topologySpreadConstraints"][0]["labelSelector"] == {}
    (constraint,) = made["spec"]["topologySpreadConstraints"]
    expected = [{"key": "app", "operator": "In", "values": ["y"]}]
    assert constraint["labelSelector"] == {"matchExpressions": expected}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Heard(failure="connection refused"), "failed to call webhook: connection refused"),
        (Heard({"kind": "Pod"}), "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview"),
        (Heard({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}), "webhook response was absent"),
    ],
)
def test_a_webhook_that_does_not_answer_is_as_its_failure_policy_says(api, answer, why):
    Table(api, check=answer)
    made = api.made(configuration("Validating", hook()))
    refused = api.create(pod())
    assert (refused.status, refused.body["reason"]) == (500, "InternalError")
    assert refused.body["message"].startswith(
        'Internal error occurred: failed calling webhook "check.hooks.example": '
    ) and refused.body["message"].endswith(why)
    api.put({**made, "webhooks": [{**made["webhooks"][0], "failurePolicy": "Ignore"}]})
    assert api.create(pod()).status == 201


def test_a_broken_patch_is_an_error(api):
    Table(api, one=patching({"op": "remove", "path": "/nothing"}))
    api.made(configuration("Mutating", hook("one")))
    answer = api.create(pod())
    assert answer.status == 500 and "the patch cannot be applied" in answer.body["message"]


def test_of_services_only_external_names_are_called_and_it_says_so(api):
    table = Table(api)
    service = {"service": {"namespace": "default", "name": "hooks"}}
    mine = {**RULE, "resources": ["pods"]}
    made = api.made(configuration("Validating", hook(clientConfig=service, rules=[mine])))
    assert made["webhooks"][0]["clientConfig"]["service"]["port"] == 443
    assert 'service default/hooks: service "hooks" not found' in api.create(pod()).body["message"]
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hooks"}, "spec": {"ports": [{"port": 443}]}}
    found = api.made(body)
    assert "service default/hooks: nothing runs behind services here" in api.create(pod()).body["message"]
    outside = {"spec": {"type": "ExternalName", "externalName": "hooks.example", "ports": None}}
    assert api.call("PATCH", api.path("services", "hooks"), outside, {}, MERGE_PATCH).status == 200, found
    api.made(pod())
    assert table.asked[-1]["url"] == "https://hooks.example:443/?timeout=10s"


def test_dry_runs_say_that_they_are(api):
    table = Table(api)
    api.made(configuration("Validating", hook(sideEffects="NoneOnDryRun")))
    assert api.create(pod(), dryRun="All").status == 201
    assert table.asked[0]["dryRun"] is True and table.asked[0]["options"]["dryRun"] == ["All"]
    assert api.gone("pods", "p")


def test_selectors_and_conditions_choose_whom_a_webhook_is_asked_about(api):
    table = Table(api)
    condition = [{"name": "not-q", "expression": "object.metadata.name != 'q'"}]
    selector = {"matchLabels": {"app": "x"}}
    api.made(configuration("Validating", hook(matchConditions=condition, objectSelector=selector)))
    for name in ("p", "q"):
        api.made(pod(name))
    api.made(pod_manifest("r"))
    assert [asked["name"] for asked in table.asked] == ["p"]


def test_bindings_evictions_updates_and_deletions_are_asked_about(api):
    table = Table(api)
    api.made(pod())
    api.made(configuration("Validating", hook()))
    api.bind("p", "n1")
    api.patch("pods", "p", {"metadata": {"labels": {"app": "y"}}})
    api.patch("pods", "p", {"status": {"phase": "Running"}}, subresource="status")
    api.call("POST", api.path("pods", "p", "eviction"), {"metadata": {"name": "p"}})
    api.delete("pods", "p", gracePeriodSeconds="0")
    told = [(asked["operation"], asked.get("subResource", ""), asked["kind"]["kind"]) for asked in table.asked]
    assert told == [
        ("CREATE", "binding", "Binding"),
        ("UPDATE", "", "Pod"),
        ("UPDATE", "status", "Pod"),
        ("CREATE", "eviction", "Eviction"),
        ("DELETE", "", "Pod"),
    ]
    assert table.asked[0]["object"]["target"]["name"] == "n1"
    assert table.asked[1]["oldObject"]["metadata"]["labels"] == {"app": "x"}
    assert table.asked[4]["object"] is None


def test_a_refused_binding_leaves_the_pod_without_a_node(api):
    Table(api, check=lambda request: allowed(allowed=request.get("subResource") != "binding"))
    api.made(configuration("Validating", hook()))
    api.made(pod())
    assert api.bind("p", "n1").status == 400
    assert "nodeName" not in api.get("pods", "p")["spec"]


def test_an_object_that_changes_while_a_webhook_thinks_is_asked_about_again(api):
    made = api.made(pod())
    api.made(configuration("Validating", hook()))
    seen = []

    def slow(ask: Any) -> Heard:
        seen.append(ask.review["request"]["oldObject"]["metadata"]["labels"])
        if len(seen) == 1:  # somebody else is faster
            api.server.store.put(
                "pods", "default", "p", {**made, "metadata": {**made["metadata"], "labels": {"b": "1"}}}
            )
        return allowed()

    api.server.answers = slow
    answer = api.patch("pods", "p", {"metadata": {"labels": {"c": "2"}}})
    assert answer.status == 200 and answer.body["metadata"]["labels"] == {"b": "1", "c": "2"}
    assert seen == [{"app": "x"}, {"b": "1"}]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"name": "short.name"}, "webhooks[0].name"),
        ({"sideEffects": "Some"}, "webhooks[0].sideEffects"),
        ({"sideEffects": None}, "webhooks[0].sideEffects"),
        ({"admissionReviewVersions": []}, "webhooks[0].admissionReviewVersions"),
        ({"timeoutSeconds": 31}, "webhooks[0].timeoutSeconds"),
        ({"clientConfig": {}}, "webhooks[0].clientConfig"),
        ({"clientConfig": {"url": "http://far.example/x"}}, "webhooks[0].clientConfig.url"),
        ({"clientConfig": {"url": "https://a/b?c=d"}}, "webhooks[0].clientConfig.url"),
        ({"clientConfig": {"url": "https://a", "caBundle": "eA=="}}, "webhooks[0].clientConfig.caBundle"),
        ({"rules": [{**RULE, "operations": ["READ"]}]}, "webhooks[0].rules[0].operations[0]"),
        ({"matchConditions": [{"name": "x", "expression": "1 +"}]}, "webhooks[0].matchConditions[0].expression"),
        ({"reinvocationPolicy": "Often"}, "webhooks[0].reinvocationPolicy"),
    ],
)
def test_a_webhook_that_cannot_work_is_refused_at_the_field(api, spec, field):
    answer = api.create(configuration("Mutating", {**hook(), **spec}))
    assert answer.status == 422
    assert field in [cause["field"] for cause in answer.body["details"]["causes"]]


def test_generations_count_changes_of_the_webhooks(api):
    Table(api)
    made = api.made(configuration("Mutating", hook()))
    assert made["metadata"]["generation"] == 1
    changed = api.put({**made, "webhooks": [{**made["webhooks"][0], "failurePolicy": "Ignore"}]})
    assert changed.body["metadata"]["generation"] == 2
    bare = {**made, "metadata": {"name": "hooks"}}
    assert api.put(bare).status == 422
