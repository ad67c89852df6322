"""Every invariant notices what it is there for: a sound world with one thing broken in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND
from muster.api.machine import Write
from muster.model.decision import Decision
from muster.model.diagnosis import Diagnosis, Verdict
from muster.model.plan import Bind, Plan
from muster.model.records import QueueEntry
from muster.scheduler.effects import Decide
from muster.sim.cluster import cluster
from muster.sim.world import SCHEDULER, World
from muster.testing import builders, invariants
from muster.testing.builders import gang_manifests, node_manifest, pod_manifest


def world_with(*manifests: dict[str, Any], paused: bool = False) -> World:
    world = cluster(FeatureGates.of("GenericWorkload"), priority_admission=False)
    if paused:
        world.pause()
    for manifest in manifests:
        world.tick(SECOND)
        assert world.call(writes.create(manifest)).ok
    world.quiesce()
    return world


def state_of(world: World) -> invariants.State:
    return invariants.read(world.server, world.now)


def decision_of(asked: Decide, *plans: list[Bind], verdict: Verdict = Verdict.SCHEDULED) -> Decision:
    diagnoses = tuple(Diagnosis(head.key, head.uid, verdict, 1) for head in asked.heads)
    return Decision(1, tuple(Plan(1, tuple(steps)) for steps in plans), diagnoses)


def asked_for(*heads: QueueEntry, nodes: int = 2, cpu: int = 2000) -> Decide:
    snapshot = builders.snapshot(builders.nodes("n", nodes, cpu=cpu))
    return Decide(1, snapshot, heads, None, None)  # type: ignore[arg-type]


def bind(entry: QueueEntry, rank: int, node: str) -> Bind:
    return Bind(entry.pods[rank].key, entry.pods[rank].uid, node)


GANG = builders.entry(*builders.pods("p", 3, cpu=1000, group="g"), group=builders.group("g", 3))
SINGLE = builders.entry(builders.pod("s", cpu=1000))


def test_a_full_node_is_not_overcommitted_and_one_pod_more_is() -> None:
    world = world_with(node_manifest("n1", cpu="2"), pod_manifest("a"), pod_manifest("b"))
    state = state_of(world)
    assert invariants.overcommitted(state) == []
    late = pod_manifest("late", cpu="500m", nodeName="n1")
    assert invariants.overcommitted(replace(state, pods=(*state.pods, late))) == [
        "n1 has 2.0 cpu and its pods ask for 2.5"
    ]


def grown(name: str, cpu: str, allocated: str, *, reason: str = "Deferred") -> dict[str, Any]:
    """A pod on n1 that wants `cpu` and has something else."""
    told = {"name": "main", "allocatedResources": {"cpu": allocated}}
    condition = {"type": "PodResizePending", "status": "True", "reason": reason}
    status = {"phase": "Running", "containerStatuses": [told], "conditions": [condition]}
    return {**pod_manifest(name, cpu=cpu, nodeName="n1"), "status": status}


def test_what_is_allocated_counts_and_not_what_is_asked_for() -> None:
    state = state_of(world_with(node_manifest("n1", cpu="2"), pod_manifest("a")))
    assert invariants.overcommitted(replace(state, pods=(*state.pods, grown("b", "5", "1")))) == []
    assert invariants.overcommitted(replace(state, pods=(*state.pods, grown("b", "1", "2")))) == [
        "n1 has 2.0 cpu and its pods ask for 3.0"
    ]


def test_a_deferred_resize_waits_in_vain_as_soon_as_there_is_room() -> None:
    state = state_of(world_with(node_manifest("n1", cpu="4"), pod_manifest("a")))

    def waiting(*pods: dict[str, Any]) -> list[str]:
        return invariants.growing_in_vain(replace(state, pods=(*state.pods, *pods)))

    assert waiting(grown("b", "4", "1")) == []
    assert waiting(grown("b", "3", "1")) == ["b waits to grow, and there is room for it"]
    assert waiting(grown("b", "3", "1"), grown("c", "3", "1")) == []
    assert waiting(grown("b", "3", "1", reason="Infeasible")) == []


def test_a_finished_pod_takes_nothing() -> None:
    done = {**pod_manifest("done", cpu="9", nodeName="n1"), "status": {"phase": "Succeeded"}}
    state = state_of(world_with(node_manifest("n1", cpu="2")))
    assert invariants.overcommitted(replace(state, pods=(done,))) == []


def test_a_resource_that_the_node_lacks_is_overcommitted_by_any_amount() -> None:
    state = state_of(world_with(node_manifest("n1")))
    greedy = pod_manifest("greedy", gpus=1, nodeName="n1")
    assert invariants.overcommitted(replace(state, pods=(greedy,))) == [
        "n1 has 0.0 nvidia.com/gpu and its pods ask for 1.0"
    ]


def test_a_whole_gang_is_sound() -> None:
    asked = asked_for(GANG)
    binds = [bind(GANG, 0, "n1"), bind(GANG, 1, "n1"), bind(GANG, 2, "n2")]
    decision = decision_of(asked, binds)
    assert invariants.unsound(asked, decision) == invariants.missed(asked, decision) == []


UNSOUND: dict[str, Callable[[], tuple[Decide, Decision]]] = {
    "needs 3 members at once and gets 1": lambda: (
        asked := asked_for(GANG), decision_of(asked, [bind(GANG, 0, "n1")])
    ),
    "n1 cannot take 3 of them": lambda: (
        asked := asked_for(GANG), decision_of(asked, [bind(GANG, rank, "n1") for rank in range(3)])
    ),
    "n1 cannot take 1 of them": lambda: (
        asked := asked_for(GANG, SINGLE),
        decision_of(
            asked, [bind(GANG, 0, "n1"), bind(GANG, 1, "n1"), bind(GANG, 2, "n2")], [bind(SINGLE, 0, "n1")]
        ),
    ),
    "is bound with the verdict Unschedulable": lambda: (
        asked := asked_for(SINGLE), decision_of(asked, [bind(SINGLE, 0, "n1")], verdict=Verdict.UNSCHEDULABLE)
    ),
    "disagree on priority": lambda: (
        asked := asked_for(replace(GANG, group=builders.group("g", 3, priority=5))),
        decision_of(asked, [bind(GANG, 0, "n1"), bind(GANG, 1, "n1"), bind(GANG, 2, "n2")]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("sentence", UNSOUND)
def test_an_unsound_plan_is_noticed(sentence: str) -> None:
    (found,) = invariants.unsound(*UNSOUND[sentence]())
    assert sentence in found


def test_a_constrained_group_in_two_domains_is_noticed_where_nobody_moved_its_nodes() -> None:
    gang = builders.gang_manifest("g", 2, schedulingConstraints={"topology": [{"key": "rack"}]})
    nodes = tuple(node_manifest(f"n{rack}", labels={"rack": rack}) for rack in "ab")
    pods = tuple(pod_manifest(f"p{rack}", group="g", nodeName=f"n{rack}") for rack in "ab")
    gang["metadata"]["namespace"] = "default"
    assert invariants.scattered(invariants.State(nodes, pods[:1], (gang,))) == []
    state = invariants.State(nodes, pods, (gang,))
    assert invariants.scattered(state) == ["default/g has members in the domains ['a', 'b']"]
    assert invariants.scattered(state, ignored={"na"}) == []


def test_an_entry_that_could_be_placed_and_is_not_is_noticed() -> None:
    asked = asked_for(GANG)
    (found,) = invariants.missed(asked, decision_of(asked, [], verdict=Verdict.UNSCHEDULABLE))
    assert "could be placed" in found


def test_an_entry_that_cannot_be_placed_is_not_missed() -> None:
    asked = asked_for(GANG, nodes=1)
    assert invariants.missed(asked, decision_of(asked, [], verdict=Verdict.UNSCHEDULABLE)) == []


@pytest.mark.parametrize(
    ("head", "sentence"),
    [
        (builders.entry(builders.pod("p", gates=["hold"])), "although a member is gated"),
        (builders.entry(builders.pod("p", group="g")), "alone although it belongs to group g"),
        (builders.entry(builders.pod("p", scheduler_name="other")), "although it belongs to other"),
    ],
)
def test_an_entry_that_must_not_be_decided_is_noticed(head: QueueEntry, sentence: str) -> None:
    (found,) = invariants.premature(asked_for(head))
    assert sentence in found
    assert invariants.premature(asked_for(GANG, SINGLE)) == []


def test_a_pod_or_gang_that_waits_although_it_fits_is_noticed() -> None:
    world = world_with(node_manifest("n1"), pod_manifest("p"), *gang_manifests("g", 2), paused=True)
    found = invariants.waiting_in_vain(state_of(world))
    assert len(found) == 2 and all("waits, and could be placed" in sentence for sentence in found)
    world.resume()
    world.quiesce()
    assert invariants.waiting_in_vain(state_of(world)) == []


@pytest.mark.parametrize(
    "manifests",
    [
        [pod_manifest("p", gates=["hold"])],
        [pod_manifest("p", schedulerName="other")],
        [pod_manifest("p", group="nobody")],
        gang_manifests("g", 2, min_count=3),
        gang_manifests("g", 9),
        [*gang_manifests("g", 2), pod_manifest("g-gated", group="g", gates=["hold"])],
    ],
    ids=["gated", "of another scheduler", "without its group", "incomplete", "too large", "with a gated member"],
)
def test_what_is_held_or_does_not_fit_waits_for_a_reason(manifests: list[dict[str, Any]]) -> None:
    world = world_with(node_manifest("n1", cpu="8"), *manifests, paused=True)
    assert invariants.waiting_in_vain(state_of(world)) == []


def test_a_cache_that_missed_something_is_not_the_rebuilt_one() -> None:
    world = world_with(node_manifest("n1"), pod_manifest("p"))
    scheduler, make = world.machine(), world.makers[SCHEDULER]
    assert invariants.differs_from_rebuilt(scheduler, make, world.server, world.now) == []
    assert world.call(writes.create(node_manifest("n2"))).ok
    (found,) = invariants.differs_from_rebuilt(scheduler, make, world.server, world.now)
    assert "nodes n2" in found


def test_a_binding_to_a_node_that_is_known_to_be_closed_is_rash() -> None:
    world = world_with(node_manifest("n1", unschedulable=True), node_manifest("n2", cpu="1"), pod_manifest("p"))
    scheduler = world.machine()
    waiting = pod_manifest("q")
    assert world.call(writes.create(waiting)).ok
    world.settle()

    def found(node: str) -> list[str]:
        return invariants.rash(scheduler, [Write(writes.bind("default", "q", "", node))])

    assert "known not to admit it" in found("n1")[0]
    assert "known to be gone" in found("n3")[0]
    assert found("n2") == []
    assert world.call(writes.create(pod_manifest("heavy", cpu="2", nodeName="n2"))).ok
    world.settle()
    assert "known to be too full" in found("n2")[0]
