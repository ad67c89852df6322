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
    """Wall time that never runs backwards: read once, then carried on by the monotonic clock."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()

    def now(self) -> Instant:
        return (time.monotonic_ns() + self._offset) // 1_000

    def seconds_until(self, at: Instant) -> float | None:
        return max(0, at - self.now()) / SECOND


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
