"""Answers in other forms: tables and metadata alone, also on watches."""

from __future__ import annotations

import pytest

from muster.api import catalog
from muster.api.calls import Request, Response
from muster.api.instant import SECOND
from muster.apiserver.ownership import dressed
from muster.apiserver.sheet import duration
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest

PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
KUBECTL = f"{TABLE},{TABLE.replace('v=v1', 'v=v1beta1')},application/json"


def read(api, path, accept=KUBECTL, **query):
    answer = api.server.handle(Request("GET", path, query, accept=accept), api.now)
    assert not isinstance(answer, Response) or answer.status == 200, answer.body
    return answer


def cells(api, path, name=None, **query):
    """The cells of an object's row by the names of their columns."""
    body = read(api, path, **query).body
    names = [column["name"] for column in body["columnDefinitions"]]
    rows = [dict(zip(names, row["cells"], strict=True)) for row in body["rows"]]
    return next(row for row in rows if name in (None, row["Name"]))


@pytest.mark.parametrize("kind", catalog.KINDS, ids=lambda kind: kind.plural)
def test_every_kind_has_columns_of_its_own_types(api, kind):
    body = read(api, kind.path(None)).body
    assert (body["kind"], body["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    shown = [column["name"] for column in body["columnDefinitions"] if not column["priority"]]
    assert ("Name" in shown or kind is catalog.EVENT) and body["metadata"]["resourceVersion"]
    assert all(column["type"] in ("string", "integer", "boolean", "date") for column in body["columnDefinitions"])
    assert all(len(row["cells"]) == len(body["columnDefinitions"]) for row in body["rows"])


def test_a_pod_shows_what_its_containers_do(api):
    api.made(pod_manifest("a"))
    api.now += 90 * SECOND
    assert cells(api, PODS) == {
        "Name": "a", "Ready": "0/1", "Status": "Pending", "Restarts": "0", "Age": "90s",
        "IP": "<none>", "Node": "<none>", "Nominated Node": "<none>", "Readiness Gates": "<none>",
    }  # fmt: skip
    ran = {"lastState": {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T00:00:30Z"}}, "restartCount": 2}
    report = {"name": "main", "ready": True, "state": {"running": {}}, **ran}
    body = {"status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [report]}}
    assert api.patch("pods", "a", body, subresource="status").status == 200
    row = cells(api, PODS)
    assert (row["Ready"], row["Status"], row["Restarts"], row["IP"]) == ("1/1", "Running", "2 (60s ago)", "10.0.0.1")
    report["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
    api.patch("pods", "a", body, subresource="status")
    assert cells(api, PODS)["Status"] == "CrashLoopBackOff"


def test_a_pod_that_initializes_is_gated_or_goes_says_so(api):
    gated = pod_manifest("gated")
    gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    api.made(gated)
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    api.patch("pods", "gated", {"status": {"conditions": [condition]}}, subresource="status")
    assert cells(api, PODS)["Status"] == "SchedulingGated"
    report = {"name": "one", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    api.patch("pods", "gated", {"status": {"initContainerStatuses": [report]}}, subresource="status")
    assert cells(api, PODS)["Status"] == "Init:ImagePullBackOff"
    api.patch("pods", "gated", {"metadata": {"finalizers": ["example.com/x"]}})
    api.delete("pods", "gated")
    assert cells(api, PODS)["Status"] == "Terminating"


def test_a_node_shows_whether_pods_may_come(api):
    api.made(node_manifest("n"))
    api.patch("nodes", "n", {"spec": {"unschedulable": True}})
    api.patch("nodes", "n", {"metadata": {"labels": {"node-role.kubernetes.io/worker": ""}}})
    row = cells(api, "/api/v1/nodes")
    assert (row["Status"], row["Roles"]) == ("Ready,SchedulingDisabled", "worker")


def test_a_group_counts_its_members_and_those_that_have_a_place(api):
    api.made(gang_manifest("g", 3))
    for name in "abc":
        api.made(pod_manifest(name, group="g"))
    api.made(node_manifest("n"))
    api.bind("a", "n")
    path = catalog.POD_GROUP.path("default")
    row = cells(api, path)
    assert (row["Min"], row["Members"], row["Bound"], row["Status"]) == (3, 3, 1, "Pending")
    condition = {"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled"}
    api.patch("podgroups", "g", {"status": {"conditions": [condition]}}, subresource="status")
    assert cells(api, path)["Status"] == "Scheduled"


def test_rows_carry_metadata_the_object_or_nothing(api):
    api.made(pod_manifest("a"))
    (row,) = read(api, PODS).body["rows"]
    assert row["object"]["kind"] == "PartialObjectMetadata" and "spec" not in row["object"]
    (row,) = read(api, PODS, includeObject="Object").body["rows"]
    assert row["object"] == dressed(api.get("pods", "a"))
    (row,) = read(api, PODS, includeObject="None").body["rows"]
    assert row["object"] is None
    answer = api.server.handle(Request("GET", PODS, {"includeObject": "All"}, accept=TABLE), api.now)
    assert answer.status == 400


def test_tables_come_in_pages(api):
    for name in "abc":
        api.made(pod_manifest(name))
    first = read(api, PODS, limit="2").body
    assert len(first["rows"]) == 2 and first["metadata"]["remainingItemCount"] == 1
    rest = read(api, PODS, limit="2", **{"continue": first["metadata"]["continue"]}).body
    assert [row["cells"][0] for row in rest["rows"]] == ["c"]


def test_only_the_first_event_of_a_watch_says_what_the_columns_are(api):
    api.made(pod_manifest("a"))
    stream = read(api, PODS, watch="true")
    api.made(pod_manifest("b"))
    first, second = (stream.shown(event) for event in stream.poll())
    assert first["columnDefinitions"] and second["columnDefinitions"] is None
    assert [table["rows"][0]["cells"][0] for table in (first, second)] == ["a", "b"]


def test_metadata_alone(api):
    api.made(pod_manifest("a"))
    one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    many = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    body = read(api, f"{PODS}/a", one).body
    assert body["kind"] == "PartialObjectMetadata" and body["metadata"]["name"] == "a" and "spec" not in body
    body = read(api, PODS, many).body
    assert body["kind"] == "PartialObjectMetadataList" and set(body["items"][0]) == {"kind", "apiVersion", "metadata"}
    (event,) = (stream := read(api, PODS, one, watch="true")).poll()
    assert stream.shown(event)["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize(
    "accept", ["application/json;as=Other;g=meta.k8s.io;v=v1", "application/json;as=Table;g=x;v=v1"]
)
def test_a_form_that_is_not_served_is_refused_unless_another_is_accepted(api, accept):
    answer = api.server.handle(Request("GET", PODS, accept=accept), api.now)
    assert answer.status == 406
    assert read(api, PODS, f"{accept},application/json").body["kind"] == "PodList"


def test_failures_stay_what_they_are(api):
    answer = api.server.handle(Request("GET", f"{PODS}/missing", accept=TABLE), api.now)
    assert (answer.status, answer.body["kind"]) == (404, "Status")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"), (119, "119s"), (120, "2m"), (121, "2m1s"), (599, "9m59s"), (601, "10m"), (10_799, "179m"),
        (10_800, "3h"), (11_000, "3h3m"), (30_000, "8h"), (172_799, "47h"), (172_800, "2d"), (180_000, "2d2h"),
        (700_000, "8d"), (63_072_000, "2y"), (70_000_000, "2y80d"), (400_000_000, "12y"), (-1, "0s"), (-9, "<invalid>"),
    ],
)  # fmt: skip
def test_spans_of_time_in_two_units(seconds, text):
    assert duration(seconds) == text
