"""Groups are kept together below the level they ask for, and never at the price of a member (M16)."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.engine.compact import levels_below
from muster.engine.decide import decide
from muster.engine.work import Work
from muster.model.records import Preference
from muster.plugins import default_profile
from muster.testing import builders

PROFILE = default_profile()
BLOCK, RACK = "block", "rack"
LEVELS = (BLOCK, RACK)


def racks(sizes, gpus=4, blocks=1):
    """`sizes[i]` nodes in rack i; racks take turns in the blocks."""
    return [
        builders.node(f"r{rack}-{n}", gpus=gpus, labels={BLOCK: f"b{rack % blocks}", RACK: f"r{rack}"})
        for rack, size in enumerate(sizes)
        for n in range(size)
    ]


def taken(node, gpus):
    return builders.pod(f"x-{node}", gpus=gpus, node=node)


def spots(nodes, size, bound=(), levels=LEVELS, head=None, **fields):
    """The node of every bound pod, by its rank."""
    if head is None:
        members = builders.pods("p", size, group="g", start=0, **{"gpus": 1, **fields})
        head = builders.entry(*members, group=builders.group("g", size))
    decision = decide(builders.snapshot(nodes, bound, levels=levels), (head,), PROFILE, now=0, budget=Work())
    return [bind.node for bind in decision.plans[0].binds]


def used_racks(names):
    return {name.split("-")[0] for name in names}


def test_levels_below_a_required_key_are_the_narrower_ones():
    assert levels_below(("zone", "block", "rack"), "block") == ("rack",)
    assert levels_below(("zone", "block", "rack"), "rack") == ()
    assert levels_below(("zone", "rack"), "elsewhere") == ("zone", "rack")


def test_a_group_that_fits_into_one_rack_goes_into_one():
    assert len(used_racks(spots(racks([2, 2, 2]), 6))) == 1


def test_of_racks_that_hold_the_group_the_tightest_is_taken():
    assert used_racks(spots(racks([3, 1, 2]), 4)) == {"r1"}


def test_a_group_too_large_for_a_rack_takes_as_few_as_can_be():
    assert used_racks(spots(racks([1, 2, 1, 3]), 18)) == {"r1", "r3"}
    assert len(used_racks(spots(racks([1, 2, 1, 3]), 12))) == 1


def test_the_rest_goes_where_it_fits_most_tightly():
    assert used_racks(spots(racks([3, 2, 1]), 15)) == {"r0", "r2"}


def test_the_widest_level_counts_first():
    """Two racks of one block rather than the largest of each of two blocks."""
    nodes = [
        *(builders.node(f"r0-{n}", gpus=4, labels={BLOCK: "a", RACK: "r0"}) for n in range(3)),
        *(builders.node(f"r1-{n}", gpus=4, labels={BLOCK: "b", RACK: "r1"}) for n in range(2)),
        *(builders.node(f"r2-{n}", gpus=4, labels={BLOCK: "b", RACK: "r2"}) for n in range(2)),
    ]
    assert used_racks(spots(nodes, 16)) == {"r1", "r2"}


def test_of_equally_tight_racks_the_one_with_fewer_whole_nodes_is_taken():
    nodes = racks([2, 2])
    bound = [taken("r0-0", 4), taken("r1-0", 2), taken("r1-1", 2)]
    assert used_racks(spots(nodes, 2, bound)) == {"r1"}


def test_consecutive_ranks_stand_together():
    nodes = racks([2, 2, 2])
    some = (builders.pod(f"p{rank}", gpus=2, group="g") for rank in (5, 2, 7, 0, 3, 6, 1, 4))
    members = [replace(pod, rank=int(pod.key.name[1:])) for pod in some]
    head = builders.entry(*members, group=builders.group("g", 8))
    decision = decide(builders.snapshot(nodes, levels=LEVELS), (head,), PROFILE, now=0, budget=Work())
    rank = {pod.key: pod.rank for pod in members}
    by_rank = [bind.node.split("-")[0] for bind in sorted(decision.plans[0].binds, key=lambda bind: rank[bind.pod])]
    assert len(by_rank) == 8
    assert sum(a != b for a, b in pairwise(by_rank)) == len(set(by_rank)) - 1 == 1


def test_unlike_members_share_a_rack_where_one_holds_them_all():
    nodes = racks([1, 2, 3], gpus=4)
    members = [builders.pod(f"p{n}", gpus=gpus, group="g") for n, gpus in enumerate((3, 3, 1, 1))]
    head = builders.entry(*members, group=builders.group("g", 4))
    assert used_racks(spots(nodes, 4, head=head)) == {"r1"}


def test_nodes_without_the_labels_are_used_where_the_others_do_not_suffice():
    nodes = [*racks([1]), builders.node("bare-0", gpus=4)]
    assert len(spots(nodes, 8)) == 8


def test_a_wish_for_certain_nodes_is_worth_more_than_closeness():
    nodes = [
        *racks([2]),
        builders.node("r1-0", gpus=4, labels={BLOCK: "b0", RACK: "r1", "fast": "yes"}),
        builders.node("r2-0", gpus=4, labels={BLOCK: "b0", RACK: "r2", "fast": "yes"}),
    ]
    preferred = (Preference(100, builders.term(("fast", "Exists", ()))),)
    assert used_racks(spots(nodes, 8, preferred=preferred)) == {"r1", "r2"}


def test_tainted_racks_that_are_only_to_be_avoided_are_not_the_tightest():
    soft = (builders.taint("old", "", "PreferNoSchedule"),)
    nodes = [*racks([2]), builders.node("r1-0", gpus=4, labels={BLOCK: "b0", RACK: "r1"}, taints=soft)]
    assert used_racks(spots(nodes, 4)) == {"r0"}


def test_inside_the_required_domain_the_narrower_level_counts():
    nodes = racks([1, 2, 1, 2], blocks=2)
    members = builders.pods("p", 4, group="g", gpus=1)
    head = builders.entry(*members, group=builders.group("g", 4, topology_key=BLOCK))
    assert len(used_racks(spots(nodes, 4, head=head))) == 1


@pytest.mark.parametrize("levels", [(), (RACK,), LEVELS])
def test_single_pods_go_where_they_went(levels):
    nodes = racks([2, 2])
    lone = builders.entry(builders.pod("p", gpus=1))
    assert spots(nodes, 1, [taken("r1-1", 3)], levels=levels, head=lone) == ["r1-1"]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.integers(2, 20))
def test_no_fewer_racks_would_have_done(free, size):
    """Against counting: with one node a rack, the fewest racks are the largest ones first."""
    nodes = racks([1] * len(free))
    bound = [taken(f"r{rack}-0", 4 - left) for rack, left in enumerate(free) if left < 4]
    found = spots(nodes, size, bound)
    if size > sum(free):
        assert found == []
        return
    fewest, held = 0, 0
    for left in sorted(free, reverse=True):
        if held < size:
            fewest, held = fewest + 1, held + left
    assert len(found) == size
    assert len(used_racks(found)) == fewest
