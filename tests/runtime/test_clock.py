from __future__ import annotations

import time

from muster.api.instant import SECOND
from muster.runtime.clock import HeldClock, SystemClock


def test_the_system_clock_tells_wall_time() -> None:
    assert abs(SystemClock().now() - time.time_ns() // 1_000) < SECOND


def test_a_fast_clock_sleeps_a_share_of_the_time() -> None:
    clock = SystemClock(speed=20)
    wait = clock.seconds_until(clock.now() + 40 * SECOND)
    assert wait is not None and 1.9 < wait <= 2.0


def test_what_has_passed_needs_no_sleep() -> None:
    clock = SystemClock()
    assert clock.seconds_until(clock.now() - SECOND) == 0.0


def test_a_held_clock_moves_by_hand_and_never_back() -> None:
    clock = HeldClock(10)
    clock.move_to(20)
    clock.move_to(5)
    assert clock.now() == 20
    assert clock.seconds_until(15) is None
