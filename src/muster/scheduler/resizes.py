"""Bound pods whose resize their kubelet has deferred: each is an entry of its own, whatever its group (R1, R2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from muster.api.instant import Instant
from muster.model.diagnosis import Diagnosis
from muster.model.records import EntryKey, EntryKind, PodRecord, QueueEntry
from muster.scheduler.cache import Cache
from muster.scheduler.entries import Entry, Order, Seen, State, backoff

SAFETY_RETRY: Instant = 5 * 60 * 1_000_000
POD = 0
"""Where single pods stand among entries that are otherwise alike."""


class Resizes:
    """A fold over pods and nodes. An entry waits until something happens on its own node (R9).

    Args:
        on: whether anybody may be evicted for a resize (R13); off, there is never an entry.
    """

    def __init__(self, cache: Cache, scheduler_name: str, *, on: bool) -> None:
        self.entries: dict[EntryKey, Entry] = {}
        self._cache, self._name, self._on = cache, scheduler_name, on
        self._here: dict[str, dict[EntryKey, None]] = {}
        """Node -> entries of pods on it."""
        self._due: Instant | None = None

    # -- as things change

    def pod_changed(self, old: PodRecord | None, new: PodRecord | None, now: Instant) -> None:
        """A pod comes, goes, or is another by now: perhaps a resize is wanted, or no longer, or has room."""
        if not self._on or (not self._here and not self._wants(new)):
            return
        if old is not None and old.node is not None:
            if not self._wants(new) or new is None or new.node != old.node:
                self._drop(old)
            self.node_changed(old.node)
        if new is not None and new.node is not None and self._wants(new):
            self._put(new, now)

    def node_changed(self, node: str) -> None:
        """Something on this node is not as it was."""
        for key in self._here.get(node, ()):
            self._wake(self.entries[key])

    def rest(self, key: EntryKey, now: Instant) -> None:
        """Whoever was to be evicted for it was not: it is tried again after a while."""
        entry = self.entries.get(key)
        if entry is not None:
            entry.attempts += 1
            entry.state, entry.ready_at = State.BACKOFF, now + backoff(entry.attempts)

    def _wants(self, record: PodRecord | None) -> bool:
        if record is None or record.growth is None or record.terminating:
            return False
        return record.holds_room and record.scheduler_name == self._name

    def _put(self, record: PodRecord, now: Instant) -> None:
        key = EntryKey(EntryKind.POD, record.key)
        entry = self.entries.get(key)
        if entry is None or entry.uid != record.uid:
            assert record.growth is not None and record.node is not None
            entry = self.entries[key] = Entry(key, record.uid, Seen(now, record.growth.since))
            self._here.setdefault(record.node, {})[key] = None
        entry.order = (-record.priority, True, *entry.seen, record.key, POD)
        self._wake(entry)

    def _drop(self, record: PodRecord) -> None:
        key = EntryKey(EntryKind.POD, record.key)
        if self.entries.pop(key, None) is not None and record.node is not None:
            self._here[record.node].pop(key, None)
            if not self._here[record.node]:
                del self._here[record.node]

    def _wake(self, entry: Entry) -> None:
        if entry.state is State.DECIDING:
            entry.rejected = 1
        elif entry.state is not State.BACKOFF:
            entry.state = State.ACTIVE

    # -- decisions

    @property
    def has_active(self) -> bool:
        return any(entry.state is State.ACTIVE for entry in self.entries.values())

    def comes_before(self, other: Order | None) -> bool:
        """Whether a resize is to be decided before the entry of the queue that stands there."""
        first = min((entry.order for entry in self._active() if entry.order is not None), default=None)
        return first is not None and (other is None or first[0] <= other[0])

    def take(self) -> tuple[Entry, QueueEntry]:
        """The first one that is to be decided; DECIDING until `decided` or `again`."""
        entry = min(self._active(), key=lambda entry: entry.order or ())
        entry.state, entry.rejected = State.DECIDING, 0
        record = self._cache.pods[entry.key.key]
        head = QueueEntry(entry.key, entry.uid, record.priority, entry.seen.since, entry.attempts, (record,))
        return entry, replace(head, may_preempt=True, resize=True)

    def _active(self) -> Iterable[Entry]:
        return (entry for entry in self.entries.values() if entry.state is State.ACTIVE)

    def is_current(self, entry: Entry) -> bool:
        """Whether it is still wanted."""
        return self.entries.get(entry.key) is entry

    def again(self, entry: Entry) -> None:
        """What was decided does not hold any more."""
        entry.state = State.ACTIVE

    def decided(self, entry: Entry, diagnosis: Diagnosis, now: Instant, *, failed: bool = False) -> None:
        """It waits; what happened on its node meanwhile has it decided once more."""
        entry.diagnosis, entry.safety_at = diagnosis, now + SAFETY_RETRY
        if failed:
            self.rest(entry.key, now)
        else:
            entry.state = State.ACTIVE if entry.rejected else State.WAITING
            entry.attempts = 0

    # -- timers

    def due(self) -> Instant | None:
        """When the next backoff ends, or one that has waited for very long is tried though nothing happened."""
        times = (
            entry.ready_at if entry.state is State.BACKOFF else entry.safety_at
            for entry in self.entries.values()
            if entry.state in (State.BACKOFF, State.WAITING)
        )
        return min(times, default=None)

    def woken(self, now: Instant) -> None:
        for entry in self.entries.values():
            backing_off = entry.state is State.BACKOFF and entry.ready_at <= now
            if backing_off or (entry.state is State.WAITING and entry.safety_at <= now):
                entry.state = State.ACTIVE
