"""The bounded change log of one resource: what watches read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, NamedTuple

Raw = Mapping[str, Any]
"""A stored object: decoded JSON, shared by all readers, never changed in place."""


class WatchEvent(NamedTuple):
    """One change. `type` is ADDED, MODIFIED, DELETED or BOOKMARK; a deletion carries the last state."""

    type: str
    object: Raw
    revision: int
    previous: Raw | None = None
    """The state before, which says whether the object enters or leaves a watch's selection."""


def _revision(event: WatchEvent) -> int:
    return event.revision


class Log:
    """Changes of one resource in order of revision. Readers hold absolute positions, which never move.

    At least the latest `limit` changes are kept, at most twice as many.
    """

    __slots__ = ("_first", "_limit", "events", "lost")

    def __init__(self, limit: int, lost: int = 0) -> None:
        self.events: list[WatchEvent] = []
        self.lost = lost
        """The highest revision whose change has been forgotten; a reader that has not seen it has to list again."""
        self._first = 0
        self._limit = limit

    @property
    def end(self) -> int:
        """The position after the newest change."""
        return self._first + len(self.events)

    def append(self, event: WatchEvent) -> None:
        self.events.append(event)
        if len(self.events) > 2 * self._limit:
            self._forget(len(self.events) - self._limit)

    def position(self, revision: int) -> int | None:
        """Where a reader that has seen everything up to `revision` goes on; None if that has been forgotten."""
        if revision < self.lost:
            return None
        return self._first + bisect_right(self.events, revision, key=_revision)

    def since(self, position: int, until: int | None = None, most: int | None = None) -> list[WatchEvent] | None:
        """The changes from `position` on (up to revision `until`, at most so many); None: some have been forgotten."""
        start = position - self._first
        if start < 0:
            return None
        end = len(self.events)
        if until is not None and self.events and self.events[-1].revision > until:
            end = bisect_right(self.events, until, key=_revision)
        return self.events[start : end if most is None else min(end, start + most)]

    def retract(self, revision: int) -> None:
        """Takes back every change after `revision`: they never were."""
        del self.events[bisect_right(self.events, revision, key=_revision) :]

    def compact(self, revision: int) -> None:
        """Forgets every change up to `revision`."""
        self._forget(bisect_right(self.events, revision, key=_revision))
        self.lost = max(self.lost, revision)

    def _forget(self, count: int) -> None:
        if count:
            self.lost = self.events[count - 1].revision
            del self.events[:count]
            self._first += count
