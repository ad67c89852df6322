from __future__ import annotations

import pytest

from muster.testing.builders import node_manifest, pod_manifest


@pytest.fixture
def pods(api):
    for name, app, node in (("c", "web", "n1"), ("a", "web", "n2"), ("b", "db", "n1")):
        api.made(pod_manifest(name, labels={"app": app}))
        api.bind(name, node)
    return api


def test_a_list_says_what_it_is_and_of_which_revision(pods):
    body = pods.call("GET", pods.path("pods")).body
    assert (body["kind"], body["apiVersion"]) == ("PodList", "v1")
    assert body["metadata"] == {"resourceVersion": str(pods.server.revision)}


def test_lists_are_in_order_of_namespace_and_name(pods):
    pods.made({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "another"}})
    pods.made(pod_manifest("z", namespace="another"))
    body = pods.call("GET", "/api/v1/pods").body
    assert [item["metadata"]["name"] for item in body["items"]] == ["z", "a", "b", "c"]


def test_items_are_whole_objects(pods):
    body = pods.call("GET", pods.path("pods")).body
    assert body["items"][0] is pods.get("pods", "a")
    assert (body["items"][0]["kind"], body["items"][0]["apiVersion"]) == ("Pod", "v1")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"labelSelector": "app=web"}, ["a", "c"]),
        ({"labelSelector": "app notin (web)"}, ["b"]),
        ({"labelSelector": "!app"}, []),
        ({"fieldSelector": "spec.nodeName=n1"}, ["b", "c"]),
        ({"fieldSelector": "spec.nodeName!=n1"}, ["a"]),
        ({"fieldSelector": "metadata.name=b"}, ["b"]),
        ({"fieldSelector": "metadata.namespace=other"}, []),
        ({"fieldSelector": "status.phase=Pending"}, ["a", "b", "c"]),
        ({"fieldSelector": "spec.schedulerName=default-scheduler,metadata.name!=a"}, ["b", "c"]),
        ({"labelSelector": "app=web", "fieldSelector": "spec.nodeName=n1"}, ["c"]),
    ],
)
def test_selectors_choose(pods, query, names):
    assert pods.names("pods", **query) == names


def test_events_are_chosen_by_what_they_are_about(api):
    for number, about in enumerate(("a", "b", "a")):
        api.made(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": f"e{number}", "namespace": "default"},
                "involvedObject": {"kind": "Pod", "name": about, "namespace": "default"},
                "reason": "FailedScheduling",
                "type": "Warning",
            }
        )
    assert api.names("events", fieldSelector="involvedObject.name=a,involvedObject.kind=Pod") == ["e0", "e2"]
    assert api.names("events", fieldSelector="type=Normal") == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"labelSelector": "a=b=c"}, "labelSelector"),
        ({"labelSelector": "a in b"}, "labelSelector"),
        ({"fieldSelector": "spec.containers=x"}, "field label not supported: spec.containers"),
        ({"fieldSelector": "metadata.name"}, "fieldSelector"),
        ({"limit": "many"}, "limit"),
        ({"continue": "nonsense"}, "continue"),
        ({"continue": "!!!"}, "continue"),
        ({"labelSelector": "a>x"}, "a>x"),
        ({"labelSelector": "a<1_0"}, "a<1_0"),
    ],
)
def test_parameters_that_cannot_be_read_are_refused(pods, query, said):
    answer = pods.call("GET", pods.path("pods"), query=query)
    assert answer.status == 400 and said in answer.body["message"]


@pytest.mark.parametrize("query", [{"labelSelector": "!none"}, {"fieldSelector": "metadata.name!=z"}])
def test_with_a_selector_nobody_says_how_many_are_left(pods, query):
    meta = pods.call("GET", pods.path("pods"), query={"limit": "2", **query}).body["metadata"]
    assert "continue" in meta and "remainingItemCount" not in meta


def test_pages_show_one_revision_while_objects_come_and_go(pods):
    first = pods.call("GET", pods.path("pods"), query={"limit": "2"}).body
    assert [item["metadata"]["name"] for item in first["items"]] == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 1
    pods.delete("pods", "c", {"gracePeriodSeconds": 0})
    pods.made(pod_manifest("d"))
    rest = pods.call("GET", pods.path("pods"), query={"limit": "2", "continue": first["metadata"]["continue"]}).body
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert "continue" not in rest["metadata"]


def test_pages_end_with_gone_once_their_revision_is_compacted(pods):
    first = pods.call("GET", pods.path("pods"), query={"limit": "1"}).body
    pods.made(pod_manifest("d"))
    pods.server.compact()
    answer = pods.call("GET", pods.path("pods"), query={"limit": "1", "continue": first["metadata"]["continue"]})
    assert (answer.status, answer.body["reason"]) == (410, "Expired")


def test_an_exact_revision_shows_the_past(pods):
    revision = str(pods.server.revision)
    pods.delete("pods", "a", {"gracePeriodSeconds": 0})
    assert pods.names("pods") == ["b", "c"]
    assert pods.names("pods", resourceVersion=revision, resourceVersionMatch="Exact") == ["a", "b", "c"]


def test_a_list_or_get_of_the_future_is_refused(pods):
    future = {"resourceVersion": str(pods.server.revision + 5)}
    assert pods.call("GET", pods.path("pods"), query=future).status == 504
    assert pods.call("GET", pods.path("pods", "a"), query=future).status == 504


def test_cluster_wide_kinds_are_listed_without_a_namespace(api):
    api.made(node_manifest("n1"))
    assert api.names("nodes") == ["n1"]
    answer = api.call("GET", "/api/v1/namespaces/default/nodes")
    assert answer.status == 404


def test_one_object_of_a_namespaced_kind_needs_its_namespace(pods):
    answer = pods.call("GET", "/api/v1/pods/a")
    assert answer.status == 404 and "/api/v1/namespaces/NAMESPACE/pods/a" in answer.body["message"]


@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersionMatch": "Bogus"},
        {"resourceVersionMatch": "Bogus", "resourceVersion": "0"},
        {"resourceVersionMatch": "Bogus", "watch": "true"},
        {"resourceVersionMatch": "Exact", "watch": "true", "sendInitialEvents": "true"},
        {"resourceVersionMatch": "NotOlderThan", "watch": "true", "resourceVersion": "1"},
        {"sendInitialEvents": "true", "watch": "true"},
        {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1", "continue": "x"},
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
    ],
)
def test_a_match_of_revisions_that_makes_no_sense_is_refused(pods, query):
    answer = pods.call("GET", pods.path("pods"), query=query)
    assert answer.status == 422 and "resourceVersionMatch" in answer.body["message"]
    assert answer.body["details"]["causes"][0]["field"] == "resourceVersionMatch"


def test_comparisons_of_labels_are_of_whole_numbers(api):
    for name, label in (("a", "1_0"), ("b", "10"), ("c", "x")):
        api.made(pod_manifest(name, labels={"rank": label}))
    assert api.names("pods", labelSelector="rank>5") == ["b"]


def test_a_page_that_has_expired_names_a_token_for_the_rest_as_it_is_now(api):
    for name in "abcd":
        api.made(pod_manifest(name))
    path = api.path("pods")
    first = api.call("GET", path, query={"limit": "2"}).body
    api.delete("pods", "c")
    api.made(pod_manifest("e"))
    api.server.compact()
    answer = api.call("GET", path, query={"limit": "2", "continue": first["metadata"]["continue"]})
    assert (answer.status, answer.body["reason"]) == (410, "Expired")
    rest = api.call("GET", path, query={"continue": answer.body["metadata"]["continue"]}).body
    assert [item["metadata"]["name"] for item in rest["items"]] == ["d", "e"]


def test_a_list_sends_no_initial_events(pods):
    answer = pods.call("GET", pods.path("pods"), query={"sendInitialEvents": "true"})
    assert answer.status == 422 and answer.body["details"]["causes"][0]["field"] == "sendInitialEvents"
