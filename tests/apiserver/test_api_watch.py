from __future__ import annotations

import pytest

from muster.api.calls import Request
from muster.apiserver.watch import BOOKMARK
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest


def told(watch):
    return [(event.type, event.object["metadata"]["name"]) for event in watch.poll()]


def test_without_a_revision_a_watch_begins_with_what_there_is(api):
    api.made(pod_manifest("b"))
    api.made(pod_manifest("a"))
    for query in ({}, {"resourceVersion": ""}, {"resourceVersion": "0"}):
        watch = api.watch("pods", **query)
        assert told(watch) == [("ADDED", "a"), ("ADDED", "b")]
        assert told(watch) == []


def test_from_a_revision_on_a_watch_tells_what_changed(api):
    api.made(pod_manifest("a"))
    watch = api.watch("pods", resourceVersion=str(api.server.revision))
    api.made(pod_manifest("b"))
    api.bind("a", "n1")
    api.delete("pods", "b")
    assert told(watch) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


def test_an_old_revision_replays_everything_since(api):
    api.made(pod_manifest("a"))
    revision = str(api.server.revision)
    api.made(node_manifest("n1"))
    api.made(pod_manifest("b"))
    assert told(api.watch("pods", resourceVersion=revision)) == [("ADDED", "b")]


def test_a_deletion_carries_the_last_state_at_the_revision_of_the_deletion(api):
    made = api.made(pod_manifest("a", labels={"x": "y"}))
    watch = api.watch("pods", resourceVersion=str(api.server.revision))
    api.delete("pods", "a")
    (event,) = watch.poll()
    assert event.object["metadata"]["labels"] == {"x": "y"}
    assert event.object["metadata"]["uid"] == made["metadata"]["uid"]
    assert event.object["metadata"]["resourceVersion"] == str(api.server.revision)


def test_refused_and_dry_writes_are_not_told(api):
    watch = api.watch("pods")
    api.create(pod_manifest("a"), dryRun="All")
    api.create(pod_manifest("A"))
    api.patch("pods", "none", {})
    assert told(watch) == []


def test_objects_enter_and_leave_a_label_selection(api):
    watch = api.watch("pods", labelSelector="app=web")
    api.made(pod_manifest("a"))
    api.patch("pods", "a", {"metadata": {"labels": {"app": "web"}}})
    api.patch("pods", "a", {"metadata": {"labels": {"more": "x"}}})
    api.patch("pods", "a", {"metadata": {"labels": {"app": "db"}}})
    events = watch.poll()
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    left = events[-1].object
    assert left["metadata"]["labels"]["app"] == "web", "the last state that was selected is told"
    assert left["metadata"]["resourceVersion"] == str(api.server.revision)
    api.delete("pods", "a")
    assert told(watch) == []


def test_a_kubelet_watches_the_pods_of_its_node(api):
    watch = api.watch("pods", fieldSelector="spec.nodeName=n1")
    for name in ("a", "b"):
        api.made(pod_manifest(name))
    api.bind("a", "n1")
    api.bind("b", "n2")
    api.delete("pods", "a", {"gracePeriodSeconds": 0})
    assert told(watch) == [("ADDED", "a"), ("DELETED", "a")]


def test_a_watch_of_one_namespace_is_told_of_no_other(api):
    api.made({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    watch = api.watch("pods")
    everywhere = api.server.handle(Request("GET", "/api/v1/pods", {"watch": "true"}), api.now)
    api.made(pod_manifest("a", namespace="team"))
    api.made(pod_manifest("b"))
    assert told(watch) == [("ADDED", "b")]
    assert told(everywhere) == [("ADDED", "a"), ("ADDED", "b")]


def test_a_watch_that_is_too_far_behind_expires(api):
    watch = api.watch("pods", resourceVersion=str(api.server.revision))
    api.made(pod_manifest("a"))
    api.server.compact()
    assert list(watch.poll()) == [] and watch.expired and watch.closed


def test_a_watch_that_has_seen_everything_survives_compaction(api):
    watch = api.watch("pods", resourceVersion=str(api.server.revision))
    api.made(pod_manifest("a"))
    assert told(watch) == [("ADDED", "a")]
    api.server.compact()
    api.made(pod_manifest("b"))
    assert told(watch) == [("ADDED", "b")] and not watch.expired


def test_a_revision_that_was_compacted_is_gone(api):
    revision = str(api.server.revision)
    api.made(pod_manifest("a"))
    api.server.compact()
    answer = api.call("GET", api.path("pods"), query={"watch": "1", "resourceVersion": revision})
    assert (answer.status, answer.body["reason"]) == (410, "Expired")
    assert "too old resource version" in answer.body["message"]


def test_the_log_is_bounded_and_keeps_the_latest_changes(new_api):
    api = new_api(history=10)
    made = api.made(pod_manifest("a"))
    late = api.watch("pods", resourceVersion=made["metadata"]["resourceVersion"])
    for number in range(50):
        api.patch("pods", "a", {"metadata": {"labels": {"n": str(number)}}})
    assert len(api.server.store.log("pods").events) <= 20
    assert list(late.poll()) == [] and late.expired
    recent = api.watch("pods", resourceVersion=str(api.server.revision - 10))
    assert [event.object["metadata"]["labels"]["n"] for event in recent.poll()] == [str(n) for n in range(40, 50)]


def test_a_revision_of_the_future_is_refused(api):
    answer = api.call("GET", api.path("pods"), query={"watch": "1", "resourceVersion": str(api.server.revision + 1)})
    assert (answer.status, answer.body["reason"]) == (504, "Timeout")
    assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize(
    "query", [{"resourceVersion": "abc"}, {"resourceVersion": "-1"}, {"watch": "maybe"}, {"timeoutSeconds": "soon"}]
)
def test_parameters_that_make_no_sense_are_refused(api, query):
    answer = api.call("GET", api.path("pods"), query={"watch": "1", **query})
    assert answer.status == 400 and next(iter(query)) in answer.body["message"]


def test_a_bookmark_says_how_far_the_watch_is(api):
    watch = api.watch("podgroups", allowWatchBookmarks="true")
    api.made(pod_manifest("a"))
    watch.poll()
    bookmark = watch.bookmark()
    assert (bookmark.type, bookmark.object["kind"]) == (BOOKMARK, "PodGroup")
    assert bookmark.object["metadata"] == {"resourceVersion": str(api.server.revision)}
    api.made(gang_manifest("pg", 2))
    resumed = api.watch("podgroups", resourceVersion=bookmark.object["metadata"]["resourceVersion"])
    assert told(resumed) == [("ADDED", "pg")]


def test_initial_events_end_with_a_marked_bookmark(api):
    api.made(pod_manifest("a"))
    watch = api.watch("pods", sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true")
    events = watch.poll()
    assert [event.type for event in events] == ["ADDED", "BOOKMARK"]
    assert events[1].object["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_closed_watch_is_silent(api):
    watch = api.watch("pods")
    watch.close()
    api.made(pod_manifest("a"))
    assert list(watch.poll()) == [] and not watch.expired


def test_readers_share_events_and_objects_with_the_store(api):
    first, second = api.watch("pods"), api.watch("pods")
    api.made(pod_manifest("a"))
    assert first.poll()[0] is second.poll()[0]


def test_a_watch_takes_as_many_changes_at_a_time_as_it_is_asked_for(new_api):
    api = new_api(history=4)
    made = api.made(pod_manifest("a"))
    watch = api.watch("pods", resourceVersion=made["metadata"]["resourceVersion"])
    for name in "bcde":
        api.made(pod_manifest(name))
    assert [event.object["metadata"]["name"] for event in watch.poll(3)] == ["b", "c", "d"]
    assert watch.behind and not watch.expired
    assert [event.object["metadata"]["name"] for event in watch.poll(3)] == ["e"]
    assert not watch.behind
    for name in "fghijklmnopq":
        api.made(pod_manifest(name))
    assert list(watch.poll(3)) == [] and watch.expired, "what it has not taken is forgotten as for any other"
