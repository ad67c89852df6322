"""Deferred resizes as entries: what happens elsewhere costs nothing, and the most important is decided first."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from muster.api.gates import FeatureGates
from muster.testing.builders import node_manifest, pod_manifest
from synchronous import Driver

GATES = FeatureGates.of("InPlacePodVerticalScalingSchedulerPreemption", "GenericWorkload")


class Counted(dict):
    """Counts how often an entry is looked at."""

    looks = 0

    def __getitem__(self, key):
        self.looks += 1
        return super().__getitem__(key)

    def get(self, key, default=None):
        self.looks += 1
        return super().get(key, default)

    def values(self):
        self.looks += len(self)
        return super().values()


def grown(name: str, node: str, priority: int = 5, size: str = "3") -> dict[str, Any]:
    """A pod with one core that would like to have more, which its kubelet has put off."""
    made = pod_manifest(name, cpu=size, nodeName=node, priority=priority)
    said = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "lastTransitionTime": None}
    told = {"name": "main", "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "1"}}}
    made["status"] = {"phase": "Running", "conditions": [said], "containerStatuses": [told]}
    return made


def waiting(resizes: int) -> Driver:
    """Each node has a pod that waits to grow beside one that is as important."""
    driver = Driver(GATES, preemption=True)
    for number in range(resizes):
        driver.create(
            node_manifest(f"n{number}", cpu="3"),
            pod_manifest(f"old-{number}", cpu="2", nodeName=f"n{number}", priority=5),
        )
        driver.create(grown(f"up-{number}", f"n{number}"))
    driver.create(node_manifest("elsewhere", cpu="3"))
    return driver


def looks(driver: Driver, happening: Any) -> int:
    resizes = driver.scheduler.resizes
    counted = resizes.entries = Counted(resizes.entries)
    happening()
    return counted.looks


@pytest.mark.parametrize("resizes", [3, 60])
def test_an_event_on_another_node_looks_at_no_more_than_the_next_timer(resizes: int) -> None:
    driver = waiting(resizes)
    assert len(driver.scheduler.resizes.entries) == resizes
    assert not driver.scheduler.resizes.has_active
    relabel = lambda raw: raw["metadata"].setdefault("labels", {}).update(a="b")  # noqa: E731
    assert looks(driver, lambda: driver.change("Node", "elsewhere", relabel)) <= 2
    assert looks(driver, lambda: driver.create(pod_manifest("new", cpu="1", nodeName="elsewhere"))) <= 2
    pending = looks(driver, lambda: driver.create(pod_manifest("pending", cpu="100")))
    assert pending <= 12, "it is decided and told of, in several events"


def test_an_event_on_its_node_has_a_resize_decided_again_and_no_other_one() -> None:
    driver = waiting(20)
    before = driver.decisions
    driver.change("Node", "n7", lambda raw: raw["metadata"].setdefault("labels", {}).update(a="b"))
    assert driver.decisions == before + 1


def test_the_most_important_resize_is_decided_first_also_when_its_priority_is_learned_later() -> None:
    driver = Driver(GATES, preemption=True)
    driver.create(
        node_manifest("n1", cpu="5"), *(pod_manifest(f"old-{i}", cpu="1", nodeName="n1", priority=9) for i in range(3))
    )
    driver.scheduler.paused = True
    driver.create(grown("low", "n1", 5), grown("high", "n1", 7))
    driver.scheduler.paused = False
    driver.hold_decisions()
    driver.change("Node", "n1", lambda raw: raw["metadata"].setdefault("labels", {}).update(a="b"))
    (first,) = driver.held or ()
    assert [head.key.key.name for head in first.heads] == ["high"]
    driver.release()
    assert Counter(entry.state.value for entry in driver.scheduler.resizes.entries.values()) == {"waiting": 2}


def test_a_resize_that_waits_long_is_tried_again_though_nothing_happens() -> None:
    driver = waiting(2)
    before = driver.decisions
    driver.advance(5 * 60 + 1)
    assert driver.decisions == before + 2


def test_a_resize_that_is_no_longer_wanted_is_not_decided_any_more() -> None:
    driver = waiting(2)
    driver.change("Pod", "up-0", lambda raw: raw["status"].update(conditions=[]))
    before = driver.decisions
    driver.advance(5 * 60 + 1)
    assert driver.decisions == before + 1
    assert [key.key.name for key in driver.scheduler.resizes.entries] == ["up-1"]
