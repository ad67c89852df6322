"""Hierarchies of groups from the objects to the queue, the bindings and the conditions."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND
from muster.api.object import Object
from muster.model.diagnosis import Reason
from muster.model.keys import Key
from muster.model.records import EntryKey, EntryKind
from muster.scheduler.cache import Cache
from muster.scheduler.ingest import Ingest
from muster.sim.cluster import cluster
from muster.sim.world import SCHEDULER, World
from muster.testing import invariants
from muster.testing.builders import composite_manifest, gang_manifest, node_manifest, pod_manifest, workload_ref

GATES = FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
ROOT = EntryKey(EntryKind.COMPOSITE, Key("default", "root"))


def below(parent: str) -> dict:
    return {"parentCompositePodGroupName": parent, "workloadRef": workload_ref("w")}


def composite(name: str, minimum: int | None, parent: str | None = None, **spec) -> dict:
    return composite_manifest(
        name, minimum, priority=0, **({"parentCompositePodGroupName": parent} if parent else {}), **spec
    )


def leaf(name: str, minimum: int | None, parent: str) -> dict:
    return gang_manifest(name, minimum, priority=0, **below(parent))


def members(group: str, count: int, cpu: str = "1", **fields) -> list[dict]:
    return [pod_manifest(f"{group}-{n}", group=group, cpu=cpu, priority=0, **fields) for n in range(count)]


def small() -> list[dict]:
    return [
        composite("root", 2),
        composite("sub", 1, "root"),
        leaf("a", 2, "root"),
        leaf("b", 1, "sub"),
        *members("a", 2),
        *members("b", 1),
    ]


def started(*manifests: dict, cpu: str = "8", gates: FeatureGates = GATES) -> World:
    world = cluster(gates, seed=1, priority_admission=False)
    create(world, node_manifest("n1", cpu=cpu), *manifests)
    return world


def create(world: World, *manifests: dict) -> None:
    for manifest in manifests:
        answer = world.request(writes.create(manifest))
        assert answer.ok, answer.body
    world.settle()


def delete(world: World, resource: str, name: str) -> None:
    world.request(writes.patch(resource, "default", name, {"metadata": {"finalizers": None}}))
    assert world.request(writes.delete(resource, "default", name)).ok
    world.settle()


def bound(world: World) -> list[str]:
    state = invariants.read(world.server, world.now)
    return sorted(pod["metadata"]["name"] for pod in state.pods if pod["spec"].get("nodeName"))


def condition(world: World, resource: str, name: str) -> tuple[str, str, str]:
    state = invariants.read(world.server, world.now)
    objects = state.composites if resource == "compositepodgroups" else state.groups
    (found,) = (obj for obj in objects if obj["metadata"]["name"] == name)
    (told,) = (found.get("status") or {}).get("conditions") or ({"status": "", "reason": ""},)
    return told["status"], told["reason"], told.get("message", "")


def test_a_hierarchy_is_bound_in_one_decision_and_every_group_says_so() -> None:
    world = started()
    world.pause()
    create(world, *small())
    world.resume()
    world.quiesce()
    assert bound(world) == ["a-0", "a-1", "b-0"]
    assert len(world.decisions) == 1
    for resource, name in (("compositepodgroups", "root"), ("compositepodgroups", "sub"), ("podgroups", "a")):
        assert condition(world, resource, name) == ("True", "Scheduled", "")


@pytest.mark.parametrize("shuffle", range(12))
def test_the_objects_may_come_in_any_order(shuffle: int) -> None:
    manifests = small()
    Random(shuffle).shuffle(manifests)
    world = started()
    for manifest in manifests:
        create(world, manifest)
    world.quiesce()
    assert bound(world) == ["a-0", "a-1", "b-0"]


def test_a_missing_link_holds_what_is_below_it_and_is_named() -> None:
    world = started(*(m for m in small() if m["metadata"]["name"] != "root"))
    world.advance(5 * SECOND)
    assert bound(world) == []
    hold = world.machine().diagnoses[EntryKey(EntryKind.POD_GROUP, Key("default", "a"))]
    assert [(r.reason, r.detail) for r in hold.rejections] == [(Reason.PARENT_MISSING, "root")]
    assert condition(world, "podgroups", "a")[2] == 'parent composite pod group "root" does not exist'
    create(world, composite("root", 2))
    world.quiesce()
    assert bound(world) == ["a-0", "a-1", "b-0"]


def test_a_cycle_holds_and_is_told() -> None:
    world = started(composite("x", None, "y"), composite("y", None, "x"), leaf("a", 1, "x"), *members("a", 1))
    world.advance(5 * SECOND)
    assert bound(world) == []
    assert "cycle detected in hierarchy" in condition(world, "podgroups", "a")[2]


def test_more_levels_than_four_are_held_and_the_rest_is_not() -> None:
    chain = [composite("c1", None), *(composite(f"c{n}", None, f"c{n - 1}") for n in range(2, 8))]
    world = started(*chain, leaf("deep", 1, "c7"), leaf("high", 1, "c3"), *members("deep", 1), *members("high", 1))
    world.advance(5 * SECOND)
    assert bound(world) == ["high-0"]
    assert condition(world, "podgroups", "deep")[2] == "hierarchy exceeds maximum allowed depth 4"


def test_a_gate_anywhere_holds_the_whole_hierarchy() -> None:
    world = started(*small()[:-1], *members("b", 1, gates=("hold",)))
    world.advance(5 * SECOND)
    assert bound(world) == []
    assert 'scheduling gate "hold" of pod b-0' in condition(world, "compositepodgroups", "root")[2]
    world.request(writes.patch("pods", "default", "b-0", {"spec": {"schedulingGates": None}}))
    world.settle()
    assert bound(world) == ["a-0", "a-1", "b-0"]


def test_too_few_groups_with_their_members_hold_the_root() -> None:
    world = started(*small()[:-1])
    world.advance(5 * SECOND)
    assert bound(world) == []
    assert condition(world, "compositepodgroups", "root")[2] == "1 of 2 groups have their members"


def test_a_group_added_to_a_running_hierarchy_is_placed_with_it() -> None:
    world = started(*small())
    create(world, leaf("c", 2, "sub"), *members("c", 2))
    world.quiesce()
    assert bound(world) == ["a-0", "a-1", "b-0", "c-0", "c-1"]


def test_a_lowered_minimum_in_any_leaf_wakes_the_hierarchy_at_once() -> None:
    world = started(
        composite("root", 2), leaf("a", 1, "root"), leaf("b", 3, "root"), *members("a", 1), *members("b", 3), cpu="3"
    )
    assert bound(world) == []
    world.request(writes.patch("podgroups", "default", "b", {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}))
    world.settle()
    assert len(bound(world)) == 3


def test_pending_members_wait_when_their_root_is_deleted_and_go_on_with_a_new_one() -> None:
    world = started(*small(), cpu="2")
    assert bound(world) == []
    delete(world, "compositepodgroups", "root")
    create(world, node_manifest("n2", cpu="8"))
    world.advance(60 * SECOND)
    assert bound(world) == []
    create(world, composite("root", 2))
    world.quiesce()
    assert bound(world) == ["a-0", "a-1", "b-0"]


def test_an_entry_has_the_priority_and_the_age_of_its_hierarchy() -> None:
    world = started()
    world.pause()
    create(world, *(m for m in small() if m["metadata"]["name"] != "root"))
    world.advance(9 * SECOND)
    create(world, composite("root", 2))
    entry = world.machine().queue.entries[ROOT]
    assert entry.seen.since < world.now - 8 * SECOND


def test_failures_are_told_on_every_group_with_the_parent_that_failed() -> None:
    world = started(*small(), cpu="2")
    world.quiesce()
    assert condition(world, "compositepodgroups", "root")[:2] == ("False", "Unschedulable")
    assert "minGroupCount (2) cannot be satisfied" in condition(world, "compositepodgroups", "root")[2]
    told = condition(world, "podgroups", "b")[2], condition(world, "podgroups", "a")[2]
    assert any('composite pod group "root" is unschedulable' in message for message in told)


def test_without_the_gate_a_group_with_a_parent_is_held() -> None:
    gates = FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling")
    assert "compositepodgroups" not in cluster(gates, seed=1).machine(SCHEDULER).resources


def test_a_cache_that_followed_the_changes_equals_one_made_anew() -> None:
    ingest = Ingest(groups=True, topology=True)
    objects = [composite("root", 2), composite("sub", 1, "root"), leaf("a", 1, "sub"), leaf("b", 1, "root")]
    records = []
    for number, manifest in enumerate(objects):
        raw = {**manifest, "metadata": {**manifest["metadata"], "uid": f"u{number}"}}
        is_leaf = manifest["kind"] == "PodGroup"
        records.append((is_leaf, (ingest.group if is_leaf else ingest.composite)(Object(raw))))
    owners = set()
    for order in permutations(records):
        cache = Cache()
        for is_leaf, record in order:
            (cache.put_group if is_leaf else cache.put_composite)(record)
        cache.drop_composite(Key("default", "sub"))
        assert cache.owner_of_group(Key("default", "a")).kind is EntryKind.POD_GROUP
        cache.put_composite(records[1][1])
        owners.add((cache.owner_of_group(Key("default", "a")), cache.forest.leaves(Key("default", "root"))))
    assert owners == {(ROOT, (Key("default", "b"), Key("default", "a")))}
