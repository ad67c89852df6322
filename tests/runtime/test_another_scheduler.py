"""What kube-scheduler 1.36 was seen to send, by JSON and by its defaults, and what its client library needs."""

from __future__ import annotations

import http.client
import json

import pytest

from muster.testing.builders import node_manifest, pod_manifest

AGENT = "kube-scheduler/v1.36.2 (linux/amd64) kubernetes/abcdef0/scheduler"
JSON = "application/json"
BY_DEFAULT = "application/vnd.kubernetes.protobuf, */*"
"""What it accepts when nothing is said of `contentType`."""
INFORMERS = {
    "/api/v1/namespaces": "Namespace",
    "/api/v1/nodes": "Node",
    "/api/v1/persistentvolumeclaims": "PersistentVolumeClaim",
    "/api/v1/persistentvolumes": "PersistentVolume",
    "/api/v1/pods": "Pod",
    "/api/v1/replicationcontrollers": "ReplicationController",
    "/api/v1/services": "Service",
    "/apis/apps/v1/replicasets": "ReplicaSet",
    "/apis/apps/v1/statefulsets": "StatefulSet",
    "/apis/policy/v1/poddisruptionbudgets": "PodDisruptionBudget",
    "/apis/resource.k8s.io/v1/deviceclasses": "DeviceClass",
    "/apis/resource.k8s.io/v1/resourceclaims": "ResourceClaim",
    "/apis/resource.k8s.io/v1/resourceslices": "ResourceSlice",
    "/apis/scheduling.k8s.io/v1beta1/podgroups": "PodGroup",
    "/apis/scheduling.k8s.io/v1beta1/workloads": "Workload",
    "/apis/storage.k8s.io/v1/csidrivers": "CSIDriver",
    "/apis/storage.k8s.io/v1/csinodes": "CSINode",
    "/apis/storage.k8s.io/v1/csistoragecapacities": "CSIStorageCapacity",
    "/apis/storage.k8s.io/v1/storageclasses": "StorageClass",
    "/apis/storage.k8s.io/v1/volumeattachments": "VolumeAttachment",
}
UNFINISHED = "&fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"
INITIAL = "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true"
WATCH = "allowWatchBookmarks=true&timeout=7m2s&timeoutSeconds=422&watch=true"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
PODS = "/api/v1/namespaces/default/pods"
DEFAULTS = pytest.mark.parametrize("accept", [JSON, BY_DEFAULT], ids=["json", "by-default"])


class Client:
    """A connection as client-go's: it says who it is and what it accepts."""

    def __init__(self, bare, accept=JSON):
        self.port, self.accept, self.streams = bare.port, accept, []

    def opened(self, method, path, body=None, media_type=JSON):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        headers = {"Accept": self.accept, "User-Agent": AGENT, "Content-Type": media_type}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        self.streams.append(connection)
        return connection.getresponse()

    def ask(self, *call):
        answer = self.opened(*call)
        assert answer.headers["Content-Type"] == JSON
        return answer.status, json.loads(answer.read())

    def made(self, path, body):
        status, answer = self.ask("POST", path, body)
        assert status == 201, answer
        return answer

    def close(self):
        for stream in self.streams:
            stream.close()


@pytest.fixture
def client(bare):
    made = Client(bare)
    made.made("/api/v1/nodes", node_manifest("n1"))
    made.made(PODS, pod_manifest("a"))
    yield made
    made.close()


def told(stream):
    return json.loads(stream.readline())


def until_bookmark(stream):
    """What a watch tells before it says that all there was has been told, and the revision of that."""
    events = []
    while (event := told(stream))["type"] != "BOOKMARK":
        events.append(event)
    meta = event["object"]["metadata"]
    assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
    return events, event["object"], meta["resourceVersion"]


@pytest.mark.parametrize("path", INFORMERS)
@DEFAULTS
def test_an_informer_begins_with_a_watch_that_lists(bare, client, path, accept):
    client.accept = accept
    chosen = UNFINISHED if path.endswith("/pods") else ""
    stream = client.opened("GET", f"{path}?{INITIAL}&{WATCH}{chosen}")
    assert (stream.status, stream.headers["Content-Type"]) == (200, JSON)
    events, bookmark, revision = until_bookmark(stream)
    assert (bookmark["kind"], path.rpartition("/")[0].endswith(bookmark["apiVersion"])) == (INFORMERS[path], True)
    assert int(revision) == bare.api.revision
    for event in events:
        made = event["object"]
        assert event["type"] == "ADDED" and made["kind"] == bookmark["kind"]
        assert made["apiVersion"] == bookmark["apiVersion"] and int(made["metadata"]["resourceVersion"]) > 0
    assert bool(events) == (INFORMERS[path] in ("Namespace", "Node", "Pod"))


def test_such_a_watch_goes_on_and_is_taken_up_again_where_it_ended(client):
    stream = client.opened("GET", f"/api/v1/pods?{INITIAL}&{WATCH}{UNFINISHED}")
    _, _, revision = until_bookmark(stream)
    client.made(PODS, pod_manifest("b"))
    later = told(stream)
    stream.close()
    finished = {"status": {"phase": "Succeeded"}}
    status, _ = client.ask("PATCH", f"{PODS}/b/status", finished, "application/strategic-merge-patch+json")
    assert (later["type"], status) == ("ADDED", 200)
    again = client.opened("GET", f"/api/v1/pods?resourceVersion={revision}&{WATCH}{UNFINISHED}")
    events = [told(again), told(again)]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("ADDED", "b"),
        ("DELETED", "b"),
    ]
    after = later["object"]["metadata"]["resourceVersion"]
    third = client.opened("GET", f"/api/v1/pods?resourceVersion={after}&{WATCH}{UNFINISHED}")
    assert told(third)["type"] == "DELETED"


def test_an_informer_that_lists_in_pages_gets_them_all_and_watches_from_there(client):
    for name in "bcde":
        client.made(PODS, pod_manifest(name))
    page, names, query = None, [], "limit=2&resourceVersion=0"
    while page is None or page["metadata"].get("continue"):
        status, page = client.ask("GET", f"/api/v1/pods?{query}")
        assert (status, page["kind"], page["apiVersion"]) == (200, "PodList", "v1")
        names += [item["metadata"]["name"] for item in page["items"]]
        query = f"limit=2&continue={page['metadata'].get('continue')}"
    assert names == list("abcde")
    stream = client.opened("GET", f"/api/v1/pods?resourceVersion={page['metadata']['resourceVersion']}&{WATCH}")
    client.made(PODS, pod_manifest("f"))
    assert told(stream)["object"]["metadata"]["name"] == "f"


def test_a_watch_from_a_forgotten_revision_tells_an_informer_to_list_again(bare, client):
    client.made(PODS, pod_manifest("b"))
    bare.on_loop(bare.api.compact)
    stream = client.opened("GET", f"/api/v1/pods?resourceVersion=1&{WATCH}")
    event = told(stream)
    assert (stream.status, event["type"], event["object"]["code"]) == (200, "ERROR", 410)
    assert (event["object"]["reason"], stream.read()) == ("Expired", b"")
    relisted = client.opened("GET", f"/api/v1/pods?{INITIAL}&{WATCH}")
    events, _, _ = until_bookmark(relisted)
    assert [event["object"]["metadata"]["name"] for event in events] == ["a", "b"]


def lease(holder, transitions=0, **meta):
    return {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system", **meta},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-12-01T04:05:00.290742Z",
            "renewTime": "2026-12-01T04:05:00.290742Z",
            "leaseTransitions": transitions,
        },
    }


@DEFAULTS
def test_of_two_candidates_one_leads_until_the_other_takes_over_and_lets_go(client, accept):
    client.accept = accept
    mine = f"{LEASES}/kube-scheduler?timeout=5s"
    status, answer = client.ask("GET", mine)
    assert (status, answer["reason"]) == (404, "NotFound")
    first = client.made(f"{LEASES}?timeout=5s", lease("one"))
    status, answer = client.ask("POST", f"{LEASES}?timeout=5s", lease("two"))
    assert (status, answer["reason"]) == (409, "AlreadyExists")
    renewed = {**first, "spec": {**first["spec"], "renewTime": "2026-12-01T04:05:02.000001Z"}}
    status, second = client.ask("PUT", mine, renewed)
    assert (status, second["spec"]["renewTime"]) == (200, "2026-12-01T04:05:02.000001Z")
    taken = {**first, "spec": {**first["spec"], "holderIdentity": "two"}}
    status, answer = client.ask("PUT", mine, taken)
    assert (status, answer["reason"]) == (409, "Conflict")
    status, third = client.ask("PUT", mine, {**lease("two", 1), "metadata": second["metadata"]})
    assert (status, third["spec"]["holderIdentity"]) == (200, "two")
    let_go = {**third["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
    status, fourth = client.ask("PUT", mine, {**third, "spec": let_go})
    assert (status, fourth["spec"].get("holderIdentity", "")) == (200, "")


@DEFAULTS
def test_a_pod_is_bound_once_and_only_as_the_one_that_was_looked_at(client, accept):
    client.accept = accept
    _, pod = client.ask("GET", f"{PODS}/a")

    def bind(uid):
        meta = {"name": "a", "namespace": "default", "uid": uid}
        target = {"kind": "Node", "name": "n1"}
        return client.ask(
            "POST", f"{PODS}/a/binding", {"kind": "Binding", "apiVersion": "v1", "metadata": meta, "target": target}
        )

    status, answer = bind("00000000-1111-2222-3333-444444444444")
    assert (status, answer["reason"]) == (409, "Conflict")
    status, answer = bind(pod["metadata"]["uid"])
    assert (status, answer["kind"], answer["status"]) == (201, "Status", "Success")
    assert client.ask("GET", f"{PODS}/a")[1]["spec"]["nodeName"] == "n1"
    status, answer = bind(pod["metadata"]["uid"])
    assert (status, answer["reason"]) == (409, "Conflict")


def test_why_a_pod_waits_is_merged_into_its_status(client):
    strategic = "application/strategic-merge-patch+json"
    initialized = {"conditions": [{"type": "Initialized", "status": "True"}]}
    assert client.ask("PATCH", f"{PODS}/a/status", {"status": initialized}, strategic)[0] == 200
    waits = {
        "lastProbeTime": None,
        "lastTransitionTime": "2026-12-01T04:05:03Z",
        "message": "0/1 nodes are available: 1 Insufficient cpu.",
        "observedGeneration": 1,
        "reason": "Unschedulable",
        "status": "False",
        "type": "PodScheduled",
    }
    order = [{"type": "Initialized"}, {"type": "PodScheduled"}]
    body = {"status": {"$setElementOrder/conditions": order, "conditions": [waits], "nominatedNodeName": "n1"}}
    status, pod = client.ask("PATCH", f"{PODS}/a/status", body, strategic)
    assert (status, pod["status"]["nominatedNodeName"]) == (200, "n1")
    found = {condition["type"]: condition for condition in pod["status"]["conditions"]}
    assert found["Initialized"]["status"] == "True"
    assert found["PodScheduled"].items() >= {key: value for key, value in waits.items() if value is not None}.items()
    status, pod = client.ask("PATCH", f"{PODS}/a/status", {"status": {"nominatedNodeName": None}}, strategic)
    assert status == 200 and "nominatedNodeName" not in pod["status"]


def test_a_victim_is_marked_and_deleted_with_an_empty_body_of_options(client):
    strategic = "application/strategic-merge-patch+json"
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "by b"}
    assert client.ask("PATCH", f"{PODS}/a/status", {"status": {"conditions": [disrupted]}}, strategic)[0] == 200
    status, _ = client.ask("DELETE", f"{PODS}/a", {"kind": "DeleteOptions", "apiVersion": "v1"})
    assert status == 200
    assert client.ask("GET", f"{PODS}/a")[0] == 404


def test_what_happens_is_told_in_events(client):
    _, pod = client.ask("GET", f"{PODS}/a")
    about = {"kind": "Pod", "namespace": "default", "name": "a", "uid": pod["metadata"]["uid"], "apiVersion": "v1"}
    body = {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": "a.18ed0586ed66aba0", "namespace": "default"},
        "involvedObject": {**about, "resourceVersion": pod["metadata"]["resourceVersion"]},
        "reason": "Scheduled",
        "message": "Successfully assigned default/a to n1",
        "source": {"component": "default-scheduler"},
        "firstTimestamp": "2026-12-01T04:05:03Z",
        "lastTimestamp": "2026-12-01T04:05:03Z",
        "count": 1,
        "type": "Normal",
        "eventTime": None,
        "reportingComponent": "default-scheduler",
        "reportingInstance": "",
    }
    made = client.made("/api/v1/namespaces/default/events", body)
    assert made["involvedObject"] == body["involvedObject"] and made["count"] == 1
    status, again = client.ask(
        "PATCH",
        "/api/v1/namespaces/default/events/a.18ed0586ed66aba0",
        {"count": 2, "lastTimestamp": "2026-12-01T04:05:09Z"},
        "application/strategic-merge-patch+json",
    )
    assert (status, again["count"]) == (200, 2)


def test_what_happens_is_told_in_events_of_their_own_group(client):
    group = client.ask("GET", "/apis/events.k8s.io/v1")[1]
    assert "events" in [resource["name"] for resource in group["resources"]], "it is asked for once, at start"
    _, pod = client.ask("GET", f"{PODS}/a")
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    regarding = {"kind": "Pod", "namespace": "default", "name": "a", "uid": pod["metadata"]["uid"], "apiVersion": "v1"}
    body = {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": "a.18ed0586ed66aba1", "namespace": "default"},
        "eventTime": "2026-12-01T04:05:03.457520Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "regarding": {**regarding, "resourceVersion": pod["metadata"]["resourceVersion"]},
        "note": "0/1 nodes are available: 1 Insufficient cpu.",
        "type": "Warning",
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    }
    made = client.made(path, body)
    assert made["regarding"] == body["regarding"]
    series = {"series": {"count": 2, "lastObservedTime": "2026-12-01T04:05:09.000001Z"}}
    status, again = client.ask(
        "PATCH", f"{path}/{made['metadata']['name']}", series, "application/strategic-merge-patch+json"
    )
    assert (status, again["series"]) == (200, series["series"])
    _, same = client.ask("GET", f"/api/v1/namespaces/default/events/{made['metadata']['name']}")
    assert (same["message"], same["involvedObject"]["name"]) == (body["note"], "a")


def test_devices_are_allocated_to_a_claim_and_reserved_for_its_pod(client):
    _, pod = client.ask("GET", f"{PODS}/a")
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}}
    made = client.made(path, {**claim, "spec": {"devices": {"requests": [request]}}})
    kept = {**made["metadata"], "finalizers": ["resource.kubernetes.io/delete-protection"]}
    status, held = client.ask("PUT", f"{path}/c", {**made, "metadata": kept})
    assert (status, held["metadata"]["finalizers"]) == (200, kept["finalizers"])
    result = {"request": "r", "driver": "gpu.example", "pool": "p", "device": "d0"}
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
        "allocationTimestamp": "2026-12-01T04:24:00Z",
    }
    reserved = [{"resource": "pods", "name": "a", "uid": pod["metadata"]["uid"]}]
    allocated = {**held, "status": {"allocation": allocation, "reservedFor": reserved}}
    status, answer = client.ask("PUT", f"{path}/c/status", allocated)
    assert (status, answer["status"]) == (200, allocated["status"])
    status, answer = client.ask("PUT", f"{path}/c/status", allocated)
    assert (status, answer["reason"]) == (409, "Conflict"), "another scheduler was quicker"


def test_a_client_that_takes_nothing_but_protobuf_is_told_what_there_is(client):
    client.accept = "application/vnd.kubernetes.protobuf"
    for path in ("/api/v1/pods", f"/api/v1/pods?{WATCH}"):
        status, answer = client.ask("GET", path)
        assert (status, answer["reason"]) == (406, "NotAcceptable")
        assert "application/json" in answer["message"]
    status, answer = client.ask("POST", PODS, pod_manifest("b"))
    assert status == 406
    client.accept = JSON
    assert client.ask("GET", f"{PODS}/b")[0] == 404, "what is refused has not happened"
