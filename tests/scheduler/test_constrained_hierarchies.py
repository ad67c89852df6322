"""Hierarchies with topology constraints in the whole machine: what is re-checked before a plan is carried out."""

from __future__ import annotations

from collections.abc import Mapping

from muster.api.gates import FeatureGates
from muster.testing.builders import composite_manifest, gang_manifest, node_manifest, pod_manifest, workload_ref
from synchronous import Driver

GATES = FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")


def node(name: str, cpu: int, **labels: str) -> dict:
    return node_manifest(name, cpu=str(cpu), labels=labels)


def rack(key: str | None) -> dict:
    return {"schedulingConstraints": {"topology": [{"key": key}]}} if key else {}


def root(minimum: int | None, name: str = "root", key: str | None = None) -> dict:
    return composite_manifest(name, minimum, priority=0, **rack(key))


def leaf(name: str, size: int, minimum: int | None = None, key: str | None = None, parent: str = "root") -> list[dict]:
    above = {"parentCompositePodGroupName": parent, "workloadRef": workload_ref("w")}
    members = [pod_manifest(f"{name}-{n}", cpu="1", group=name, priority=0) for n in range(size)]
    return [gang_manifest(name, minimum or size, priority=0, **above, **rack(key)), *members]


def relabel(driver: Driver, name: str, **labels: str) -> None:
    driver.change("Node", name, lambda raw: raw["metadata"]["labels"].update(labels))


def where(driver: Driver) -> Mapping[str, str]:
    pods = driver.objects["pods"].values()
    return {raw["metadata"]["name"]: node for raw in pods if (node := raw["spec"].get("nodeName"))}


def test_a_plan_whose_leafs_domain_was_taken_apart_meanwhile_is_not_carried_out() -> None:
    driver = Driver(GATES)
    driver.create(node("n1", 1, rack="a"), node("n2", 1, rack="a"))
    driver.hold_decisions()
    driver.create(root(1), *leaf("a", 2, key="rack"))
    relabel(driver, "n2", rack="b")
    driver.release()
    assert where(driver) == {}
    relabel(driver, "n1", rack="b")
    driver.advance(20)
    assert len(where(driver)) == 2


def test_neither_is_one_whose_leaves_are_no_longer_in_the_one_domain_of_their_parent() -> None:
    driver = Driver(GATES)
    driver.create(node("n1", 1, rack="a"), node("n2", 1, rack="a"))
    driver.hold_decisions()
    driver.create(root(2, key="rack"), *leaf("a", 1), *leaf("b", 1))
    relabel(driver, "n2", rack="b")
    driver.release()
    assert where(driver) == {}


def test_a_running_member_that_was_relabelled_meanwhile_stops_the_plan_too() -> None:
    driver = Driver(GATES)
    driver.create(node("n1", 1, rack="a"), root(1, key="rack"), *leaf("a", 1))
    assert where(driver) == {"a-0": "n1"}
    driver.create(node("n2", 1, rack="a"))
    driver.hold_decisions()
    driver.create(*leaf("b", 1))
    relabel(driver, "n1", rack="b")
    driver.release()
    assert where(driver) == {"a-0": "n1"}


def test_a_leaf_beside_whose_domain_was_taken_apart_does_not_stop_the_others() -> None:
    driver = Driver(GATES)
    driver.create(node("n1", 1, rack="a"), node("n2", 1, rack="a"), root(1), *leaf("a", 2, key="rack"))
    assert len(where(driver)) == 2
    relabel(driver, "n2", rack="b")
    driver.create(node("n3", 1, rack="c"))
    driver.advance(20)
    driver.create(*leaf("b", 1))
    driver.advance(20)
    assert where(driver).get("b-0") is None  # the whole hierarchy is in error (statement 36)


def decisions_after(driver: Driver, *manifests: dict) -> int:
    """How many decisions these objects cause soon."""
    before = driver.decisions
    driver.create(*manifests)
    driver.advance(30)
    return driver.decisions - before


def test_a_waiting_hierarchy_is_woken_when_a_rack_has_all_that_its_leaf_lacks() -> None:
    driver = Driver(GATES)
    driver.create(node("c1", 3, rack="c"), pod_manifest("filler", cpu="2", priority=0))
    driver.create(node("a1", 2, rack="a"), node("b1", 1, rack="b"), root(2), *leaf("a", 4, key="rack"), *leaf("b", 1))
    driver.advance(30)
    before = driver.decisions
    driver.delete("Pod", "filler")
    driver.advance(30)
    assert driver.decisions == before  # Three slots of four in its rack.
    assert decisions_after(driver, node("d1", 3, rack="d")) == 1  # A new label: looked at, for what it is worth.
    assert where(driver) == {}
    driver.change("Node", "a1", lambda raw: raw["status"]["allocatable"].update(cpu="5"))
    driver.advance(30)
    assert len(where(driver)) == 5


def test_slots_are_counted_over_the_leaves_of_a_constrained_parent_together() -> None:
    driver = Driver(GATES)
    driver.create(node("a1", 2, rack="a"), node("b1", 1, rack="b"))
    driver.create(root(2, key="rack"), *leaf("a", 2), *leaf("b", 2))
    driver.advance(30)
    before = driver.decisions
    driver.change("Node", "b1", lambda raw: raw["status"]["allocatable"].update(cpu="3"))
    driver.advance(30)
    assert driver.decisions == before
    driver.change("Node", "a1", lambda raw: raw["status"]["allocatable"].update(cpu="4"))
    driver.advance(30)
    assert len(where(driver)) == 4


def test_slots_are_counted_over_the_cluster_for_a_hierarchy_without_constraints() -> None:
    driver = Driver(GATES)
    driver.create(node("n1", 1), root(2), *leaf("a", 3), *leaf("b", 3), *leaf("c", 3))
    driver.advance(30)
    assert decisions_after(driver, node("n2", 2)) == 1  # Labels have changed: any of them might have been asked for.
    before = driver.decisions
    driver.change("Node", "n2", lambda raw: raw["status"]["allocatable"].update(cpu="4"))
    driver.advance(30)
    assert driver.decisions == before
    driver.change("Node", "n1", lambda raw: raw["status"]["allocatable"].update(cpu="2"))
    driver.advance(30)
    assert len(where(driver)) == 6


def test_what_is_left_of_a_running_leaf_is_woken_by_room_in_its_own_rack_only() -> None:
    driver = Driver(GATES)
    driver.create(node("b1", 3, rack="b"), pod_manifest("filler", cpu="3", priority=0))
    driver.create(node("a1", 2, rack="a"), root(1), *leaf("a", 3, minimum=2, key="rack"))
    assert set(where(driver)) == {"filler", "a-0", "a-1"}
    driver.advance(30)
    before = driver.decisions
    driver.delete("Pod", "filler")
    driver.advance(30)
    assert driver.decisions == before
    driver.change("Node", "a1", lambda raw: raw["status"]["allocatable"].update(cpu="3"))
    driver.advance(30)
    assert where(driver) == {"a-0": "a1", "a-1": "a1", "a-2": "a1"}
