"""The timers of all machines, earliest first, with the difference between a short wait and a long one."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from muster.api.instant import SECOND, Instant

BRIEF = 10 * SECOND
"""A timer set for at most this long is a backoff; a longer one is a safety retry, a grace period or a time-out."""


class Timer(NamedTuple):
    at: Instant
    number: int
    machine: str
    tag: Hashable
    since: Instant
    """When a timer for this machine, tag and time was first set."""
    brief: bool


@dataclass(slots=True)
class Timers:
    """Pending timers. `patient` machines' timers are never brief: run times, grace periods and time-outs of others."""

    patient: frozenset[str] = frozenset()
    _pending: dict[tuple[str, Hashable], Timer] = field(default_factory=dict)
    _brief: list[Timer] = field(default_factory=list)
    _long: list[Timer] = field(default_factory=list)
    _number: int = 0

    def set(self, machine: str, tag: Hashable, at: Instant | None, now: Instant) -> None:
        """Sets the timer `tag` of a machine, replacing an earlier one; None takes it back."""
        old = self._pending.get((machine, tag))
        if at is None:
            self._pending.pop((machine, tag), None)
            return
        if old is not None and old.at == at:
            return
        self._number += 1
        brief = machine not in self.patient and at - now <= BRIEF
        timer = Timer(at, self._number, machine, tag, now, brief)
        self._pending[(machine, tag)] = timer
        heapq.heappush(self._brief if brief else self._long, timer)

    def earliest(self, *, brief_only: bool) -> Timer | None:
        """The next timer to go off: by time, then by when it was set."""
        brief, long = self._head(self._brief), None if brief_only else self._head(self._long)
        if brief is None or long is None:
            return brief or long
        return min(brief, long, key=lambda timer: timer[:2])

    def take(self, timer: Timer) -> None:
        """It goes off now."""
        self._pending.pop((timer.machine, timer.tag))

    def drop(self, machine: str) -> None:
        """Forgets every timer of a machine that is no more."""
        for key in [key for key in self._pending if key[0] == machine]:
            del self._pending[key]

    def _head(self, heap: list[Timer]) -> Timer | None:
        while heap and self._pending.get((heap[0].machine, heap[0].tag)) is not heap[0]:
            heapq.heappop(heap)
        return heap[0] if heap else None
