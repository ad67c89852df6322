"""Objects of a kind that a user has defined: checked, pruned, defaulted, converted, shown, watched, applied."""

from __future__ import annotations

import pytest
from custom import DEFINITIONS, GROUP, NAME, PATH, definition, run, version

from muster.api.calls import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Request
from muster.apiserver import durable
from muster.apiserver.ownership import dressed
from muster.apiserver.storage import Store
from muster.apiserver.watch import Watch

APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
def runs(api):
    api.made(definition())
    return api


def create(api, body, path=PATH, **query):
    return api.call("POST", path, body, query)


def made(api, body, path=PATH):
    answer = create(api, body, path)
    assert answer.status == 201, answer.body
    return answer.body


def merge(api, body, name="a", subresource="", content_type=MERGE_PATCH, **query):
    return api.call("PATCH", f"{PATH}/{name}{subresource}", body, query, content_type)


def test_an_object_gets_defaults_and_loses_what_is_not_known(runs):
    answer = create(runs, run(foo=1, env=[{"name": "a", "bar": 2}], free={"any": {"thing": None}}))
    assert answer.status == 201
    assert answer.body["spec"] == {
        "image": "x",
        "workers": 2,
        "mode": "sync",
        "checkpoint": {"every": "30m"},
        "env": [{"name": "a"}],
        "free": {"any": {"thing": None}},
    }
    assert answer.headers["Warning"] == (
        '299 - "unknown field \\"spec.foo\\"", 299 - "unknown field \\"spec.env[0].bar\\""'
    )
    refused = create(runs, run("b", foo=1), fieldValidation="Strict")
    assert refused.status == 400 and 'strict decoding error: unknown field "spec.foo"' in refused.body["message"]
    assert "Warning" not in create(runs, run("c", foo=1), fieldValidation="Ignore").headers


def test_a_null_is_a_default_where_there_is_one_and_stays_where_it_may(runs):
    assert made(runs, run(workers=None, until=None, port=None))["spec"] == made(runs, run("b", until=None))["spec"]
    assert made(runs, run("c", until=None))["spec"]["until"] is None


@pytest.mark.parametrize(
    ("spec", "field", "reason", "message"),
    [
        (
            {"workers": "7"},
            "spec.workers",
            "FieldValueTypeInvalid",
            'Invalid value: "string": spec.workers in body must be of type integer: "string"',
        ),
        (
            {"workers": 0},
            "spec.workers",
            "FieldValueInvalid",
            "Invalid value: 0: spec.workers in body should be greater than or equal to 1",
        ),
        (
            {"workers": 65},
            "spec.workers",
            "FieldValueInvalid",
            "Invalid value: 65: spec.workers in body should be less than or equal to 64",
        ),
        (
            {"rate": 0},
            "spec.rate",
            "FieldValueInvalid",
            "Invalid value: 0: spec.rate in body should be greater than 0",
        ),
        (
            {"rate": 0.7},
            "spec.rate",
            "FieldValueInvalid",
            "Invalid value: 0.7: spec.rate in body should be a multiple of 0.5",
        ),
        (
            {"mode": "z"},
            "spec.mode",
            "FieldValueNotSupported",
            'Unsupported value: "z": supported values: "sync", "async"',
        ),
        (
            {"image": ""},
            "spec.image",
            "FieldValueInvalid",
            'Invalid value: "": spec.image in body should be at least 1 chars long',
        ),
        ({"image": "x" * 21}, "spec.image", "FieldValueTooLong", "Too long: may not be more than 20 bytes"),
        (
            {"image": "A"},
            "spec.image",
            "FieldValueInvalid",
            "Invalid value: \"A\": spec.image in body should match '^[a-z:0-9]*$'",
        ),
        (
            {"until": "noon"},
            "spec.until",
            "FieldValueTypeInvalid",
            'Invalid value: "noon": spec.until in body must be of type date-time: "noon"',
        ),
        (
            {"port": 1.5},
            "spec.port",
            "FieldValueTypeInvalid",
            'Invalid value: "number": spec.port in body must be of type integer,string: "number"',
        ),
        ({"env": [{}]}, "spec.env[0].name", "FieldValueRequired", "Required value"),
        (
            {"env": [{"name": "a"}, {"name": "a"}]},
            "spec.env[1]",
            "FieldValueDuplicate",
            'Duplicate value: {"name": "a"}',
        ),
        ({"tags": ["a", "a"]}, "spec.tags[1]", "FieldValueDuplicate", 'Duplicate value: "a"'),
        (
            {"env": [{"name": str(n)} for n in range(4)]},
            "spec.env",
            "FieldValueTooMany",
            "Too many: 4: must have at most 3 items",
        ),
        (
            {"limits": {"a": "b"}},
            "spec.limits.a",
            "FieldValueTypeInvalid",
            'Invalid value: "string": spec.limits.a in body must be of type integer: "string"',
        ),
        (
            {"template": {"kind": "Pod"}},
            "spec.template.apiVersion",
            "FieldValueRequired",
            "Required value: must not be empty",
        ),
    ],
)
def test_a_wrong_value_is_named_as_the_real_server_names_it(runs, spec, field, reason, message):
    answer = create(runs, run(**spec))
    assert answer.status == 422
    assert answer.body["details"]["causes"] == [{"reason": reason, "message": message, "field": field}]
    assert answer.body["details"]["kind"] == "TrainingRun" and answer.body["details"]["group"] == GROUP


def test_a_field_that_is_required_is_missed(runs):
    answer = create(runs, run() | {"spec": {}})
    assert answer.body["message"] == 'TrainingRun.ml.example.com "a" is invalid: spec.image: Required value'


def test_status_has_an_endpoint_of_its_own_and_generation_counts_the_rest(runs):
    first = made(runs, run() | {"status": {"ready": 1}})
    assert "status" not in first and first["metadata"]["generation"] == 1
    said = merge(
        runs,
        {"spec": {"workers": 9}, "status": {"ready": 2}, "metadata": {"labels": {"a": "b"}}},
        subresource="/status",
    )
    assert said.status == 200 and said.body["status"] == {"ready": 2}
    assert said.body["spec"]["workers"] == 2 and "labels" not in said.body["metadata"]
    assert said.body["metadata"]["generation"] == 1
    said = merge(runs, {"spec": {"workers": 9}, "status": {"ready": 5}})
    assert said.body["status"] == {"ready": 2} and said.body["metadata"]["generation"] == 2
    assert merge(runs, {"metadata": {"labels": {"a": "b"}}}).body["metadata"]["generation"] == 2
    wrong = merge(runs, {"status": {"ready": "x"}}, subresource="/status")
    assert wrong.status == 422 and wrong.body["details"]["causes"][0]["field"] == "status.ready"
    odd = merge(runs, {"status": "done"}, subresource="/status")
    assert odd.status == 422 and odd.body["details"]["causes"][0]["field"] == "status"


def test_without_the_subresource_a_status_is_a_field_like_others(api):
    api.made(definition(version(subresources={})))
    assert made(api, run() | {"status": {"ready": 1}})["status"] == {"ready": 1}
    assert merge(api, {"status": {"ready": 2}}).body["metadata"]["generation"] == 2
    assert api.call("GET", f"{PATH}/a/status").status == api.call("GET", f"{PATH}/a/scale").status == 404


def test_scale_reads_and_writes_the_paths_of_the_definition(runs):
    made(runs, run())
    merge(runs, {"status": {"ready": 1, "selector": "app=x"}}, subresource="/status")
    scale = runs.call("GET", f"{PATH}/a/scale").body
    assert scale["spec"] == {"replicas": 2} and scale["status"] == {"replicas": 1, "selector": "app=x"}
    assert merge(runs, {"spec": {"replicas": 5}}, subresource="/scale").body["spec"] == {"replicas": 5}
    assert runs.call("GET", f"{PATH}/a").body["spec"]["workers"] == 5
    put = runs.call("PUT", f"{PATH}/a/scale", {**scale, "metadata": {"name": "a"}, "spec": {"replicas": 65}})
    assert put.status == 422 and put.body["details"]["causes"][0]["field"] == "spec.workers"


def test_every_kind_of_patch_but_the_strategic_one(runs):
    made(runs, run(tags=["a"]))
    steps = [{"op": "add", "path": "/spec/tags/-", "value": "b"}]
    assert merge(runs, steps, content_type=JSON_PATCH).body["spec"]["tags"] == ["a", "b"]
    assert merge(runs, {"spec": {"tags": None}}).body["spec"].get("tags") is None
    refused = merge(runs, {"spec": {}}, content_type=STRATEGIC_PATCH)
    assert refused.status == 415 and STRATEGIC_PATCH not in refused.body["message"].partition(";")[0]


def test_apply_merges_lists_by_their_keys_and_knows_who_owns_what(runs):
    one = run(env=[{"name": "A", "value": "1"}], tags=["x"])
    assert merge(runs, one, content_type=APPLY, fieldManager="one").status == 201
    two = {**run(env=[{"name": "B", "value": "2"}], tags=["y"])}
    del two["spec"]["image"]
    answer = merge(runs, two, content_type=APPLY, fieldManager="two")
    assert answer.status == 200, answer.body
    assert answer.body["spec"]["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    assert sorted(answer.body["spec"]["tags"]) == ["x", "y"]
    two["spec"]["env"][0] = {"name": "A", "value": "3"}
    refused = merge(runs, two, content_type=APPLY, fieldManager="two")
    assert refused.status == 409
    assert refused.body["details"]["causes"][0]["field"] == '.spec.env[name="A"].value'
    forced = merge(runs, two, content_type=APPLY, fieldManager="two", force="true")
    assert forced.body["spec"]["env"] == [{"name": "A", "value": "3"}]
    owners = {entry["manager"]: entry for entry in dressed(forced.body)["metadata"]["managedFields"]}
    assert owners["two"]["apiVersion"] == f"{GROUP}/v1"
    assert 'k:{"name":"A"}' in owners["two"]["fieldsV1"]["f:spec"]["f:env"]
    assert "f:image" in owners["one"]["fieldsV1"]["f:spec"]


def test_a_put_has_to_say_which_version_it_replaces(runs):
    stored = made(runs, run())
    assert runs.call("PUT", f"{PATH}/a", run(workers=3)).status == 422
    body = {**run(workers=3), "metadata": {"name": "a", "resourceVersion": stored["metadata"]["resourceVersion"]}}
    assert runs.call("PUT", f"{PATH}/a", body).body["spec"]["workers"] == 3
    assert runs.call("PUT", f"{PATH}/a", body).status == 409


def test_a_dry_run_stores_nothing(runs):
    assert create(runs, run(), dryRun="All").body["spec"]["workers"] == 2
    assert runs.call("GET", f"{PATH}/a").status == 404


def test_what_is_stored_gets_the_defaults_of_today_and_loses_what_is_no_longer_known(runs):
    made(runs, run(tags=["a"]))
    changed = definition()
    fields = {"image": {"type": "string"}, "color": {"type": "string", "default": "red"}}
    changed["spec"]["versions"] = [version(spec={"type": "object", "properties": fields})]
    assert runs.call("PATCH", f"{DEFINITIONS}/{NAME}", changed, {}, MERGE_PATCH).status == 200
    assert runs.call("GET", f"{PATH}/a").body["spec"] == {"image": "x", "color": "red"}
    assert runs.call("GET", PATH).body["items"][0]["spec"] == {"image": "x", "color": "red"}


def test_versions_show_one_object_each_with_its_own_schema(api):
    other = {"type": "object", "properties": {"image": {"type": "string"}, "size": {"type": "integer", "default": 1}}}
    api.made(definition(version("v1", storage=False), version("v2", spec=other)))
    made(api, run())
    second = f"/apis/{GROUP}/v2/namespaces/default/trainingruns"
    new = api.call("GET", f"{second}/a").body
    assert new["apiVersion"] == f"{GROUP}/v2" and new["spec"] == {"image": "x", "size": 1}
    old = api.call("GET", f"{PATH}/a").body
    assert old["apiVersion"] == f"{GROUP}/v1" and old["metadata"]["uid"] == new["metadata"]["uid"]
    stream = api.server.handle(Request("GET", PATH, {"watch": "true"}), api.now)
    assert isinstance(stream, Watch)
    assert [stream.shown(event)["apiVersion"] for event in stream.poll()] == [f"{GROUP}/v1"]
    patched = api.call("PATCH", f"{second}/a", {"spec": {"size": 4}}, {"fieldManager": "m"}, MERGE_PATCH)
    assert patched.status == 200 and patched.body["spec"]["size"] == 4
    assert [stream.shown(event)["spec"].get("size") for event in stream.poll()] == [None]
    managers = {entry["manager"]: entry["apiVersion"] for entry in dressed(patched.body)["metadata"]["managedFields"]}
    assert managers == {"muster": f"{GROUP}/v1", "m": f"{GROUP}/v2"}


def test_a_deprecated_version_warns(api):
    api.made(definition(version("v1", deprecated=True)))
    assert create(api, run()).headers["Warning"] == '299 - "ml.example.com/v1 TrainingRun is deprecated"'


def test_tables_have_the_columns_of_the_definition(api):
    columns = [
        {"name": "Workers", "type": "integer", "jsonPath": ".spec.workers", "priority": 1},
        {"name": "Value", "type": "string", "jsonPath": '.spec.env[?(@.name=="A")].value'},
        {"name": "Made", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "None", "type": "string", "jsonPath": ".status.none"},
    ]
    api.made(definition(version(additionalPrinterColumns=columns)))
    made(api, run(env=[{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]))
    table = api.server.handle(Request("GET", PATH, accept=TABLE), api.now).body
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Workers", "Value", "Made", "None"]
    assert table["rows"][0]["cells"] == ["a", 2, "1", "0s", None]


def test_selectors_and_watches_work_as_for_any_kind(api):
    api.made(definition(version(selectableFields=[{"jsonPath": ".spec.mode"}])))
    stream = api.server.handle(Request("GET", PATH, {"watch": "true", "fieldSelector": "spec.mode=async"}), api.now)
    made(api, run())
    made(api, run("b", mode="async") | {"metadata": {"name": "b", "labels": {"team": "x"}}})
    merge(api, {"spec": {"mode": "async"}})
    merge(api, {"spec": {"mode": "sync"}}, "b")
    seen = [(event.type, event.object["metadata"]["name"]) for event in stream.poll()]
    assert seen == [("ADDED", "b"), ("ADDED", "a"), ("DELETED", "b")]
    listed = api.call("GET", PATH, query={"labelSelector": "team=x"}).body
    assert listed["kind"] == "TrainingRunList" and [item["metadata"]["name"] for item in listed["items"]] == ["b"]
    assert api.call("GET", PATH, query={"fieldSelector": "spec.image=x"}).status == 400


def test_pages_and_collections_work_as_for_any_kind(runs):
    for name in "abc":
        made(runs, run(name))
    page = runs.call("GET", PATH, query={"limit": "2"}).body
    rest = runs.call("GET", PATH, query={"limit": "2", "continue": page["metadata"]["continue"]}).body
    assert [item["metadata"]["name"] for item in page["items"] + rest["items"]] == ["a", "b", "c"]
    assert len(runs.call("DELETE", PATH).body["items"]) == 3
    assert runs.call("GET", PATH).body["items"] == []


def test_objects_go_with_their_namespace(runs):
    runs.made({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    path = PATH.replace("/default/", "/team/")
    made(runs, run(), path)
    assert runs.call("DELETE", "/api/v1/namespaces/team").status == 200
    assert runs.call("GET", f"{path}/a").status == 404
    assert create(runs, run(), path).status == 404


def test_a_store_that_is_read_back_serves_the_kind_again(new_api):
    store = Store(100)
    store.outbox = []
    runs = new_api(store=store)
    runs.made(definition())
    merge(runs, run(env=[{"name": "A"}]), content_type=APPLY, fieldManager="one")
    again = new_api(store=durable.restored(list(map(durable.record, store.outbox)), 0, 100))
    before, after = (dressed(each.call("GET", f"{PATH}/a").body) for each in (runs, again))
    assert before == after and after["spec"]["env"] == [{"name": "A"}]
    assert create(again, run("b", workers=0)).status == 422


def owned(name, owner, *, block=False):
    reference = {"apiVersion": f"{GROUP}/v1", "kind": "TrainingRun", "name": "a", "uid": owner["metadata"]["uid"]}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    meta = {"name": name, "ownerReferences": [reference | {"blockOwnerDeletion": block}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def test_what_an_object_owns_goes_with_it(runs):
    owner = made(runs, run())
    runs.made(owned("p", owner))
    child = run("b")
    child["metadata"]["ownerReferences"] = owned("p", owner)["metadata"]["ownerReferences"]
    made(runs, child)
    assert runs.call("DELETE", f"{PATH}/a").status == 200
    assert runs.names("pods") == [] and runs.call("GET", PATH).body["items"] == []


def test_what_is_owned_by_others_too_stays(runs):
    owner, other = made(runs, run()), made(runs, run("other"))
    pod = owned("p", owner)
    second = pod["metadata"]["ownerReferences"][0] | {"name": "other", "uid": other["metadata"]["uid"]}
    pod["metadata"]["ownerReferences"].append(second)
    runs.made(pod)
    runs.call("DELETE", f"{PATH}/a")
    assert [entry["name"] for entry in runs.get("pods", "p")["metadata"]["ownerReferences"]] == ["other"]
    runs.call("DELETE", f"{PATH}/other")
    assert runs.names("pods") == []


def test_orphans_stay_and_the_foreground_waits_for_what_blocks(runs):
    owner = made(runs, run())
    runs.made(owned("p", owner))
    assert runs.call("DELETE", f"{PATH}/a", query={"propagationPolicy": "Orphan"}).status == 200
    assert runs.call("GET", f"{PATH}/a").status == 404
    assert "ownerReferences" not in runs.get("pods", "p")["metadata"]

    owner = made(runs, run())
    held = owned("held", owner, block=True)
    held["metadata"]["finalizers"] = ["example.com/hold"]
    runs.made(held)
    going = runs.call("DELETE", f"{PATH}/a", query={"propagationPolicy": "Foreground"})
    assert going.body["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert "deletionTimestamp" in runs.get("pods", "held")["metadata"]
    runs.patch("pods", "held", {"metadata": {"finalizers": None}})
    assert runs.gone("pods", "held") and runs.call("GET", f"{PATH}/a").status == 404


def test_what_a_built_in_object_owns_goes_too_if_it_is_of_a_users_kind(runs):
    pod = runs.made({**owned("p", {"metadata": {"uid": "x"}}), "metadata": {"name": "p"}})
    child = run()
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod["metadata"]["uid"]}
    child["metadata"]["ownerReferences"] = [reference]
    made(runs, child)
    runs.delete("pods", "p")
    assert runs.call("GET", f"{PATH}/a").status == 404


def test_where_anything_goes_mappings_are_owned_by_field_and_lists_as_a_whole(runs):
    one, two = run(free={"a": {"x": 1}, "l": [1]}), run(free={"a": {"y": 2}})
    del two["spec"]["image"]
    merge(runs, one, content_type=APPLY, fieldManager="one")
    both = merge(runs, two, content_type=APPLY, fieldManager="two")
    assert both.body["spec"]["free"] == {"a": {"x": 1, "y": 2}, "l": [1]}
    two["spec"]["free"]["l"] = [2]
    refused = merge(runs, two, content_type=APPLY, fieldManager="two")
    assert refused.status == 409 and refused.body["details"]["causes"][0]["field"] == ".spec.free.l"
    del one["spec"]["free"]["a"]
    left = merge(runs, one, content_type=APPLY, fieldManager="one")
    assert left.body["spec"]["free"] == {"a": {"y": 2}, "l": [1]}
