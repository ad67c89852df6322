"""What waits to be decided: single pods and root groups, in order, each in one state (`entries.State`)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace

from muster.api.instant import MINUTE, Instant
from muster.engine.profile import Profile
from muster.model.diagnosis import Cure, Diagnosis, Verdict
from muster.model.records import EntryKey, EntryKind, Phase, PodClass, PodRecord, QueueEntry
from muster.scheduler.broken import has_surplus, is_broken
from muster.scheduler.cache import Cache
from muster.scheduler.entries import Due, Entry, News, Order, Seen, State, Within, backoff, due_item
from muster.scheduler.holds import hold_of
from muster.scheduler.neighbours import Move
from muster.scheduler.rooms import Touch
from muster.scheduler.trees import member_order, tree_of
from muster.scheduler.volumes import Topic
from muster.scheduler.waiting import Waiting

SAFETY_RETRY: Instant = 5 * MINUTE
MOST_PODS = 512
MOST_GROUPS = 64
"""How much one decision takes at most; a larger group goes alone."""
NEVER = 1 << 60
"""Slots that no cluster has: of a group whose members are in two domains, which room does not cure."""
PATIENCE = 2
"""So often in a row a plan may prove stale before the entry has to back off."""


class Queue:
    """Entries of the cache's pending pods. The cache is read, never written."""

    def __init__(self, cache: Cache, scheduler_name: str, profile: Profile) -> None:
        self.cache = cache
        self.entries: dict[EntryKey, Entry] = {}
        self._scheduler_name = scheduler_name
        self._waiting = Waiting(cache.rooms, profile, self.pending)
        self._active: list[tuple[Order, EntryKey]] = []
        self._backoff: list[Due] = []
        self._safety: list[Due] = []

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
            if self.cache.owner_of_group(key.key) != key:
                return None
            group = self.cache.groups.get(key.key)
            return group.uid if group else ""
        if key.kind is EntryKind.COMPOSITE:
            return self._uid_of_tree(key)
        record = self.cache.pods.get(key.key)
        return record.uid if record is not None and self._is_single(record) else None

    def _uid_of_tree(self, key: EntryKey) -> str | None:
        """The uid of the root group; None unless it is one and something below it is pending and ours."""
        root = self.cache.forest.composites.get(key.key)
        if root is None or root.terminating or root.parent is not None:
            return None
        below = (self.cache.members.get(leaf) for leaf in self.cache.forest.leaves(key.key))
        return root.uid if any(some is not None and len(some.pending) > some.foreign for some in below) else None

    def _oldest(self, key: EntryKey, now: Instant) -> Seen:
        """When something that is pending again counts as seen: now, its members by their creation."""
        if key.kind is EntryKind.POD:
            return Seen(now, self.cache.pods[key.key].created)
        return Seen(now, min(record.created for record in self.pending(key)))

    def _is_single(self, record: PodRecord) -> bool:
        """Whether this pod is a queue entry of its own."""
        return (
            record.group is None
            and record.phase is Phase.PENDING
            and not record.terminating
            and record.scheduler_name == self._scheduler_name
            and record.uid not in self.cache.assumed
        )

    def _replaced(self, old: Entry | None, key: EntryKey, uid: str, seen: Seen) -> Entry:
        """A new entry; the members of a group that appears or is made anew keep their place in the queue."""
        if old is not None:
            self._drop(old)
            if key.kind is not EntryKind.POD:
                seen = min(seen, old.seen)
        entry = self.entries[key] = Entry(key, uid, seen)
        return entry

    def _place(self, entry: Entry, now: Instant, news: News) -> None:
        """Puts an entry that is not being decided where it belongs now."""
        if entry.held_by(hold_of(self.cache, entry.key), now):
            self._waiting.remove(entry)
            entry.state, entry.diagnosis = State.HELD, None
            self._pass_on(entry)
        elif entry.state is State.HELD or news is News.URGENT:
            self._waiting.remove(entry)
            self._wake(entry, 0 if news is News.URGENT else now)
        elif entry.state is State.WAITING and (_cures(entry, news) or self._is_let_go(entry, news)):
            self._waiting.remove(entry)
            self._wake(entry, 0 if is_broken(self.cache, entry.key) else now)
        elif entry.state is State.ACTIVE:
            self._activate(entry)

    def _is_let_go(self, entry: Entry, news: News) -> bool:
        """Whether nobody runs any more who ties the group to a domain; in a hierarchy whoever leaves may have."""
        if news is not News.LEFT or entry.key.kind is EntryKind.COMPOSITE:
            return news is News.LEFT
        tied = entry.within is not None and bool(entry.within.anchors)
        return tied and not self.cache.members[entry.key.key].running

    def _wake(self, entry: Entry, now: Instant) -> None:
        """To the active queue, or to the end of its backoff; `now` 0: without backoff."""
        if now and entry.ready_at > now:
            entry.state = State.BACKOFF
            heapq.heappush(self._backoff, due_item(entry.ready_at, entry.key))
        else:
            self._activate(entry)

    def _activate(self, entry: Entry) -> None:
        order = self._order(entry)
        if entry.state is State.ACTIVE and entry.order == order:
            return
        entry.state, entry.order = State.ACTIVE, order
        heapq.heappush(self._active, (order, entry.key))

    def _order(self, entry: Entry) -> Order:
        key = entry.key
        kind = (EntryKind.POD, EntryKind.POD_GROUP, EntryKind.COMPOSITE).index(key.kind)
        return (-self._priority(key), not is_broken(self.cache, key), *entry.seen, key.key, kind)

    def _drop(self, entry: Entry) -> None:
        self._waiting.remove(entry)
        if self.entries.get(entry.key) is entry:
            del self.entries[entry.key]
        self._pass_on(entry)

    # -- waking by events elsewhere

    def wake(self, touched: Mapping[str, Touch], now: Instant) -> None:
        """Wakes what waits for room or for a better node and may fit now that these nodes have got better.

        A broken group does not sit out its backoff then, lest equals take what it needs (M12).
        """
        for entry in self._waiting.cured(touched):
            self._wake(entry, 0 if is_broken(self.cache, entry.key) else now)

    def wake_neighbours(self, moved: Set[Move], now: Instant) -> None:
        """Wakes what waits for pods to come or go that are now counted otherwise."""
        if moved:
            for entry in self._waiting.cured_by_neighbours(moved, self.cache.neighbours.spaces):
                self._wake(entry, 0 if is_broken(self.cache, entry.key) else now)

    def wake_storing(self, topics: Set[Topic], now: Instant) -> None:
        """Wakes what waits for a change in storage, or in devices, and may have it."""
        for entry in self._waiting.cured_by_storage(topics):
            self._wake(entry, now)

    def _pass_on(self, entry: Entry) -> None:
        """Somebody woken on behalf of its class did not fail: the next in line has a try."""
        cls, entry.runner_of = entry.runner_of, None
        if cls is not None:
            for following in self._waiting.next_of(cls):
                self._wake(following, 0)

    def _wait(
        self, entry: Entry, diagnosis: Diagnosis, classes: Iterable[PodClass], now: Instant, lacks: int = 1
    ) -> None:
        entry.state, entry.diagnosis, entry.order = State.WAITING, diagnosis, self._order(entry)
        if diagnosis.awaits is not None:
            classes, lacks = (diagnosis.awaits.pod_class,), diagnosis.awaits.slots
        entry.within = self._within(entry, diagnosis) if diagnosis.topology_key else _within_tree(diagnosis)
        self._waiting.add(entry, diagnosis, classes, lacks, self._topics(entry))
        entry.safety_at = now + SAFETY_RETRY
        heapq.heappush(self._safety, due_item(entry.safety_at, entry.key))

    def _topics(self, entry: Entry) -> frozenset[Topic]:
        return frozenset(topic for record in self.pending(entry.key) for topic in self.cache.topics(record))

    def _within(self, entry: Entry, diagnosis: Diagnosis) -> Within:
        members = self.cache.members[entry.key.key]
        anchors = frozenset(r.node or self.cache.assumed[r.uid] for r in members.running.values())
        alike = len({record.cls for record in members.pending.values()}) == 1
        lacking = diagnosis.min_count - diagnosis.running - diagnosis.succeeded
        pinned = diagnosis.domain if anchors and diagnosis.domain else None
        fresh: int | None = None
        if diagnosis.verdict is Verdict.ERROR:
            fresh = NEVER
        elif alike and diagnosis.proven and diagnosis.verdict is Verdict.UNSCHEDULABLE:
            fresh = max(1, lacking)
        return Within(diagnosis.topology_key, pinned, fresh, dict(diagnosis.deficits), anchors)

    # -- timers

    def backoff_due(self) -> Instant | None:
        """When the next backoff ends."""
        return self._due(self._backoff, lambda entry, at: entry.state is State.BACKOFF and entry.ready_at == at)

    def safety_due(self) -> Instant | None:
        """When the next entry is retried though nothing happened."""
        return self._due(self._safety, lambda entry, at: entry.state is State.WAITING and entry.safety_at == at)

    def _due(self, heap: list[Due], holds: Callable[[Entry, Instant], bool]) -> Instant | None:
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
            self._waiting.remove(entry)
            self._activate(entry)

    # -- decisions

    @property
    def has_active(self) -> bool:
        return self._first() is not None

    @property
    def first(self) -> Order | None:
        """Where the next entry stands."""
        return entry.order if (entry := self._first()) else None

    def _first(self) -> Entry | None:
        """The entry at the head of the active queue; outdated heap items before it are thrown away."""
        while self._active:
            order, key = self._active[0]
            entry = self.entries.get(key)
            if entry is not None and entry.state is State.ACTIVE and entry.order == order:
                return entry
            heapq.heappop(self._active)
        return None

    def heads(self, most: int = MOST_GROUPS) -> list[tuple[Entry, QueueEntry]]:
        """Takes the next entries to decide together, in order; DECIDING until `placed`, `failed` or `again`.

        `most`: how many groups at most.
        """
        heads: list[tuple[Entry, QueueEntry]] = []
        pods = groups = 0
        while (entry := self._first()) is not None:
            size = self._size(entry)
            alone = size > MOST_PODS or has_surplus(self.cache, entry.key)
            if heads and (alone or pods + size > MOST_PODS or groups >= most):
                break
            heapq.heappop(self._active)
            entry.state, entry.news, entry.taken = State.DECIDING, News.NOTHING, size
            heads.append((entry, self.head(entry)))
            pods += size
            groups += entry.key.kind is not EntryKind.POD
            if alone:
                break
        return heads

    def _size(self, entry: Entry) -> int:
        members = self.cache.members
        if entry.key.kind is EntryKind.COMPOSITE:
            leaves = self.cache.forest.leaves(entry.key.key)
            return sum(len(members[leaf].pending) for leaf in leaves if leaf in members)
        return 1 if entry.key.kind is EntryKind.POD else len(members[entry.key.key].pending)

    def head(self, entry: Entry) -> QueueEntry:
        """The entry as it would be decided now."""
        key = entry.key
        if key.kind is EntryKind.POD:
            record = self.cache.pods[key.key]
            return QueueEntry(key, entry.uid, record.priority, entry.seen.since, entry.attempts, (record,))
        if key.kind is EntryKind.COMPOSITE:
            return self._head_of_tree(entry)
        group, members = self.cache.groups[key.key], self.cache.members[key.key]
        bound = sorted(members.running.values(), key=member_order)
        if group.topology_key is not None:
            bound = [r if r.node else replace(r, node=self.cache.assumed[r.uid]) for r in bound]
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
            bound=tuple(bound),
        )

    def _head_of_tree(self, entry: Entry) -> QueueEntry:
        tree = tree_of(self.cache, entry.key.key)
        leaves = tuple(tree.leaves())
        bound = tuple(record for leaf in leaves for record in leaf.bound)
        return QueueEntry(
            key=entry.key,
            uid=entry.uid,
            priority=tree.record.priority,
            since=entry.seen.since,
            attempts=entry.attempts,
            pods=tuple(record for leaf in leaves for record in leaf.pending),
            running=len(bound),
            succeeded=sum(leaf.succeeded for leaf in leaves),
            bound=bound,
            tree=tree,
        )

    def failed(self, entry: Entry, head: QueueEntry, diagnosis: Diagnosis, now: Instant, *, retry: bool) -> None:
        """Nothing could be placed. `retry`: no event is needed for another attempt, only the backoff."""
        entry.attempts += 1
        entry.rejected = 0
        entry.ready_at = now + backoff(entry.attempts)
        if entry.runner_of is not head.pods[0].cls or self._says_nothing_of_the_next(entry, diagnosis):
            self._pass_on(entry)
        if retry:
            entry.diagnosis = diagnosis
            self._wake(entry, now)
        else:
            entry.runner_of = None
            classes = {record.cls for record in head.pods}
            alike = head.tree is None and len(classes) == 1
            counted = alike and diagnosis.proven and Cure.NEIGHBOURS_CHANGED not in diagnosis.wakes_on
            self._wait(entry, diagnosis, classes, now, max(1, head.needed - diagnosis.placed) if counted else 1)
        self._place(entry, now, entry.news)

    def _says_nothing_of_the_next(self, entry: Entry, diagnosis: Diagnosis) -> bool:
        """Whether it failed for its neighbours, and the next in line of its class has other labels."""
        if entry.runner_of is None or Cure.NEIGHBOURS_CHANGED not in diagnosis.wakes_on:
            return False
        following = self._waiting.peek(entry.runner_of)
        return following is not None and self.cache.pods[following.key].labels != self.cache.pods[entry.key.key].labels

    def placed(
        self, entry: Entry, head: QueueEntry, diagnosis: Diagnosis, now: Instant, *, trimmed: bool = False
    ) -> None:
        """Its plan was accepted and its pods are assumed. What is left waits, or goes on if it is new or `trimmed`."""
        entry.attempts = entry.rejected = 0
        entry.ready_at = now
        if self._uid(entry.key) is None:
            self._drop(entry)
            return
        pending = self.pending(entry.key)
        tried = {record.uid for record in head.pods}
        if trimmed or any(record.uid not in tried for record in pending):
            entry.state, news = State.HELD, News.URGENT
        else:
            self._wait(entry, diagnosis, {record.cls for record in pending}, now)
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
        self._waiting.remove(entry)
        entry.attempts += 1
        entry.ready_at = now + (wait or backoff(entry.attempts))
        entry.diagnosis = diagnosis
        self._wake(entry, now)

    def pending(self, key: EntryKey) -> tuple[PodRecord, ...]:
        """The pending pods of an entry, in member order."""
        if key.kind is EntryKind.POD:
            return (self.cache.pods[key.key],)
        if key.kind is EntryKind.COMPOSITE:
            below = (self.cache.members.get(leaf) for leaf in self.cache.forest.leaves(key.key))
            some = (sorted(members.pending.values(), key=member_order) for members in below if members is not None)
            return tuple(record for records in some for record in records)
        return tuple(sorted(self.cache.members[key.key].pending.values(), key=member_order))

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
        if key.kind is EntryKind.COMPOSITE:
            return self.cache.forest.composites[key.key].priority
        group = self.cache.groups.get(key.key)
        return group.priority if group else max(record.priority for record in self.pending(key))


def _within_tree(diagnosis: Diagnosis) -> Within | None:
    """The domains in which slots are counted for a hierarchy; a node that is relabelled wakes it anyway."""
    awaits = diagnosis.awaits
    if awaits is None or not awaits.topology_key:
        return None
    return Within(awaits.topology_key, awaits.domain or None, awaits.wanted, dict(awaits.deficits), frozenset())


def _cures(entry: Entry, news: News) -> bool:
    """Whether this can let a waiting entry be placed."""
    if news is News.LEFT:
        return entry.diagnosis is not None and entry.diagnosis.verdict is Verdict.ERROR
    return news is News.CURE
