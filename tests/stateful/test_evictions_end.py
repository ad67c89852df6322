"""No eviction without a placement: each is followed by the binding of its preemptor, or by a recorded reason."""

from __future__ import annotations

from collections import Counter

from muster.sim.evictions import Evictions


def test_each_eviction_ends_in_a_binding_or_in_a_reason(order: int) -> None:
    assert Evictions(order).live() == []


def test_a_member_that_leaves_while_the_eviction_is_decided_is_the_reason() -> None:
    """The account stayed open: the group was held aside right after the eviction, and nobody looked again."""
    assert Evictions(601).live() == []


def test_a_plan_that_waits_for_the_evicted_to_go_does_not_end_their_account() -> None:
    for seed in (961, 1257, 1574):
        assert Evictions(seed).live() == []


def test_such_lives_reach_every_ending() -> None:
    endings: Counter[str] = Counter()
    for seed in range(80):
        life = Evictions(seed)
        assert life.live() == []
        endings += life.endings
    assert {"BOUND", "GONE", "CHANGED", "NODE_LOST", "ROOM_TAKEN"} <= endings.keys()
    assert endings["lost"] * 50 <= endings.total(), "hardly any account may die with its scheduler"
