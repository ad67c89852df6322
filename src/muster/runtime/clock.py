"""The two clocks: the machine's own, and one that stands still until it is moved."""

from __future__ import annotations

import time
from typing import Protocol

from muster.api.instant import SECOND, Instant


class Clock(Protocol):
    def now(self) -> Instant: ...

    def seconds_until(self, at: Instant) -> float | None:
        """How long to sleep until `at` (0.0 if it has passed); None: timers go off only by hand."""


class SystemClock:
    """Wall time that never runs backwards: read once, then carried on by the monotonic clock.

    `speed` lets the cluster's time run faster from the start on: at 20, a time-out of 40 s takes 2 s.
    """

    def __init__(self, speed: int = 1) -> None:
        self._began = time.time_ns() // 1_000
        self._zero = time.monotonic_ns() // 1_000
        self._speed = speed

    def now(self) -> Instant:
        return self._began + (time.monotonic_ns() // 1_000 - self._zero) * self._speed

    def seconds_until(self, at: Instant) -> float | None:
        return max(0, at - self.now()) / SECOND / self._speed


class HeldClock:
    """A clock that a test moves by hand."""

    def __init__(self, start: Instant) -> None:
        self._now = start

    def now(self) -> Instant:
        return self._now

    def seconds_until(self, at: Instant) -> float | None:
        return None

    def move_to(self, at: Instant) -> None:
        """Moves on to `at`; a time that has passed leaves the clock where it is."""
        self._now = max(self._now, at)
