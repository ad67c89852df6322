"""What a Job does, step by step, in a calm world."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from controller_world import WITH_JOB, Cluster, job, node, pod

from muster.api import writes
from muster.api.calls import Response
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND
from muster.api.machine import ADDED, Listed, Observed, Refused, WakeAt, Woken, Write, Written
from muster.api.object import Object
from muster.controllers.jobs import Jobs, indexes
from muster.controllers.jobs.manifests import pod_names
from muster.controllers.jobs.sync import BATCH
from muster.workloadbuilder.adapters.job import group_name_of, workload_name_of

RUNS = {"muster.dev/run-for": "5s"}
FAILS = {**RUNS, "muster.dev/exit": "1"}
INDEX = "batch.kubernetes.io/job-completion-index"
IGNORE_DISRUPTION = {
    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
}


def started(manifest: dict[str, Any], **options: Any) -> Cluster:
    cluster = Cluster(**options)
    cluster.create(node(), manifest)
    return cluster


def pods(cluster: Cluster, phase: str | None = None) -> list[dict[str, Any]]:
    return [each for each in cluster.all("pods") if phase in (None, each["status"]["phase"])]


def test_a_job_runs_as_many_pods_as_its_parallelism_until_enough_have_succeeded():
    cluster = started(job(annotations=RUNS, parallelism=2, completions=3))
    assert len(pods(cluster)) == 2
    cluster.advance(3)
    assert len(pods(cluster, "Running")) == 2
    cluster.advance(20)
    assert len(pods(cluster, "Succeeded")) == 3
    status = cluster.status("jobs", "train")
    assert (status["succeeded"], status["active"]) == (3, 0)
    assert cluster.conditions("jobs", "train") == {"SuccessCriteriaMet": "True", "Complete": "True"}
    assert cluster.reasons("Job") == ["Completed"]


def test_pods_of_an_indexed_job_know_their_index_by_name_label_annotation_and_environment():
    cluster = started(job(parallelism=3, completions=3, completionMode="Indexed"))
    made = sorted(pods(cluster), key=lambda each: each["metadata"]["name"])
    for index, each in enumerate(made):
        meta = each["metadata"]
        assert meta["name"].startswith(f"train-{index}-") and len(meta["name"]) == len("train-0-") + 5
        assert meta["labels"][INDEX] == meta["annotations"][INDEX] == str(index)
        assert each["spec"]["hostname"] == f"train-{index}"
        assert [env["name"] for env in each["spec"]["containers"][0]["env"]] == ["JOB_COMPLETION_INDEX"]


def test_a_work_queue_job_is_complete_once_one_pod_succeeds_and_the_others_have_ended():
    cluster = started(job(annotations=RUNS, parallelism=3))
    cluster.advance(12)
    assert cluster.status("jobs", "train")["succeeded"] == 3
    assert cluster.conditions("jobs", "train")["Complete"] == "True"


def test_failed_pods_are_replaced_with_a_delay_that_doubles():
    cluster = started(job(annotations=FAILS, parallelism=1, completions=1, backoffLimit=2))
    births = []
    for _ in range(900):
        cluster.advance(0.2)
        births = sorted({each["metadata"]["creationTimestamp"] for each in pods(cluster)})
    seconds = [int(text[14:16]) * 60 + int(text[17:19]) for text in births]
    assert [later - earlier for earlier, later in pairwise(seconds)] == [16, 26]
    assert cluster.conditions("jobs", "train")["Failed"] == "True"


def test_a_job_fails_once_more_pods_have_failed_than_its_backoff_limit_allows():
    cluster = started(job(annotations=FAILS, parallelism=2, completions=2, backoffLimit=0))
    cluster.advance(20)
    assert cluster.conditions("jobs", "train") == {"FailureTarget": "True", "Failed": "True"}
    assert cluster.status("jobs", "train")["failed"] == 2
    assert "BackoffLimitExceeded" in cluster.reasons("Job")


def test_a_job_that_fails_deletes_its_active_pods():
    manifest = job(parallelism=2, completions=2, activeDeadlineSeconds=10)
    cluster = started(manifest)
    cluster.advance(9)
    assert len(pods(cluster, "Running")) == 2
    cluster.advance(6)
    assert pods(cluster) == []
    reasons = {each["reason"] for each in cluster.status("jobs", "train")["conditions"]}
    assert reasons == {"DeadlineExceeded"}


def test_suspending_deletes_the_pods_without_counting_them_and_resuming_starts_anew():
    cluster = started(job(parallelism=2, completions=2, backoffLimit=0))
    cluster.advance(3)
    before = cluster.status("jobs", "train")["startTime"]
    cluster.patch("jobs", "train", {"spec": {"suspend": True}})
    cluster.advance(5)
    assert pods(cluster) == []
    assert cluster.conditions("jobs", "train") == {"Suspended": "True"}
    cluster.patch("jobs", "train", {"spec": {"suspend": False}})
    cluster.advance(3)
    assert len(pods(cluster, "Running")) == 2
    status = cluster.status("jobs", "train")
    assert status.get("failed", 0) == 0
    assert status["startTime"] > before
    assert cluster.conditions("jobs", "train") == {"Suspended": "False"}


def test_a_suspended_job_makes_nothing_until_it_is_resumed():
    cluster = started(job(parallelism=2, completions=2, suspend=True), gates=WITH_JOB)
    cluster.advance(5)
    assert [cluster.all(each) for each in ("pods", "workloads", "podgroups")] == [[], [], []]
    cluster.patch("jobs", "train", {"spec": {"suspend": False}})
    assert [len(cluster.all(each)) for each in ("pods", "workloads", "podgroups")] == [2, 1, 1]


def test_lower_parallelism_removes_the_highest_indexes_and_higher_parallelism_brings_them_back():
    cluster = started(job(parallelism=4, completions=4, completionMode="Indexed"))
    cluster.advance(3)
    cluster.patch("jobs", "train", {"spec": {"parallelism": 2}})
    cluster.advance(3)
    assert {each["metadata"]["labels"][INDEX] for each in pods(cluster)} == {"0", "1"}
    cluster.patch("jobs", "train", {"spec": {"parallelism": 4}})
    cluster.advance(3)
    assert {each["metadata"]["labels"][INDEX] for each in pods(cluster)} == {"0", "1", "2", "3"}
    assert cluster.status("jobs", "train").get("failed", 0) == 0


def test_a_deleted_pod_counts_as_failed_and_is_replaced_at_once():
    cluster = started(job(parallelism=2, completions=2, completionMode="Indexed"))
    cluster.advance(3)
    gone = pods(cluster)[0]["metadata"]
    cluster.delete("pods", gone["name"])
    cluster.advance(4)
    now = {each["metadata"]["labels"][INDEX]: each["metadata"]["uid"] for each in pods(cluster, "Running")}
    assert set(now) == {"0", "1"} and gone["uid"] not in now.values()
    assert cluster.status("jobs", "train")["failed"] == 1


def test_a_failure_policy_can_ignore_pods_that_were_disrupted():
    manifest = job(parallelism=1, completions=1, backoffLimit=0, podFailurePolicy=IGNORE_DISRUPTION)
    cluster = started(manifest)
    cluster.advance(3)
    name = pods(cluster)[0]["metadata"]["name"]
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    cluster.patch("pods", name, {"status": {"conditions": [condition]}}, "status")
    cluster.delete("pods", name)
    cluster.advance(5)
    assert len(pods(cluster, "Running")) == 1
    assert cluster.status("jobs", "train").get("failed", 0) == 0


def test_a_failure_policy_can_fail_the_job_by_exit_code():
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    manifest = job(
        annotations={**RUNS, "muster.dev/exit": "42"},
        parallelism=2,
        completions=2,
        backoffLimit=100,
        podFailurePolicy={"rules": [rule]},
    )
    cluster = started(manifest)
    cluster.advance(12)
    reasons = {each["reason"] for each in cluster.status("jobs", "train")["conditions"]}
    assert reasons == {"PodFailurePolicy"}


def test_the_status_is_written_once_for_a_settled_change():
    cluster = started(job(parallelism=50, completions=50))
    cluster.advance(10)
    revisions = len({cluster.get("jobs", "train")["metadata"]["resourceVersion"]})
    watch = cluster.world.request(writes.watch("jobs", "1"))
    assert len([each for each in watch.poll() if each.type == "MODIFIED"]) <= 2
    assert revisions == 1


def test_a_job_managed_by_someone_else_is_left_alone():
    cluster = started(job(parallelism=2, managedBy="example.com/other"))
    cluster.advance(5)
    assert pods(cluster) == []
    assert cluster.status("jobs", "train") == {}


def test_pods_of_a_job_that_is_deleted_go_with_it():
    cluster = started(job(parallelism=2, completions=2), gates=WITH_JOB)
    cluster.advance(3)
    cluster.delete("jobs", "train", propagation="Background")
    cluster.advance(5)
    assert [cluster.all(each) for each in ("jobs", "pods", "workloads", "podgroups")] == [[], [], [], []]


def test_pods_that_a_deleted_job_leaves_behind_run_on_and_are_held_by_nothing():
    cluster = started(job(parallelism=2, completions=2), gates=WITH_JOB)
    cluster.advance(3)
    cluster.delete("jobs", "train", propagation="Orphan")
    cluster.advance(5)
    assert cluster.all("jobs") == [] and len(pods(cluster, "Running")) == 2
    assert [each["metadata"].get("finalizers") for each in pods(cluster)] == [None, None]
    for each in pods(cluster):
        cluster.delete("pods", each["metadata"]["name"])
    cluster.advance(5)
    assert pods(cluster) == []


def test_foreground_deletion_of_a_job_waits_for_its_pods():
    cluster = started(job(parallelism=2, completions=2), gates=WITH_JOB, stop_delay=3_000_000)
    cluster.advance(3)
    cluster.delete("jobs", "train", propagation="Foreground")
    assert len(cluster.all("jobs")) == 1
    cluster.advance(2)
    assert len(cluster.all("jobs")) == 1
    cluster.advance(5)
    assert [cluster.all(each) for each in ("jobs", "pods", "workloads", "podgroups")] == [[], [], [], []]


# --- spec.scheduling


def test_every_job_gets_a_workload_and_a_group_that_its_pods_name_when_the_gate_is_on():
    cluster = started(job(parallelism=3, completions=3), gates=WITH_JOB)
    made = cluster.get("jobs", "train")
    group = group_name_of(made)
    assert [each["metadata"]["name"] for each in cluster.all("workloads")] == [workload_name_of(made)]
    assert [each["metadata"]["name"] for each in cluster.all("podgroups")] == [group]
    assert {each["spec"]["schedulingGroup"]["podGroupName"] for each in pods(cluster)} == {group}
    assert cluster.all("podgroups")[0]["spec"]["schedulingPolicy"] == {"basic": {}}
    assert sorted(cluster.reasons("Job")) == ["PodGroupCreated", "WorkloadCreated"]


def test_the_group_belongs_to_the_job_and_to_the_workload():
    cluster = started(job(), gates=WITH_JOB)
    owners = cluster.all("podgroups")[0]["metadata"]["ownerReferences"]
    assert [(each["kind"], each.get("controller", False)) for each in owners] == [("Job", True), ("Workload", False)]


def test_the_size_of_a_gang_follows_the_parallelism_of_its_job():
    gang = {"schedulingPolicy": {"gang": {}}}
    cluster = started(job(parallelism=3, completions=9, scheduling=gang), gates=WITH_JOB)
    assert min_counts(cluster) == (3, 3)
    cluster.patch("jobs", "train", {"spec": {"parallelism": 5}})
    assert min_counts(cluster) == (5, 5)


def test_a_size_that_the_user_gives_and_changes_reaches_workload_and_group():
    gang = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    cluster = started(job(parallelism=3, completions=3, completionMode="Indexed", scheduling=gang), gates=WITH_JOB)
    assert min_counts(cluster) == (2, 2)
    cluster.patch("jobs", "train", {"spec": {"scheduling": {"schedulingPolicy": {"gang": {"minCount": 3}}}}})
    assert min_counts(cluster) == (3, 3)


def min_counts(cluster: Cluster) -> tuple[int, int]:
    template = cluster.all("workloads")[0]["spec"]["podGroupTemplates"][0]
    group = cluster.all("podgroups")[0]
    return template["schedulingPolicy"]["gang"]["minCount"], group["spec"]["schedulingPolicy"]["gang"]["minCount"]


def test_the_priority_class_of_the_pods_becomes_that_of_the_group():
    cluster = Cluster(gates=WITH_JOB)
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    manifest = job()
    manifest["spec"]["template"]["spec"]["priorityClassName"] = "high"
    cluster.create(priority, node(), manifest)
    assert cluster.all("podgroups")[0]["spec"]["priority"] == pods(cluster)[0]["spec"]["priority"] == 9


def test_a_job_that_had_pods_before_the_gate_was_on_goes_on_without_a_group():
    cluster = started(job(parallelism=1, completions=2), gates=WITH_JOB)
    old = job(name="old", parallelism=2, completions=2)
    old["spec"]["suspend"] = True
    cluster.create(old)
    cluster.patch("jobs", "old", {"status": {"startTime": "2026-01-01T00:00:00Z"}}, "status")
    cluster.patch("jobs", "old", {"spec": {"suspend": False}})
    cluster.advance(2)
    mine = [each for each in pods(cluster) if each["metadata"]["labels"]["job-name"] == "old"]
    assert len(mine) == 2 and not any("schedulingGroup" in each["spec"] for each in mine)
    assert len(cluster.all("podgroups")) == 1


def test_a_foreign_workload_of_that_name_is_not_taken_over_and_the_job_says_so():
    cluster = Cluster(gates=WITH_JOB)
    cluster.create(node(), job(suspend=True))
    name = workload_name_of(cluster.get("jobs", "train"))
    policy = {"name": "t", "schedulingPolicy": {"basic": {}}}
    theirs = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"podGroupTemplates": [policy]},
    }
    cluster.create(theirs)
    cluster.patch("jobs", "train", {"spec": {"suspend": False}})
    cluster.advance(3)
    assert pods(cluster) == [] and cluster.all("podgroups") == []
    assert "FailedWorkloadCreate" in cluster.reasons("Job")
    cluster.delete("workloads", name)
    cluster.advance(3)
    assert len(pods(cluster)) == 1


def test_a_job_of_another_controller_gets_a_group_from_that_controllers_workload_if_it_asks_for_one():
    cluster = Cluster(gates=WITH_JOB)
    parent = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "name": "js",
        "uid": "u-1",
        "controller": True,
    }
    child = job(parallelism=2, completions=2)
    child["metadata"]["ownerReferences"] = [parent]
    child["metadata"]["annotations"] = {"scheduling.k8s.io/group-template-name": "workers"}
    cluster.create(node(), child)
    assert pods(cluster) == [] and cluster.reasons("Job") == ["FailedWorkloadCompilation"]
    workload = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "js", "namespace": "default", "ownerReferences": [parent]},
        "spec": {"podGroupTemplates": [{"name": "workers", "schedulingPolicy": {"gang": {"minCount": 2}}}]},
    }
    cluster.create(workload)
    group = cluster.all("podgroups")[0]
    assert group["spec"]["workloadRef"] == {"workloadName": "js", "templateName": "workers"}
    assert [each["kind"] for each in group["metadata"]["ownerReferences"]] == ["Job"]
    assert {each["spec"]["schedulingGroup"]["podGroupName"] for each in pods(cluster)} == {group["metadata"]["name"]}
    assert len(cluster.all("workloads")) == 1


def test_the_group_comes_before_the_pods_even_if_the_controller_is_restarted_in_between():
    cluster = Cluster(gates=WITH_JOB)
    cluster.world.call(writes.create(job(parallelism=2, completions=2)))
    for _ in range(6):
        cluster.world.restart("jobs")
        cluster.world.settle()
    named = {each["spec"]["schedulingGroup"]["podGroupName"] for each in pods(cluster)}
    assert named == {each["metadata"]["name"] for each in cluster.all("podgroups")}
    assert len(pods(cluster)) == 2


def test_a_pod_of_another_owner_with_the_name_of_a_new_pod_is_left_alone():
    cluster = started(job(suspend=True))
    taken = next(pod_names(cluster.get("jobs", "train"), None, 0))
    cluster.create(pod(taken))
    theirs = pods(cluster)[0]["metadata"]["uid"]
    cluster.patch("jobs", "train", {"spec": {"suspend": False}})
    cluster.advance(5)
    owners = {each["metadata"]["uid"]: len(each["metadata"].get("ownerReferences", ())) for each in pods(cluster)}
    assert len(owners) == 2 and owners[theirs] == 0


# --- sets of indexes


@pytest.mark.parametrize(
    ("numbers", "text"),
    [((), ""), ((3,), "3"), ((0, 1), "0,1"), ((0, 1, 2), "0-2"), ((0, 1, 2, 5, 7, 8), "0-2,5,7,8")],
)
def test_indexes_are_written_as_kubernetes_writes_them(numbers, text):
    assert indexes.compress(numbers) == text
    assert indexes.parse(text) == set(numbers)


def test_the_longest_name_that_a_job_may_have_works_for_all_that_is_made_from_it():
    name = "j" * 63
    manifest = job(name, annotations=RUNS, parallelism=2, completions=2, completionMode="Indexed")
    cluster = started(manifest, gates=WITH_JOB)
    cluster.advance(12)
    assert cluster.conditions("jobs", name)["Complete"] == "True"
    assert all(len(each["spec"]["hostname"]) <= 63 for each in pods(cluster))


def test_a_gang_whose_job_is_scaled_to_nothing_keeps_a_valid_size():
    cluster = started(job(parallelism=2, scheduling={"schedulingPolicy": {"gang": {}}}), gates=WITH_JOB)
    cluster.patch("jobs", "train", {"spec": {"parallelism": 0}})
    cluster.advance(5)
    assert (min_counts(cluster), pods(cluster)) == ((1, 1), [])


def test_refused_pods_are_reported_and_tried_again_more_and_more_rarely():
    manifest = job(parallelism=40, completions=40)
    manifest["spec"]["template"]["spec"]["priorityClassName"] = "soon"
    cluster = started(manifest)
    cluster.advance(5)
    revision = cluster.server.revision
    told: list[Any] = []
    machine = cluster.world.machine("jobs")
    handle = machine.handle
    machine.handle = lambda event, now: told.append(event) or handle(event, now)
    cluster.advance(3600)
    assert (pods(cluster), cluster.reasons("Job")) == ([], ["FailedCreate"])
    assert cluster.server.revision == revision
    assert sum(isinstance(each, Refused) for each in told) <= 70
    cluster.create(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "soon"}, "value": 1}
    )
    cluster.advance(65)
    assert len(pods(cluster, "Running")) == 40


def test_pods_of_a_large_job_are_made_in_batches_until_all_are_there():
    cluster = Cluster("jobs")
    manifest = job(parallelism=1200)
    machine = cluster.world.machine("jobs")
    handle, most = machine.handle, []
    machine.handle = lambda event, now: most.append(handle(event, now)) or most[-1]
    cluster.create(manifest)
    cluster.advance(10)
    assert len(pods(cluster)) == 1200
    assert max(map(len, most)) <= BATCH + 10


@pytest.mark.parametrize("completions", [None, (1 << 31) - 1])
def test_a_job_without_end_does_not_hold_up_what_else_is_to_be_done(completions):
    endless = job(parallelism=(1 << 31) - 1, **({"completions": completions} if completions else {}))
    machine = Jobs(FeatureGates())
    raw = {**endless, "metadata": {**endless["metadata"], "uid": "u", "resourceVersion": "1"}}
    for resource in machine.resources:
        machine.handle(Listed(resource, ()), 0)
    effects = machine.handle(Observed("jobs", ADDED, Object(raw)), 0)
    asked = [each for each in effects if isinstance(each, Write)]
    assert len(asked) == BATCH
    assert not [each for each in machine.handle(Woken(("sync", "u")), SECOND) if _makes_a_pod(each)]
    for each in asked:
        machine.handle(Written(each.tag, Response(201, each.request.body)), SECOND)
    made = [each.request.body for each in asked]
    for number, body in enumerate(made):
        meta = {**body["metadata"], "uid": f"p{number}", "resourceVersion": str(number + 2)}
        effects = machine.handle(Observed("pods", ADDED, Object({**body, "metadata": meta})), SECOND)
    (timer,) = [each for each in effects if isinstance(each, WakeAt)]
    assert timer.at < 2 * SECOND
    assert sum(map(_makes_a_pod, machine.handle(Woken(timer.tag), timer.at))) == BATCH


def _makes_a_pod(effect: Any) -> bool:
    return isinstance(effect, Write) and effect.request.method == "POST" and effect.request.path.endswith("/pods")


def test_completed_indexes_without_end_are_cut_off():
    assert max(indexes.parse("1,0-99999999999999")) < 200_000
    assert indexes.parse("5-" + "9" * 5000) == indexes.parse("5-99999")
