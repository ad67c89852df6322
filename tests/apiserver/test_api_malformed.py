"""Whatever comes in, the answer is a Status, and the server goes on."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.api.calls import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Request, Response
from muster.apiserver.decode import MAX_BODY, MAX_DEPTH
from muster.testing.builders import pod_manifest

PODS = "/api/v1/namespaces/default/pods"
DEEP = b'{"a":' * 50_000
SHALLOW = b'{"metadata":{"name":"x","annotations":' + b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH + b"}}"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (None, 400),
        (b"", 400),
        (b"null", 400),
        (b"[]", 400),
        (b"5", 400),
        (b'"pod"', 400),
        (b"{", 400),
        (b"{}", 422),
        (b"{'kind': 'Pod'}", 400),
        (b'{"kind": "Pod"', 400),
        (b'{"kind": "Pod"} trailing', 400),
        (b'{"metadata": {"name": NaN}}', 400),
        (b'{"metadata": {"name": "\xff\xfe"}}', 400),
        (b'{"metadata": {"name": "\\ud800"}}', 400),
        (b"\xef\xbb\xbf{}", 400),
        (b"\x00", 400),
        (b"kind: Pod", 400),
        (DEEP, 400),
        (b"[" * 100_000, 400),
        (SHALLOW, 400),
        (b'{"metadata": []}', 400),
        (b'{"metadata": {"name": {}}}', 400),
        (b'{"metadata": {"name": "x"}, "spec": {"priority": 1e400}}', 400),
        (b'{"metadata": {"name": "x"}, "spec": {"priority": 99999999999999999999}}', 400),
        (b'{"metadata": {"name": "x"}, "spec": {"priority": ' + b"9" * 6000 + b"}}", 400),
        (b'{"metadata": {"name": "../../etc"}}', 422),
        (b'{"metadata": {"name": "' + b"a" * 5000 + b'"}}', 422),
        (b'{"metadata": {"name": "x", "labels": {"": ""}}}', 422),
        (b'{"metadata": {"name": "x"}, "spec": null}', 422),
        (b'{"metadata": {"name": "x", "creationTimestamp": "yesterday"}}', 400),
        (b" " * (MAX_BODY + 1), 413),
    ],
)
def test_a_body_that_is_no_pod_is_refused(api, body, code):
    answer = api.call("POST", PODS, body)
    assert answer.status == code, answer.body
    assert answer.body["kind"] == "Status" and answer.body["code"] == code and answer.body["message"]
    assert api.create(pod_manifest("after")).status == 201


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "", 200),
        ("GET", "nonsense", 404),
        ("GET", "//", 200),
        ("GET", "/api/v2/pods", 404),
        ("GET", "/api/v1/podz", 404),
        ("GET", "/apis/apps/v1/deploymentz", 404),
        ("GET", "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups/x/scale", 404),
        ("GET", "/api/v1/namespaces//pods", 404),
        ("GET", "/api/v1/namespaces/default/pods/a/status/more", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", "/openapi/v3/apis/nothing/v1", 404),
        ("POST", "/openapi/v3", 405),
        ("POST", "/api/v1/namespaces/default/pods/a", 405),
        ("PUT", PODS, 405),
        ("PATCH", PODS, 405),
        ("BREW", PODS, 405),
        ("CONNECT", "/", 405),
        ("", "", 405),
        ("GET", "/api/v1/namespaces/default/pods/" + "x" * 10_000, 404),
        ("GET", "/api/v1/namespaces/\x00/pods/\x00", 404),
        ("GET", "/api/v1/namespaces/../pods", 200),
    ],
)
def test_an_unknown_path_or_method_is_answered(api, method, path, code):
    answer = api.call(method, path, {})
    assert answer.status == code, answer.body
    if code != 200:
        assert answer.body["kind"] == "Status" and answer.body["message"]


@pytest.mark.parametrize("content_type", ["application/yaml", "text/plain", "application/cbor", "multipart/form-data"])
def test_other_content_types_are_refused(api, content_type):
    answer = api.call("POST", PODS, b"kind: Pod", content_type=content_type)
    assert (answer.status, answer.body["reason"]) == (415, "UnsupportedMediaType")
    assert "application/json" in answer.body["message"] and content_type in answer.body["message"]


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON", ""])
def test_json_is_recognized_with_parameters_and_in_any_case(api, content_type):
    given = pod_manifest("a")
    assert api.call("POST", PODS, given, content_type=content_type).status == 201


def test_a_client_that_does_not_take_json_is_told_so(api):
    answer = api.server.handle(Request("GET", PODS, accept="application/vnd.kubernetes.protobuf"), api.now)
    assert isinstance(answer, Response) and (answer.status, answer.body["reason"]) == (406, "NotAcceptable")


def test_duplicate_fields_are_warned_of_or_refused(api):
    body = b'{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"x","image":"y"}]}}'
    answer = api.call("POST", PODS, body, {"fieldValidation": "Strict"})
    assert answer.status == 400 and 'duplicate field "spec.containers[0].image"' in answer.body["message"]
    answer = api.call("POST", PODS, body)
    assert answer.status == 201 and "spec.containers[0].image" in answer.headers["Warning"]


def test_a_warning_cannot_break_a_header(api):
    answer = api.call("POST", PODS, pod_manifest("a") | {'evil"\r\nX-Injected: é': 1})
    assert answer.status == 201
    assert all(32 <= ord(letter) < 127 for letter in answer.headers["Warning"])


def test_a_bug_is_an_internal_error_and_no_crash(api, monkeypatch):
    monkeypatch.setattr(api.server.store, "put", lambda *_: 1 / 0)
    answer = api.create(pod_manifest("a"))
    assert (answer.status, answer.body["reason"]) == (500, "InternalError")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
fields = st.sampled_from(
    [
        "metadata",
        "name",
        "labels",
        "spec",
        "containers",
        "kind",
        "apiVersion",
        "status",
        "target",
        "finalizers",
        "$patch",
    ]
)
bodies = st.dictionaries(fields, st.dictionaries(fields, json_values | st.lists(st.dictionaries(fields, json_values))))
methods = st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"])
paths = st.sampled_from(
    [
        PODS,
        f"{PODS}/a",
        f"{PODS}/a/status",
        f"{PODS}/a/binding",
        f"{PODS}/a/eviction",
        f"{PODS}/a/resize",
        "/api/v1/nodes",
        "/api/v1/namespaces/default",
        "/apis/batch/v1/namespaces/default/jobs",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups",
        "/apis/scheduling.k8s.io/v1beta1/namespaces/default/workloads",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
    ]
)
types = st.sampled_from(["application/json", JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH])
operations = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]) | json_values,
            "path": st.sampled_from(["/metadata", "/spec/containers/0", "/metadata/labels/a", "/-", ""]) | json_values,
            "from": st.sampled_from(["/spec", "/metadata/labels"]) | json_values,
            "value": json_values,
        },
    ),
    max_size=3,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(methods, paths, bodies | json_values | operations | st.binary(max_size=30), types)
def test_no_request_is_an_internal_error(new_api, method, path, body, content_type):
    api = new_api()
    api.made(pod_manifest("a", labels={"a": "b"}))
    revision = api.server.revision
    answer = api.call(method, path, body, content_type=content_type)
    assert answer.status != 500, answer.body
    assert answer.status < 300 or api.server.revision == revision


@pytest.mark.parametrize(
    ("kind", "field", "text", "code"),
    [
        ("ConfigMap", "binaryData", "%%%", 400),
        ("ConfigMap", "binaryData", "YQ", 400),
        ("Secret", "data", "a b=", 400),
        ("Secret", "data", "", 201),
        ("Secret", "data", "YWJj", 201),
        ("Secret", "data", "YWJj\nYQ==\n", 201),
        ("ConfigMap", "data", "%%%", 201),
    ],
)
def test_bytes_are_in_base64(api, kind, field, text, code):
    body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "b"}, field: {"k": text}}
    answer = api.call("POST", f"/api/v1/namespaces/default/{kind.lower()}s", body)
    assert answer.status == code, answer.body
    assert code == 201 or f"{field}[k]: must be bytes in base64" in answer.body["message"]
