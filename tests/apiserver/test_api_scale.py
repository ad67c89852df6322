"""The subresource scale of the kinds that have replicas."""

from __future__ import annotations

import pytest

from muster.api import catalog
from muster.api.calls import JSON_PATCH, MERGE_PATCH
from muster.apiserver.ownership import dressed

LABELS = {"app": "x"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SCALED = [kind for kind in catalog.KINDS if "scale" in kind.subresources]


def manifest(kind):
    flat = kind.kind == "ReplicationController"
    spec = {"replicas": 2, "selector": LABELS if flat else {"matchLabels": LABELS}, "template": TEMPLATE}
    spec |= {"serviceName": "s"} if kind.kind == "StatefulSet" else {}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "a", "namespace": "default"},
        "spec": spec,
    }


@pytest.fixture(params=SCALED, ids=lambda kind: kind.plural)
def kind(request, api):
    api.made(manifest(request.param))
    return request.param


def path(kind, subresource="scale"):
    return kind.path("default", "a", subresource)


def test_a_scale_says_how_many_there_are_to_be(api, kind):
    body = api.call("GET", path(kind)).body
    assert (body["kind"], body["apiVersion"], body["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 2})
    assert body["status"] == {"replicas": 0, "selector": "app=x"}
    assert body["metadata"]["uid"] == api.get(kind.plural, "a")["metadata"]["uid"]


def test_it_is_changed_by_put_and_patch(api, kind):
    body = api.call("GET", path(kind)).body
    answer = api.call("PUT", path(kind), {**body, "spec": {"replicas": 5}})
    assert answer.status == 200 and answer.body["spec"] == {"replicas": 5}
    assert api.get(kind.plural, "a")["spec"]["replicas"] == 5
    assert api.call("PATCH", path(kind), {"spec": {"replicas": 0}}, {}, MERGE_PATCH).body["spec"]["replicas"] == 0
    steps = [
        {"op": "test", "path": "/spec/replicas", "value": 0},
        {"op": "replace", "path": "/spec/replicas", "value": 3},
    ]
    assert api.call("PATCH", path(kind), steps, {"fieldManager": "scaler"}, JSON_PATCH).status == 200
    entries = dressed(api.get(kind.plural, "a"))["metadata"]["managedFields"]
    (mine,) = [entry for entry in entries if entry["manager"] == "scaler"]
    assert mine["fieldsV1"] == {"f:spec": {"f:replicas": {}}} and mine["subresource"] == "scale"


def test_nothing_else_changes(api, kind):
    before = api.get(kind.plural, "a")
    body = {"metadata": {"labels": {"new": "1"}}, "spec": {"replicas": 4}}
    assert api.call("PATCH", path(kind), body, {}, MERGE_PATCH).status == 200
    after = api.get(kind.plural, "a")
    assert after["spec"] == {**before["spec"], "replicas": 4}
    assert after["metadata"].get("labels") == before["metadata"].get("labels")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"spec": {"replicas": -1}}, 422),
        ({"spec": {"replicas": "many"}}, 400),
        ({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 1}}, 409),
        ({"metadata": {"name": "b"}, "spec": {"replicas": 1}}, 400),
    ],
)
def test_what_makes_no_sense_is_refused(api, kind, body, code):
    revision = api.server.revision
    assert api.call("PATCH", path(kind), body, {}, MERGE_PATCH).status == code
    assert api.server.revision == revision


def test_a_dry_run_changes_nothing(api, kind):
    answer = api.call("PATCH", path(kind), {"spec": {"replicas": 9}}, {"dryRun": "All"}, MERGE_PATCH)
    assert answer.body["spec"]["replicas"] == 9 and api.get(kind.plural, "a")["spec"]["replicas"] == 2
