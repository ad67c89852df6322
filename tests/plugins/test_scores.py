"""Which node each preference leads to, among nodes that differ in one thing."""

import pytest

from muster.engine.decide import decide
from muster.model.records import Preference
from muster.plugins import default_profile
from muster.testing import builders
from muster.testing.builders import node, taint, term, tolerate

PROFILE = default_profile()
GIB = 1 << 30


def where(nodes, bound=(), **fields):
    head = builders.entry(builders.pod("p", **fields))
    return decide(builders.snapshot(nodes, bound), [head], PROFILE, now=0).plans[0].binds[0].node


def test_equal_nodes_are_taken_in_their_order():
    assert where([node("b"), node("c"), node("a")], cpu=100) == "a"


def test_a_pod_without_accelerators_goes_to_the_largest_free_share():
    assert where([node("a", cpu=8000), node("b", cpu=8000)], [builders.pod("x", cpu=4000, node="a")], cpu=1000) == "b"


def test_pods_that_ask_for_nothing_are_spread_too():
    heads = [builders.entry(builders.pod(f"p{i}")) for i in range(4)]
    decision = decide(builders.snapshot(builders.nodes("n", 4, pods=10)), heads, PROFILE, now=0)
    assert len({plan.binds[0].node for plan in decision.plans}) == 4


def test_cpu_and_memory_are_kept_in_balance():
    nodes = [node("cpu-heavy", cpu=8000, memory=8 * GIB), node("memory-heavy", cpu=8000, memory=8 * GIB)]
    bound = [
        builders.pod("x", cpu=4000, memory=GIB, node="cpu-heavy"),
        builders.pod("y", cpu=1000, memory=4 * GIB, node="memory-heavy"),
    ]
    assert where(nodes, bound, cpu=2000, memory=GIB // 4) == "memory-heavy"


@pytest.mark.parametrize(
    ("free", "asked", "chosen"),
    [
        ({"a": (8, 8), "b": (8, 3)}, 2, "b"),
        ({"a": (8, 3), "b": (8, 2)}, 2, "b"),
        ({"a": (8, 8), "b": (4, 4), "c": (8, 3)}, 4, "b"),
        ({"a": (8, 8), "b": (4, 4)}, 1, "b"),
        ({"a": (8, 5), "b": (2, 2)}, 1, "a"),
    ],
)
def test_accelerators_are_taken_from_the_hole_that_loses_least(free, asked, chosen):
    nodes = [node(name, gpus=total) for name, (total, _) in free.items()]
    bound = [builders.pod(f"x{n}", gpus=t - left, node=n) for n, (t, left) in free.items() if t > left]
    assert where(nodes, bound, gpus=asked) == chosen


def test_a_pod_without_accelerators_keeps_off_nodes_where_some_are_free():
    assert where([node("a", gpus=8), node("b")], cpu=1000) == "b"
    full = [builders.pod("x", gpus=8, node="b")]
    assert where([node("a", gpus=8), node("b", gpus=8)], full, cpu=1000) == "b"


def test_preferred_affinity_adds_up_its_weights():
    nodes = [node("a", labels={"disk": "ssd"}), node("b", labels={"disk": "ssd", "net": "fast"}), node("c")]
    wishes = (Preference(60, term(("net", "In", ("fast",)))), Preference(50, term(("disk", "In", ("ssd",)))))
    assert where(nodes, preferred=wishes) == "b"


def test_fewer_soft_taints_are_better_and_tolerated_ones_do_not_count():
    soft = [taint("spot", "", "PreferNoSchedule"), taint("old", "", "PreferNoSchedule")]
    nodes = [node("a", taints=soft), node("b", taints=soft[:1])]
    assert where(nodes) == "b"
    assert where(nodes, tolerations=[tolerate("old")]) == "a"


def test_a_node_that_has_the_image_is_preferred_and_a_small_image_is_not_worth_it():
    def having(size):
        return [node("a"), node("b", images={"img": size}), node("c")]

    assert where(having(4 * GIB), images=("img",)) == "b"
    assert where(having(1 << 20), images=("img",)) == "a"
