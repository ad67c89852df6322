from __future__ import annotations

from muster.testing.builders import gang_manifest, pod_manifest


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def test_every_cluster_has_some_namespaces_from_the_start(api):
    assert {"default", "kube-system"} <= set(api.names("namespaces"))
    assert api.get("namespaces", "default")["status"] == {"phase": "Active"}


def test_nothing_is_created_in_a_namespace_that_does_not_exist(api):
    answer = api.create(pod_manifest("a", namespace="nowhere"))
    assert (answer.status, answer.body["message"]) == (404, 'namespaces "nowhere" not found')
    api.made(namespace("nowhere"))
    assert api.create(pod_manifest("a", namespace="nowhere")).status == 201


def test_an_empty_namespace_goes_at_once(api):
    api.made(namespace("team"))
    api.delete("namespaces", "team")
    assert api.gone("namespaces", "team")


def test_a_namespace_takes_what_is_in_it_along(api):
    api.made(namespace("team"))
    api.made(pod_manifest("a", namespace="team"))
    api.made(pod_manifest("b"))
    api.delete("namespaces", "team")
    assert api.gone("namespaces", "team") and api.names("pods") == ["b"]
    assert api.call("GET", "/api/v1/pods").body["items"] == [api.get("pods", "b")]


def test_a_namespace_waits_for_the_last_thing_in_it(api):
    api.made(namespace("team"))
    api.made(gang_manifest("pg", 2, namespace="team"))
    api.delete("namespaces", "team")
    assert api.get("namespaces", "team")["status"]["phase"] == "Terminating"
    answer = api.create(pod_manifest("late", namespace="team"))
    assert answer.status == 403 and "is being terminated" in answer.body["message"]
    assert answer.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    path = "/apis/scheduling.k8s.io/v1beta1/namespaces/team/podgroups/pg"
    api.call("PATCH", path, {"metadata": {"finalizers": None}}, content_type="application/merge-patch+json")
    assert api.gone("namespaces", "team")


def test_labelling_a_terminating_namespace_does_not_remove_it(api):
    api.made(namespace("team"))
    api.made(gang_manifest("pg", 2, namespace="team"))
    api.delete("namespaces", "team")
    api.patch("namespaces", "team", {"metadata": {"labels": {"a": "b"}}})
    assert not api.gone("namespaces", "team")


def test_a_namespace_waits_for_its_own_finalizers(api):
    api.made(namespace("team") | {"spec": {"finalizers": ["example.com/mine"]}})
    api.delete("namespaces", "team")
    waiting = api.get("namespaces", "team")
    assert waiting["spec"]["finalizers"] == ["example.com/mine", "kubernetes"]
    api.call("PUT", "/api/v1/namespaces/team/finalize", {**waiting, "spec": {"finalizers": []}})
    assert api.gone("namespaces", "team")


def test_the_first_namespaces_cannot_be_deleted(api):
    answer = api.delete("namespaces", "default")
    assert answer.status == 403 and "may not be deleted" in answer.body["message"]


def test_namespaces_are_deleted_one_by_one_only(api):
    api.made(namespace("team"))
    answer = api.call("DELETE", "/api/v1/namespaces")
    assert (answer.status, answer.body["reason"]) == (405, "MethodNotAllowed")
    assert not api.gone("namespaces", "team")
    resources = {entry["name"]: entry["verbs"] for entry in api.call("GET", "/api/v1").body["resources"]}
    assert "deletecollection" in resources["pods"] and "deletecollection" not in resources["namespaces"]


def test_deleting_a_terminating_namespace_again_deletes_what_is_still_in_it(api):
    api.made(namespace("team"))
    api.made(pod_manifest("a", namespace="team"))
    api.call("POST", "/api/v1/namespaces/team/pods/a/binding", {"target": {"name": "n1"}})
    api.delete("namespaces", "team")
    path = "/api/v1/namespaces/team/pods/a"
    api.call("DELETE", path, {"gracePeriodSeconds": 0})
    assert api.gone("namespaces", "team")


def test_a_pod_that_takes_for_ever_to_stop_does_not_leave_a_namespace_half_deleted(api):
    api.made(namespace("team"))
    for name, seconds in (("a", (1 << 63) - 1), ("b", 30)):
        api.made(pod_manifest(name, namespace="team", terminationGracePeriodSeconds=seconds))
        api.call("POST", f"/api/v1/namespaces/team/pods/{name}/binding", {"target": {"name": "n1"}})
    answer = api.delete("namespaces", "team")
    assert answer.status == 200, answer.body
    for item in api.call("GET", "/api/v1/namespaces/team/pods").body["items"]:
        assert "deletionTimestamp" in item["metadata"]


def test_a_namespace_that_stayed_half_deleted_is_finished_by_deleting_it_again(api):
    api.made(namespace("team"))
    api.made(pod_manifest("a", namespace="team"))
    stuck = api.get("namespaces", "team")
    marked = {**stuck["metadata"], "deletionTimestamp": stuck["metadata"]["creationTimestamp"]}
    api.server.store.put("namespaces", "", "team", {**stuck, "metadata": marked})
    assert api.delete("namespaces", "team").status == 200
    assert api.gone("namespaces", "team")


def test_finalizers_of_a_namespace_change_only_by_finalize(api):
    made = api.made(namespace("team") | {"spec": {"finalizers": ["example.com/mine"]}})
    after = api.patch("namespaces", "team", {"spec": {"finalizers": None}})
    assert after.status == 200 and after.body["spec"] == made["spec"]
    after = api.put({**after.body, "spec": {}})
    assert after.status == 200 and after.body["spec"] == made["spec"]


def test_a_namespace_keeps_the_label_with_its_name(api):
    label = "kubernetes.io/metadata.name"
    made = api.made({**namespace("team"), "metadata": {"name": "team", "labels": {label: "other", "a": "b"}}})
    assert made["metadata"]["labels"] == {label: "team", "a": "b"}
    for labels in ({label: "other"}, {label: None}):
        after = api.patch("namespaces", "team", {"metadata": {"labels": labels}})
        assert after.body["metadata"]["labels"] == {label: "team", "a": "b"}
