"""From decisions to bound pods, whole machine, with an API server that refuses and a cluster that changes meanwhile."""

from __future__ import annotations

import pytest

from muster.api.machine import DELETED, Observed
from muster.api.object import Object
from muster.scheduler.bindings import TRANSITIONS, Happening, Step
from muster.scheduler.events import Decided, Pause, Resume
from muster.testing.builders import gang_manifest, gang_manifests, node_manifest, pod_manifest
from synchronous import GENERIC, Driver, names


def gpus(driver: Driver, node: str) -> int:
    snapshot = driver.scheduler.cache.snapshot()
    row = snapshot.axis.row["nvidia.com/gpu"]
    return int(snapshot.used[row, snapshot.nodes.index[node]])


def test_every_pod_on_its_way_can_leave_it_and_no_end_has_a_way_on():
    for step in Step:
        ways = {happening for at, happening in TRANSITIONS if at is step}
        assert bool(ways) == (step not in (Step.DONE, Step.DROPPED))
    assert {Happening.GONE, Happening.SEEN} <= {h for at, h in TRANSITIONS if at is Step.BINDING}


def test_a_refused_member_keeps_its_slot_and_is_bound_once_the_refusal_ends():
    driver = Driver()
    driver.refuse = {"m-2": 403}
    driver.create(node_manifest("n1", gpus=3), *gang_manifests("m", 3, gpus=1))
    driver.create(pod_manifest("passer-by", gpus=1))
    driver.advance(300)
    assert driver.bound() == {"m-0", "m-1"}
    assert gpus(driver, "n1") == 3
    driver.refuse = {}
    driver.advance(10)
    assert driver.bound() == {"m-0", "m-1", "m-2"}


def test_a_refused_binding_is_told_once_and_retried_with_growing_pauses():
    driver = Driver()
    driver.refuse = {"m-1": 500}
    driver.create(node_manifest("n1", gpus=3), *gang_manifests("m", 2, gpus=1))
    driver.advance(40)
    tried = [request for request in driver.requests if request.path.endswith("m-1/binding")]
    assert len(tried) == 7  # after 0, 1, 2, 4, 8, 10 and 10 seconds
    assert driver.condition("Pod", "m-1")["message"] == "binding rejected: answered 500"
    assert [reason for reason, _ in driver.told("Pod", "m-1")] == ["FailedScheduling"]


def test_an_entry_with_nothing_bound_gives_its_slots_back_after_a_minute_and_lets_others_pass():
    driver = Driver()
    driver.refuse = {"z-0": 403}
    driver.create(*gang_manifests("z", 1, gpus=8))
    driver.advance(1)
    driver.create(*gang_manifests("y", 1, gpus=8))
    driver.advance(1)
    driver.create(node_manifest("n1", gpus=8))
    driver.advance(59)
    assert driver.bound() == set()
    driver.advance(2)
    assert driver.bound() == {"y-0"}
    driver.advance(30)
    assert driver.scheduler.diagnoses[driver.group("z")].pending == 1


def test_the_slot_of_a_pod_that_the_server_does_not_know_is_free_at_once():
    driver = Driver()
    driver.refuse = {"p": 404}
    driver.create(node_manifest("n1", gpus=1), pod_manifest("p", gpus=1))
    assert gpus(driver, "n1") == 0
    driver.create(pod_manifest("q", gpus=1))
    assert driver.bound() == {"q"}


def test_a_conflict_keeps_the_slot_until_the_watch_tells_what_became_of_the_pod():
    """The pod is bound already, perhaps there: its room must not be given away before that is seen."""
    driver = Driver()
    driver.refuse = {"p": 409}
    driver.create(node_manifest("n1", gpus=1), pod_manifest("p", gpus=1), pod_manifest("q", gpus=1))
    assert gpus(driver, "n1") == 1
    assert driver.condition("Pod", "p") is None, "of a conflict nobody is told"
    driver.change("Pod", "p", lambda raw: raw["spec"].update(nodeName="n1"))
    driver.advance(30)
    assert driver.bound() == {"p"}
    assert gpus(driver, "n1") == 1


@pytest.mark.parametrize("status", [400, 403, 409, 422, 429, 500, 503])
def test_whatever_a_binding_is_refused_for_the_poisoned_pod_starves_nobody(status):
    """Conflict, webhook, quota, server error: its slot is kept for a minute, then others have their turn."""
    driver = Driver()
    driver.refuse = {"poison": status}
    driver.create(node_manifest("n1", gpus=1), pod_manifest("poison", gpus=1, priority=100), pod_manifest("q", gpus=1))
    driver.advance(59)
    assert driver.bound() == set()
    driver.advance(3)
    assert driver.bound() == {"q"}


def test_a_pod_deleted_while_its_binding_is_refused_frees_its_slot():
    driver = Driver()
    driver.refuse = {"p": 403}
    driver.create(node_manifest("n1", gpus=1), pod_manifest("p", gpus=1))
    driver.create(pod_manifest("q", gpus=1))
    driver.delete("Pod", "p")
    driver.advance(2)
    assert driver.bound() == {"q"}


def test_a_refused_pod_whose_node_goes_is_placed_elsewhere():
    driver = Driver()
    driver.refuse = {"m-1": 403}
    driver.create(node_manifest("n1", gpus=1), *gang_manifests("m", 1, gpus=1), pod_manifest("m-1", gpus=1, group="m"))
    driver.create(node_manifest("n2", gpus=1))
    driver.delete("Node", "n2")
    driver.refuse = {}
    driver.create(node_manifest("n3", gpus=1))
    driver.advance(15)
    assert driver.nodes_of("m-0", "m-1") == ["n1", "n3"]


def cordon(raw):
    raw["spec"]["unschedulable"] = True


def test_a_refused_pod_is_not_bound_to_a_node_that_no_longer_admits_it():
    driver = Driver()
    driver.refuse = {"p": 403}
    driver.create(node_manifest("n1", gpus=1), pod_manifest("p", gpus=1))
    driver.change("Node", "n1", cordon)
    driver.refuse = {}
    driver.create(node_manifest("n2", gpus=1))
    driver.advance(15)
    assert driver.nodes_of("p") == ["n2"]


def test_a_refused_pod_is_not_bound_to_a_node_that_has_shrunk():
    driver = Driver()
    driver.refuse = {"g-1": 403}
    driver.create(node_manifest("n1", gpus=2), *gang_manifests("g", 2, gpus=1))
    driver.change("Node", "n1", lambda raw: raw["status"]["allocatable"].update({"nvidia.com/gpu": "1"}))
    driver.refuse = {}
    driver.create(node_manifest("n2", gpus=1))
    driver.advance(15)
    assert driver.nodes_of("g-0", "g-1") == ["n1", "n2"]


def test_a_wholly_refused_gang_that_loses_a_member_binds_nobody_until_it_is_complete():
    driver = Driver()
    driver.refuse = {"g-0": 403, "g-1": 403}
    driver.create(node_manifest("n1", gpus=4), *gang_manifests("g", 2, gpus=1))
    driver.delete("Pod", "g-1")
    driver.refuse = {}
    driver.advance(30)
    assert driver.bound() == set()
    driver.create(pod_manifest("g-2", gpus=1, group="g"))
    driver.advance(15)
    assert driver.bound() == {"g-0", "g-2"}


# --- what changes while a decision is under way


def meanwhile(driver: Driver, *manifests) -> None:
    """Shows pods to the scheduler, whose decision is held back."""
    driver.hold_decisions()
    driver.create(*manifests)


def test_a_plan_on_changed_nodes_is_taken_if_it_still_fits():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=8))
    meanwhile(driver, *gang_manifests("g", 4, gpus=1))
    driver.create(pod_manifest("other", gpus=4, nodeName="n1"))
    driver.release()
    assert driver.nodes_of(*names("g-", range(4))) == ["n1"] * 4
    assert driver.decisions == 1


def test_a_plan_that_no_longer_fits_rejects_the_whole_group_which_is_decided_anew():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=8))
    meanwhile(driver, *gang_manifests("g", 4, gpus=1))
    driver.create(pod_manifest("other", gpus=5, nodeName="n1"))
    driver.release()
    assert driver.bound() == {"other"}
    assert driver.condition("PodGroup", "g")["message"] == "minCount (4) cannot be satisfied: 3 scheduled, 1 remaining"
    assert gpus(driver, "n1") == 5


def test_a_member_deleted_meanwhile_sends_the_group_back_to_waiting_for_its_members():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=8))
    meanwhile(driver, *gang_manifests("g", 2, gpus=1))
    driver.delete("Pod", "g-1")
    driver.release()
    assert driver.bound() == set()
    driver.create(pod_manifest("g-2", gpus=1, group="g"))
    assert driver.bound() == {"g-0", "g-2"}


def test_a_minimum_raised_meanwhile_is_respected():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=8))
    meanwhile(driver, *gang_manifests("g", 2, gpus=1))
    driver.change("PodGroup", "g", lambda raw: raw["spec"]["schedulingPolicy"]["gang"].update(minCount=3))
    driver.release()
    assert driver.bound() == set()


def test_pods_and_group_made_anew_meanwhile_are_not_judged_by_the_old_ones():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=8))
    meanwhile(driver, *gang_manifests("g", 1, gpus=1))
    driver.delete("Pod", "g-0")
    driver.delete("PodGroup", "g")
    driver.create(gang_manifest("g", 2), pod_manifest("g-0", gpus=1, group="g"))
    driver.release()
    assert driver.bound() == set()
    assert len(driver.scheduler.cache.assumed) == 0


def test_an_entry_that_failed_beside_a_rejected_one_is_tried_again_at_once():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=4))
    driver.hold_decisions()
    driver.scheduler.paused = True
    driver.create(*gang_manifests("g", 4, gpus=1), pod_manifest("small", gpus=1))
    driver.scheduler.paused = False
    driver.create(node_manifest("useless", gpus=0))
    driver.create(pod_manifest("other", gpus=1, nodeName="n1"))
    driver.release()
    assert driver.bound() == {"other", "small"}


def test_room_that_comes_free_while_an_attempt_fails_is_not_missed():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=1), pod_manifest("old", gpus=1, nodeName="n1"))
    meanwhile(driver, pod_manifest("new", gpus=1))
    driver.delete("Pod", "old")
    driver.release()
    driver.advance(1)
    assert driver.bound() == {"new"}


def test_room_that_comes_free_meanwhile_is_not_missed_though_an_earlier_entry_takes_more_than_came_free():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=6), pod_manifest("old", gpus=2, nodeName="n1"))
    driver.tell(Pause())
    driver.create(pod_manifest("first", gpus=4, priority=1), pod_manifest("second", gpus=1))
    driver.hold_decisions()
    driver.tell(Resume())
    driver.delete("Pod", "old")
    driver.release()
    driver.advance(1)
    assert driver.bound() == {"first", "second"}


def test_an_answer_to_an_older_question_is_ignored():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=1))
    meanwhile(driver, pod_manifest("p", gpus=1))
    (asked,) = driver.held
    answer = driver.answer(asked)
    driver.tell(answer)
    driver.tell(answer)
    driver.tell(Decided(99, None, "nobody asked"))
    driver.held = None
    driver.run()
    assert driver.bound() == {"p"}


def test_a_decision_that_raised_is_told_and_tried_again():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=1))
    meanwhile(driver, *gang_manifests("g", 1, gpus=1))
    (asked,) = driver.held
    driver.held = None
    driver.tell(Decided(asked.ticket, None, "IndexError: 7"))
    driver.run()
    condition = driver.condition("PodGroup", "g")
    assert (condition["reason"], condition["message"]) == ("SchedulerError", "the decision failed: IndexError: 7")
    driver.advance(1)
    assert driver.bound() == {"g-0"}


def test_a_late_event_about_a_bound_pod_does_not_free_its_slot():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=1), pod_manifest("p", gpus=1))
    (pod,) = driver.objects["pods"].values()
    old = {**pod, "metadata": {**pod["metadata"], "resourceVersion": "1"}, "spec": {**pod["spec"], "nodeName": None}}
    driver.tell(Observed("pods", "MODIFIED", Object(old)))
    driver.tell(Observed("pods", DELETED, Object({**old, "metadata": {**old["metadata"], "uid": "another"}})))
    assert gpus(driver, "n1") == 1


def test_only_the_deficit_of_a_broken_group_is_placed_before_equals():
    driver = Driver(GENERIC)
    driver.create(node_manifest("n1", gpus=2), *gang_manifests("g", 2, gpus=1))
    driver.create(pod_manifest("filler", gpus=1))
    driver.delete("Pod", "g-1")
    driver.advance(15)
    assert driver.bound() == {"g-0", "filler"}
    driver.create(*(pod_manifest(f"w{number}", gpus=1, group="g") for number in range(3)))
    driver.create(pod_manifest("younger", gpus=1))
    driver.scheduler.paused = True
    driver.delete("Pod", "filler")
    driver.create(node_manifest("n2", gpus=1))
    driver.advance(15)
    driver.scheduler.paused = False
    driver.create(node_manifest("useless", gpus=0))
    driver.advance(15)
    assert driver.bound() == {"g-0", "w0", "w1"}


@pytest.mark.parametrize(("kind", "expected"), [("podAntiAffinity", {"w0", "older"}), ("podAffinity", {"w0", "w1"})])
def test_of_members_that_only_keep_apart_no_more_than_the_deficit_goes_before_equals(kind, expected):
    terms = [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "g"}}}]
    asks = {"gpus": 1, "affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    asks["labels"] = {"app": "g"}

    def node(number, **fields):
        zone = number if kind == "podAntiAffinity" else 0
        return node_manifest(f"n{number}", labels={"zone": f"z{zone}", "spare": str(number > 1)}, **fields)

    driver = Driver(GENERIC)
    driver.create(pod_manifest("older", gpus=1, nodeSelector={"spare": "True"}))
    driver.create(node(0, gpus=1), node(1, gpus=1), node(5), *gang_manifests("g", 2, **asks))
    driver.advance(15)
    assert driver.bound() == {"g-0", "g-1"}
    driver.scheduler.paused = True
    driver.delete("Pod", "g-1")
    driver.delete("Node", "n1")
    driver.create(*(pod_manifest(f"w{number}", group="g", **asks) for number in range(3)))
    driver.create(node(2, gpus=1), node(3, gpus=1))
    driver.advance(15)
    driver.scheduler.paused = False
    driver.create(node_manifest("useless", gpus=0))
    driver.advance(15)
    assert driver.bound() == {"g-0", *expected}
