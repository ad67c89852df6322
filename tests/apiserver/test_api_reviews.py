"""Who am I, and what may I do, in a cluster without roles."""

from __future__ import annotations

import pytest

from muster.api import catalog

AUTHORIZATION = "/apis/authorization.k8s.io/v1"
POD = {"namespace": "default", "verb": "create", "resource": "pods"}


def ask(api, path, kind, **spec):
    body = {"apiVersion": path.partition("/apis/")[2].rpartition("/")[0], "kind": kind, "spec": spec}
    return api.call("POST", path, body)


def test_everybody_may_do_everything_and_is_told_why(api):
    answer = ask(api, f"{AUTHORIZATION}/selfsubjectaccessreviews", "SelfSubjectAccessReview", resourceAttributes=POD)
    assert answer.status == 201 and answer.body["status"]["allowed"] is True
    assert "no roles" in answer.body["status"]["reason"] and answer.body["spec"]["resourceAttributes"] == POD


def test_the_rules_are_everything(api):
    answer = ask(api, f"{AUTHORIZATION}/selfsubjectrulesreviews", "SelfSubjectRulesReview", namespace="default")
    assert answer.status == 201 and answer.body["status"]["resourceRules"][0]["verbs"] == ["*"]


def test_who_one_is_is_what_webhooks_are_told(api):
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answer = api.call("POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    assert answer.status == 201 and answer.body["status"]["userInfo"]["username"] == "muster:user"


def test_others_are_asked_about_by_name(api):
    path = f"{AUTHORIZATION}/subjectaccessreviews"
    assert ask(api, path, "SubjectAccessReview", resourceAttributes=POD).status == 422
    answer = ask(api, path, "SubjectAccessReview", resourceAttributes=POD, user="jane")
    assert answer.status == 201 and answer.body["status"]["allowed"] is True
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "LocalSubjectAccessReview",
        "spec": {"resourceAttributes": POD, "user": "jane"},
    }
    local = f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews"
    assert api.call("POST", local, body).status == 201


@pytest.mark.parametrize(
    "spec", [{}, {"resourceAttributes": POD, "nonResourceAttributes": {"path": "/version", "verb": "get"}}]
)
def test_a_question_is_about_one_thing(api, spec):
    answer = ask(api, f"{AUTHORIZATION}/selfsubjectaccessreviews", "SelfSubjectAccessReview", **spec)
    assert answer.status == 422


@pytest.mark.parametrize("kind", [kind for kind in catalog.SERVED if kind.asked], ids=lambda kind: kind.kind)
def test_questions_are_not_kept(api, kind):
    path = kind.path("default")
    assert api.call("GET", path).status == 405 and api.call("DELETE", path).status == 405
    before = api.server.revision
    api.call("POST", path, {"apiVersion": kind.api_version, "kind": kind.kind})
    assert api.server.revision == before
