"""Hollow kubelets: from bound to gone."""

from __future__ import annotations

import pytest
from controller_world import Cluster, node, pod

from muster.api.instant import MINUTE, SECOND
from muster.controllers.annotations import duration, exit_code, run_time

KUBELET = ("hollow", "binder")


def phases(cluster: Cluster) -> dict[str, str]:
    return {each["metadata"]["name"]: each["status"]["phase"] for each in cluster.all("pods")}


def test_a_bound_pod_starts_after_the_start_delay_and_is_ready():
    cluster = Cluster(*KUBELET, start_delay=3 * SECOND)
    cluster.create(node(), pod("p"))
    cluster.advance(2)
    assert phases(cluster) == {"p": "Pending"}
    cluster.advance(1)
    status = cluster.status("pods", "p")
    assert (status["phase"], status["startTime"]) == ("Running", "2026-01-01T00:00:03Z")
    assert cluster.conditions("pods", "p") == dict.fromkeys(
        ("PodScheduled", "Initialized", "ContainersReady", "Ready"), "True"
    )
    assert [(each["name"], each["ready"], each["restartCount"]) for each in status["containerStatuses"]] == [
        ("c", True, 0)
    ]


def test_a_pod_without_an_annotation_runs_for_ever():
    cluster = Cluster(*KUBELET)
    cluster.create(node(), pod("p"))
    cluster.advance(1_000_000)
    assert phases(cluster) == {"p": "Running"}


@pytest.mark.parametrize(("code", "phase"), [(None, "Succeeded"), ("0", "Succeeded"), ("7", "Failed")])
def test_a_pod_ends_after_its_run_time_with_the_exit_code_it_is_told(code, phase):
    annotations = {"muster.dev/run-for": "1m30s", **({} if code is None else {"muster.dev/exit": code})}
    cluster = Cluster(*KUBELET)
    cluster.create(node(), pod("p", annotations=annotations))
    cluster.advance(90)
    assert phases(cluster) == {"p": "Running"}
    cluster.advance(2)
    assert phases(cluster) == {"p": phase}
    assert cluster.conditions("pods", "p")["Ready"] == "False"
    state = cluster.status("pods", "p")["containerStatuses"][0]["state"]["terminated"]
    assert state["exitCode"] == int(code or 0)


def test_the_run_time_goes_on_where_it_was_after_a_restart():
    cluster = Cluster(*KUBELET)
    cluster.create(node(), pod("p", annotations={"muster.dev/run-for": "20s"}))
    cluster.advance(11)
    cluster.world.restart("hollow")
    cluster.advance(9)
    assert phases(cluster) == {"p": "Running"}
    cluster.advance(2)
    assert phases(cluster) == {"p": "Succeeded"}


def test_an_annotation_that_cannot_be_read_is_an_event_and_the_pod_runs_on():
    cluster = Cluster(*KUBELET)
    cluster.create(node(), pod("p", annotations={"muster.dev/run-for": "soon"}))
    cluster.advance(60)
    assert phases(cluster) == {"p": "Running"}
    assert cluster.reasons("Pod") == ["InvalidAnnotation"]
    assert "muster.dev/run-for" in cluster.all("events")[0]["message"]


def test_a_deleted_pod_is_gone_after_the_stop_delay_but_not_before():
    cluster = Cluster(*KUBELET, stop_delay=5 * SECOND)
    cluster.create(node(), pod("p"))
    cluster.advance(3)
    cluster.delete("pods", "p")
    cluster.advance(4)
    assert phases(cluster) == {"p": "Running"}
    cluster.advance(2)
    assert phases(cluster) == {}


def test_a_short_grace_period_ends_a_pod_before_its_stop_delay():
    cluster = Cluster(*KUBELET, stop_delay=20 * SECOND)
    cluster.create(node(), pod("p"))
    cluster.advance(3)
    cluster.delete("pods", "p", grace_seconds=2)
    cluster.advance(3)
    assert phases(cluster) == {}


def test_a_deleted_pod_that_a_finalizer_holds_has_ended_all_the_same():
    cluster = Cluster(*KUBELET)
    cluster.create(node(), pod("p", finalizers=["example.com/hold"]))
    cluster.advance(3)
    cluster.delete("pods", "p")
    cluster.advance(60)
    assert phases(cluster) == {"p": "Failed"}
    revision = cluster.server.revision
    cluster.advance(60)
    assert cluster.server.revision == revision
    cluster.patch("pods", "p", {"metadata": {"finalizers": None}})
    assert phases(cluster) == {}


def test_nothing_happens_to_pods_of_a_lost_node_until_it_comes_back():
    cluster = Cluster(*KUBELET)
    cluster.create(node(), pod("stays"), pod("goes"), pod("ends", annotations={"muster.dev/run-for": "30s"}))
    cluster.advance(5)
    uid = cluster.get("pods", "stays")["metadata"]["uid"]
    cluster.patch("nodes", "n1", {"metadata": {"annotations": {"muster.dev/lost": "true"}}})
    cluster.delete("pods", "goes")
    cluster.create(pod("new"))
    cluster.advance(600)
    assert phases(cluster) == {"stays": "Running", "goes": "Running", "ends": "Running", "new": "Pending"}
    cluster.patch("nodes", "n1", {"metadata": {"annotations": {"muster.dev/lost": None}}})
    cluster.advance(3)
    assert phases(cluster) == {"stays": "Running", "ends": "Succeeded", "new": "Running"}
    assert cluster.get("pods", "stays")["metadata"]["uid"] == uid


def test_a_kubelet_reports_its_node_ready_if_nobody_has():
    cluster = Cluster(*KUBELET)
    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    assert cluster.conditions("nodes", "n1") == {"Ready": "True"}


def test_in_conformance_pods_stay_as_they_are_and_deletions_end_at_once_on_any_node():
    cluster = Cluster(*KUBELET, run=False)
    cluster.create(node(), pod("p"), pod("q", on="nowhere"), pod("kept"))
    cluster.advance(60)
    assert set(phases(cluster).values()) == {"Pending"}
    cluster.delete("pods", "p")
    cluster.delete("pods", "q")
    assert phases(cluster) == {"kept": "Pending"}


def test_terminations_can_be_held_and_finished():
    cluster = Cluster(*KUBELET, run=False)
    cluster.create(node(), pod("p"), pod("q"))
    hollow = cluster.world.machine("hollow")
    hollow.hold()
    cluster.delete("pods", "p")
    cluster.delete("pods", "q")
    cluster.advance(600)
    assert len(cluster.all("pods")) == 2
    for effect in hollow.finish(cluster.world.now):
        cluster.world.call(effect.request)
    assert cluster.all("pods") == []


@pytest.mark.parametrize(
    ("text", "value"), [("500ms", SECOND // 2), ("30s", 30 * SECOND), ("1m30s", 90 * SECOND), ("2h", 120 * MINUTE)]
)
def test_durations_are_read_as_people_write_them(text, value):
    assert duration(text) == value


@pytest.mark.parametrize("text", ["", "30", "s", "-3s", "1.5s", "30 s", "one minute"])
def test_other_texts_are_refused_with_an_example(text):
    with pytest.raises(ValueError, match="30s"):
        duration(text)
    with pytest.raises(ValueError, match="run-for"):
        run_time({"muster.dev/run-for": text})


@pytest.mark.parametrize("text", ["", "-1", "256", "yes"])
def test_exit_codes_are_numbers_up_to_255(text):
    with pytest.raises(ValueError, match="0 to 255"):
        exit_code({"muster.dev/exit": text})
