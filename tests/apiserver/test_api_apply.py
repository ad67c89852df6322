"""Server-side apply: who owns what, merging, letting go, conflicts. The examples are those of the documentation."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.api import catalog
from muster.api.calls import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND
from muster.apiserver.ownership import dressed
from muster.testing.builders import node_manifest, pod_manifest

APPLY = "application/apply-patch+yaml"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


def path_of(body):
    kind = catalog.by_kind(body["apiVersion"], body["kind"])
    return kind.path("default" if kind.namespaced else None, body["metadata"]["name"])


def apply(api, body, manager="me", subresource="", **query):
    path = path_of(body) + (f"/{subresource}" if subresource else "")
    return api.call("PATCH", path, copy.deepcopy(body), {"fieldManager": manager, **query}, APPLY)


def applied(api, body, manager="me", **query):
    answer = apply(api, body, manager, **query)
    assert answer.status in (200, 201), answer.body
    return answer.body


def owned(api, body):
    """fieldsV1 by manager and operation (and subresource)."""
    found = dressed(api.call("GET", path_of(body)).body)["metadata"].get("managedFields", [])
    return {(entry["manager"], entry["operation"], *filter(None, [entry.get("subresource")])): entry for entry in found}


def fields(api, body, manager, operation="Apply"):
    return owned(api, body)[manager, operation]["fieldsV1"]


def labelled(**labels):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": labels}}


# --- who owns what -----------------------------------------------------------------------------------------------


def test_an_apply_creates_and_owns_what_it_says(api):
    answer = apply(api, POD)
    assert answer.status == 201 and answer.body["spec"]["restartPolicy"] == "Always"
    assert fields(api, POD, "me") == {
        "f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}}}}
    }


def test_a_create_owns_defaults_too(api):
    api.create(pod_manifest("a", labels={"app": "x"}), fieldManager="kubectl-create")
    found = fields(api, POD, "kubectl-create", "Update")
    assert found["f:metadata"] == {"f:labels": {".": {}, "f:app": {}}}
    assert found["f:spec"]["f:restartPolicy"] == {} and "f:status" not in found
    container = found["f:spec"]["f:containers"]['k:{"name":"main"}']
    assert container["."] == {} and container["f:imagePullPolicy"] == {} and "." not in found["f:spec"]["f:containers"]


def test_an_entry_says_how_when_and_in_which_version(api):
    applied(api, POD)
    (entry,) = owned(api, POD).values()
    assert {key: entry[key] for key in entry if key != "fieldsV1"} == {
        "manager": "me", "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
    }  # fmt: skip


def test_the_user_agent_names_whoever_does_not(api):
    api.made(pod_manifest("a"))
    assert ("muster", "Update") in owned(api, POD)


def test_an_update_takes_what_it_changes(api):
    applied(api, labelled(a="1", b="1"))
    api.call("PATCH", path_of(labelled()), {"metadata": {"labels": {"b": "2"}}}, {"fieldManager": "other"}, MERGE_PATCH)
    assert fields(api, labelled(), "me") == {"f:metadata": {"f:labels": {"f:a": {}}}}
    assert fields(api, labelled(), "other", "Update") == {"f:metadata": {"f:labels": {"f:b": {}}}}


def test_what_is_deleted_nobody_owns(api):
    applied(api, labelled(a="1"))
    api.call("PATCH", path_of(labelled()), {"metadata": {"labels": {"a": None}}}, {"fieldManager": "x"}, MERGE_PATCH)
    assert ("me", "Apply") not in owned(api, labelled())


def test_the_status_belongs_to_whoever_writes_the_status(api):
    api.made(pod_manifest("a"))
    body = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    path = path_of(POD) + "/status"
    assert api.call("PATCH", path, body, {"fieldManager": "kubelet"}, STRATEGIC_PATCH).status == 200
    found = owned(api, POD)["kubelet", "Update", "status"]["fieldsV1"]
    assert found["f:status"]["f:conditions"]['k:{"type":"Ready"}'] == {".": {}, "f:status": {}, "f:type": {}}
    assert set(found) == {"f:status"}


def test_a_binding_owns_nothing(api):
    api.made(node_manifest("n1"))
    api.create(pod_manifest("a"), fieldManager="user")
    before = owned(api, POD)
    api.bind("a", "n1")
    assert owned(api, POD) == before


def test_a_status_is_applied_by_itself(api):
    applied(api, POD)
    status = {**POD, "status": {"conditions": [{"type": "x.example.com/y", "status": "True"}]}}
    del status["spec"]
    answer = apply(api, status, "controller", "status")
    assert answer.status == 200, answer.body
    assert set(owned(api, POD)["controller", "Apply", "status"]["fieldsV1"]) == {"f:status"}


# --- merging and letting go --------------------------------------------------------------------------------------


def test_what_is_applied_no_more_goes(api):
    applied(api, labelled(a="1", b="1"))
    body = applied(api, labelled(a="1"))
    assert "b" not in body["metadata"]["labels"] and body["metadata"]["labels"]["a"] == "1"


def test_what_others_own_too_stays(api):
    applied(api, labelled(a="1", b="1"))
    applied(api, labelled(b="1"), "other")
    body = applied(api, labelled(a="1"))
    assert body["metadata"]["labels"]["b"] == "1"
    assert fields(api, labelled(), "other") == {"f:metadata": {"f:labels": {"f:b": {}}}}


def test_what_nobody_applied_stays(api):
    api.made(labelled(a="1"))
    body = applied(api, labelled(b="1"))
    assert body["metadata"]["labels"].items() >= {"a": "1", "b": "1"}.items()


def tolerating(*keys):
    body = copy.deepcopy(POD)
    body["metadata"]["finalizers"] = [f"example.com/{key}" for key in keys]
    return body


def test_sets_are_united_and_each_lets_go_of_its_own(api):
    applied(api, tolerating("a", "b"), "one")
    body = applied(api, tolerating("b", "c"), "two")
    assert sorted(body["metadata"]["finalizers"]) == ["example.com/a", "example.com/b", "example.com/c"]
    body = applied(api, tolerating("a"), "one")
    assert sorted(body["metadata"]["finalizers"]) == ["example.com/a", "example.com/b", "example.com/c"]
    body = applied(api, tolerating("c"), "two")
    assert sorted(body["metadata"]["finalizers"]) == ["example.com/a", "example.com/c"]
    assert fields(api, POD, "two")["f:metadata"] == {"f:finalizers": {'v:"example.com/c"': {}}}


def conditions(*types):
    body = {key: POD[key] for key in ("apiVersion", "kind", "metadata")}
    return {**body, "status": {"conditions": [{"type": name, "status": "True"} for name in types]}}


def test_items_with_keys_are_merged_and_removed_by_key(api):
    applied(api, POD)
    for manager, names in (("one", "ab"), ("two", "bc"), ("one", "a")):
        answer = apply(api, conditions(*names), manager, "status", force="true")
        assert answer.status == 200, answer.body
    types = [entry["type"] for entry in answer.body["status"]["conditions"]]
    assert sorted(types) == ["a", "b", "c"]
    answer = apply(api, conditions("c"), "two", "status")
    assert sorted(entry["type"] for entry in answer.body["status"]["conditions"]) == ["a", "c"]


def test_an_atomic_list_is_replaced_as_one(api):
    applied(api, {**POD, "spec": {**POD["spec"], "tolerations": [{"key": "a", "operator": "Exists"}]}})
    found = fields(api, POD, "me")["f:spec"]
    assert found["f:tolerations"] == {}


# --- conflicts ---------------------------------------------------------------------------------------------------


def test_a_conflict_says_with_whom_and_where(api):
    applied(api, labelled(a="1"), "one")
    answer = apply(api, labelled(a="2"), "two")
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    said = 'Apply failed with 1 conflict: conflict with "one": .metadata.labels.a'
    assert answer.body["message"] == said
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".metadata.labels.a"}
    assert answer.body["details"]["causes"] == [cause]


def test_several_conflicts_are_listed(api):
    api.create(labelled(a="1", b="1"), fieldManager="kubectl-client-side-apply")
    answer = apply(api, labelled(a="2", b="2"), "two")
    using = 'conflicts with "kubectl-client-side-apply" using v1 at 2026-01-01T00:00:00Z:'
    assert answer.body["message"] == (
        f"Apply failed with 2 conflicts: {using}\n- .metadata.labels.a\n- .metadata.labels.b"
    )


def test_the_same_value_is_shared(api):
    applied(api, labelled(a="1"), "one")
    applied(api, labelled(a="1"), "two")
    assert fields(api, labelled(), "one") == fields(api, labelled(), "two")
    assert apply(api, labelled(a="2"), "two").status == 409


def test_force_takes_the_field(api):
    applied(api, labelled(a="1", b="1"), "one")
    body = applied(api, labelled(a="2"), "two", force="true")
    assert body["metadata"]["labels"]["a"] == "2"
    assert fields(api, labelled(), "one") == {"f:metadata": {"f:labels": {"f:b": {}}}}
    assert apply(api, labelled(a="1", b="1"), "one").status == 409


def test_a_nested_path_is_shown_with_its_key(api):
    applied(api, POD, "one")
    other = copy.deepcopy(POD)
    other["spec"]["containers"][0]["image"] = "j"
    answer = apply(api, other, "two")
    assert answer.body["details"]["causes"][0]["field"] == '.spec.containers[name="c"].image'


# --- what is refused, and what changes nothing -------------------------------------------------------------------


def test_an_apply_that_changes_nothing_writes_nothing(api):
    first = applied(api, POD)
    api.now += 60 * SECOND
    assert applied(api, POD)["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert api.server.revision == int(first["metadata"]["resourceVersion"])


def test_sharing_a_field_is_a_change_of_its_own(api):
    first = applied(api, labelled(a="1"), "one")
    second = applied(api, labelled(a="1"), "two")
    assert first["metadata"]["resourceVersion"] != second["metadata"]["resourceVersion"]


def test_a_dry_run_shows_what_would_be(api):
    assert apply(api, POD, dryRun="All").status == 201 and api.gone("pods", "a")
    applied(api, labelled(a="1"))
    body = dressed(applied(api, labelled(b="1"), "other", dryRun="All"))
    assert {entry["manager"] for entry in body["metadata"]["managedFields"]} == {"me", "other"}
    assert ("other", "Apply") not in owned(api, labelled())


def test_who_applies_must_say_so(api):
    answer = api.call("PATCH", path_of(POD), POD, {}, APPLY)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert "fieldManager: Required value: is required for apply patch" in answer.body["message"]


def test_only_an_apply_can_be_forced(api):
    api.made(pod_manifest("a"))
    answer = api.patch("pods", "a", {"metadata": {"labels": {"a": "b"}}}, force="true")
    assert answer.status == 422 and "may not be specified for non-apply patch" in answer.body["message"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"managedFields": [{"manager": "x", "operation": "Apply"}]}, 400),
        ({"uid": "1"}, 409),
        ({"resourceVersion": "1"}, 409),
        ({"name": "other"}, 400),
    ],
)
def test_metadata_that_an_apply_may_not_have(api, changes, code):
    body = {**POD, "metadata": {"name": "a", **changes}}
    path = path_of(POD)
    assert api.call("PATCH", path, body, {"fieldManager": "me"}, APPLY).status == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n", 201),
        (b"a: &x [1]\nb: *x\n", 400),
        (b"a: [", 400),
        (b"- 1", 400),
        (b"\xff", 400),
        (b"apiVersion: v1\nkind: Pod\nspec: {colour: red}\n", 400),
        (b"apiVersion: v1\nkind: Pod\nmetadata: {annotations: {a: 2026-01-01}}\nspec: {containers: [{name: c}]}", 422),
    ],
)  # fmt: skip
def test_bodies_are_yaml(api, text, code):
    answer = api.call("PATCH", path_of(POD), text, {"fieldManager": "me", "fieldValidation": "Strict"}, APPLY)
    assert answer.status == code, answer.body


def test_an_invalid_outcome_is_refused(api):
    answer = apply(api, {**POD, "spec": {"containers": [{"name": "c"}]}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


# --- entries that clients write themselves -----------------------------------------------------------------------


def test_entries_can_be_rewritten_and_reset(api):
    """As kubectl does on the way from client-side to server-side apply."""
    api.create(labelled(a="1"), fieldManager="kubectl-client-side-apply")
    (entry,) = owned(api, labelled()).values()
    entry = {**entry, "manager": "kubectl", "operation": "Apply"}
    steps = [{"op": "replace", "path": "/metadata/managedFields", "value": [entry]}]
    assert api.call("PATCH", path_of(labelled()), steps, {"fieldManager": "x"}, JSON_PATCH).status == 200
    assert set(owned(api, labelled())) == {("kubectl", "Apply")}
    assert "a" not in applied(api, labelled(b="1"), "kubectl")["metadata"]["labels"]
    api.call("PATCH", path_of(labelled()), {"metadata": {"managedFields": [{}]}}, {}, MERGE_PATCH)
    assert owned(api, labelled()) == {}


def test_entries_that_are_malformed_are_refused(api):
    applied(api, labelled(a="1"))
    bad = [{"manager": "x", "operation": "Apply", "fieldsV1": {"z:a": {}}}]
    answer = api.call("PATCH", path_of(labelled()), {"metadata": {"managedFields": bad}}, {}, MERGE_PATCH)
    assert answer.status == 422


def test_a_put_without_entries_keeps_them(api):
    applied(api, labelled(a="1"))
    body = json.loads(json.dumps(dressed(api.call("GET", path_of(labelled())).body)))
    del body["metadata"]["managedFields"]
    body["metadata"]["labels"]["b"] = "1"
    assert api.call("PUT", path_of(labelled()), body, {"fieldManager": "x"}).status == 200
    assert set(owned(api, labelled())) == {("me", "Apply"), ("x", "Update")}


def test_of_many_updaters_the_oldest_become_one(api):
    api.made(labelled())
    for number in range(14):
        api.now += SECOND
        body = {"metadata": {"labels": {f"l{number}": "1"}}}
        api.call("PATCH", path_of(labelled()), body, {"fieldManager": f"m{number}"}, MERGE_PATCH)
    found = owned(api, labelled())
    assert len(found) == 10 and ("ancient-changes", "Update") in found and ("m13", "Update") in found
    every = {name for entry in found.values() for name in entry["fieldsV1"]["f:metadata"]["f:labels"]}
    assert {f"f:l{number}" for number in range(14)} <= every


# --- laws --------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from("abcd")
LABELS = st.dictionaries(NAMES, st.sampled_from("12"), max_size=3)
MANAGERS = st.sampled_from(["one", "two", "three"])


@st.composite
def configurations(draw):
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    body["metadata"]["labels"] = draw(LABELS)
    body["metadata"]["finalizers"] = [f"example.com/{name}" for name in draw(st.sets(NAMES, max_size=2))]
    taints = draw(st.dictionaries(NAMES, st.sampled_from("12"), max_size=2))
    body["spec"] = {"taints": [{"key": key, "value": value, "effect": "NoSchedule"} for key, value in taints.items()]}
    return body


def values(raw):
    """What an object says, path by path, as far as configurations speak of it."""
    meta = raw["metadata"]
    found = {("label", key): value for key, value in meta.get("labels", {}).items()}
    found |= {("finalizer", name): name for name in meta.get("finalizers", ())}
    found[("taints",)] = raw.get("spec", {}).get("taints", [])
    return found


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(MANAGERS, configurations(), st.booleans()), min_size=1, max_size=6))
def test_applying_again_changes_nothing_and_others_keep_what_is_theirs(new_api, steps):
    api = new_api(FeatureGates())
    mine = {}
    for manager, body, force in steps:
        before = api.call("GET", path_of(body))
        revision = api.server.revision
        answer = apply(api, body, manager, force=str(force).lower())
        if answer.status == 409:
            assert not force and api.server.revision == revision
            continue
        assert answer.status in (200, 201), answer.body
        mine[manager] = values(body)
        after = values(answer.body)
        assert all(after.get(key) == value for key, value in mine[manager].items() if value)
        if before.ok and not force:
            for other, wanted in mine.items():
                assert all(after.get(key) == value for key, value in wanted.items() if value), other
        if force:
            for other in mine.keys() - {manager}:
                mine[other] = {key: value for key, value in mine[other].items() if after.get(key) == value}
        again = apply(api, body, manager)
        assert (
            again.status == 200
            and again.body["metadata"]["resourceVersion"] == answer.body["metadata"]["resourceVersion"]
        )


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(configurations(), configurations())
def test_letting_go_of_everything_leaves_what_others_say(new_api, first, second):
    api = new_api(FeatureGates())
    applied(api, first, "one")
    applied(api, second, "two", force="true")
    empty = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    body = applied(api, empty, "one")
    left = values(body)
    if not second["spec"]["taints"]:
        left.pop(("taints",))
    assert {key: value for key, value in left.items() if value} == {k: v for k, v in values(second).items() if v}
    assert ("one", "Apply") not in owned(api, empty)
