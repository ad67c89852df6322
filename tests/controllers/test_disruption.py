"""Status of PodDisruptionBudgets."""

from __future__ import annotations

from typing import Any

import pytest
from controller_world import Cluster, node, pod

from muster.api import writes
from muster.controllers.disruption import desired_healthy

PARTS = ("disruption", "hollow", "binder")
FIGURES = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")


def budget(name: str = "b", **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "a"}}
    meta = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": meta,
        "spec": {"selector": selector, **spec},
    }


def figures(cluster: Cluster, name: str = "b") -> tuple[int, ...]:
    status = cluster.status("poddisruptionbudgets", name)
    return tuple(status.get(each, 0) for each in FIGURES)


def running(count: int, **spec: Any) -> Cluster:
    cluster = Cluster(*PARTS)
    cluster.create(node(), budget(**spec))
    cluster.create(*(pod(f"p{number}", labels={"app": "a"}) for number in range(count)))
    cluster.create(pod("other", labels={"app": "b"}))
    cluster.advance(5)
    return cluster


def test_a_budget_counts_its_pods_and_says_how_many_may_go():
    cluster = running(5, minAvailable=3)
    assert figures(cluster) == (5, 5, 3, 2)
    assert cluster.conditions("poddisruptionbudgets", "b") == {"DisruptionAllowed": "True"}


def test_pods_that_have_not_started_are_expected_but_not_healthy():
    cluster = Cluster("disruption")
    cluster.create(budget(minAvailable=1), pod("p", labels={"app": "a"}))
    cluster.advance(1)
    assert figures(cluster) == (1, 0, 1, 0)
    assert cluster.conditions("poddisruptionbudgets", "b") == {"DisruptionAllowed": "False"}


def test_deleted_and_finished_pods_leave_the_count():
    cluster = running(3, maxUnavailable=1)
    assert figures(cluster) == (3, 3, 2, 1)
    cluster.delete("pods", "p0")
    cluster.advance(0.5)
    assert figures(cluster) == (3, 2, 2, 0)
    cluster.advance(5)
    assert figures(cluster) == (2, 2, 1, 1)


def test_an_eviction_takes_from_the_allowance_until_the_budget_is_used_up():
    cluster = running(3, minAvailable=2)
    first, second = (cluster.world.call(writes.evict("default", each)) for each in ("p0", "p1"))
    assert (first.ok, second.status) == (True, 429)
    cluster.advance(5)
    assert figures(cluster) == (2, 2, 2, 0)
    assert not cluster.status("poddisruptionbudgets", "b").get("disruptedPods")


def test_changing_a_budget_changes_its_status_at_once():
    cluster = running(4, minAvailable=1)
    cluster.patch("poddisruptionbudgets", "b", {"spec": {"minAvailable": 4}})
    cluster.advance(1)
    assert figures(cluster) == (4, 4, 4, 0)


def test_many_pods_becoming_ready_together_are_one_write():
    cluster = Cluster(*PARTS)
    cluster.create(node(), budget(minAvailable=1))
    cluster.create(*(pod(f"p{number}", labels={"app": "a"}) for number in range(40)))
    watch = cluster.world.request(writes.watch("poddisruptionbudgets", str(cluster.server.revision)))
    cluster.advance(5)
    assert len(watch.poll()) <= 2
    assert figures(cluster) == (40, 40, 1, 39)


def test_a_restart_changes_nothing():
    cluster = running(5, minAvailable="50%")
    before = cluster.get("poddisruptionbudgets", "b")
    cluster.world.restart("disruption")
    cluster.advance(5)
    assert cluster.get("poddisruptionbudgets", "b") == before


@pytest.mark.parametrize(
    ("least", "most", "expected", "desired"),
    [
        (3, None, 5, 3),
        (9, None, 5, 9),
        ("50%", None, 5, 3),
        ("100%", None, 5, 5),
        ("0%", None, 5, 0),
        (None, 2, 5, 3),
        (None, 9, 5, 0),
        (None, "30%", 5, 3),
        (None, "30%", 10, 7),
        (None, None, 5, 0),
    ],
)
def test_percentages_are_rounded_up(least, most, expected, desired):
    assert desired_healthy(least, most, expected) == desired


def test_a_status_says_everything_that_typed_clients_ask_for():
    cluster = Cluster("disruption")
    cluster.create(budget(maxUnavailable=1))
    cluster.advance(1)
    status = cluster.status("poddisruptionbudgets", "b")
    assert {each: status[each] for each in FIGURES} == dict.fromkeys(FIGURES, 0)
    (condition,) = status["conditions"]
    assert condition["message"] == "" and condition["reason"] == "InsufficientPods"
    revision = cluster.server.revision
    cluster.advance(600)
    assert cluster.server.revision == revision
