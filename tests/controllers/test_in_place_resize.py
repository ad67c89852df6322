"""A pod grows where it is: the resize subresource, the kubelet's answer, and who has to go for it."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.api.instant import MINUTE, SECOND
from muster.plugins import default_profile
from muster.sim.cluster import cluster
from muster.sim.world import World
from muster.testing.builders import node_manifest, pod_manifest
from muster.views.why import why

GATE = "InPlacePodVerticalScalingSchedulerPreemption"


def sized(name: str, cpu: str, priority: int = 0, **spec: Any) -> dict[str, Any]:
    made = pod_manifest(name, priority=priority, **spec)
    made["spec"]["containers"] = [{"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}]
    return made


def resize(world: World, name: str, resources: dict[str, Any]) -> int:
    body = {"spec": {"containers": [{"name": "c", "resources": resources}]}}
    asked = writes.patch("pods", "default", name, body, "application/strategic-merge-patch+json", subresource="resize")
    return world.call(asked).status


class Town:
    """One node of 4 CPUs, with kubelets at work."""

    def __init__(self, *pods: dict[str, Any], gate: bool = True, cpu: str = "4") -> None:
        self.world = cluster(FeatureGates.of(*([GATE] if gate else ())), priority_admission=False, run=True)
        self.create(node_manifest("n1", cpu=cpu), *pods)

    def create(self, *objects: dict[str, Any]) -> None:
        for each in objects:
            response = self.world.call(writes.create(each))
            assert response.ok, response.body
        self.wait(5)

    def wait(self, seconds: int) -> None:
        self.world.advance(seconds * SECOND)

    def grow(self, name: str, cpu: str) -> None:
        assert resize(self.world, name, {"requests": {"cpu": cpu}}) == 200

    def pods(self) -> dict[str, dict[str, Any]]:
        return {
            pod["metadata"]["name"]: pod for pod in self.world.call(writes.list_all("pods", "default")).body["items"]
        }

    def size(self, name: str) -> tuple[str, str]:
        """Allocated and actual."""
        told = self.pods()[name]["status"]["containerStatuses"][0]
        return told["allocatedResources"]["cpu"], told["resources"]["requests"]["cpu"]

    def waiting(self, name: str) -> dict[str, str]:
        conditions = self.pods()[name]["status"]["conditions"]
        return {c["type"]: c.get("reason", "") for c in conditions if c["type"].startswith("PodResize")}

    def why(self, name: str) -> str:
        found = why(self.world.machine(), default_profile(), "default", name, "Pod")
        return found["sentence"] if found else ""


def test_a_resize_that_fits_is_granted_at_once_and_carried_out_after_a_moment() -> None:
    town = Town(sized("a", "1"))
    town.grow("a", "3")
    town.world.advance(SECOND // 2)
    assert (town.size("a"), town.waiting("a")) == (("3", "1"), {"PodResizeInProgress": ""})
    town.wait(2)
    assert (town.size("a"), town.waiting("a")) == (("3", "3"), {})
    status = town.pods()["a"]["status"]
    assert status["observedGeneration"] == town.pods()["a"]["metadata"]["generation"]


def test_one_patch_of_the_resize_subresource_evicts_a_lesser_pod_and_is_carried_out() -> None:
    town = Town(sized("grow", "2", 100), sized("least", "1", 1), sized("more", "1", 2))
    town.grow("grow", "3")
    town.wait(10)
    assert sorted(town.pods()) == ["grow", "more"]
    assert (town.size("grow"), town.waiting("grow")) == (("3", "3"), {})


def test_without_the_gate_nobody_is_evicted_and_the_resize_waits_for_whoever_leaves() -> None:
    town = Town(sized("grow", "2", 100), sized("low", "2", 1), gate=False)
    town.grow("grow", "3")
    town.wait(10)
    assert (sorted(town.pods()), town.waiting("grow")) == (["grow", "low"], {"PodResizePending": "Deferred"})
    town.world.call(writes.delete("pods", "default", "low"))
    town.wait(5)
    assert (town.size("grow"), town.waiting("grow")) == (("3", "3"), {})


def test_what_no_node_of_this_size_has_is_infeasible_and_counts_for_nobody() -> None:
    town = Town(sized("grow", "1", 100), sized("low", "1", 1))
    town.grow("grow", "5")
    town.wait(10)
    assert (sorted(town.pods()), town.waiting("grow")) == (["grow", "low"], {"PodResizePending": "Infeasible"})
    town.create(sized("new", "2"))
    assert town.pods()["new"]["spec"]["nodeName"] == "n1"


def test_an_infeasible_resize_is_done_once_the_node_has_grown() -> None:
    town = Town(sized("grow", "1"))
    town.grow("grow", "5")
    town.wait(3)
    status = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}}
    town.world.call(writes.patch_status("nodes", "", "n1", status))
    town.wait(3)
    assert (town.size("grow"), town.waiting("grow")) == (("5", "5"), {})


def test_a_wish_taken_back_is_forgotten() -> None:
    town = Town(sized("grow", "2"), sized("same", "2"))
    town.grow("grow", "3")
    town.wait(3)
    assert town.waiting("grow") == {"PodResizePending": "Deferred"}
    town.grow("grow", "2")
    town.wait(3)
    assert (town.size("grow"), town.waiting("grow"), town.why("grow")) == (("2", "2"), {}, "")


def test_room_goes_to_the_most_important_resize_first_then_to_the_better_quality_then_to_the_older() -> None:
    best = sized("better", "1", 5)
    best["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "1", "memory": "1Mi"},
        "limits": {"cpu": "1", "memory": "1Mi"},
    }
    town = Town(sized("old", "1", 5), best, sized("high", "1", 7), sized("full", "3", 9), gate=False, cpu="6")
    town.grow("old", "2")
    town.wait(3)
    assert resize(town.world, "better", {w: {"cpu": "2", "memory": "1Mi"} for w in ("requests", "limits")}) == 200
    town.wait(3)
    town.grow("high", "2")
    town.wait(3)
    order = []
    for cpu in ("2", "1", "500m"):
        town.grow("full", cpu)
        town.wait(3)
        order.append(sorted(name for name in ("old", "better", "high") if town.size(name) == ("2", "2")))
    assert order == [["high"], ["better", "high"], ["better", "high"]]
    town.world.call(writes.delete("pods", "default", "full"))
    town.wait(3)
    assert town.size("old") == ("2", "2")


def test_a_container_whose_policy_says_so_is_restarted() -> None:
    pod = sized("a", "1")
    pod["spec"]["containers"][0]["resizePolicy"] = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    town = Town(pod)
    town.grow("a", "2")
    town.wait(3)
    assert town.pods()["a"]["status"]["containerStatuses"][0]["restartCount"] == 1


def with_sidecar(name: str, cpu: str, sidecar: str) -> dict[str, Any]:
    pod = sized(name, cpu)
    beside = {"name": "beside", "image": "pause", "restartPolicy": "Always"}
    pod["spec"]["initContainers"] = [{**beside, "resources": {"requests": {"cpu": sidecar}}}]
    return pod


def sidecar_size(town: Town, name: str) -> tuple[str, str]:
    """Allocated and actual."""
    told = town.pods()[name]["status"]["initContainerStatuses"][0]
    return told["allocatedResources"]["cpu"], told["resources"]["requests"]["cpu"]


def grow_sidecar(town: Town, name: str, cpu: str) -> None:
    body = {"spec": {"initContainers": [{"name": "beside", "resources": {"requests": {"cpu": cpu}}}]}}
    kind = "application/strategic-merge-patch+json"
    response = town.world.call(writes.patch("pods", "default", name, body, kind, subresource="resize"))
    assert response.status == 200, response.body


def test_a_sidecar_grows_as_the_other_containers_do() -> None:
    town = Town(with_sidecar("a", "1", "1"), sized("b", "1"))
    grow_sidecar(town, "a", "2")
    town.world.advance(SECOND // 2)
    assert (sidecar_size(town, "a"), town.waiting("a")) == (("2", "1"), {"PodResizeInProgress": ""})
    town.wait(2)
    assert (sidecar_size(town, "a"), town.size("a"), town.waiting("a")) == (("2", "2"), ("1", "1"), {})


def test_a_sidecar_waits_for_room_and_evicts_for_it() -> None:
    pod = with_sidecar("a", "1", "1")
    pod["spec"]["priority"] = 100
    town = Town(pod, sized("low", "2", 1))
    grow_sidecar(town, "a", "3")
    town.world.advance(SECOND // 2)
    assert town.waiting("a") == {"PodResizePending": "Deferred"}
    town.wait(60)
    assert (sidecar_size(town, "a"), sorted(town.pods())) == (("3", "3"), ["a"])


def pod_level(name: str, cpu: str, priority: int = 0) -> dict[str, Any]:
    pod = pod_manifest(name, priority=priority)
    pod["spec"]["containers"] = [{"name": "c", "image": "pause"}]
    pod["spec"]["resources"] = {"requests": {"cpu": cpu}}
    return pod


def test_resources_of_the_pod_as_a_whole_grow_and_evict_for_it() -> None:
    town = Town(pod_level("a", "1", 100), sized("low", "2", 1))
    body = {"spec": {"resources": {"requests": {"cpu": "2"}}}}
    kind = "application/strategic-merge-patch+json"

    def told() -> tuple[str, str]:
        status = town.pods()["a"]["status"]
        return status["allocatedResources"]["cpu"], status["resources"]["requests"]["cpu"]

    assert told() == ("1", "1")
    assert town.world.call(writes.patch("pods", "default", "a", body, kind, subresource="resize")).status == 200
    town.wait(3)
    assert (told(), town.waiting("a"), sorted(town.pods())) == (("2", "2"), {}, ["a", "low"])
    body["spec"]["resources"]["requests"]["cpu"] = "4"
    assert town.world.call(writes.patch("pods", "default", "a", body, kind, subresource="resize")).status == 200
    town.world.advance(SECOND // 2)
    assert town.waiting("a") == {"PodResizePending": "Deferred"}
    town.wait(60)
    assert (told(), town.waiting("a"), sorted(town.pods())) == (("4", "4"), {}, ["a"])


def test_freed_room_is_not_given_to_newcomers_while_the_resize_is_awaited() -> None:
    town = Town(sized("grow", "2", 100), sized("low", "2", 1))
    town.world.hold_terminations(True)
    town.grow("grow", "3")
    town.create(sized("new", "2", 1), sized("small", "1", 1))
    town.world.hold_terminations(False)
    town.wait(10)
    pods = town.pods()
    assert (town.size("grow"), "low" in pods) == (("3", "3"), False)
    assert (pods["small"]["spec"].get("nodeName"), pods["new"]["spec"].get("nodeName")) == ("n1", None)


def test_nobody_is_evicted_where_that_would_not_be_enough_and_the_reason_says_what_would_be() -> None:
    town = Town(sized("grow", "1", 100), sized("low", "1", 1), sized("peer", "2", 100))
    town.grow("grow", "3")
    town.wait(10)
    assert sorted(town.pods()) == ["grow", "low", "peer"]
    assert town.why("grow") == (
        "Pod default/grow waits to be resized: it lacks 2 cpu on n1, and would still lack 1 cpu without the 1 pod of "
        "lower priority there; free that much on n1, or ask for less."
    )


def test_a_second_round_waits_until_the_first_victims_are_gone() -> None:
    town = Town(sized("grow", "1", 100), sized("a", "1", 1), sized("b", "2", 2))
    town.world.hold_terminations(True)
    town.grow("grow", "2")
    town.wait(5)
    town.grow("grow", "4")
    town.wait(MINUTE // SECOND)
    leaving = [name for name, pod in town.pods().items() if "deletionTimestamp" in pod["metadata"]]
    assert leaving == ["a"]
    assert "waits for 1 pod of lower priority there to end" in town.why("grow")
    town.world.hold_terminations(False)
    town.wait(10)
    assert (sorted(town.pods()), town.size("grow")) == (["grow"], ("4", "4"))


def test_a_node_may_forbid_it_and_the_reason_names_who() -> None:
    town = Town(sized("grow", "2", 100), sized("low", "2", 1))
    policy = {"spec": {"podPreemptionPolicy": {"disableResizePreemption": ["example.com/autoscaler"]}}}
    town.world.call(writes.patch("nodes", "", "n1", policy))
    town.grow("grow", "3")
    town.wait(10)
    assert "low" in town.pods()
    assert "(example.com/autoscaler) forbids to evict for it" in town.why("grow")


def test_a_restarted_scheduler_goes_on_and_evicts_nobody_else() -> None:
    town = Town(sized("grow", "1", 100), sized("a", "1", 1), sized("b", "1", 1), sized("c", "1", 1))
    town.world.hold_terminations(True)
    town.grow("grow", "2")
    town.wait(5)
    town.world.restart()
    town.wait(60)
    leaving = [name for name, pod in town.pods().items() if "deletionTimestamp" in pod["metadata"]]
    assert len(leaving) == 1


@pytest.mark.parametrize("restarted", ["hollow", "scheduler"])
def test_a_resize_under_way_is_finished_after_a_restart(restarted: str) -> None:
    town = Town(sized("grow", "1", 100), sized("low", "3", 1))
    town.grow("grow", "2")
    town.world.advance(SECOND // 2)
    town.world.restart(restarted)
    town.wait(10)
    assert (town.size("grow"), town.waiting("grow")) == (("2", "2"), {})


def test_the_victim_and_the_pod_that_grew_have_events() -> None:
    town = Town(sized("grow", "2", 100), sized("low", "2", 1))
    town.grow("grow", "3")
    town.wait(10)
    events = town.world.call(writes.list_all("events", "default")).body["items"]
    told = {(e["involvedObject"]["name"], e["reason"]) for e in events}
    assert {("low", "Preempted"), *(("grow", f"Resize{r}") for r in ("Deferred", "Started", "Completed"))} <= told
    note = next(e for e in events if e["reason"] == "Preempted")
    assert "by pod" in note.get("note", note.get("message", ""))
