"""Lives of hierarchies that were once found to break an invariant."""

from __future__ import annotations

from muster.sim.life import Life


def test_freed_room_wakes_a_hierarchy_whose_nearest_domain_was_refused_for_another_reason() -> None:
    Life(7084, trees=True).live()
