from __future__ import annotations

import pytest

from muster.api.calls import JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest


def causes(answer):
    """(field, type) of every cause in a Status."""
    found = answer.body.get("details", {}).get("causes", [])
    return {(cause["field"], cause["reason"].removeprefix("FieldValue")) for cause in found}


def changed(raw, **metadata):
    return {**raw, "metadata": {**raw["metadata"], **metadata}}


def test_an_update_with_an_old_resource_version_is_a_conflict(api):
    made = api.made(node_manifest("n1"))
    assert api.put(changed(made, labels={"a": "1"})).status == 200
    answer = api.put(changed(made, labels={"a": "2"}))
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert "the object has been modified" in answer.body["message"]
    assert api.get("nodes", "n1")["metadata"]["labels"] == {"a": "1"}


def test_an_update_without_a_resource_version_is_unconditional(api):
    made = api.made(node_manifest("n1"))
    api.put(changed(made, labels={"a": "1"}))
    assert api.put(changed(made, resourceVersion="", labels={"a": "2"})).status == 200


def test_an_update_of_another_incarnation_is_a_conflict(api):
    made = api.made(node_manifest("n1"))
    answer = api.put(changed(made, uid="another", resourceVersion=""))
    assert answer.status == 409 and "UID in precondition: another" in answer.body["message"]


def test_the_name_and_namespace_of_the_body_must_be_those_of_the_path(api):
    made = api.made(pod_manifest("a"))
    path = api.path("pods", "a")
    assert api.call("PUT", path, changed(made, name="b")).status == 400
    assert api.call("PUT", path, changed(made, namespace="other")).status == 400


def test_what_is_not_there_cannot_be_updated_or_patched(api):
    assert api.put(pod_manifest("a")).body["reason"] == "NotFound"
    assert api.patch("pods", "a", {}).status == 404


def test_server_owned_metadata_survives_an_update(api):
    made = api.made(gang_manifest("pg", 3))
    bare = {key: made[key] for key in ("apiVersion", "kind", "spec")}
    bare["metadata"] = {"name": "pg", "namespace": "default", "finalizers": made["metadata"]["finalizers"]}
    bare["spec"] = {**made["spec"], "schedulingPolicy": {"gang": {"minCount": 2}}}
    after = api.put(bare).body
    for key in ("uid", "creationTimestamp"):
        assert after["metadata"][key] == made["metadata"][key]
    assert after["metadata"]["generation"] == 2


@pytest.mark.parametrize("field", ["uid", "creationTimestamp", "generateName"])
def test_immutable_metadata_cannot_be_changed(api, field):
    api.made(pod_manifest("a"))
    answer = api.patch("pods", "a", {"metadata": {field: "2001-01-01T00:00:00Z"}})
    assert answer.status in (409, 422)
    assert field in answer.body["message"] or "UID" in answer.body["message"]


def test_the_generation_counts_changes_of_the_spec_only(api):
    api.made(gang_manifest("pg", 3))
    generations = [
        api.patch("podgroups", "pg", body, subresource=subresource).body["metadata"]["generation"]
        for body, subresource in (
            ({"metadata": {"labels": {"a": "b"}}}, None),
            ({"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}, None),
            ({"status": {"conditions": [CONDITION]}}, "status"),
            ({"spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}}, None),
        )
    ]
    assert generations == [1, 2, 2, 3]


CONDITION = {
    "type": "PodGroupInitiallyScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/0 nodes",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def test_status_is_ignored_on_the_object_and_spec_on_the_status(api):
    made = api.made(gang_manifest("pg", 3))
    both = {**made, "status": {"conditions": [CONDITION]}}
    both["spec"] = {**made["spec"], "schedulingPolicy": {"gang": {"minCount": 9}}}
    after = api.put(both).body
    assert "conditions" not in after.get("status", {}) and after["spec"]["schedulingPolicy"]["gang"]["minCount"] == 9
    both["metadata"] = {**both["metadata"], "resourceVersion": ""}
    both["spec"] = made["spec"]
    after = api.put(both, "status").body
    assert after["status"]["conditions"] == [CONDITION] and after["spec"]["schedulingPolicy"]["gang"]["minCount"] == 9


def test_the_status_subresource_shows_the_object(api):
    made = api.made(pod_manifest("a"))
    assert api.call("GET", api.path("pods", "a", "status")).body == made


def test_an_update_that_changes_nothing_keeps_the_resource_version(api):
    made = api.made(pod_manifest("a"))
    revision = api.server.revision
    assert api.put(made).body == made
    assert api.patch("pods", "a", {}).body == made
    assert api.patch("pods", "a", {"metadata": {"labels": {}}}).body["metadata"]["resourceVersion"]
    assert api.patch("pods", "a", [], JSON_PATCH).body == made
    assert api.server.revision == revision


def test_an_invalid_update_is_refused_with_its_field(api):
    api.made(pod_manifest("a"))
    answer = api.patch("pods", "a", {"spec": {"schedulerName": "other"}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    answer = api.patch("pods", "a", {"spec": {"schedulingGroup": {"podGroupName": "late"}}})
    assert answer.status == 422 and "spec.schedulingGroup" in answer.body["message"]


def test_a_dry_run_of_an_update_stores_nothing(api):
    made = api.made(pod_manifest("a"))
    answer = api.patch("pods", "a", {"metadata": {"labels": {"x": "y"}}}, dryRun="All")
    assert answer.body["metadata"]["labels"] == {"x": "y"}
    assert api.get("pods", "a") == made


def test_a_patch_may_name_the_resource_version_it_expects(api):
    made = api.made(pod_manifest("a"))
    revision = made["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": revision, "labels": {"x": "y"}}}
    assert api.patch("pods", "a", body).status == 200
    assert api.patch("pods", "a", {"metadata": {"resourceVersion": revision, "labels": {"x": "z"}}}).status == 409


def test_a_merge_patch_replaces_lists_and_removes_nulls(api):
    api.made(pod_manifest("a", labels={"a": "1", "b": "2"}, gates=["one", "two"]))
    after = api.patch("pods", "a", {"metadata": {"labels": {"a": None, "c": "3"}}, "spec": {"schedulingGates": None}})
    assert after.body["metadata"]["labels"] == {"b": "2", "c": "3"}
    assert "schedulingGates" not in after.body["spec"]


def test_a_json_patch_applies_in_order_or_not_at_all(api):
    api.made(pod_manifest("a", labels={"a": "1"}))
    steps = [
        {"op": "test", "path": "/metadata/labels/a", "value": "1"},
        {"op": "replace", "path": "/metadata/labels/a", "value": "2"},
        {"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/b"},
        {"op": "add", "path": "/metadata/annotations", "value": {"x": "y"}},
    ]
    after = api.patch("pods", "a", steps, JSON_PATCH).body
    assert after["metadata"]["labels"] == {"a": "2", "b": "2"} and after["metadata"]["annotations"] == {"x": "y"}
    steps = [{"op": "remove", "path": "/metadata/labels/a"}, {"op": "test", "path": "/metadata/labels/b", "value": "9"}]
    answer = api.patch("pods", "a", steps, JSON_PATCH)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert api.get("pods", "a") == after


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ({"op": "add"}, 400),
        (["add"], 400),
        ([{"op": "add"}], 400),
        ([{"op": "grow", "path": "/spec"}], 400),
        ([{"op": "remove", "path": "/nowhere/at/all"}], 422),
        ([{"op": "replace", "path": "/metadata/labels/none", "value": "x"}], 422),
        ([{"op": "add", "path": "/spec/containers/99", "value": {}}], 422),
        ([{"op": "add", "path": "no-slash", "value": 1}], 422),
        ([{"op": "copy", "from": 7, "path": "/spec"}], 400),
        ([{"op": "add", "path": "", "value": 7}], 400),
        ([{"op": "add", "path": "/spec/containers/0/image", "value": 7}], 400),
        ([{"op": "test", "path": "/spec"}] * 10_001, 413),
    ],
)
def test_a_json_patch_that_cannot_be_applied_is_refused(api, steps, code):
    made = api.made(pod_manifest("a"))
    answer = api.patch("pods", "a", steps, JSON_PATCH)
    assert answer.status == code and answer.body["kind"] == "Status"
    assert api.get("pods", "a") == made


def test_copies_of_copies_do_not_grow_without_bound(api):
    api.made(pod_manifest("a", annotations={"x": "y" * 1000}))
    steps = [{"op": "add", "path": "/metadata/annotations/b", "value": {}}]
    steps += [
        {"op": "copy", "from": "/metadata/annotations", "path": f"/metadata/annotations/b/{i}"} for i in range(40)
    ]
    assert api.patch("pods", "a", steps, JSON_PATCH).status == 413


@pytest.mark.parametrize("content_type", [JSON, "application/apply-patch+cbor", "text/plain", ""])
def test_other_kinds_of_patches_are_refused(api, content_type):
    api.made(pod_manifest("a"))
    answer = api.patch("pods", "a", {}, content_type)
    assert (answer.status, answer.body["reason"]) == (415, "UnsupportedMediaType")
    assert MERGE_PATCH in answer.body["message"]


@pytest.mark.parametrize("content_type", [MERGE_PATCH, STRATEGIC_PATCH])
@pytest.mark.parametrize("body", [None, [], "x", 7, b"", b"{"])
def test_a_merge_patch_that_is_no_object_is_refused(api, content_type, body):
    made = api.made(pod_manifest("a"))
    assert api.patch("pods", "a", body, content_type).status == 400
    assert api.get("pods", "a") == made


def test_a_patch_is_checked_strictly_on_request(api):
    api.made(pod_manifest("a"))
    answer = api.patch("pods", "a", {"spec": {"tolerationz": []}}, fieldValidation="Strict")
    assert answer.status == 422 and 'unknown field "spec.tolerationz"' in answer.body["message"]


def test_a_patch_cannot_make_another_kind_of_it(api):
    api.made(pod_manifest("a"))
    assert api.patch("pods", "a", {"kind": "Node"}).status == 400
    assert api.patch("pods", "a", {"metadata": {"name": "b"}}).status == 400


def test_removing_the_last_finalizer_of_a_deleted_object_removes_it(api):
    api.made(gang_manifest("pg", 3))
    api.delete("podgroups", "pg")
    assert api.get("podgroups", "pg")["metadata"]["deletionTimestamp"]
    answer = api.patch("podgroups", "pg", {"metadata": {"finalizers": None}})
    assert answer.status == 200 and api.gone("podgroups", "pg")


def test_a_deleted_object_gets_no_new_finalizers(api):
    api.made(gang_manifest("pg", 3))
    api.delete("podgroups", "pg")
    answer = api.patch("podgroups", "pg", {"metadata": {"finalizers": ["example.com/more"]}})
    assert answer.status == 422 and "no new finalizers can be added" in answer.body["message"]


def test_conditions_are_merged_by_type_in_a_strategic_patch_of_the_status(api):
    api.made(pod_manifest("a"))
    api.bind("a", "n1")
    body = {"status": {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}}
    after = api.patch("pods", "a", body, STRATEGIC_PATCH, "status").body
    assert [entry["type"] for entry in after["status"]["conditions"]] == ["Ready", "PodScheduled"]
    assert after["status"]["phase"] == "Running"


def test_labels_may_change_with_the_status_and_owners_may_not(api):
    api.made(pod_manifest("a"))
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    body = {"metadata": {"labels": {"x": "y"}, "ownerReferences": [owner]}, "status": {"phase": "Running"}}
    after = api.patch("pods", "a", body, subresource="status").body
    assert after["metadata"]["labels"] == {"x": "y"} and "ownerReferences" not in after["metadata"]


@pytest.mark.parametrize("subresource", [None, "status"])
@pytest.mark.parametrize("metadata", [{}, {"name": ""}, None])
def test_an_update_without_a_name_is_refused_and_wipes_nothing(api, subresource, metadata):
    made = api.made(gang_manifest("pg", 3, labels={"a": "b"}))
    answer = api.call("PUT", api.path("podgroups", "pg", subresource), {**made, "metadata": metadata})
    assert answer.status == 400 and "name of the object must be given" in answer.body["message"]
    assert api.get("podgroups", "pg") == made


@pytest.mark.parametrize("subresource", [None, "status"])
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ({"metadata": None}, MERGE_PATCH),
        ({"metadata": {"name": None}}, MERGE_PATCH),
        ({"metadata": None}, STRATEGIC_PATCH),
        ([{"op": "remove", "path": "/metadata"}], JSON_PATCH),
    ],
)
def test_a_patch_that_takes_the_name_away_is_refused(api, subresource, body, content_type):
    made = api.made(gang_manifest("pg", 3, labels={"a": "b"}))
    answer = api.patch("podgroups", "pg", body, content_type, subresource)
    assert answer.status == 400 and "name of the object must be given" in answer.body["message"]
    assert api.get("podgroups", "pg") == made


@pytest.mark.parametrize("field", ["deletionTimestamp", "deletionGracePeriodSeconds"])
def test_nobody_writes_when_an_object_is_deleted(api, field):
    made = api.made(pod_manifest("a"))
    value = "2001-01-01T00:00:00Z" if field == "deletionTimestamp" else 0
    answer = api.patch("pods", "a", {"metadata": {field: value}})
    assert answer.status == 422 and causes(answer) == {(f"metadata.{field}", "Invalid")}
    assert api.get("pods", "a") == made


def test_an_update_without_the_time_of_deletion_keeps_it(api):
    api.made(pod_manifest("a"))
    api.bind("a", "n1")
    dying = api.delete("pods", "a").body
    bare = {key: dying["metadata"][key] for key in ("name", "namespace")}
    after = api.put({**dying, "metadata": {**bare, "labels": {"x": "y"}}})
    assert after.status == 200 and after.body["metadata"]["labels"] == {"x": "y"}
    assert after.body["metadata"]["deletionTimestamp"] == dying["metadata"]["deletionTimestamp"]


def test_a_resource_version_that_is_none_is_refused(api):
    made = api.made(pod_manifest("a"))
    answer = api.put(changed(made, resourceVersion="abc"))
    assert answer.status == 400 and "metadata.resourceVersion" in answer.body["message"]


def test_a_budget_is_updated_only_with_its_resource_version(api):
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {}}
    made = api.made(budget)
    answer = api.put(changed(made, resourceVersion=""))
    assert answer.status == 422 and causes(answer) == {("metadata.resourceVersion", "Invalid")}
    assert api.put(changed(made, labels={"x": "y"})).status == 200
    assert api.patch("poddisruptionbudgets", "b", {"metadata": {"labels": {"x": "z"}}}).status == 200


def test_an_update_of_a_lease_that_is_not_there_makes_it(api):
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}
    answer = api.put(lease)
    assert answer.status == 201 and answer.body["metadata"]["uid"]
    other = api.call("PUT", api.path("leases", "m"), lease)
    assert other.status == 400 and "does not match the name on the URL" in other.body["message"]
    assert api.put(lease).status == 422  # now it is there, and its version must be named


def test_the_status_of_a_group_does_not_change_its_metadata(api):
    made = api.made(gang_manifest("pg", 3, labels={"a": "b"}))
    body = {"metadata": {"labels": {"a": "c"}, "annotations": {"x": "y"}, "finalizers": None}, "status": {}}
    for answer in (
        api.patch("podgroups", "pg", body, subresource="status"),
        api.put(changed(made, labels={}, finalizers=[]), "status"),
    ):
        assert answer.status == 200 and answer.body["metadata"] == made["metadata"]


def test_duplicate_fields_of_a_patch_are_warned_of_or_refused(api):
    api.made(pod_manifest("a"))
    text = b'{"metadata": {"labels": {"x": "1", "x": "2"}}}'
    answer = api.patch("pods", "a", text, fieldValidation="Strict")
    assert answer.status == 422 and 'duplicate field "metadata.labels.x"' in answer.body["message"]
    assert "duplicate field" in api.patch("pods", "a", text).headers["Warning"]
    assert "Warning" not in api.patch("pods", "a", text, fieldValidation="Ignore").headers


@pytest.mark.parametrize("query", [{"fieldValidation": "Bogus"}, {"dryRun": "Bogus"}, {"dryRun": "All,Bogus"}])
def test_query_parameters_are_checked_even_where_nothing_depends_on_them(api, query):
    made = api.made(pod_manifest("a"))
    (name,) = query
    answers = [api.create(pod_manifest("b"), **query), api.put(made, **query), api.patch("pods", "a", {}, **query)]
    for answer in answers:
        assert answer.status == 422 and name in answer.body["message"]
    assert api.names("pods") == ["a"]


def test_a_json_patch_cannot_nest_without_bound(api):
    made = api.made(pod_manifest("a"))
    steps = [{"op": "add", "path": "/x", "value": {"x": {}}}]
    steps += [{"op": "copy", "from": "/x", "path": "/x" * ((1 << power) + 1)} for power in range(1, 14)]
    answer = api.patch("pods", "a", steps, JSON_PATCH)
    assert answer.status == 400 and "levels deep" in answer.body["message"]
    nested = {"x": {}}
    for _ in range(80):
        nested = {"x": nested}
    pointer = "/spec" + "/x" * 70
    moves = [{"op": "add", "path": "/spec/x", "value": nested}, {"op": "add", "path": "/spec/y", "value": nested}]
    moves.append({"op": "move", "from": "/spec/y", "path": pointer})
    answer = api.patch("pods", "a", moves, JSON_PATCH)
    assert answer.status == 400 and "levels deep" in answer.body["message"]
    assert api.get("pods", "a") == made


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ({"op": "remove", "path": "/spec/nothing"}, 422),
        ({"op": "replace", "path": "/metadata/nothing", "value": 1}, 422),
        ({"op": "test", "path": "/metadata/name", "value": "b"}, 422),
        ({"op": "test", "path": "/metadata/nothing", "value": "b"}, 422),
        ({"op": "add", "path": "/spec/containers/x", "value": {}}, 422),
        ({"op": "add", "path": "/spec/containers/0/image/x", "value": {}}, 422),
        ({"op": "move", "from": "/spec/nothing", "path": "/spec/x"}, 422),
        ({"op": "add", "path": "/spec/x"}, 400),
        ({"op": "copy", "path": "/spec/x"}, 400),
        ({"op": "add", "value": 1}, 400),
    ],
)
def test_a_json_patch_that_fails_names_its_operation_and_shows_no_object(api, step, code):
    api.made(pod_manifest("a", annotations={"secret": "xyzzy"}))
    answer = api.patch("pods", "a", [step], JSON_PATCH)
    message = answer.body["message"]
    assert answer.status == code and "operation 0" in message and step["op"] in message
    assert step.get("path", "path") in message
    for leak in ("xyzzy", "{", "'", "Error", "object has no", "None"):
        assert leak not in message, message


@pytest.mark.parametrize("content_type", [MERGE_PATCH, STRATEGIC_PATCH])
def test_a_strict_patch_with_an_unknown_field_is_refused_as_the_real_server_does(api, content_type):
    api.made(pod_manifest("a"))
    body = b'{"spec": {"colour": "red"}}'
    answer = api.patch("pods", "a", body, content_type, fieldValidation="Strict")
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    said = 'strict decoding error: unknown field "spec.colour"'
    assert (
        answer.body["message"].startswith(' "" is invalid: patch: Invalid value: ') and said in answer.body["message"]
    )
    (cause,) = answer.body["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldValueInvalid", "patch")
