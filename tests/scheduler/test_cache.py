from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.keys import Key
from muster.model.records import Phase
from muster.scheduler.cache import Cache
from muster.testing import builders


def used(cache: Cache, node: str, resource: str) -> int:
    snapshot = cache.snapshot()
    return int(snapshot.used[snapshot.axis.row[resource], snapshot.nodes.index[node]])


def filled(*pods, nodes=2):
    cache = Cache()
    for node in builders.nodes("n", nodes, gpus=8):
        cache.put_node(node)
    for pod in pods:
        cache.put_pod(pod)
    return cache


def test_running_and_terminating_pods_hold_room_and_ended_ones_do_not():
    running = builders.pod("a", cpu=1000, node="n1")
    cache = filled(running, replace(builders.pod("b", cpu=2000, node="n1"), terminating=True))
    assert used(cache, "n1", "cpu") == 3000
    cache.put_pod(replace(running, phase=Phase.SUCCEEDED, usage=()))
    assert used(cache, "n1", "cpu") == 2000


def test_pods_on_an_unknown_node_count_when_the_node_appears_and_when_it_comes_back():
    cache = filled(builders.pod("a", cpu=1000, node="late"))
    late = builders.node("late")
    cache.put_node(late)
    assert used(cache, "late", "cpu") == 1000
    cache.drop_node("late")
    assert "late" not in cache.snapshot().nodes.index
    cache.put_pod(builders.pod("b", cpu=500, node="late"))
    cache.put_node(late)
    assert used(cache, "late", "cpu") == 1500


def test_a_resource_first_seen_on_a_pod_gets_a_row():
    cache = filled(builders.pod("a", more={"example.com/fpga": 2}))
    snapshot = cache.snapshot()
    assert snapshot.nodes.alloc[snapshot.axis.row["example.com/fpga"]].sum() == 0


def test_an_assumed_pod_takes_its_room_once_and_gives_it_back():
    pod = builders.pod("a", cpu=1000, ports=[80])
    cache = filled(pod)
    cache.assume(pod, "n1")
    assert used(cache, "n1", "cpu") == 1000
    assert list(cache.snapshot().ports.values()) == [{"n1": 1}]
    cache.forget(pod)
    cache.forget(pod)
    assert used(cache, "n1", "cpu") == 0
    assert cache.snapshot().ports == {}


def test_seeing_an_assumed_pod_bound_changes_nothing_that_a_plan_relies_on():
    pod = builders.pod("a", cpu=1000)
    cache = filled(pod)
    cache.assume(pod, "n1")
    before = cache.rooms.generation("n1")
    cache.put_pod(replace(pod, phase=Phase.BOUND, node="n1", usage=pod.cls.requests))
    assert cache.rooms.generation("n1") == before
    assert cache.assumed == {}
    assert used(cache, "n1", "cpu") == 1000


def test_an_assumed_pod_that_another_scheduler_bound_elsewhere_counts_there():
    pod = builders.pod("a", cpu=1000)
    cache = filled(pod)
    cache.assume(pod, "n1")
    cache.put_pod(replace(pod, phase=Phase.BOUND, node="n2", usage=pod.cls.requests))
    assert (used(cache, "n1", "cpu"), used(cache, "n2", "cpu")) == (0, 1000)


def test_generations_grow_with_every_change_of_the_node_or_its_pods():
    cache = filled()
    cache.snapshot()
    first = cache.rooms.generation("n1")
    cache.put_pod(builders.pod("a", cpu=1, node="n1"))
    second = cache.rooms.generation("n1")
    cache.put_node(builders.node("n1", gpus=8, unschedulable=True))
    third = cache.rooms.generation("n1")
    assert 0 < first < second < third
    cache.drop_node("n1")
    assert cache.rooms.generation("n1") == -1


def test_a_snapshot_is_read_only_shared_while_nothing_changes_and_untouched_by_later_changes():
    cache = filled(builders.pod("a", cpu=1000, ports=[80], node="n1"))
    snapshot = cache.snapshot()
    assert cache.snapshot() is snapshot
    with pytest.raises(ValueError, match="read-only"):
        snapshot.used[0, 0] = 5
    cache.drop_pod(Key("default", "a"))
    assert snapshot.used.sum() > 0
    assert len(snapshot.ports) == 1
    assert cache.snapshot().used.sum() == 0


def test_members_are_sorted_by_where_they_are():
    members = [
        builders.pod("pending", group="g"),
        builders.pod("gated", group="g", gates=["hold"]),
        builders.pod("running", group="g", node="n1"),
        replace(builders.pod("done", group="g", node="n1"), phase=Phase.SUCCEEDED),
        replace(builders.pod("crashed", group="g", node="n1"), phase=Phase.FAILED),
        replace(builders.pod("leaving", group="g", node="n1"), terminating=True),
        builders.pod("foreign", group="g", scheduler_name="other"),
    ]
    found = filled(*members).members[Key("default", "g")]
    assert {key.name for key in found.pending} == {"pending", "gated", "foreign"}
    assert ({key.name for key in found.running}, {key.name for key in found.succeeded}) == ({"running"}, {"done"})
    assert (found.foreign, list(found.gated), found.present) == (1, [Key("default", "gated")], 5)


def test_a_nomination_is_held_until_the_pod_is_assumed_or_gone():
    pod = builders.pod("a", nominated="n1", priority=5)
    cache = filled(pod, builders.pod("b", nominated="n1", scheduler_name="other"))
    assert [held.pod.name for held in cache.snapshot().nominations] == ["a"]
    cache.assume(pod, "n2")
    assert cache.snapshot().nominations == ()
    cache.forget(pod)
    assert len(cache.snapshot().nominations) == 1
    cache.drop_pod(pod.key)
    assert cache.snapshot().nominations == ()


NAMES = ("a", "b", "c", "d")
NODES = ("n1", "n2", "n3")


@st.composite
def changes(draw: st.DrawFn):
    """One thing that can happen to a cache."""
    kind = draw(st.sampled_from(("pod", "pod", "pod", "gone", "node", "node gone", "group", "assume", "forget")))
    name = draw(st.sampled_from(NAMES))
    if kind in ("node", "node gone"):
        name = draw(st.sampled_from(NODES))
        return kind, builders.node(name, cpu=draw(st.integers(1, 4)), more={"x": draw(st.integers(0, 2))})
    if kind == "group":
        return kind, draw(st.none() | st.integers(1, 3).map(lambda count: builders.group("g", count)))
    node = draw(st.sampled_from((None, *NODES)))
    pod = builders.pod(
        name,
        cpu=draw(st.integers(0, 3)),
        more={"y": draw(st.integers(0, 1))},
        ports=draw(st.sampled_from(((), (80,)))),
        node=node,
        group=draw(st.sampled_from((None, "g"))),
        gates=draw(st.sampled_from(((), ("hold",)))),
        nominated=draw(st.sampled_from((None, "n1"))),
        uid=draw(st.sampled_from(("u1", "u2"))) + name,
    )
    ended = draw(st.sampled_from((None, None, None, Phase.SUCCEEDED, Phase.FAILED)))
    pod = replace(pod, phase=ended or pod.phase, terminating=draw(st.booleans()) and draw(st.booleans()))
    return kind, pod if kind == "pod" else (name, draw(st.sampled_from(NODES)))


def apply(cache: Cache, kind: str, what) -> None:
    if kind == "pod":
        cache.put_pod(what)
    elif kind == "node":
        cache.put_node(what)
    elif kind == "node gone":
        cache.drop_node(what.name)
    elif kind == "group":
        cache.drop_group(Key("default", "g")) if what is None else cache.put_group(what)
    elif kind == "gone":
        cache.drop_pod(Key("default", what[0]))
    else:
        pod = cache.pods.get(Key("default", what[0]))
        if pod is not None and kind == "forget":
            cache.forget(pod)
        elif pod is not None and pod.phase is Phase.PENDING and not pod.terminating and pod.uid not in cache.assumed:
            cache.assume(pod, what[1])


def rebuilt(cache: Cache) -> Cache:
    fresh = Cache()
    for pod in cache.pods.values():
        fresh.put_pod(pod)
    for node in reversed(list(cache.nodes.values())):
        fresh.put_node(node)
    for group in cache.groups.values():
        fresh.put_group(group)
    return fresh


@settings(max_examples=150, deadline=None)
@given(st.lists(changes(), max_size=25), st.booleans())
def test_whatever_happened_the_cache_equals_one_rebuilt_from_what_is_there(history, looks):
    cache = Cache()
    for kind, what in history:
        apply(cache, kind, what)
        if looks:
            cache.snapshot()
    assert cache == rebuilt(cache)


@settings(max_examples=100, deadline=None)
@given(st.lists(changes(), max_size=25))
def test_what_is_used_is_always_the_sum_over_pods_and_never_negative(history):
    cache = Cache()
    for kind, what in history:
        apply(cache, kind, what)
        snapshot = cache.snapshot()
        want = np.zeros_like(snapshot.used)
        for pod in cache.pods.values():
            node = pod.node if pod.holds_room else cache.assumed.get(pod.uid)
            if node in snapshot.nodes.index:
                want[:, snapshot.nodes.index[node]] += snapshot.axis.vector(pod.usage or pod.cls.requests)
        assert (snapshot.used == want).all()
        free = {name: cache.rooms.free(name) for name in cache.nodes}
        for name, at in snapshot.nodes.index.items():
            assert free[name] == (snapshot.nodes.alloc[:, at] - snapshot.used[:, at]).tolist()
