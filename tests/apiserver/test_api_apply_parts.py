"""Server-side apply by the subresources: scale, whose owners are those of spec.replicas, status and resize."""

from __future__ import annotations

import copy

import custom
import pytest

from muster.api import catalog
from muster.api.calls import MERGE_PATCH, STRATEGIC_PATCH
from muster.apiserver.ownership import dressed

APPLY = "application/apply-patch+yaml"
LABELS = {"app": "x"}
CONTAINER = {"name": "c", "image": "i"}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [CONTAINER]}}


def replica_set(**spec):
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}}
    spec = {"selector": {"matchLabels": LABELS}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r"}, "spec": spec}


RS = catalog.by_kind("apps/v1", "ReplicaSet").path("default", "r")
POD_PATH = catalog.POD.path("default", "p")


def apply(api, path, body, manager, **query):
    return api.call("PATCH", path, copy.deepcopy(body), {"fieldManager": manager, **query}, APPLY)


def scaled(api, replicas, manager, path=RS, **query):
    body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": replicas}}
    return apply(api, f"{path}/scale", body, manager, **query)


def owners(api, path, *field):
    """Who owns a field, in order: manager, operation, subresource."""
    found = []
    for entry in dressed(api.call("GET", path).body)["metadata"].get("managedFields", []):
        part = entry["fieldsV1"]
        for name in field:
            part = part.get(name) if part is not None else None
        if part is not None:
            found.append((entry["manager"], entry["operation"], entry.get("subresource", "")))
    return found


def replicas(api):
    return api.call("GET", RS).body["spec"]["replicas"]


def who_scales(api):
    return owners(api, RS, "f:spec", "f:replicas")


def test_who_applies_a_scale_owns_the_replicas_of_the_object(api):
    api.made(replica_set(replicas=2))
    answer = scaled(api, 2, "autoscaler")
    assert (answer.status, answer.body["kind"], answer.body["spec"]) == (200, "Scale", {"replicas": 2})
    assert ("autoscaler", "Apply", "scale") in who_scales(api) and len(who_scales(api)) == 2
    entries = dressed(api.call("GET", RS).body)["metadata"]["managedFields"]
    (mine,) = [entry for entry in entries if entry["manager"] == "autoscaler"]
    assert (mine["apiVersion"], mine["fieldsV1"]) == ("apps/v1", {"f:spec": {"f:replicas": {}}})


def test_it_is_a_conflict_to_scale_what_an_applier_owns_unless_by_force(api):
    assert apply(api, RS, replica_set(replicas=2), "owner").status == 201
    refused = scaled(api, 5, "autoscaler")
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    assert refused.body["message"] == 'Apply failed with 1 conflict: conflict with "owner": .spec.replicas'
    assert replicas(api) == 2
    assert scaled(api, 5, "autoscaler", force="true").status == 200
    assert (replicas(api), who_scales(api)) == (5, [("autoscaler", "Apply", "scale")])
    assert owners(api, RS, "f:spec", "f:template") == [("owner", "Apply", "")]


def test_an_applier_that_leaves_out_replicas_hands_them_over_without_changing_them(api):
    assert apply(api, RS, replica_set(replicas=3), "owner").status == 201
    assert scaled(api, 3, "autoscaler").status == 200
    assert apply(api, RS, replica_set(), "owner").status == 200
    assert (replicas(api), who_scales(api)) == (3, [("autoscaler", "Apply", "scale")])
    assert scaled(api, 7, "autoscaler").status == 200
    assert replicas(api) == 7


def test_a_plain_scale_takes_the_replicas_from_an_applier_who_then_meets_a_conflict(api):
    assert apply(api, RS, replica_set(replicas=2), "owner").status == 201
    body = {"spec": {"replicas": 4}}
    assert api.call("PATCH", f"{RS}/scale", body, {"fieldManager": "kubectl"}, MERGE_PATCH).status == 200
    assert who_scales(api) == [("kubectl", "Update", "scale")]
    refused = apply(api, RS, replica_set(replicas=2), "owner")
    said = 'Apply failed with 1 conflict: conflict with "kubectl" with subresource "scale" using apps/v1'
    assert refused.status == 409 and refused.body["message"].startswith(said)
    assert refused.body["message"].endswith(": .spec.replicas")
    refused = scaled(api, 3, "autoscaler")
    said = 'conflict with "kubectl" with subresource "scale" using autoscaling/v1'
    assert refused.status == 409 and said in refused.body["message"]
    assert apply(api, RS, replica_set(replicas=2), "owner", force="true").status == 200
    assert who_scales(api) == [("owner", "Apply", "")]


def test_who_applies_the_same_scale_again_changes_nothing(api):
    api.made(replica_set(replicas=2))
    scaled(api, 3, "autoscaler", force="true")
    revision = api.server.revision
    assert scaled(api, 3, "autoscaler").status == 200 and api.server.revision == revision


@pytest.mark.parametrize(
    ("body", "query", "code"),
    [
        ({"spec": {"replicas": 1}}, {"fieldManager": ""}, 422),
        ({"apiVersion": "v1", "kind": "Pod"}, {}, 400),
        ({"metadata": {"managedFields": [{}]}, "spec": {"replicas": 1}}, {}, 400),
        ({"spec": {"replicas": -1}}, {"force": "true"}, 422),
        ({"metadata": {"name": "other"}, "spec": {"replicas": 1}}, {"force": "true"}, 400),
        ({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 1}}, {"force": "true"}, 409),
    ],
)
def test_an_apply_of_a_scale_that_makes_no_sense_is_refused(api, body, query, code):
    api.made(replica_set(replicas=2))
    revision = api.server.revision
    assert api.call("PATCH", f"{RS}/scale", body, {"fieldManager": "m", **query}, APPLY).status == code
    assert api.server.revision == revision


def test_a_dry_run_of_an_applied_scale_changes_nothing(api):
    api.made(replica_set(replicas=2))
    answer = scaled(api, 6, "autoscaler", force="true", dryRun="All")
    assert answer.body["spec"] == {"replicas": 6} and replicas(api) == 2
    assert ("autoscaler", "Apply", "scale") not in who_scales(api)


def test_a_scale_takes_a_strategic_patch_where_its_kind_does(api):
    api.made(replica_set(replicas=2))
    assert (
        api.call("PATCH", f"{RS}/scale", {"spec": {"replicas": 4}}, {}, STRATEGIC_PATCH).body["spec"]["replicas"] == 4
    )
    api.made(custom.definition())
    assert api.call("POST", custom.PATH, custom.run("t")).status == 201
    assert api.call("PATCH", f"{custom.PATH}/t/scale", {}, {}, STRATEGIC_PATCH).status == 415


def test_the_scale_of_a_users_kind_is_owned_where_its_definition_says(api):
    api.made(custom.definition())
    path = f"{custom.PATH}/t"
    assert apply(api, path, custom.run("t"), "owner").status == 201
    assert scaled(api, 9, "autoscaler", path, force="true").status == 200
    assert api.call("GET", path).body["spec"]["workers"] == 9
    assert owners(api, path, "f:spec", "f:workers") == [("autoscaler", "Apply", "scale")]
    refused = apply(api, path, {**custom.run("t"), "spec": {**custom.run("t")["spec"], "workers": 1}}, "owner")
    assert refused.status == 409 and ".spec.workers" in refused.body["message"]


def test_labels_come_with_a_status_that_is_applied_where_the_endpoint_takes_them(api):
    api.made(POD)
    body = {**POD, "metadata": {"name": "p", "labels": {"seen": "yes"}}, "status": {"phase": "Running"}}
    assert apply(api, f"{POD_PATH}/status", body, "m").status == 200
    assert api.call("GET", POD_PATH).body["metadata"]["labels"] == {"seen": "yes"}
    assert owners(api, POD_PATH, "f:metadata", "f:labels", "f:seen") == [("m", "Apply", "status")]
    assert owners(api, POD_PATH, "f:spec", "f:containers") == [("muster", "Update", "")]


def test_what_a_status_endpoint_resets_is_no_conflict(api):
    assert apply(api, POD_PATH, POD, "owner").status == 201
    body = copy.deepcopy(POD) | {"status": {"phase": "Running"}}
    body["spec"]["containers"][0]["image"] = "another"
    answer = apply(api, f"{POD_PATH}/status", body, "m")
    assert answer.status == 200 and answer.body["spec"]["containers"][0]["image"] == "i"
    assert answer.body["status"]["phase"] == "Running"


def test_a_resize_that_is_applied_owns_the_resources(api):
    spec = {"containers": [{**CONTAINER, "resources": {"requests": {"cpu": "1"}}}]}
    api.made({**POD, "spec": spec})
    body = {**POD, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}
    assert apply(api, f"{POD_PATH}/resize", body, "m").status == 409
    answer = apply(api, f"{POD_PATH}/resize", body, "m", force="true")
    assert answer.status == 200, answer.body
    container = ("f:spec", "f:containers", 'k:{"name":"c"}')
    assert owners(api, POD_PATH, *container, "f:resources", "f:requests", "f:cpu") == [("m", "Apply", "resize")]
    assert owners(api, POD_PATH, *container, "f:image") == [("muster", "Update", "")]


@pytest.mark.parametrize(
    ("container", "said"),
    [
        ({"env": [{"name": "A", "value": "1"}, {"name": "A"}]}, '.env: duplicate entries for key [name="A"]'),
        ({"ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}]},
         '.ports: duplicate entries for key [containerPort=80,protocol="TCP"]'),
        ({"env": [{"value": "1"}]},
         '.env: element 0: associative list with keys has an element that omits key field "name"'),
    ],
)  # fmt: skip
def test_items_that_are_not_told_apart_are_not_merged(api, container, said):
    """Taking one of two would lose what was asked for."""
    body = {**POD, "spec": {"containers": [{**CONTAINER, **container}]}}
    answer = apply(api, POD_PATH, body, "me")
    assert (answer.status, answer.body["reason"]) == (500, "")
    text = 'failed to create typed patch object (default/p; /v1, Kind=Pod): .spec.containers[name="c"]'
    assert answer.body["message"].startswith(text + said)
    assert api.call("GET", POD_PATH).status == 404


def test_values_of_a_set_come_once(api):
    body = {**POD, "metadata": {"name": "p", "finalizers": ["a/b", "a/b"]}}
    message = apply(api, POD_PATH, body, "me").body["message"]
    assert message.endswith(': .metadata.finalizers: duplicate entries for key ["a/b"]')
