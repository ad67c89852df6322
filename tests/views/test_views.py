"""What people are shown, from a living scheduler."""

from __future__ import annotations

import json

import pytest

from muster.plugins import default_profile
from muster.testing.builders import gang_manifests, node_manifest, pod_manifest
from muster.views.cluster import cluster
from muster.views.queue import queue
from muster.views.why import why
from synchronous import Driver

PROFILE = default_profile()


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    for rack, count in (("r1", 2), ("r2", 1)):
        labels = {"topology.muster.dev/rack": rack}
        driver.create(*(node_manifest(f"{rack}-{n}", gpus=4, labels=labels) for n in range(count)))
    driver.create(node_manifest("loose", gpus=0))
    driver.create(*gang_manifests("fits", 8, gpus=1))
    driver.create(*gang_manifests("big", 6, gpus=1), pod_manifest("single", gpus=9, priority=5))
    driver.create(pod_manifest("orphan", group="nowhere"))
    return driver


def test_a_waiting_group_is_explained_with_numbers_reasons_and_remedies(driver):
    found = why(driver.scheduler, PROFILE, "default", "big", "PodGroup")
    assert (found["verdict"], found["minCount"], found["placed"]) == ("Unschedulable", 6, 4)
    assert found["sentence"].startswith("PodGroup default/big waits: it needs 6 members at once, 4 can be placed")
    assert {reason["reason"] for reason in found["reasons"]} >= {"INSUFFICIENT"}
    assert "lower minCount to 4" in found["remedies"]


def test_a_member_answers_with_its_groups_record_and_its_own_sentence(driver):
    found = why(driver.scheduler, PROFILE, "default", "big-0", "Pod")
    assert (found["kind"], found["name"]) == ("PodGroup", "big")
    assert found["pod"] == {
        "name": "big-0",
        "sentence": "minCount (6) cannot be satisfied: 4 scheduled, 2 remaining",
    }


@pytest.mark.parametrize(("name", "kind"), [("fits", "PodGroup"), ("fits-0", "Pod"), ("nobody", "Pod")])
def test_what_runs_or_is_unknown_waits_for_nothing(driver, name, kind):
    assert why(driver.scheduler, PROFILE, "default", name, kind) is None


def test_the_queue_shows_everything_that_waits_in_its_order(driver):
    rows = queue(driver.scheduler, PROFILE)
    assert [(row["kind"], row["name"]) for row in rows] == [
        ("Pod", "single"),
        ("PodGroup", "big"),
        ("PodGroup", "nowhere"),
    ]


def test_racks_show_what_they_have_what_is_used_and_by_whom(driver):
    view = cluster(driver.scheduler)
    gpus = {row["domain"]: row["resources"].get("nvidia.com/gpu") for row in view["domains"]}
    assert set(gpus) == {"r1", "r2", "-"}
    assert sum(row["used"] for row in gpus.values() if row) == 8
    assert (gpus["r1"]["allocatable"], gpus["-"]) == (8, None)
    assert view["total"]["runs"] == {"default/fits": 8}
    assert (view["total"]["nodes"], view["total"]["pods"]) == (4, 8)


def test_any_label_can_be_the_level(driver):
    assert len(cluster(driver.scheduler, "kubernetes.io/hostname")["domains"]) == 4


def test_everything_shown_can_be_written_as_json(driver):
    shown = [
        cluster(driver.scheduler),
        queue(driver.scheduler, PROFILE),
        why(driver.scheduler, PROFILE, "default", "big", "PodGroup"),
    ]
    assert json.loads(json.dumps(shown)) == shown


def test_the_verdict_is_about_now_when_room_was_taken_since_the_last_attempt(driver):
    driver.create(pod_manifest("taker", gpus=2))
    decided = driver.decisions
    found = ask_why(driver, "big")
    assert found["placed"] == 2
    assert "2 can be placed, 4 short" in found["sentence"]
    assert "lower minCount to 2" in found["remedies"]
    assert queue(driver.scheduler, PROFILE)[1] == found
    assert driver.decisions == decided


def test_the_verdict_is_about_now_when_the_minimum_was_raised(driver):
    driver.create(pod_manifest("big-6", gpus=1, group="big"), pod_manifest("big-7", gpus=1, group="big"))
    driver.change("PodGroup", "big", lambda raw: raw["spec"]["schedulingPolicy"]["gang"].update(minCount=8))
    found = ask_why(driver, "big")
    assert (found["minCount"], found["placed"], found["pending"]) == (8, 4, 8)


def test_what_would_fit_but_has_to_back_off_says_so(driver):
    driver.create(node_manifest("late", gpus=2))
    assert ask_why(driver, "big")["sentence"] == (
        "PodGroup default/big waits for its next attempt: 6 of its 6 pending members fit now."
    )
    member = why(driver.scheduler, PROFILE, "default", "big-0", "Pod")
    assert member["pod"]["sentence"] == "fits now, and waits for the next attempt of its group"
    driver.create(pod_manifest("other", gpus=2))
    assert "4 can be placed" in ask_why(driver, "big")["sentence"]


def test_a_disagreement_about_priority_names_the_pod(driver):
    driver.create(*gang_manifests("odd", 1, gpus=1), pod_manifest("odd-one", gpus=1, group="odd", priority=7))
    driver.change("PodGroup", "odd", lambda raw: raw["spec"]["schedulingPolicy"]["gang"].update(minCount=2))
    driver.create(pod_manifest("odd-two", gpus=1, group="odd", priority=7))
    (reason,) = ask_why(driver, "odd")["reasons"]
    assert reason["sentence"].endswith(": pod odd-one has 7, the group 0")


def test_a_node_selector_that_matches_nothing_is_named(driver):
    driver.create(pod_manifest("picky", gpus=1, nodeSelector={"disk": "fast", "topology.muster.dev/rack": "r1"}))
    (reason,) = why(driver.scheduler, PROFILE, "default", "picky", "Pod")["reasons"]
    assert reason["sentence"] == "4 node(s) didn't match Pod's node affinity/selector: no node has the label disk=fast"


def ask_why(driver, group):
    return why(driver.scheduler, PROFILE, "default", group, "PodGroup")
