from __future__ import annotations

import pytest

from muster.api.instant import SECOND, to_time
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest


def test_a_pod_without_a_node_goes_at_once_and_is_returned(api):
    made = api.made(pod_manifest("a"))
    answer = api.delete("pods", "a")
    assert answer.status == 200 and answer.body["metadata"]["uid"] == made["metadata"]["uid"]
    assert api.gone("pods", "a")


def test_a_pod_on_a_node_waits_for_the_kubelet(api):
    api.made(pod_manifest("a"))
    api.bind("a", "n1")
    answer = api.delete("pods", "a")
    assert answer.body["metadata"]["deletionTimestamp"] == to_time(api.now + 30 * SECOND)
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 30
    assert not api.gone("pods", "a")
    api.delete("pods", "a", {"gracePeriodSeconds": 0, "preconditions": {"uid": answer.body["metadata"]["uid"]}})
    assert api.gone("pods", "a")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_goes_at_once(api, phase):
    api.made(pod_manifest("a"))
    api.bind("a", "n1")
    api.patch("pods", "a", {"status": {"phase": phase}}, subresource="status")
    api.delete("pods", "a")
    assert api.gone("pods", "a")


def test_a_pod_says_itself_how_long_it_takes_to_stop(api):
    api.made(pod_manifest("a", terminationGracePeriodSeconds=5))
    api.bind("a", "n1")
    assert api.delete("pods", "a").body["metadata"]["deletionGracePeriodSeconds"] == 5


def test_a_deletion_under_way_can_be_made_shorter_but_not_longer(api):
    api.made(pod_manifest("a"))
    api.bind("a", "n1")
    first = api.delete("pods", "a", {"gracePeriodSeconds": 20}).body["metadata"]
    api.now += 5 * SECOND
    assert api.delete("pods", "a", {"gracePeriodSeconds": 60}).body["metadata"] == first
    shorter = api.delete("pods", "a", {"gracePeriodSeconds": 3}).body["metadata"]
    assert shorter["deletionGracePeriodSeconds"] == 3
    assert shorter["deletionTimestamp"] == to_time(api.now + 3 * SECOND)


def test_grace_can_be_given_in_the_query(api):
    api.made(pod_manifest("a"))
    api.bind("a", "n1")
    api.delete("pods", "a", gracePeriodSeconds="0")
    assert api.gone("pods", "a")


def test_a_finalizer_keeps_a_pod_after_its_grace(api):
    given = pod_manifest("a")
    given["metadata"]["finalizers"] = ["example.com/keep"]
    api.made(given)
    api.bind("a", "n1")
    api.delete("pods", "a")
    kept = api.delete("pods", "a", {"gracePeriodSeconds": 0}).body["metadata"]
    assert kept["deletionGracePeriodSeconds"] == 0 and kept["deletionTimestamp"] == to_time(api.now)
    api.patch("pods", "a", {"metadata": {"finalizers": []}})
    assert api.gone("pods", "a")


def test_losing_its_finalizer_does_not_end_a_pod_s_grace(api):
    given = pod_manifest("a")
    given["metadata"]["finalizers"] = ["example.com/keep"]
    api.made(given)
    api.bind("a", "n1")
    api.delete("pods", "a")
    api.patch("pods", "a", {"metadata": {"finalizers": None}})
    assert api.get("pods", "a")["metadata"]["deletionGracePeriodSeconds"] == 30


def test_deletion_counts_as_a_generation(api):
    before = api.made(gang_manifest("pg", 2))["metadata"]["generation"]
    assert api.delete("podgroups", "pg").body["metadata"]["generation"] == before + 1


def test_other_kinds_answer_with_a_status_when_they_are_gone(api):
    made = api.made(node_manifest("n1"))
    answer = api.delete("nodes", "n1")
    assert (answer.body["kind"], answer.body["status"]) == ("Status", "Success")
    assert answer.body["details"] == {"name": "n1", "kind": "nodes", "uid": made["metadata"]["uid"]}


@pytest.mark.parametrize("key", ["uid", "resourceVersion"])
def test_preconditions_that_do_not_hold_are_a_conflict(api, key):
    api.made(pod_manifest("a"))
    answer = api.delete("pods", "a", {"preconditions": {key: "other"}})
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert "in the precondition (other) does not match" in answer.body["message"] and not api.gone("pods", "a")


def test_preconditions_that_hold_let_it_go(api):
    meta = api.made(pod_manifest("a"))["metadata"]
    wanted = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    assert api.delete("pods", "a", {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": wanted}).status == 200


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Orphan", "orphan"), ("Foreground", "foregroundDeletion"), ("Background", None)]
)
def test_the_propagation_policy_becomes_a_finalizer_for_the_collector(api, policy, finalizer):
    api.made(node_manifest("n1"))
    api.delete("nodes", "n1", {"propagationPolicy": policy})
    if finalizer is None:
        assert api.gone("nodes", "n1")
    else:
        assert api.get("nodes", "n1")["metadata"]["finalizers"] == [finalizer]


def test_a_job_keeps_its_pods_unless_it_is_told_otherwise(api):
    template = {"metadata": {"labels": {"j": "j"}}, "spec": {**pod_manifest("x")["spec"], "restartPolicy": "Never"}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}}
    api.made(job)
    for _ in range(2):
        api.delete("jobs", "j")
        assert api.get("jobs", "j")["metadata"]["finalizers"] == ["orphan"]
    api.delete("jobs", "j", {"propagationPolicy": "Background"})
    assert api.gone("jobs", "j")
    held = {**job, "metadata": {"name": "held", "finalizers": ["example.com/keep"]}}
    api.made(held)
    api.delete("jobs", "held")
    assert api.get("jobs", "held")["metadata"]["finalizers"] == ["example.com/keep", "orphan"]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"propagationPolicy": "Sideways"}, "propagationPolicy"),
        ({"gracePeriodSeconds": -1}, "gracePeriodSeconds"),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, "propagationPolicy"),
        ({"dryRun": ["Some"]}, "dryRun"),
    ],
)
def test_contradictory_options_are_refused(api, options, field):
    api.made(pod_manifest("a"))
    answer = api.delete("pods", "a", options)
    assert answer.status == 422 and answer.body["details"]["causes"][0]["field"] == field


@pytest.mark.parametrize("options", [[], "x", {"kind": "Pod"}, {"gracePeriodSeconds": "5"}, {"preconditions": 5}, b"{"])
def test_options_that_cannot_be_read_are_refused(api, options):
    api.made(pod_manifest("a"))
    assert api.delete("pods", "a", options).status == 400
    assert not api.gone("pods", "a")


def test_a_dry_run_deletes_nothing(api):
    api.made(pod_manifest("a"))
    api.made(gang_manifest("pg", 2))
    revision = api.server.revision
    assert api.delete("pods", "a", {"dryRun": ["All"]}).status == 200
    assert api.delete("podgroups", "pg", dryRun="All").body["metadata"]["deletionTimestamp"]
    assert api.server.revision == revision


def test_a_collection_is_deleted_by_selector(api):
    for name, app in (("a", "x"), ("b", "y"), ("c", "x")):
        api.made(pod_manifest(name, labels={"app": app}))
    answer = api.call("DELETE", api.path("pods"), query={"labelSelector": "app=x"})
    assert answer.body["kind"] == "PodList"
    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["a", "c"]
    assert api.names("pods") == ["b"]


def test_what_is_not_there_cannot_be_deleted(api):
    answer = api.delete("pods", "a")
    assert answer.body["message"] == 'pods "a" not found' and answer.body["reason"] == "NotFound"


def test_the_system_s_priority_classes_cannot_be_deleted(api):
    api.made({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "mine"}, "value": 1})
    for answer in (
        api.delete("priorityclasses", "system-node-critical"),
        api.call("DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses"),
    ):
        assert answer.status == 403 and "system priority class" in answer.body["message"]
    assert set(api.names("priorityclasses")) == {"mine", "system-cluster-critical", "system-node-critical"}
    assert api.delete("priorityclasses", "mine").status == 200


@pytest.mark.parametrize("evicted", [False, True])
def test_a_pod_that_takes_for_ever_to_stop_can_be_deleted(api, evicted):
    api.made(pod_manifest("a", terminationGracePeriodSeconds=(1 << 63) - 1))
    api.bind("a", "n1")
    answer = api.call("POST", api.path("pods", "a", "eviction"), {}) if evicted else api.delete("pods", "a")
    assert answer.ok, answer.body
    assert api.get("pods", "a")["metadata"]["deletionGracePeriodSeconds"] == 1 << 31
