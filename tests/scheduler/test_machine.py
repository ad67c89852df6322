"""The whole machine: what it binds, what it says, when it is silent."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.gates import FeatureGates
from muster.api.machine import ADDED, MODIFIED, Listed, Machine, Observed
from muster.api.object import Object
from muster.model.diagnosis import Verdict
from muster.plugins import default_profile
from muster.scheduler.events import Pause, Resume
from muster.scheduler.families import FAMILIES
from muster.scheduler.machine import Scheduler
from muster.scheduler.stocktaking import DEVICES, STORAGE
from muster.testing.builders import gang_manifest, gang_manifests, node_manifest, pod_manifest
from synchronous import GENERIC, SECOND, START, Driver, names

TOPOLOGY = FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling")


def test_the_scheduler_is_a_machine_and_watches_groups_only_with_the_gate():
    assert isinstance(Scheduler(default_profile()), Machine)
    assert Scheduler(default_profile()).resources == ("nodes", "namespaces", *FAMILIES, *STORAGE, *DEVICES, "pods")
    gated = Scheduler(default_profile(), gates=GENERIC).resources
    assert gated == ("nodes", "namespaces", *FAMILIES, "podgroups", *STORAGE, *DEVICES, "pods")


def test_nothing_is_decided_before_everything_was_listed():
    scheduler = Scheduler(default_profile(), gates=GENERIC)
    driver = Driver()
    pod = Object(driver.stored(pod_manifest("p")))
    empty = [Listed(resource, []) for resource in ("nodes", "namespaces", *FAMILIES, *STORAGE, *DEVICES)]
    listed = (*empty, Listed("pods", [pod]))
    effects = [effect for event in listed for effect in scheduler.handle(event, START)]
    assert [type(effect).__name__ for effect in effects] == []
    assert [type(effect).__name__ for effect in scheduler.handle(Listed("podgroups", []), START)] == ["Decide"]


# --- what it writes


def test_a_gang_that_fits_is_bound_and_its_group_says_scheduled_with_the_generation():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=8), *gang_manifests("g", 3, gpus=1))
    assert driver.bound() == set(names("g-", range(3)))
    condition = driver.condition("PodGroup", "g")
    assert (condition["status"], condition["reason"], condition["observedGeneration"]) == ("True", "Scheduled", 1)
    assert driver.told("Pod", "g-0") == [("Scheduled", "Successfully assigned default/g-0 to n1")]


def test_a_large_gang_is_announced_by_one_event_on_the_group():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=64), *gang_manifests("g", 32, gpus=1))
    assert driver.told("PodGroup", "g") == [("Scheduled", "Successfully assigned 32 pods to 1 nodes")]
    assert driver.told("Pod", "g-0") == []


def test_a_gang_that_does_not_fit_says_so_on_pods_and_group_in_kubernetes_words():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=2), *gang_manifests("g", 3, gpus=1))
    group, first, last = (
        driver.condition("PodGroup", "g"),
        driver.condition("Pod", "g-0"),
        driver.condition("Pod", "g-2"),
    )
    minimum = "minCount (3) cannot be satisfied: 2 scheduled, 1 remaining"
    assert (group["status"], group["reason"], group["message"]) == ("False", "Unschedulable", minimum)
    assert (first["status"], first["reason"], first["message"]) == ("False", "Unschedulable", minimum)
    assert last["message"].startswith("0/1 nodes are available: 1 ")
    assert driver.told("Pod", "g-2") == [("FailedScheduling", last["message"])]


def test_with_topology_on_the_groups_message_speaks_of_placements():
    driver = Driver(TOPOLOGY)
    driver.create(node_manifest("n1", gpus=1), *gang_manifests("g", 2, gpus=1))
    assert driver.condition("PodGroup", "g")["message"] == (
        "0/1 placements are available, first placement status: "
        "minCount (2) cannot be satisfied: 1 scheduled, 1 remaining"
    )


def test_the_scheduled_condition_never_goes_back():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=2), *gang_manifests("g", 2, gpus=1))
    driver.create(pod_manifest("g-2", gpus=1, group="g"))
    assert driver.condition("Pod", "g-2")["reason"] == "Unschedulable"
    driver.delete("Pod", "g-0", "g-1")
    driver.advance(60)
    assert driver.condition("PodGroup", "g")["status"] == "True"


def test_members_that_disagree_are_an_error_until_the_odd_one_leaves():
    driver = Driver()
    odd = pod_manifest("odd", group="g", schedulerName="other-scheduler")
    driver.create(node_manifest("n1"), odd, *gang_manifests("g", 2))
    driver.advance(15)
    condition = driver.condition("PodGroup", "g")
    assert (condition["reason"], driver.bound()) == ("SchedulerError", set())
    driver.delete("Pod", "odd")
    driver.advance(15)
    assert driver.bound() == {"g-0", "g-1"}
    assert condition["message"].startswith(
        "all pods in a single pod group should have the same .spec.schedulerName set"
    )


def test_an_incomplete_gang_says_how_many_members_exist_after_a_moment_and_then_seldom():
    driver = Driver()
    driver.create(node_manifest("n1"), gang_manifest("six", 6), *(pod_manifest(f"m{i}", group="six") for i in range(3)))
    driver.advance(1)
    assert driver.condition("PodGroup", "six") is None
    driver.advance(2)
    condition = driver.condition("PodGroup", "six")
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"] == "3 of 6 members exist"
    assert driver.told("PodGroup", "six") == [("Waiting", "3 of 6 members exist")]
    driver.create(pod_manifest("m3", group="six"))
    driver.advance(5)
    assert driver.condition("PodGroup", "six")["message"] == "3 of 6 members exist"
    driver.advance(10)
    assert driver.condition("PodGroup", "six")["message"] == "4 of 6 members exist"
    assert driver.condition("Pod", "m0") is None


def test_a_gang_whose_members_arrive_together_is_never_called_incomplete():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=8), *gang_manifests("g", 4, gpus=1))
    driver.advance(30)
    assert [reason for reason, _ in driver.told("PodGroup", "g")] == []


def test_a_missing_group_is_told_by_one_event_on_the_oldest_pod():
    driver = Driver()
    driver.create(node_manifest("n1"), pod_manifest("b", group="g"))
    driver.advance(0.5)
    driver.create(pod_manifest("a", group="g"))
    driver.advance(60)
    assert driver.told("Pod", "a") + driver.told("Pod", "b") == [("FailedScheduling", 'PodGroup "g" does not exist')]
    driver.create(gang_manifest("g", 2))
    assert driver.bound() == {"a", "b"}


def test_a_gate_is_named_on_the_group_and_the_gated_pod_says_gated():
    driver = Driver()
    driver.create(
        node_manifest("n1"), pod_manifest("extra", group="g", gates=["example.com/x"]), *gang_manifests("g", 2)
    )
    driver.advance(3)
    assert driver.bound() == set()
    assert 'gate "example.com/x" of pod extra' in driver.condition("PodGroup", "g")["message"]
    assert driver.condition("Pod", "extra")["reason"] == "SchedulingGated"
    assert driver.condition("Pod", "g-0") is None
    driver.change("Pod", "extra", lambda raw: raw["spec"].pop("schedulingGates"))
    assert driver.bound() == {"g-0", "g-1", "extra"}


def test_an_object_that_cannot_be_read_is_told_and_does_not_stop_the_rest():
    driver = Driver()
    wrong = pod_manifest("wrong")
    wrong["spec"]["tolerations"] = "all"
    driver.create(node_manifest("n1"), wrong, pod_manifest("right"))
    assert driver.bound() == {"right"}
    ((reason, message),) = driver.told("Pod", "wrong")
    assert (reason, message.startswith("the scheduler cannot read this object:")) == ("FailedScheduling", True)


def test_nominations_of_pods_that_would_have_fitted_are_cleared():
    driver = Driver()
    group = gang_manifests("g", 2, gpus=2)
    for manifest in group[1:]:
        manifest["status"] = {"nominatedNodeName": "n1"}
    driver.create(node_manifest("n1", gpus=2), *group)
    nominated = {name: pod["status"].get("nominatedNodeName") for (_, name), pod in driver.objects["pods"].items()}
    assert sorted(nominated.values(), key=str) == [None, "n1"]


def test_a_condition_whose_write_is_refused_is_written_again():
    driver = Driver()
    driver.lose = 3
    driver.create(node_manifest("n1", gpus=1), *gang_manifests("g", 1, gpus=1), pod_manifest("p", gpus=1))
    assert (driver.condition("PodGroup", "g"), driver.condition("Pod", "p")) == (None, None)
    driver.advance(5)
    assert driver.condition("PodGroup", "g")["status"] == "True"
    assert driver.condition("Pod", "p")["reason"] == "Unschedulable"
    assert driver.scheduler.idle(driver.now)


def test_a_scheduler_that_died_before_it_said_scheduled_is_made_up_for():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=2), *gang_manifests("g", 2, gpus=1))
    driver.objects["podgroups"][("default", "g")].pop("status")
    driver.restart()
    assert driver.condition("PodGroup", "g")["status"] == "True"


def test_a_condition_follows_the_generation_it_was_observed_at():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=2), *gang_manifests("g", 2, gpus=1))
    driver.change("PodGroup", "g", lambda raw: raw["spec"]["schedulingPolicy"]["gang"].update(minCount=1))
    assert driver.condition("PodGroup", "g")["observedGeneration"] == 2


def test_a_raised_minimum_and_a_hold_that_comes_back_are_told():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=1), *gang_manifests("g", 2, gpus=1)[:2])
    driver.advance(15)
    driver.change("PodGroup", "g", lambda raw: raw["spec"]["schedulingPolicy"]["gang"].update(minCount=3))
    driver.advance(15)
    assert driver.condition("PodGroup", "g")["message"] == "1 of 3 members exist"
    driver.create(*(pod_manifest(f"m{number}", gpus=1, group="g") for number in range(2)))
    assert driver.condition("PodGroup", "g")["message"].startswith("minCount (3)")
    driver.delete("Pod", "m0", "m1")
    driver.advance(15)
    assert driver.condition("PodGroup", "g")["message"] == "1 of 3 members exist"


def test_a_pod_bound_by_somebody_else_meanwhile_is_not_called_unschedulable():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=1))
    driver.hold_decisions()
    driver.create(pod_manifest("p", gpus=2))
    driver.change("Pod", "p", lambda raw: raw["spec"].update(nodeName="n1"))
    driver.release()
    assert driver.condition("Pod", "p") is None


def test_a_group_that_is_being_deleted_is_gone_to_its_pending_pods():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=1), *gang_manifests("g", 2, gpus=1))
    driver.change("PodGroup", "g", lambda raw: raw["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    driver.create(node_manifest("n2", gpus=8))
    driver.advance(15)
    assert driver.bound() == set()
    assert driver.condition("PodGroup", "g")["message"] == 'PodGroup "g" is being deleted'


def test_the_longest_names_get_events_too():
    driver = Driver()
    name = "p" * 253
    driver.create(pod_manifest(name, gpus=1))
    assert driver.told("Pod", name) == [("FailedScheduling", "no nodes available to schedule pods")]
    assert {len(event["metadata"]["name"]) for event in driver.events} == {253}


def test_a_member_that_ends_well_ends_the_mismatch_it_was():
    driver = Driver()
    odd = pod_manifest("odd", group="g", priority=1, nodeName="n1")
    driver.create(node_manifest("n1"), odd, gang_manifest("g", 2, priority=5), pod_manifest("m", group="g", priority=5))
    assert driver.condition("PodGroup", "g")["reason"] == "SchedulerError"
    driver.change("Pod", "odd", lambda raw: raw.setdefault("status", {}).update(phase="Succeeded"))
    driver.advance(2)
    assert driver.bound() == {"odd", "m"}


def test_a_mismatching_member_that_leaves_while_the_attempt_is_under_way_is_not_waited_for():
    driver = Driver()
    driver.create(node_manifest("n1"))
    driver.hold_decisions()
    driver.create(*gang_manifests("g", 1, priority=5), pod_manifest("odd", group="g", priority=1))
    driver.delete("Pod", "g-0")
    driver.create(pod_manifest("g-1", group="g", priority=5))
    driver.release()
    driver.delete("Pod", "odd")
    driver.advance(2)
    assert driver.bound() == {"g-1"}


# --- when it is silent


def test_a_gang_that_cannot_fit_costs_nothing_between_safety_retries():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=2), *gang_manifests("g", 3, gpus=1))
    driver.advance(30)
    decisions, requests = driver.decisions, len(driver.requests)
    driver.advance(200)
    assert (driver.decisions, len(driver.requests)) == (decisions, requests)
    driver.advance(100)
    assert driver.decisions == decisions + 1
    assert len(driver.requests) > requests


def test_its_own_writes_wake_nothing():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=1), *gang_manifests("g", 2, gpus=1))
    assert driver.decisions == 1
    driver.change("Pod", "g-0", lambda raw: raw["metadata"].update(labels={"touched": "yes"}))
    driver.advance(15)
    assert driver.decisions == 1


def test_a_repeated_failure_counts_its_event_up_and_rewrites_no_condition():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=1), pod_manifest("p", gpus=2))
    driver.advance(301)
    writes = [(request.method, request.path.split("/")[5]) for request in driver.requests]
    assert writes == [("PATCH", "pods"), ("POST", "events"), ("PATCH", "events")]
    assert driver.requests[-1].body["count"] == 2


def test_while_paused_it_watches_and_decides_nothing():
    driver = Driver()
    driver.tell(Pause())
    driver.create(node_manifest("n1"), pod_manifest("p"))
    driver.advance(60)
    assert driver.bound() == set()
    assert not driver.scheduler.queue.entries[driver.pod("p")].hold
    driver.tell(Resume())
    driver.run()
    assert driver.bound() == {"p"}
    assert driver.scheduler.idle(driver.now)


# --- elasticity


def test_lowering_the_minimum_releases_a_waiting_gang_at_once_and_raising_it_wakes_nothing():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=2), *gang_manifests("g", 3, gpus=1))
    driver.change("PodGroup", "g", lambda raw: raw["spec"]["schedulingPolicy"]["gang"].update(minCount=4))
    assert driver.decisions == 1
    driver.change("PodGroup", "g", lambda raw: raw["spec"]["schedulingPolicy"]["gang"].update(minCount=2))
    assert driver.bound() == {"g-0", "g-1"}


# --- diagnoses


def test_every_waiting_entry_has_a_diagnosis_and_a_bound_one_has_none():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=1), pod_manifest("runs", gpus=1), pod_manifest("waits", gpus=1))
    driver.create(pod_manifest("orphan", group="nowhere"))
    diagnoses = driver.scheduler.diagnoses
    assert {key.key.name: diagnosis.verdict for key, diagnosis in diagnoses.items()} == {
        "waits": Verdict.UNSCHEDULABLE,
        "nowhere": Verdict.WAITING,
    }
    assert len(diagnoses) == 2


# --- any order, restarts, lost watches


def cluster_events(driver: Driver) -> list[Observed]:
    manifests = [
        node_manifest("n1", gpus=4),
        node_manifest("n2", gpus=2),
        *gang_manifests("a", 3, gpus=1),
        *gang_manifests("b", 3, gpus=1),
        pod_manifest("s1", gpus=1, priority=5),
        pod_manifest("s2", gpus=1),
        pod_manifest("gated", gpus=1, gates=["hold"]),
    ]
    plurals = {"Node": "nodes", "PodGroup": "podgroups", "Pod": "pods"}
    return [Observed(plurals[raw["kind"]], ADDED, Object(driver.stored(raw))) for raw in manifests]


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_in_which_events_arrive_decides_nothing(shuffled: random.Random):
    outcomes = []
    for order in ("as given", "shuffled"):
        driver = Driver()
        driver.tell(Pause())
        events = cluster_events(driver)
        if order == "shuffled":
            # Some come twice, and all in another order.
            events += shuffled.sample(events, 4)
            shuffled.shuffle(events)
        for event in events:
            driver.tell(event)
        driver.tell(Resume())
        driver.run()
        driver.advance(15)
        outcomes.append({name: pod["spec"].get("nodeName") for (_, name), pod in driver.objects["pods"].items()})
    assert outcomes[0] == outcomes[1]


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_restarted_scheduler_knows_what_the_old_one_knew(chance: random.Random):
    driver = Driver()
    driver.create(node_manifest("n0", gpus=3))
    for number in range(12):
        act = chance.choice(("gang", "single", "delete", "node", "end", "minimum", "relist"))
        some = chance.choice([name for _, name in driver.objects["pods"]] or [""])
        if act == "gang":
            driver.create(*gang_manifests(f"g{number}", chance.randint(1, 3), gpus=1))
        elif act == "single":
            driver.create(pod_manifest(f"s{number}", gpus=chance.randint(1, 2)))
        elif act == "node":
            driver.create(node_manifest(f"n{number}", gpus=chance.randint(0, 3)))
        elif act == "delete" and some:
            driver.delete("Pod", some)
        elif act == "end" and some and driver.nodes_of(some) != [None]:
            driver.change("Pod", some, lambda raw: raw.setdefault("status", {}).update(phase="Succeeded"))
        elif act == "relist":
            driver.relist()
        driver.advance(chance.choice((0, 0.5, 20)))
    known = driver.scheduler.cache.fingerprint()
    driver.options = {}
    fresh = Scheduler(default_profile(), gates=GENERIC)
    for resource in fresh.resources:
        fresh.handle(Listed(resource, [Object(raw) for raw in driver.objects.get(resource, {}).values()]), driver.now)
    assert fresh.cache.fingerprint() == known


def test_a_restart_keeps_what_runs_and_goes_on_with_what_waits():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=3), *gang_manifests("a", 2, gpus=1), *gang_manifests("b", 2, gpus=1))
    driver.restart()
    assert driver.bound() == {"a-0", "a-1"}
    driver.create(node_manifest("n2", gpus=1))
    driver.advance(10)
    assert driver.bound() == {"a-0", "a-1", "b-0", "b-1"}


def test_objects_that_went_while_the_watch_was_lost_are_gone():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=1), pod_manifest("old", gpus=1), pod_manifest("new", gpus=1))
    del driver.objects["pods"][("default", "old")]
    driver.relist()
    driver.advance(2)
    assert driver.bound() == {"new"}


def test_a_pod_seen_again_as_it_was_before_it_was_bound_is_not_bound_twice():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=1), pod_manifest("p", gpus=1))
    (pod,) = driver.objects["pods"].values()
    stale = {**pod, "metadata": {**pod["metadata"], "resourceVersion": "2"}, "spec": {**pod["spec"], "nodeName": ""}}
    driver.tell(Observed("pods", MODIFIED, Object(stale)))
    driver.run()
    assert sum(request.path.endswith("/binding") for request in driver.requests) == 1
    assert driver.now - START < SECOND
