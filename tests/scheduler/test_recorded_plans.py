"""A gang's plan is recorded before its first bind, finished by whoever leads next, and removed when over (M11)."""

from __future__ import annotations

import json
import zlib
from base64 import b85encode

import pytest

from muster.api.calls import JSON_PATCH, MERGE_PATCH, Response
from muster.api.gates import FeatureGates
from muster.api.machine import MODIFIED, Written
from muster.scheduler.events import Pause, Resume
from muster.scheduler.slots import LONGEST, PLAN, SHORT, Slot, decode, encode
from muster.testing.builders import (
    composite_manifest,
    gang_manifest,
    gang_manifests,
    node_manifest,
    pod,
    pod_manifest,
    workload_ref,
)
from synchronous import Driver

TREES = FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")


def paths(driver: Driver) -> list[str]:
    """What was asked of the server, without events and conditions."""
    found = []
    for request in driver.requests:
        parts = request.path.split("/")
        if parts[-1] == "binding":
            found.append(f"bind {parts[-2]}")
        elif request.content_type in (MERGE_PATCH, JSON_PATCH) and request.method == "PATCH":
            found.append(f"{'record' if request.content_type == MERGE_PATCH else 'clear'} {parts[-1]}")
    return found


def half_bound(bound: int = 1, size: int = 4) -> Driver:
    """A scheduler that died when so many pods of a gang were bound; the next one is not there yet."""
    driver = Driver()
    driver.refuse = {f"m-{rank}": 500 for rank in range(bound, size)}
    driver.create(node_manifest("n1", gpus=2), node_manifest("n2", gpus=2), *gang_manifests("m", size, gpus=1))
    assert driver.bound() == {f"m-{rank}" for rank in range(bound)}
    driver.refuse = {}
    driver.scheduler.handle(Pause(), driver.now)
    driver.timers = {}
    return driver


def test_a_gang_is_recorded_with_one_write_before_its_first_bind_and_cleared_with_one_after_its_last():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=3), *gang_manifests("m", 3, gpus=1))
    assert paths(driver) == ["record m", "bind m-0", "bind m-1", "bind m-2"]
    assert json.loads(driver.plan("m"))["n1"][::2] == ["m-0", "m-1", "m-2"]
    driver.advance(2)
    assert paths(driver)[4:] == ["clear m"]
    assert driver.plan("m") is None


@pytest.mark.parametrize(("minimum", "size"), [(None, 4), (1, 4), (1, 1)])
def test_nothing_is_recorded_where_any_pod_by_itself_is_enough(minimum, size):
    driver = Driver()
    members = [pod_manifest(f"m-{rank}", group="m", gpus=1) for rank in range(size)]
    driver.create(node_manifest("n1", gpus=4), gang_manifest("m", minimum), *members, pod_manifest("single"))
    driver.advance(5)
    assert len(driver.bound()) == size + 1
    assert not [it for it in paths(driver) if not it.startswith("bind")]


def test_members_beyond_a_minimum_that_runs_are_not_recorded():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=8), *gang_manifests("m", 2, gpus=1))
    driver.advance(5)
    driver.create(*(pod_manifest(f"x-{i}", group="m", gpus=1) for i in range(3)))
    assert len([it for it in paths(driver) if it.startswith("record")]) == 1
    assert len(driver.bound()) == 5


def test_a_hierarchy_is_recorded_on_its_root():
    driver = Driver(TREES)
    link = {"parentCompositePodGroupName": "t", "workloadRef": workload_ref("t")}
    members = [pod_manifest(f"{group}-{rank}", group=group, gpus=1) for group in "ab" for rank in range(2)]
    groups = [gang_manifest(group, 2, **link) for group in "ab"]
    driver.create(node_manifest("n1", gpus=4), composite_manifest("t", 2), *groups, *members)
    assert paths(driver)[0] == "record t"
    assert driver.plan("t", "CompositePodGroup") is not None
    driver.advance(2)
    assert driver.plan("t", "CompositePodGroup") is None
    assert len(driver.bound()) == 4


def test_the_next_scheduler_binds_the_rest_where_it_was_planned_though_somebody_more_important_waits():
    driver = half_bound()
    planned = decode(driver.plan("m"))
    driver.put(pod_manifest("vip", gpus=2, priority=1000), MODIFIED)
    driver.restart()
    assert driver.bound() == {"m-0", "m-1", "m-2", "m-3"}
    nodes = driver.nodes_of(*(f"m-{rank}" for rank in range(4)))
    assert nodes == [next(node for slot, node in planned.items() if slot.pod == f"m-{rank}") for rank in range(4)]
    assert driver.decisions == 2, "the one before the crash, and that for the pod that waits now"
    driver.advance(2)
    assert driver.plan("m") is None


def test_a_plan_of_which_nothing_was_bound_yet_is_finished_as_well():
    driver = half_bound(bound=0)
    driver.restart()
    assert len(driver.bound()) == 4
    assert driver.decisions == 1


def test_a_scheduler_that_stood_by_finishes_what_the_other_one_has_begun_when_it_is_its_turn():
    driver = half_bound()
    leader, driver.options = driver.scheduler, {}
    standby = Driver()
    standby.objects, standby._revision = driver.objects, driver._revision
    standby.scheduler.handle(Pause(), standby.now)
    standby.relist()
    assert standby.bound() == {"m-0"}
    assert leader is not standby.scheduler
    standby.tell(Resume())
    standby.run()
    assert len(standby.bound()) == 4
    assert standby.decisions == 0


def test_a_plan_is_finished_as_far_as_its_nodes_are_there_if_that_is_enough():
    driver = Driver()
    driver.refuse = {f"m-{rank}": 500 for rank in range(1, 5)}
    members = [pod_manifest(f"m-{rank}", group="m", gpus=1) for rank in range(5)]
    driver.create(*(node_manifest(f"n{i}", gpus=1) for i in range(5)), gang_manifest("m", 3), *members)
    driver.refuse = {}
    planned = {slot.pod: node for slot, node in decode(driver.plan("m")).items()}
    driver.timers = {}
    del driver.objects["nodes"][("", planned["m-4"])]
    driver.restart()
    assert driver.nodes_of("m-1", "m-2", "m-3") == [planned[name] for name in ("m-1", "m-2", "m-3")]
    assert driver.nodes_of("m-4") == [None]
    driver.create(node_manifest("n9", gpus=1))
    driver.advance(2)
    assert driver.nodes_of("m-4") == ["n9"]


def test_a_plan_that_cannot_be_finished_is_made_anew_for_all_that_wait():
    driver = half_bound()
    planned = {slot.pod: node for slot, node in decode(driver.plan("m")).items()}
    gone = planned["m-3"]
    del driver.objects["nodes"][("", gone)]
    driver.put(node_manifest("n3", gpus=4), MODIFIED)
    driver.restart()
    assert len(driver.bound()) == 4
    assert gone not in driver.nodes_of("m-1", "m-2", "m-3")
    driver.advance(2)
    assert driver.plan("m") is None


def test_pods_made_anew_are_not_those_of_the_plan():
    driver = half_bound()
    for rank in range(1, 4):
        del driver.objects["pods"][("default", f"m-{rank}")]
        again = pod_manifest(f"m-{rank}", group="m", gpus=1)
        again["metadata"]["uid"] = f"other-{rank}"
        driver.put(again, MODIFIED)
    before = driver.decisions
    driver.restart()
    assert driver.decisions == before + 1
    assert len(driver.bound()) == 4


@pytest.mark.parametrize(
    "text", ["", "nonsense", "z:nonsense", "[1]", '{"n1": 3}', '{"n1": [["m-0"]]}', "z:", "[" * 5000]
)
def test_nonsense_on_a_group_is_no_plan_and_goes(text):
    driver = Driver()
    group = gang_manifest("m", 2)
    group["metadata"]["annotations"] = {PLAN: text}
    driver.create(node_manifest("n1", gpus=2), group, *(pod_manifest(f"m-{i}", group="m", gpus=1) for i in range(2)))
    driver.restart()
    assert len(driver.bound()) == 2
    driver.advance(5)
    assert not driver.plan("m")


def test_a_plan_that_somebody_writes_while_this_scheduler_leads_is_removed_and_not_carried_out():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=1), *gang_manifests("m", 2, gpus=1))
    uids = [driver.objects["pods"][("default", f"m-{rank}")]["metadata"]["uid"][:8] for rank in range(2)]
    forged = json.dumps({"n1": ["m-0", uids[0], "m-1", uids[1]]})
    driver.change("PodGroup", "m", lambda raw: raw["metadata"].setdefault("annotations", {}).update({PLAN: forged}))
    driver.advance(5)
    assert driver.plan("m") is None
    assert driver.bound() == set()


def test_a_forged_plan_does_not_fit_more_than_fits():
    driver = Driver()
    group = gang_manifest("m", 2)
    members = [driver.stored(pod_manifest(f"m-{rank}", group="m", gpus=1)) for rank in range(2)]
    slots = [text for raw in members for text in (raw["metadata"]["name"], raw["metadata"]["uid"][:8])]
    group["metadata"]["annotations"] = {PLAN: json.dumps({"n1": slots})}
    driver.stored(node_manifest("n1", gpus=1))
    driver.stored(group)
    driver.restart()
    driver.advance(5)
    assert driver.bound() == set()
    assert driver.plan("m") is None


def test_a_plan_that_the_server_cannot_take_now_is_sent_again_and_nothing_is_bound_before():
    driver = Driver()
    driver.refuse = {"plan:m": 503}
    driver.create(node_manifest("n1", gpus=2), *gang_manifests("m", 2, gpus=1))
    driver.advance(2)
    assert driver.bound() == set()
    assert driver.told("PodGroup", "m") == [("FailedScheduling", "recording the plan was refused: answered 503")]
    assert driver.scheduler.diagnoses[driver.group("m")].rejections[0].detail == "answered 503"
    driver.refuse = {}
    driver.advance(10)
    assert driver.bound() == {"m-0", "m-1"}


def test_slots_of_a_plan_that_cannot_be_recorded_are_given_back_after_a_minute():
    driver = Driver()
    driver.refuse = {"plan:m": 500}
    driver.create(node_manifest("n1", gpus=2), *gang_manifests("m", 2, gpus=1))
    driver.create(pod_manifest("q", gpus=2))
    driver.advance(58)
    assert driver.bound() == set()
    driver.advance(20)
    assert driver.bound() == {"q"}


@pytest.mark.parametrize("status", [400, 403, 413, 422])
def test_where_groups_may_not_be_annotated_the_plan_is_noted_on_the_pods(status):
    driver = Driver()
    driver.refuse = {"plan:m": status}
    driver.create(node_manifest("n1", gpus=2), *gang_manifests("m", 2, gpus=1))
    driver.advance(1)
    assert driver.bound() == {"m-0", "m-1"}
    noted = [driver.objects["pods"][("default", f"m-{rank}")]["status"]["nominatedNodeName"] for rank in range(2)]
    assert noted == driver.nodes_of("m-0", "m-1")


def hold_plans(driver: Driver) -> list[object]:
    """From now on the answers to recorded plans are kept back; returned once they are let go with `tell`."""
    held: list[object] = []
    write = driver._write

    def keep(effect):
        tag = effect.tag
        if type(tag).__name__ != "RecordTag":
            write(effect)
            return
        write(effect._replace(tag=None))
        held.append(Written(tag, Response(200, {})))

    driver._write = keep
    return held


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw["spec"].update(unschedulable=True),
        lambda raw: raw["spec"].update(taints=[{"key": "k", "effect": "NoSchedule"}]),
        lambda raw: raw["status"]["allocatable"].update({"nvidia.com/gpu": "0"}),
        lambda raw: raw["metadata"]["labels"].update(zone="b"),
    ],
    ids=["cordoned", "tainted", "shrunk", "relabelled"],
)
def test_a_node_that_changes_while_the_plan_is_recorded_is_looked_at_again_before_the_first_bind(change):
    driver = Driver()
    members = [pod_manifest(f"m-{rank}", group="m", gpus=1, nodeSelector={"zone": "a"}) for rank in range(2)]
    held = hold_plans(driver)
    driver.create(node_manifest("n1", gpus=2, labels={"zone": "a"}), gang_manifest("m", 2), *members)
    driver.change("Node", "n1", change)
    driver.tell(held.pop(0))
    driver.run()
    assert driver.bound() == set()
    driver.create(node_manifest("n2", gpus=2, labels={"zone": "a"}))
    driver.advance(2)
    driver.tell(held.pop(0))
    driver.run()
    assert driver.nodes_of("m-0", "m-1") == ["n2", "n2"]


def test_a_node_that_goes_or_is_taken_by_others_while_the_plan_is_recorded_is_not_bound_to():
    for disturb in (
        lambda driver: driver.delete("Node", "n1"),
        lambda driver: driver.create(pod_manifest("stranger", gpus=1, nodeName="n1")),
    ):
        driver = Driver()
        held = hold_plans(driver)
        driver.create(node_manifest("n1", gpus=2), *gang_manifests("m", 2, gpus=1))
        disturb(driver)
        driver.tell(held.pop(0))
        driver.run()
        assert driver.bound() - {"stranger"} == set()


def test_a_member_that_goes_while_the_plan_is_recorded_takes_the_whole_plan_along():
    driver = Driver()
    held = hold_plans(driver)
    driver.create(node_manifest("n1", gpus=2), *gang_manifests("m", 2, gpus=1))
    driver.delete("Pod", "m-1")
    driver.tell(held.pop(0))
    driver.run()
    assert driver.bound() == set()
    driver.create(pod_manifest("q", gpus=2))
    assert driver.bound() == {"q"}


def test_a_plan_is_removed_only_if_it_is_the_one_that_was_written():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=2), *gang_manifests("m", 2, gpus=1))
    other = '{"n2":["m-9","abcdefgh"]}'
    raw = driver.objects["podgroups"][("default", "m")]
    raw["metadata"]["annotations"][PLAN] = other
    driver.advance(1)
    assert driver.plan("m") == other
    driver.put(raw, MODIFIED)
    driver.advance(5)
    assert driver.plan("m") is None


def test_what_is_written_is_read_again_whatever_its_size():
    for size in (1, 10, 100, 2_000, 5_000):
        placements = [
            (pod(f"trainer-{i}", uid=f"{i * 2654435761 % 2**32:08x}-0000"), f"n{i % 700}") for i in range(size)
        ]
        text = encode(placements)
        assert decode(text) == {Slot(record.key.name, record.uid[:8]): node for record, node in placements}
        assert len(text) <= (SHORT if size == 1 else LONGEST)


def test_a_plan_of_2000_pods_takes_little_of_what_annotations_may_have():
    placements = [
        (pod(f"trainer-worker-{i}", uid=f"{hash((i, 7)) & 0xFFFFFFFF:08x}"), f"rack-{i // 16}-n{i % 16}")
        for i in range(2_000)
    ]
    assert len(encode(placements)) < 32 * 1024


def test_a_bomb_is_no_plan():
    assert decode("z:" + b85encode(zlib.compress(b" " * (64 << 20))).decode()) == {}


@pytest.mark.parametrize("more", [0, 1])
def test_a_pod_whose_plan_is_being_recorded_is_taken_back_and_not_deleted_if_somebody_needs_its_room(more):
    """P26: nobody was told of it yet. `more`: so many members beyond the minimum, which then go on without it."""
    driver = Driver(preemption=True)
    driver.refuse = {"plan:m": 503}
    driver.create(node_manifest("n1", gpus=2 + more))
    group, *members = gang_manifests("m", 2 + more, min_count=2, gpus=1, priority=0)
    driver.create(group, *members)
    assert driver.bound() == set()
    driver.create(pod_manifest("urgent", gpus=1, priority=10))
    assert driver.bound() == {"urgent"}
    assert not [request for request in driver.requests if request.method == "DELETE"]
    kept = set(driver.scheduler.commit.bindings)
    assert len(kept) == (2 if more else 0)
    driver.refuse = {}
    driver.advance(60)
    assert len(driver.bound()) == 1 + (2 if more else 0)
    driver.create(node_manifest("n2", gpus=2))
    driver.advance(60)
    assert driver.bound() == {"urgent", *(f"m-{rank}" for rank in range(2 + more))}
    driver.advance(5)
    assert driver.plan("m") is None
