"""Groups with a topology constraint in the whole machine: what wakes them, what is re-checked, what is said."""

from __future__ import annotations

import pytest

from muster.api.gates import FeatureGates
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest
from synchronous import GENERIC, Driver, names

TOPOLOGY = FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling")
RACK = "rack"


def node(name, rack=None, gpus=2, **fields):
    return node_manifest(name, gpus=gpus, labels={RACK: rack} if rack else {}, **fields)


def gang(size, minimum=None, name="g", start=0, gpus=1):
    constraint = {"topology": [{"key": RACK}]}
    members = [pod_manifest(f"{name}-{rank}", gpus=gpus, group=name) for rank in range(start, start + size)]
    return [gang_manifest(name, minimum or size, schedulingConstraints=constraint), *members]


def racks(driver):
    labels = {place[1]: raw["metadata"]["labels"].get(RACK) for place, raw in driver.objects["nodes"].items()}
    nodes = (raw["spec"].get("nodeName") for raw in driver.objects["pods"].values())
    return {labels[name] for name in nodes if name}


def relabel(driver, name, rack):
    def edit(raw):
        raw["metadata"]["labels"].pop(RACK, None)
        if rack:
            raw["metadata"]["labels"][RACK] = rack

    driver.change("Node", name, edit)


def test_with_the_gate_off_a_stored_constraint_is_not_enforced():
    driver = Driver(GENERIC)
    driver.create(node("n1", "a", 1), node("n2", "b", 1), *gang(2))
    assert driver.bound() == {"g-0", "g-1"}


def test_with_the_gate_on_the_group_waits_rather_than_being_split_and_says_where_it_is_nearest():
    driver = Driver(TOPOLOGY)
    driver.create(node("n1", "a", 2), node("n2", "b", 1), *gang(3))
    assert driver.bound() == set()
    assert driver.condition("PodGroup", "g")["message"] == (
        "0/2 placements are available, first placement status: "
        "minCount (3) cannot be satisfied: 2 scheduled, 1 remaining"
    )
    ((_, told),) = driver.told("PodGroup", "g")
    assert "it needs 3 members in one rack; best of 2: rack a holds 2 of 3, short of 1" in told


def test_without_a_labelled_node_that_is_said_and_a_label_wakes_the_group():
    driver = Driver(TOPOLOGY)
    driver.create(node("n1"), *gang(2))
    message = '0/0 placements are available: no node has the label "rack"'
    assert driver.condition("PodGroup", "g")["message"] == message
    assert driver.condition("Pod", "g-0")["message"] == message
    relabel(driver, "n1", "a")
    driver.advance(2)
    assert driver.bound() == {"g-0", "g-1"}


@pytest.mark.parametrize("how", ["added", "relabelled", "freed"])
def test_a_domain_that_becomes_large_enough_wakes_the_group(how):
    driver = Driver(TOPOLOGY)
    taken = pod_manifest("taken", gpus=2, nodeName="n3")
    driver.create(node("n1", "a"), node("n2", "b"), node("n3", "c", 4), taken, *gang(4))
    driver.advance(20)
    assert driver.bound() == {"taken"}
    if how == "added":
        driver.create(node("n4", "b"))
    elif how == "relabelled":
        relabel(driver, "n1", "b")
    else:
        driver.delete("Pod", "taken")
    driver.run()
    assert driver.bound() - {"taken"} == set(names("g-", range(4)))
    assert len(racks(driver) - ({"c"} if how != "freed" else set())) == 1


def test_room_in_a_domain_that_still_lacks_more_wakes_nobody():
    driver = Driver(TOPOLOGY)
    driver.create(node("n1", "a"), node("n2", "b", 1), *gang(4))
    driver.advance(20)
    known = driver.decisions
    driver.create(node("n3", "b", 2))
    driver.advance(20)
    assert driver.decisions == known
    driver.create(node("n4", "b", 1))
    driver.advance(20)
    assert driver.decisions == known + 1
    assert racks(driver) == {"b"}


def test_a_late_member_is_not_woken_by_room_in_other_domains():
    driver = Driver(TOPOLOGY)
    driver.create(node("n1", "a"), *gang(2))
    driver.create(pod_manifest("g-2", gpus=1, group="g"))
    driver.advance(20)
    known = driver.decisions
    driver.create(node("n2", "b"))
    driver.advance(20)
    assert driver.decisions == known
    driver.create(node("n3", "a"))
    driver.advance(20)
    assert driver.bound() == {"g-0", "g-1", "g-2"}
    assert racks(driver) == {"a"}


def test_a_group_whose_last_running_member_leaves_may_go_elsewhere():
    driver = Driver(TOPOLOGY)
    driver.create(node("n1", "a", 1), gang_manifest("g", None, schedulingConstraints={"topology": [{"key": RACK}]}))
    driver.create(pod_manifest("g-0", gpus=1, group="g"))
    driver.create(pod_manifest("g-1", gpus=2, group="g"), node("n2", "b"))
    driver.advance(20)
    assert driver.bound() == {"g-0"}
    driver.delete("Pod", "g-0")
    driver.run()
    assert driver.bound() == {"g-1"}


def test_members_that_a_relabelling_has_split_are_an_error_until_the_labels_agree_again():
    driver = Driver(TOPOLOGY)
    driver.create(node("n1", "a", 1), node("n2", "a", 3), *gang(2, gpus=1))
    driver.create(pod_manifest("g-9", gpus=1, group="g", nodeName="n1"))
    relabel(driver, "n1", "b")
    driver.create(pod_manifest("g-2", gpus=1, group="g"))
    condition = driver.condition("Pod", "g-2")
    assert condition["reason"] == "SchedulerError"
    assert 'two domains of the label "rack", "a" and "b"' in condition["message"]
    relabel(driver, "n1", "a")
    driver.advance(20)
    assert "g-2" in driver.bound()


def test_a_node_that_goes_takes_the_disagreement_with_it():
    driver = Driver(TOPOLOGY)
    driver.create(node("n1", "a", 4), node("n2", "b", 1), *gang(2, minimum=1))
    driver.create(pod_manifest("odd", gpus=1, group="g", nodeName="n2"))
    driver.create(pod_manifest("g-5", gpus=1, group="g"))
    assert driver.condition("Pod", "g-5")["reason"] == "SchedulerError"
    driver.delete("Node", "n2")
    driver.advance(20)
    assert "g-5" in driver.bound()


def test_a_plan_whose_domain_was_taken_apart_meanwhile_is_not_carried_out():
    driver = Driver(TOPOLOGY)
    driver.create(node("n1", "a", 1), node("n2", "a", 1))
    driver.hold_decisions()
    driver.create(*gang(2))
    relabel(driver, "n2", "b")
    driver.release()
    assert driver.bound() == set()
    relabel(driver, "n1", "b")
    driver.advance(20)
    assert racks(driver) == {"b"}


def test_a_running_member_that_was_relabelled_meanwhile_stops_the_plan_too():
    driver = Driver(TOPOLOGY)
    driver.create(node("n1", "a", 1), node("n2", "a", 2), *gang(1))
    assert driver.bound() == {"g-0"}
    where = next(raw["spec"]["nodeName"] for raw in driver.objects["pods"].values())
    driver.hold_decisions()
    driver.create(pod_manifest("g-1", gpus=1, group="g"))
    relabel(driver, where, "b")
    driver.release()
    other = {"n1": "n2", "n2": "n1"}[where]
    assert all(raw["spec"].get("nodeName") != other for raw in driver.objects["pods"].values())


def test_after_a_restart_the_domain_is_still_that_of_the_running_members():
    driver = Driver(TOPOLOGY)
    driver.create(node("n1", "a"), node("n2", "b", 8), *gang(2, minimum=1))
    here = racks(driver)
    driver.restart()
    driver.create(*(pod_manifest(f"g-{n}", gpus=1, group="g") for n in range(2, 6)))
    assert racks(driver) == here and len(here) == 1


def test_well_known_labels_keep_unconstrained_groups_together():
    driver = Driver(GENERIC)
    key = "topology.muster.dev/rack"
    for number, rack in enumerate("abab"):
        driver.create(node_manifest(f"n{number}", gpus=2, labels={key: rack}))
    driver.create(gang_manifest("g", 4), *(pod_manifest(f"g-{n}", gpus=1, group="g") for n in range(4)))
    assert {raw["spec"]["nodeName"] for raw in driver.objects["pods"].values()} == {"n0", "n2"}
