"""What people are shown, from a living scheduler."""

from __future__ import annotations

import json

import pytest

from muster.testing.builders import gang_manifests, node_manifest, pod_manifest
from muster.views.cluster import cluster
from muster.views.queue import queue
from muster.views.why import why
from synchronous import Driver


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
    found = why(driver.scheduler, "default", "big", "PodGroup")
    assert (found["verdict"], found["minCount"], found["placed"]) == ("Unschedulable", 6, 4)
    assert found["sentence"].startswith("PodGroup default/big waits: it needs 6 members at once, 4 can be placed")
    assert {reason["reason"] for reason in found["reasons"]} >= {"INSUFFICIENT"}
    assert "lower minCount to 4" in found["remedies"]


def test_a_member_answers_with_its_groups_record_and_its_own_sentence(driver):
    found = why(driver.scheduler, "default", "big-0", "Pod")
    assert (found["kind"], found["name"]) == ("PodGroup", "big")
    assert found["pod"] == {
        "name": "big-0",
        "sentence": "minCount (6) cannot be satisfied: 4 scheduled, 2 remaining",
    }


@pytest.mark.parametrize(("name", "kind"), [("fits", "PodGroup"), ("fits-0", "Pod"), ("nobody", "Pod")])
def test_what_runs_or_is_unknown_waits_for_nothing(driver, name, kind):
    assert why(driver.scheduler, "default", name, kind) is None


def test_the_queue_shows_everything_that_waits_in_its_order(driver):
    rows = queue(driver.scheduler)
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
    shown = [cluster(driver.scheduler), queue(driver.scheduler), why(driver.scheduler, "default", "big", "PodGroup")]
    assert json.loads(json.dumps(shown)) == shown
