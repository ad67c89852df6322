"""When to tell users about entries that are kept aside: not at once, since members usually arrive together (M6)."""

from __future__ import annotations

from collections.abc import Iterator

from muster.api.instant import SECOND, Instant
from muster.model.records import EntryKey
from muster.scheduler.entries import Entry, State
from muster.scheduler.holds import Hold
from muster.scheduler.queue import Queue

SETTLING: Instant = 2 * SECOND
"""How long a hold must last before it is told."""
SPACING: Instant = 10 * SECOND
"""How far apart two reports on one entry are at least."""


class HeldBack:
    """Which held entries have something to be told, and when."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._due: dict[EntryKey, Instant] = {}
        self._told: dict[EntryKey, tuple[str, Hold, Instant]] = {}
        self._earliest: Instant | None = None

    def note(self, key: EntryKey, now: Instant) -> None:
        """The entry may have changed, or gone."""
        entry = self._queue.entries.get(key)
        if entry is None or entry.state is not State.HELD:
            self._due.pop(key, None)
            self._told.pop(key, None)
            return
        told = self._told.get(key)
        if told is not None and told[:2] == (entry.uid, entry.hold):
            self._due.pop(key, None)
        elif key not in self._due:
            at = now + SETTLING if told is None else max(now + SETTLING, told[2] + SPACING)
            self._due[key] = at
            if self._earliest is None or at < self._earliest:
                self._earliest = at

    def due(self) -> Instant | None:
        """When something is to be told next; may be early, never late."""
        if not self._due:
            self._earliest = None
        return self._earliest

    def take(self, now: Instant) -> Iterator[tuple[Entry, Hold]]:
        """What is to be told now, in order of names."""
        ready = sorted((key for key, at in self._due.items() if at <= now), key=lambda key: (key.key, key.kind.value))
        for key in ready:
            del self._due[key]
            entry = self._queue.entries.get(key)
            if entry is not None and entry.state is State.HELD and entry.hold is not None:
                self._told[key] = (entry.uid, entry.hold, now)
                yield entry, entry.hold
        self._earliest = min(self._due.values(), default=None)
