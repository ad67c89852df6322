"""What admission fills in of a new object belongs to nobody, so that an apply does not take it away."""

from __future__ import annotations

import base64
import json
from typing import Any

from muster.api import catalog
from muster.api.calls import JSON_PATCH
from muster.apiserver.asking import Heard
from muster.apiserver.durable import record, restored
from muster.apiserver.ownership import dressed
from muster.testing.builders import gang_manifest, pod_manifest

APPLY = "application/apply-patch+yaml"
CLIENT = "kubectl-client-side-apply"


def path_of(body: Any) -> str:
    return catalog.by_kind(body["apiVersion"], body["kind"]).path("default", body["metadata"]["name"])


def fields(api: Any, body: Any) -> dict[str, Any]:
    (entry,) = dressed(api.call("GET", path_of(body)).body)["metadata"]["managedFields"]
    return entry["fieldsV1"]


def taken_over(api: Any, body: Any) -> Any:
    """As kubectl goes over from client-side to server-side apply: what the one owned the other owns, and applies."""
    (entry,) = dressed(api.call("GET", path_of(body)).body)["metadata"]["managedFields"]
    entry = {**entry, "manager": "kubectl", "operation": "Apply"}
    steps = [{"op": "replace", "path": "/metadata/managedFields", "value": [entry]}]
    assert api.call("PATCH", path_of(body), steps, {"fieldManager": "kubectl"}, JSON_PATCH).status == 200
    return api.call("PATCH", path_of(body), body, {"fieldManager": "kubectl"}, APPLY)


def test_priority_policy_and_finalizer_of_a_group_are_nobodys(api):
    group = gang_manifest("pg", 2)
    api.create(group, fieldManager=CLIENT)
    found = fields(api, group)
    assert set(found) == {"f:spec"} and {"f:priority", "f:preemptionPolicy"}.isdisjoint(found["f:spec"])


def test_a_group_goes_over_to_server_side_apply_and_stays_as_it_was(api):
    group = gang_manifest("pg", 2)
    made = api.create(group, fieldManager=CLIENT).body
    answer = taken_over(api, group)
    assert answer.status == 200, answer.body
    assert answer.body["spec"] == made["spec"]
    assert answer.body["metadata"]["finalizers"] == made["metadata"]["finalizers"]


def test_what_the_author_says_is_the_authors(api):
    group = gang_manifest("pg", 2, priority=0)
    group["metadata"]["finalizers"] = ["example.com/mine"]
    api.create(group, fieldManager=CLIENT)
    found = fields(api, group)
    assert "f:priority" in found["f:spec"]
    assert set(found["f:metadata"]["f:finalizers"]) == {".", 'v:"example.com/mine"'}


def test_a_pod_keeps_what_a_limit_range_gave_it(api):
    limit = {"type": "Container", "default": {"memory": "1Gi"}}
    api.made({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "usual"}, "spec": {"limits": [limit]}})
    pod = pod_manifest("a")
    made = api.create(pod, fieldManager=CLIENT).body
    answer = taken_over(api, pod)
    assert answer.status == 200, answer.body
    assert answer.body["spec"] == made["spec"]
    assert answer.body["metadata"]["annotations"] == made["metadata"]["annotations"]


def test_a_pod_keeps_what_a_webhook_gave_it(api):
    hook = {
        "name": "label.hooks.example",
        "clientConfig": {"url": "https://hooks.example/label"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    group = "admissionregistration.k8s.io/v1"
    name = {"name": "hooks"}
    steps = [{"op": "add", "path": "/metadata/labels/team", "value": "unknown"}]
    patch = base64.b64encode(json.dumps(steps).encode()).decode()
    response = {"allowed": True, "patchType": "JSONPatch", "patch": patch}
    api.server.answers = lambda _: Heard(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    )
    api.made({"apiVersion": group, "kind": "MutatingWebhookConfiguration", "metadata": name, "webhooks": [hook]})
    pod = pod_manifest("a", labels={"app": "x"})
    assert api.create(pod, fieldManager=CLIENT).status == 201
    assert "f:team" not in fields(api, pod)["f:metadata"]["f:labels"]
    answer = taken_over(api, pod)
    assert answer.status == 200, answer.body
    assert answer.body["metadata"]["labels"] == {"app": "x", "team": "unknown"}


def test_a_store_that_was_kept_knows_it_too(api):
    group = gang_manifest("pg", 2)
    changes: list[Any] = []
    api.server.store.outbox = changes
    api.create(group, fieldManager=CLIENT)
    kept = restored([record(change) for change in changes], 0, 10)
    (entry,) = dressed(kept.get("podgroups", "default", "pg"))["metadata"]["managedFields"]
    assert entry["fieldsV1"] == fields(api, group)
