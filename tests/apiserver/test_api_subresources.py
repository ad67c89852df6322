from __future__ import annotations

import pytest

from muster.api.instant import to_time
from muster.testing.builders import pod_manifest


@pytest.fixture
def pod(api):
    return api.made(pod_manifest("a", labels={"app": "x"}))


# --- binding


def test_binding_sets_the_node_and_the_condition_and_clears_the_nomination(api, pod):
    api.patch("pods", "a", {"status": {"nominatedNodeName": "n9"}}, subresource="status")
    answer = api.bind("a", "n1", annotations={"k": "v"})
    assert answer.status == 201 and answer.body["status"] == "Success"
    after = api.get("pods", "a")
    assert after["spec"]["nodeName"] == "n1" and after["metadata"]["annotations"] == {"k": "v"}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": to_time(api.now)}
    assert after["status"]["conditions"] == [scheduled]
    assert "nominatedNodeName" not in after["status"]


def test_binding_replaces_an_earlier_condition(api, pod):
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    api.patch(
        "pods", "a", {"status": {"conditions": [unscheduled, {"type": "X", "status": "True"}]}}, subresource="status"
    )
    api.bind("a", "n1")
    conditions = {entry["type"]: entry for entry in api.get("pods", "a")["status"]["conditions"]}
    assert conditions["PodScheduled"]["status"] == "True" and "reason" not in conditions["PodScheduled"]
    assert conditions["X"]["status"] == "True"


def test_a_bound_pod_stays_where_it_is(api, pod):
    api.bind("a", "n1")
    answer = api.bind("a", "n1")
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert 'already assigned to node "n1"' in answer.body["message"]


def test_a_binding_is_for_one_incarnation(api, pod):
    assert api.bind("a", "n1", uid="another").status == 409
    assert api.bind("a", "n1", uid=pod["metadata"]["uid"]).status == 201


def test_a_terminating_pod_is_not_bound(api):
    given = pod_manifest("a")
    given["metadata"]["finalizers"] = ["example.com/keep"]
    api.made(given)
    api.delete("pods", "a")
    answer = api.bind("a", "n1")
    assert answer.status == 409 and "being deleted" in answer.body["message"]


def test_a_gated_pod_is_not_bound(api):
    api.made(pod_manifest("a", gates=["example.com/wait"]))
    answer = api.bind("a", "n1")
    assert answer.status == 409 and "schedulingGates" in answer.body["message"]


@pytest.mark.parametrize("named", [{"a"}, {"default/a"}])
def test_bindings_can_be_refused_for_a_test(api, pod, named):
    api.server.refuse_binding = named
    answer = api.bind("a", "n1")
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    api.server.refuse_binding.clear()
    assert api.bind("a", "n1").status == 201


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (None, 400),
        ([], 400),
        ({"kind": "Pod"}, 400),
        ({"target": "n1"}, 400),
        ({"metadata": {"name": "b"}, "target": {"name": "n1"}}, 400),
        ({"metadata": {"namespace": "other"}, "target": {"name": "n1"}}, 400),
        ({}, 422),
        ({"target": {"kind": "Node"}}, 422),
        ({"target": {"kind": "Rack", "name": "r1"}}, 422),
    ],
)
def test_a_malformed_binding_is_refused(api, pod, body, code):
    answer = api.call("POST", api.path("pods", "a", "binding"), body)
    assert answer.status == code, answer.body
    assert "nodeName" not in api.get("pods", "a")["spec"]


def test_a_dry_run_binds_nothing(api, pod):
    path = api.path("pods", "a", "binding")
    assert api.call("POST", path, {"target": {"name": "n1"}}, {"dryRun": "All"}).status == 201
    assert api.get("pods", "a") == pod


def test_only_the_binding_of_an_existing_pod(api):
    assert api.bind("none", "n1").status == 404


# --- eviction


READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def budget(api, name="b", selector=None, **spec):
    body = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}} if selector is None else selector, **spec}
    api.made({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": body})


def allow(api, allowed, name="b", **status):
    body = {"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1}
    api.patch("pdb", name, {"status": {**body, "expectedPods": 1, **status}}, subresource="status")


def evict(api, name="a", **options):
    body = {"metadata": {"name": name}, **({"deleteOptions": options} if options else {})}
    return api.call("POST", api.path("pods", name, "eviction"), body)


@pytest.fixture
def running(api, pod):
    api.bind("a", "n1")
    api.patch("pods", "a", {"status": READY}, subresource="status")
    return api


def test_without_a_budget_an_eviction_is_a_deletion_that_says_why(running):
    assert evict(running).status == 201
    after = running.get("pods", "a")
    assert after["metadata"]["deletionGracePeriodSeconds"] == 30
    target = next(entry for entry in after["status"]["conditions"] if entry["type"] == "DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "EvictionByEvictionAPI")


def test_a_budget_without_room_refuses(running):
    budget(running)
    allow(running, 0)
    answer = evict(running)
    assert (answer.status, answer.body["reason"]) == (429, "TooManyRequests")
    (cause,) = answer.body["details"]["causes"]
    assert cause["reason"] == "DisruptionBudget" and "needs 1 healthy pods and has 1" in cause["message"]
    assert "deletionTimestamp" not in running.get("pods", "a")["metadata"]


def test_an_eviction_spends_the_budget(running):
    budget(running)
    allow(running, 1)
    assert evict(running).status == 201
    status = running.get("pdb", "b")["status"]
    assert status["disruptionsAllowed"] == 0 and status["disruptedPods"] == {"a": to_time(running.now)}


def test_a_dry_run_spends_nothing_but_still_asks(running):
    budget(running)
    allow(running, 1)
    revision = running.server.revision
    assert evict(running, dryRun=["All"]).status == 201
    assert running.server.revision == revision
    allow(running, 0)
    assert evict(running, dryRun=["All"]).status == 429


def test_a_budget_that_was_not_looked_at_yet_refuses_for_now(running):
    budget(running)
    answer = evict(running)
    assert answer.status == 429 and answer.headers["Retry-After"] == "10"


def test_two_budgets_for_one_pod_are_an_error(running):
    budget(running)
    budget(running, "c")
    assert evict(running).status == 500


def test_a_budget_for_other_pods_does_not_matter(running):
    budget(running, selector={"matchLabels": {"app": "y"}})
    assert evict(running).status == 201


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_a_pod_that_runs_nothing_is_not_protected(running, phase):
    running.patch("pods", "a", {"status": {"phase": phase}}, subresource="status")
    budget(running)
    allow(running, 0)
    assert evict(running).status == 201


def test_a_pod_that_is_not_ready_may_go_if_the_policy_says_so(running):
    running.patch("pods", "a", {"status": {"conditions": []}}, subresource="status")
    budget(running, unhealthyPodEvictionPolicy="AlwaysAllow")
    allow(running, 0)
    assert evict(running).status == 201


def test_a_pod_that_is_not_ready_may_go_while_enough_others_are_healthy(running):
    running.patch("pods", "a", {"status": {"conditions": []}}, subresource="status")
    budget(running)
    allow(running, 0, currentHealthy=0)
    assert evict(running).status == 429
    allow(running, 0, currentHealthy=1)
    assert evict(running).status == 201


def test_an_eviction_of_another_pod_is_refused(running):
    for meta in ({"name": "b"}, {"namespace": "other"}):
        answer = running.call("POST", running.path("pods", "a", "eviction"), {"metadata": meta})
        assert answer.status == 400 and "the Eviction is about" in answer.body["message"]


def test_an_eviction_respects_its_preconditions(running):
    budget(running)
    allow(running, 1)
    assert evict(running, preconditions={"uid": "another"}).status == 409
    assert running.get("pdb", "b")["status"]["disruptionsAllowed"] == 1
    assert evict(running, gracePeriodSeconds=0).status == 201
    assert running.gone("pods", "a")


# --- resize


def resized(api, **resources):
    body = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    return api.patch("pods", "a", body, "application/strategic-merge-patch+json", "resize")


def test_a_resize_changes_requests_and_counts_as_a_generation(api, pod):
    answer = resized(api, requests={"cpu": "2"})
    assert answer.status == 200
    assert answer.body["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"
    assert answer.body["metadata"]["generation"] == 2


def test_requests_cannot_be_changed_without_resize(api, pod):
    body = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}
    assert api.patch("pods", "a", body, "application/strategic-merge-patch+json").status == 422


def test_a_resize_leaves_out_what_it_may_not_change(api, pod):
    """As kube-apiserver does: other changes are no error, they are not made."""
    body = {"spec": {"containers": [{"name": "main", "image": "other", "resources": {"requests": {"cpu": "2"}}}]}}
    answer = api.patch("pods", "a", body, "application/strategic-merge-patch+json", "resize")
    (container,) = answer.body["spec"]["containers"]
    image = pod["spec"]["containers"][0]["image"]
    assert (container["image"], container["resources"]["requests"]["cpu"]) == (image, "2")
    labelled = {**answer.body, "metadata": {**answer.body["metadata"], "labels": {"app": "y"}}}
    assert api.put(labelled, "resize").body["metadata"]["labels"] == {"app": "x"}


def test_a_resize_refuses_other_containers(api, pod):
    renamed = {**pod, "spec": {**pod["spec"], "containers": [{**pod["spec"]["containers"][0], "name": "renamed"}]}}
    more = {**pod, "spec": {**pod["spec"], "containers": [*pod["spec"]["containers"], {"name": "b", "image": "x"}]}}
    for other in (renamed, more):
        answer = api.put(other, "resize")
        assert answer.status == 422 and answer.body["details"]["causes"][0]["reason"] == "FieldValueForbidden"


def test_a_resize_keeps_the_quality_of_service(api, pod):
    assert resized(api, limits={"cpu": "1", "memory": "1Gi"}, requests={"cpu": "1", "memory": "1Gi"}).status == 422


def test_only_cpu_and_memory_can_be_resized(api, pod):
    assert resized(api, requests={"nvidia.com/gpu": "1"}, limits={"nvidia.com/gpu": "1"}).status == 422


# --- what there is


@pytest.mark.parametrize(
    ("method", "subresource"),
    [("GET", "binding"), ("PUT", "binding"), ("DELETE", "status"), ("POST", "status"), ("PATCH", "eviction")],
)
def test_each_subresource_takes_its_own_methods(api, pod, method, subresource):
    answer = api.call(method, api.path("pods", "a", subresource), {})
    assert (answer.status, answer.body["reason"]) == (405, "MethodNotAllowed")


def test_a_subresource_that_does_not_exist_is_not_found(api, pod):
    answer = api.call("GET", api.path("pods", "a") + "/nothing")
    assert answer.status == 404 and "pods have no subresource 'nothing'" in answer.body["message"]
