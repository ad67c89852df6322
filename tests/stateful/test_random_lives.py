"""Random events in random order with faults, then the invariants. `pytest tests/stateful --seed N` replays one."""

from __future__ import annotations

import pytest

from muster.sim.life import Life


def test_invariants_hold_in_a_random_life(seed: int) -> None:
    Life(seed).live()


def test_invariants_hold_in_a_random_life_among_racks(seed: int) -> None:
    """With groups that have to stay in one rack, and nodes that are moved."""
    Life(seed, racks=True).live()


def test_invariants_hold_in_a_random_life_with_hierarchies(seed: int) -> None:
    """With composite groups that come, go and are made anew, some in racks."""
    Life(seed, trees=True).live()


def test_invariants_hold_in_a_random_life_with_resizes(seed: int) -> None:
    """Pods run and are resized: what is given to them is there, and nobody waits to grow where there is room."""
    Life(seed, events=40, resizes=True).live()


def test_a_seed_replays() -> None:
    one, two = Life(7), Life(7)
    one.live()
    two.live()
    assert one.history == two.history
    assert [d.at for d in one.world.decisions] == [d.at for d in two.world.decisions]


@pytest.mark.parametrize("once_broken", [287, 1136, 2001, 2152])
def test_lives_that_once_lost_a_wake_up_go_on(once_broken: int) -> None:
    """Room freed during a decision, or held by a plan that was not taken, was overlooked until the safety retry."""
    Life(once_broken).live()


def test_a_life_in_which_jobs_and_collector_once_drove_each_other_round_goes_on() -> None:
    """The Job controller, late to hear of a deletion, made anew what the collector deleted, at one instant for ever."""
    Life(566).live()
