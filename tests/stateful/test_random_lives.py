"""Random events in random order with faults, then the invariants. `pytest tests/stateful --seed N` replays one."""

from __future__ import annotations

from muster.sim.life import Life


def test_invariants_hold_in_a_random_life(seed: int) -> None:
    Life(seed).live()


def test_a_seed_replays() -> None:
    one, two = Life(7), Life(7)
    one.live()
    two.live()
    assert one.history == two.history
    assert [d.at for d in one.world.decisions] == [d.at for d in two.world.decisions]
