"""What waits to be decided: single pods and root groups, in order, each in one of five states.

HELD      kept aside before any attempt: gate, missing members or group (`holds`)
ACTIVE    to be decided next, in the order of priority, broken groups first (M12), age, name
DECIDING  part of the decision under way
BACKOFF   may be decided again from `ready_at` on
WAITING   undecidable until an event that can cure its diagnosis, or the safety retry (M4)
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from muster.api.instant import MINUTE, SECOND, Instant
from muster.model.diagnosis import Cure, Diagnosis
from muster.model.keys import Key
from muster.model.records import EntryKey, EntryKind, Phase, PodClass, PodRecord, QueueEntry
from muster.scheduler.cache import Cache
from muster.scheduler.holds import Hold, hold_of
from muster.scheduler.rooms import Touch

FIRST_BACKOFF: Instant = SECOND
LONGEST_BACKOFF: Instant = 10 * SECOND
SAFETY_RETRY: Instant = 5 * MINUTE
MOST_PODS = 512
MOST_GROUPS = 64
"""How much one decision takes at most; a larger group goes alone."""
PATIENCE = 2
"""So often in a row a plan may prove stale before the entry has to back off."""

_ROOM = frozenset({Cure.ROOM_FREED, Cure.NODE_GREW, Cure.NOMINATION_DROPPED, Cure.PORT_FREED})


class State(Enum):
    HELD = "held"
    ACTIVE = "active"
    DECIDING = "deciding"
    BACKOFF = "backoff"
    WAITING = "waiting"


class News(Enum):
    """What happened to an entry's own pods or group."""

    NOTHING = 0
    CURE = 1
    """Something that can let it be placed: a member more, another class, a mismatch gone."""
    URGENT = 2
    """As CURE, and a person asked for it: no backoff (a lowered minimum, statement 34)."""


class Seen(NamedTuple):
    """The age of an entry: when it was first seen pending, and the creation time of its oldest pod, for ties."""

    since: Instant
    created: Instant


@dataclass(slots=True, eq=False)
class Entry:
    """One thing in the queue, for one incarnation of its pod or group."""

    key: EntryKey
    uid: str
    seen: Seen
    state: State = State.HELD
    attempts: int = 0
    rejected: int = 0
    """How often in a row its plan was stale when it came back."""
    ready_at: Instant = 0
    safety_at: Instant = 0
    hold: Hold | None = None
    diagnosis: Diagnosis | None = None
    news: News = News.NOTHING
    """What happened while it was being decided."""
    order: tuple[object, ...] = ()
    classes: frozenset[PodClass] = frozenset()
    """While WAITING: what it would place."""
    for_room: bool = True
    """While WAITING: whether freed room can help."""


_Due = tuple[Instant, Key, str, EntryKey]


def _due_item(at: Instant, key: EntryKey) -> _Due:
    """An item of a heap of times; a kind has no order, so its name stands before the key."""
    return at, key.key, key.kind.value, key


def backoff(attempts: int) -> Instant:
    """1 s doubling to 10 s."""
    return min(FIRST_BACKOFF << min(max(attempts - 1, 0), 10), LONGEST_BACKOFF)


@dataclass(slots=True)
class Queue:
    """Entries of the cache's pending pods. The cache is read, never written."""

    cache: Cache
    scheduler_name: str
    entries: dict[EntryKey, Entry] = field(default_factory=dict)
    _active: list[tuple[tuple[object, ...], EntryKey]] = field(default_factory=list)
    _backoff: list[_Due] = field(default_factory=list)
    _safety: list[_Due] = field(default_factory=list)
    _waiting: dict[PodClass, dict[EntryKey, Entry]] = field(default_factory=dict)

    # -- from the cache

    def refresh(self, key: EntryKey, now: Instant, news: News = News.NOTHING, seen: Seen | None = None) -> None:
        """Brings the entry up to date with the cache: it appears, goes, is held, is let go, or is cured.

        `seen` tells of a pod of it that is new.
        """
        uid = self._uid(key)
        entry = self.entries.get(key)
        if uid is None:
            if entry is not None:
                self._drop(entry)
            return
        if entry is None or entry.uid != uid:
            entry = self._replaced(entry, key, uid, seen or self._oldest(key, now))
            news = News.URGENT
        elif seen is not None:
            entry.seen = min(entry.seen, seen)
        if entry.state is State.DECIDING:
            entry.news = max(entry.news, news, key=lambda it: it.value)
            return
        self._place(entry, now, news)

    def _uid(self, key: EntryKey) -> str | None:
        """The uid of what is pending and ours under this key; "" for a group that does not exist."""
        if key.kind is EntryKind.POD_GROUP:
            members = self.cache.members.get(key.key)
            if members is None or len(members.pending) <= members.foreign:
                return None
            group = self.cache.groups.get(key.key)
            return group.uid if group else ""
        record = self.cache.pods.get(key.key)
        return record.uid if record is not None and self.is_single(record) else None

    def _oldest(self, key: EntryKey, now: Instant) -> Seen:
        """When something that is pending again counts as seen: now, its members by their creation."""
        if key.kind is EntryKind.POD:
            return Seen(now, self.cache.pods[key.key].created)
        return Seen(now, min(record.created for record in self.cache.members[key.key].pending.values()))

    def is_single(self, record: PodRecord) -> bool:
        """Whether this pod is a queue entry of its own."""
        return (
            record.group is None
            and record.phase is Phase.PENDING
            and not record.terminating
            and record.scheduler_name == self.scheduler_name
            and record.uid not in self.cache.assumed
        )

    def _replaced(self, old: Entry | None, key: EntryKey, uid: str, seen: Seen) -> Entry:
        """A new entry; the members of a group that appears or is made anew keep their place in the queue."""
        if old is not None:
            self._drop(old)
            if key.kind is EntryKind.POD_GROUP:
                seen = min(seen, old.seen)
        entry = self.entries[key] = Entry(key, uid, seen)
        return entry

    def _place(self, entry: Entry, now: Instant, news: News) -> None:
        """Puts an entry that is not being decided where it belongs now."""
        entry.hold = hold_of(self.cache, entry.key)
        if entry.hold is not None:
            self._leave_waiting(entry)
            entry.state, entry.diagnosis = State.HELD, None
        elif entry.state is State.HELD or news is News.URGENT:
            self._leave_waiting(entry)
            self._wake(entry, 0 if news is News.URGENT else now)
        elif entry.state is State.WAITING and news is News.CURE:
            self._leave_waiting(entry)
            self._wake(entry, now)
        elif entry.state is State.ACTIVE:
            self._activate(entry)

    def _wake(self, entry: Entry, now: Instant) -> None:
        """To the active queue, or to the end of its backoff; `now` 0: without backoff."""
        if now and entry.ready_at > now:
            entry.state = State.BACKOFF
            heapq.heappush(self._backoff, _due_item(entry.ready_at, entry.key))
        else:
            self._activate(entry)

    def _activate(self, entry: Entry) -> None:
        order = self._order(entry)
        if entry.state is State.ACTIVE and entry.order == order:
            return
        entry.state, entry.order = State.ACTIVE, order
        heapq.heappush(self._active, (order, entry.key))

    def _order(self, entry: Entry) -> tuple[object, ...]:
        key = entry.key
        if key.kind is EntryKind.POD_GROUP:
            group = self.cache.groups[key.key]
            return (-group.priority, not self._broken(key.key), *entry.seen, key.key, 1)
        return (-self.cache.pods[key.key].priority, True, *entry.seen, key.key, 0)

    def _broken(self, group: Key) -> bool:
        """Whether a running group is below its minimum (M12)."""
        members = self.cache.members[group]
        return bool(members.running) and (
            len(members.running) + len(members.succeeded) < self.cache.groups[group].min_count
        )

    def _drop(self, entry: Entry) -> None:
        self._leave_waiting(entry)
        if self.entries.get(entry.key) is entry:
            del self.entries[entry.key]

    # -- waking by events elsewhere

    def wake(self, touched: Mapping[str, Touch], now: Instant) -> None:
        """Wakes what waits for room or for a better node, if one of its pods would fit alone on a touched node.

        A placement that was impossible before needs a node that changed, and a first pod that fits on it.
        """
        if not self._waiting:
            return
        rooms = self.cache.rooms
        for node, touch in touched.items():
            if not self._waiting or node not in rooms.records:
                continue
            free = rooms.free(node)
            for cls in tuple(self._waiting):
                rows = rooms.rows(cls.requests)
                after = _slots(rows, free)
                if after > 0:
                    more = touch.before is None or after > _slots(rows, touch.before)
                    self._wake_class(cls, now, static=touch.static, more=more or bool(cls.host_ports))

    def _wake_class(self, cls: PodClass, now: Instant, *, static: bool, more: bool) -> None:
        for entry in tuple(self._waiting.get(cls, {}).values()):
            if static or (entry.for_room and (more or len(entry.classes) > 1)):
                self._leave_waiting(entry)
                self._wake(entry, now)

    def _wait(self, entry: Entry, diagnosis: Diagnosis, classes: Iterable[PodClass], now: Instant) -> None:
        entry.state, entry.diagnosis = State.WAITING, diagnosis
        cures = diagnosis.wakes_on
        entry.for_room = not cures or not diagnosis.proven or bool(cures & _ROOM)
        entry.classes = frozenset(classes)
        for cls in entry.classes:
            self._waiting.setdefault(cls, {})[entry.key] = entry
        entry.safety_at = now + SAFETY_RETRY
        heapq.heappush(self._safety, _due_item(entry.safety_at, entry.key))

    def _leave_waiting(self, entry: Entry) -> None:
        for cls in entry.classes:
            there = self._waiting[cls]
            del there[entry.key]
            if not there:
                del self._waiting[cls]
        entry.classes = frozenset()

    # -- timers

    def backoff_due(self) -> Instant | None:
        """When the next backoff ends."""
        return self._due(self._backoff, lambda entry, at: entry.state is State.BACKOFF and entry.ready_at == at)

    def safety_due(self) -> Instant | None:
        """When the next entry is retried though nothing happened."""
        return self._due(self._safety, lambda entry, at: entry.state is State.WAITING and entry.safety_at == at)

    def _due(self, heap: list[_Due], holds: Callable[[Entry, Instant], bool]) -> Instant | None:
        while heap:
            at, _, _, key = heap[0]
            entry = self.entries.get(key)
            if entry is not None and holds(entry, at):
                return at
            heapq.heappop(heap)
        return None

    def end_backoffs(self, now: Instant) -> None:
        """Makes active whose backoff is over."""
        while (at := self.backoff_due()) is not None and at <= now:
            self._activate(self.entries[heapq.heappop(self._backoff)[-1]])

    def retry_long_waiting(self, now: Instant) -> None:
        """The safety retry: makes active what has waited for so long."""
        while (at := self.safety_due()) is not None and at <= now:
            entry = self.entries[heapq.heappop(self._safety)[-1]]
            self._leave_waiting(entry)
            self._activate(entry)

    # -- decisions

    @property
    def has_active(self) -> bool:
        return self._first() is not None

    def _first(self) -> Entry | None:
        """The entry at the head of the active queue; outdated heap items before it are thrown away."""
        while self._active:
            order, key = self._active[0]
            entry = self.entries.get(key)
            if entry is not None and entry.state is State.ACTIVE and entry.order == order:
                return entry
            heapq.heappop(self._active)
        return None

    def heads(self) -> list[tuple[Entry, QueueEntry]]:
        """Takes the next entries to decide together, in order; DECIDING until `placed`, `failed` or `again`."""
        heads: list[tuple[Entry, QueueEntry]] = []
        pods = groups = 0
        while (entry := self._first()) is not None:
            size = self._size(entry)
            alone = size > MOST_PODS or self.deficit(entry) is not None
            if heads and (alone or pods + size > MOST_PODS or groups == MOST_GROUPS):
                break
            heapq.heappop(self._active)
            entry.state, entry.news = State.DECIDING, News.NOTHING
            heads.append((entry, self._head(entry)))
            pods += size
            groups += entry.key.kind is EntryKind.POD_GROUP
            if alone:
                break
        return heads

    def _size(self, entry: Entry) -> int:
        return 1 if entry.key.kind is EntryKind.POD else len(self.cache.members[entry.key.key].pending)

    def deficit(self, entry: Entry) -> int | None:
        """How many pods a broken group may place now if it has more pending: only its deficit goes first (M12)."""
        if entry.key.kind is EntryKind.POD or not self._broken(entry.key.key):
            return None
        members = self.cache.members[entry.key.key]
        lacking = self.cache.groups[entry.key.key].min_count - len(members.running) - len(members.succeeded)
        return lacking if lacking < len(members.pending) else None

    def _head(self, entry: Entry) -> QueueEntry:
        key = entry.key
        if key.kind is EntryKind.POD:
            record = self.cache.pods[key.key]
            return QueueEntry(key, entry.uid, record.priority, entry.seen.since, entry.attempts, (record,))
        group, members = self.cache.groups[key.key], self.cache.members[key.key]
        return QueueEntry(
            key=key,
            uid=entry.uid,
            priority=group.priority,
            since=entry.seen.since,
            attempts=entry.attempts,
            pods=self.pending(key),
            group=group,
            running=len(members.running),
            succeeded=len(members.succeeded),
            bound=tuple(sorted(members.running.values(), key=_member_order)),
        )

    def failed(self, entry: Entry, head: QueueEntry, diagnosis: Diagnosis, now: Instant, *, retry: bool) -> None:
        """Nothing could be placed. `retry`: no event is needed for another attempt, only the backoff."""
        entry.attempts += 1
        entry.rejected = 0
        entry.ready_at = now + backoff(1 if self._is_broken(entry) else entry.attempts)
        if retry:
            entry.diagnosis = diagnosis
            self._wake(entry, now)
        else:
            self._wait(entry, diagnosis, {record.cls for record in head.pods}, now)
        self._place(entry, now, entry.news)

    def _is_broken(self, entry: Entry) -> bool:
        key = entry.key
        return (
            key.kind is EntryKind.POD_GROUP
            and key.key in self.cache.groups
            and key.key in self.cache.members
            and self._broken(key.key)
        )

    def placed(
        self, entry: Entry, head: QueueEntry, diagnosis: Diagnosis, now: Instant, *, trimmed: bool = False
    ) -> None:
        """Its plan was accepted and its pods are assumed. What is left waits, or goes on if it is new or `trimmed`."""
        entry.attempts = entry.rejected = 0
        entry.ready_at = now
        if self._uid(entry.key) is None:
            self._drop(entry)
            return
        members = self.cache.members[entry.key.key]
        tried = {record.uid for record in head.pods}
        if trimmed or any(record.uid not in tried for record in members.pending.values()):
            entry.state, news = State.HELD, News.URGENT
        else:
            self._wait(entry, diagnosis, {record.cls for record in members.pending.values()}, now)
            news = entry.news
        self._place(entry, now, news)

    def again(self, entry: Entry, now: Instant, *, stale: bool) -> None:
        """To be decided anew at once. `stale`: its plan no longer held; from the third time in a row with backoff."""
        entry.rejected += stale
        entry.ready_at = now
        if stale and entry.rejected > PATIENCE:
            entry.attempts += 1
            entry.ready_at = now + backoff(entry.attempts)
        entry.state = State.HELD
        self._place(entry, now, News.NOTHING)

    def back_off(self, entry: Entry, diagnosis: Diagnosis, now: Instant, wait: Instant | None = None) -> None:
        """An entry that is not being decided rests for `wait`, or for as long as its attempts call for."""
        if entry.state in (State.DECIDING, State.HELD):
            return
        self._leave_waiting(entry)
        entry.attempts += 1
        entry.ready_at = now + (wait or backoff(entry.attempts))
        entry.diagnosis = diagnosis
        self._wake(entry, now)

    def pending(self, key: EntryKey) -> tuple[PodRecord, ...]:
        """The pending pods of an entry, in member order."""
        if key.kind is EntryKind.POD:
            return (self.cache.pods[key.key],)
        return tuple(sorted(self.cache.members[key.key].pending.values(), key=_member_order))

    def in_order(self, keys: Iterable[EntryKey]) -> list[EntryKey]:
        """These keys by priority, age and name; those that are not in the queue last."""

        def order(key: EntryKey) -> tuple[object, ...]:
            entry = self.entries.get(key)
            if entry is None:
                return (1, 0, 0, 0, key.key, key.kind.value)
            return (0, -self._priority(key), *entry.seen, key.key, key.kind.value)

        return sorted(keys, key=order)

    def _priority(self, key: EntryKey) -> int:
        if key.kind is EntryKind.POD:
            return self.cache.pods[key.key].priority
        group = self.cache.groups.get(key.key)
        return group.priority if group else max(record.priority for record in self.pending(key))


def _member_order(record: PodRecord) -> tuple[int, Instant, Key]:
    return (-record.priority, record.created, record.key)


def _slots(rows: Iterable[tuple[int, int]], free: Sequence[int]) -> int:
    """How many pods that take `rows` fit into what is free; rows that were not known then have nothing free."""
    known = len(free)
    return min((free[row] // amount if row < known else 0) for row, amount in rows)
