"""The two clocks: the machine's own, and one that stands still until it is moved."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from muster.api.instant import SECOND, Instant


class Clock(Protocol):
    def now(self) -> Instant: ...

    def seconds_until(self, at: Instant) -> float | None:
        """How long to sleep until `at` (0.0 if it has passed); None: no sleep brings it nearer."""


class SystemClock:
    """Wall time that never runs backwards: read once, then carried on by the monotonic clock."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()

    def now(self) -> Instant:
        return (time.monotonic_ns() + self._offset) // 1_000

    def seconds_until(self, at: Instant) -> float | None:
        return max(0, at - self.now()) / SECOND


class HeldClock:
    """A clock that a test moves by hand; `moved` is called after each move."""

    def __init__(self, start: Instant) -> None:
        self._now = start
        self.moved: Callable[[], None] = lambda: None

    def now(self) -> Instant:
        return self._now

    def seconds_until(self, at: Instant) -> float | None:
        return 0.0 if at <= self._now else None

    def move_to(self, at: Instant) -> None:
        """Moves on to `at`; a time that has passed leaves the clock where it is."""
        if at > self._now:
            self._now = at
            self.moved()
