"""Bound pods whose resize their kubelet has deferred: each is an entry of its own, whatever its group (R1, R2)."""

from __future__ import annotations

import heapq
from dataclasses import replace

from muster.api.instant import Instant
from muster.model.diagnosis import Diagnosis
from muster.model.records import EntryKey, EntryKind, PodRecord, QueueEntry
from muster.scheduler.cache import Cache
from muster.scheduler.entries import Due, Entry, Order, Seen, State, backoff, due_item

SAFETY_RETRY: Instant = 5 * 60 * 1_000_000
POD = 0
"""Where single pods stand among entries that are otherwise alike."""


class Resizes:
    """A fold over pods and nodes. An entry waits until something happens on its own node (R9): what happens elsewhere
    costs the same, however many wait.

    Args:
        on: whether anybody may be evicted for a resize (R13); off, there is never an entry.
    """

    def __init__(self, cache: Cache, scheduler_name: str, *, on: bool) -> None:
        self.entries: dict[EntryKey, Entry] = {}
        self._cache, self._name, self._on = cache, scheduler_name, on
        self._here: dict[str, dict[EntryKey, None]] = {}
        """Node -> entries of pods on it."""
        self._active: list[tuple[Order, EntryKey]] = []
        """Heaps, this one and the next: items that are outdated are thrown away when they come up."""
        self._timers: list[Due] = []

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
            heapq.heappush(self._timers, due_item(entry.ready_at, key))

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
        order = (-record.priority, True, *entry.seen, record.key, POD)
        if entry.order != order:
            entry.order = order
            if entry.state is State.ACTIVE:
                heapq.heappush(self._active, (order, key))
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
            self._activate(entry)

    def _activate(self, entry: Entry) -> None:
        if entry.state is not State.ACTIVE and entry.order is not None:
            entry.state = State.ACTIVE
            heapq.heappush(self._active, (entry.order, entry.key))

    # -- decisions

    @property
    def has_active(self) -> bool:
        return self._first() is not None

    def _first(self) -> Entry | None:
        while self._active:
            order, key = self._active[0]
            entry = self.entries.get(key)
            if entry is not None and entry.state is State.ACTIVE and entry.order == order:
                return entry
            heapq.heappop(self._active)
        return None

    def comes_before(self, other: Order | None) -> bool:
        """Whether a resize is to be decided before the entry of the queue that stands there."""
        first = self._first()
        return first is not None and first.order is not None and (other is None or first.order[0] <= other[0])

    def take(self) -> tuple[Entry, QueueEntry]:
        """The first one that is to be decided; DECIDING until `decided` or `again`."""
        entry = self._first()
        assert entry is not None
        entry.state, entry.rejected = State.DECIDING, 0
        record = self._cache.pods[entry.key.key]
        head = QueueEntry(entry.key, entry.uid, record.priority, entry.seen.since, entry.attempts, (record,))
        return entry, replace(head, may_preempt=True, resize=True)

    def is_current(self, entry: Entry) -> bool:
        """Whether it is still wanted."""
        return self.entries.get(entry.key) is entry

    def again(self, entry: Entry) -> None:
        """What was decided does not hold any more."""
        self._activate(entry)

    def decided(self, entry: Entry, diagnosis: Diagnosis, now: Instant, *, failed: bool = False) -> None:
        """It waits; what happened on its node meanwhile has it decided once more."""
        entry.diagnosis, entry.safety_at = diagnosis, now + SAFETY_RETRY
        if failed:
            self.rest(entry.key, now)
            return
        entry.attempts = 0
        if entry.rejected:
            self._activate(entry)
        else:
            entry.state = State.WAITING
            heapq.heappush(self._timers, due_item(entry.safety_at, entry.key))

    # -- timers

    def due(self) -> Instant | None:
        """When the next backoff ends, or one that has waited for very long is tried though nothing happened."""
        while self._timers:
            at, _, _, key = self._timers[0]
            entry = self.entries.get(key)
            if entry is not None and at == self._due_at(entry):
                return at
            heapq.heappop(self._timers)
        return None

    def _due_at(self, entry: Entry) -> Instant | None:
        if entry.state is State.BACKOFF:
            return entry.ready_at
        return entry.safety_at if entry.state is State.WAITING else None

    def woken(self, now: Instant) -> None:
        while (at := self.due()) is not None and at <= now:
            self._activate(self.entries[heapq.heappop(self._timers)[-1]])
