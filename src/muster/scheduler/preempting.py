"""Evictions: who is to make room for whom, what is written for it, and who waits for their going (P21-P29)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from muster.api import writes
from muster.api.calls import STRATEGIC_PATCH, Response
from muster.api.instant import MINUTE, Instant, to_time
from muster.api.machine import Write
from muster.model.diagnosis import Diagnosis, Preemption, PreemptionOutcome, Verdict, Victim
from muster.model.keys import Key
from muster.model.plan import Evict, Nominate, Plan
from muster.model.records import EntryKey, EntryKind, PodRecord, QueueEntry
from muster.scheduler.cache import Cache
from muster.scheduler.entries import Entry
from muster.scheduler.reports import Reports

NOUN = {EntryKind.POD: "pod", EntryKind.POD_GROUP: "podgroup", EntryKind.COMPOSITE: "compositepodgroup"}
RESOURCE = {EntryKind.POD_GROUP: "podgroups", EntryKind.COMPOSITE: "compositepodgroups"}


FIRST_REST: Instant = MINUTE
"""So long an entry evicts nobody after it could not be bound; twice as long each time, up to `LONGEST_REST`."""
LONGEST_REST: Instant = 64 * MINUTE
SPARED: Instant = 5 * MINUTE
"""So long a pod is no victim after the server refused to delete it for a reason that time does not change."""
_FOR_NOW = frozenset({0, 408, 409, 429})


class EvictTag(NamedTuple):
    """Tag of the two writes of one eviction: the condition, then the deletion."""

    uid: str
    deletion: bool


@dataclass(slots=True)
class Round:
    """What was asked for at a time."""

    kind: EntryKind
    since: Instant
    unanswered: int = 0
    failed: bool = False


@dataclass(slots=True)
class Eviction:
    """One pod that is being evicted."""

    record: PodRecord
    preemptor: EntryKey
    preemptor_uid: str
    victim: Victim
    round: Round


class Rest(NamedTuple):
    """The server refused to bind an entry until it gave its slots back: for a while it evicts nobody."""

    uid: str
    times: int
    until: Instant


class Preempting:
    """Evictions under way, entries that wait for them, and entries for which evicting would not have helped."""

    def __init__(self, cache: Cache, reports: Reports, scheduler_name: str, *, on: bool) -> None:
        self.on = on
        self.evicted = False
        """Whether the last decision evicted somebody: the next one is about one entry."""
        self.reject: Callable[[str, Instant], bool] = lambda uid, now: False
        """Takes back the decision about a pod that waits to be bound, if there is one."""
        self.carried_out: Callable[[Round, Instant], None] = lambda done, now: None
        """Told when everything that was asked for at a time is answered."""
        self._cache, self._reports, self._name = cache, reports, scheduler_name
        self._evictions: dict[str, Eviction] = {}
        self._awaited: dict[EntryKey, set[str]] = {}
        self._stuck: dict[EntryKey, int] = {}
        """Entry -> its priority."""
        self._failed: list[EntryKey] = []
        self._rests: dict[EntryKey, Rest] = {}

    # -- before a decision

    def marked(self, heads: Sequence[tuple[Entry, QueueEntry]], now: Instant) -> list[tuple[Entry, QueueEntry]]:
        """The heads, those marked that are more important than something that runs and may evict it."""
        residents = self._cache.residents
        if residents.spared:
            residents.spared = {uid: until for uid, until in residents.spared.items() if now < until}
        lowest = residents.lowest if self.on else None
        if lowest is None:
            return list(heads)

        def may(head: QueueEntry) -> bool:
            rest = self._rests.get(head.key)
            rests = rest is not None and rest.uid == head.uid and now < rest.until
            return head.priority > lowest and not rests

        return [(entry, replace(head, may_preempt=True) if may(head) else head) for entry, head in heads]

    # -- after a decision

    def holds(self, head: QueueEntry, plan: Plan) -> bool:
        """Whether everything that a plan with evictions or nominations speaks of is as it was."""
        pods, leaving = self._cache.pods, self._cache.residents.leaving
        generation = self._cache.rooms.generation
        if any(generation(node) != at for node, at in (plan.generations or {}).items()):
            return False
        for step in plan.steps:
            record = pods.get(step.pod)
            if record is None or record.uid != step.uid or record.terminating:
                return False
            if isinstance(step, Evict) and (
                step.uid in leaving or (record.node or self._cache.assumed.get(record.uid)) != step.node
            ):
                return False
        return True

    def nominate(self, plan: Plan) -> Iterator[Write]:
        """Notes where the pods go once there is room; in force at once."""
        for step in plan.steps:
            if isinstance(step, Nominate):
                record = self._cache.pods[step.pod]
                if record.nominated_node != step.node:
                    self._cache.put_pod(replace(record, nominated_node=step.node))
                    yield self._reports.nominate(record, step.node)

    def clear(self, head: QueueEntry, diagnosis: Diagnosis, plan: Plan | None) -> Iterator[Write]:
        """Clears nominations of an entry that failed (statement 58).

        Where nobody is evicted, those of pods that would have fitted or met an error, or without any node; otherwise
        all but those to rooms that are being freed, lest they keep others out for nothing.
        """
        told = {step.uid: step.node for step in plan.steps if isinstance(step, Nominate)} if plan else {}
        for record in head.pods:
            if record.uid in told:
                if not self.on:
                    yield self._reports.nominate(record, told[record.uid])
            elif record.nominated_node is not None and not self._keeps_nomination(record, diagnosis):
                yield self._reports.nominate(record, "")

    def _keeps_nomination(self, record: PodRecord, diagnosis: Diagnosis) -> bool:
        if self.on:
            tried = diagnosis.preemption
            return tried is not None and tried.outcome is PreemptionOutcome.ONGOING
        own = diagnosis.pods.get(record.key)
        failed = diagnosis.verdict is Verdict.UNSCHEDULABLE
        return failed and own is not None and bool(own.rejections) and bool(own.nodes)

    def release(self, pods: Iterable[PodRecord]) -> Iterator[Write]:
        """The room that is held for pods which cannot be placed is anybody's."""
        for record in pods:
            if record.nominated_node is not None:
                yield self._reports.nominate(record, "")

    def gave_up(self, entry: Entry, pods: Iterable[PodRecord], now: Instant) -> Iterator[Write]:
        """It could not be bound for too long: whoever comes instead is not evicted at once for another try."""
        known = self._rests.get(entry.key)
        times = known.times + 1 if known is not None and known.uid == entry.uid else 1
        until = now + min(FIRST_REST << (times - 1), LONGEST_REST)
        self._rests = {key: rest for key, rest in self._rests.items() if now < rest.until + LONGEST_REST}
        self._rests[entry.key] = Rest(entry.uid, times, until)
        yield from self.release(pods)

    def accepted(self, key: EntryKey) -> None:
        """A pod of this entry was bound."""
        self._rests.pop(key, None)

    def evict(self, head: QueueEntry, preemption: Preemption, now: Instant) -> Iterator[Write]:
        """Asks for every eviction: first the condition, and once that is answered the deletion.

        Pods whose decision can be taken back are not deleted (P26).
        """
        asked = Round(head.key.kind, now)
        for victim in preemption.victims:
            record = self._cache.pods[victim.pod]
            if self.reject(victim.uid, now):
                yield from self._reports.preempted(record, _note(head.key, head.uid, victim.node), now)
                continue
            asked.unanswered += 1
            self._cache.residents.leaving.add(victim.uid)
            self._evictions[victim.uid] = Eviction(record, head.key, head.uid, victim, asked)
            key = victim.pod
            body = {"metadata": {"uid": victim.uid}, "status": {"conditions": [self._condition(head.key.kind, now)]}}
            request = writes.patch("pods", key.namespace, key.name, body, STRATEGIC_PATCH, subresource="status")
            yield Write(request, EvictTag(victim.uid, deletion=False))
        for group in preemption.groups if asked.unanswered else ():
            body = {"status": {"conditions": [self._condition(head.key.kind, now)]}}
            namespace, name = group.key
            request = writes.patch(RESOURCE[group.kind], namespace, name, body, STRATEGIC_PATCH, subresource="status")
            yield Write(request)

    def _condition(self, kind: EntryKind, now: Instant) -> Mapping[str, str]:
        noun = "pod" if kind is EntryKind.POD else "podgroup"
        return {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{self._name}: preempting to accommodate a higher priority {noun}",
            "lastTransitionTime": to_time(now),
        }

    def answered(self, tag: EvictTag, response: Response, now: Instant) -> Iterator[Write]:
        """What follows the answer to one of the two writes."""
        eviction = self._evictions.get(tag.uid)
        if eviction is None:
            return
        key = eviction.record.key
        if response.status == 404 or (response.status == 409 and tag.deletion):
            self._over(tag.uid, now)  # It is gone already, or another one has its name.
        elif not tag.deletion:
            yield Write(writes.delete("pods", key.namespace, key.name, uid=tag.uid), EvictTag(tag.uid, deletion=True))
        elif response.ok:
            self._ended(tag.uid, now)
            note = _note(eviction.preemptor, eviction.preemptor_uid, eviction.victim.node)
            yield from self._reports.preempted(eviction.record, note, now)
        else:
            eviction.round.failed = True
            if response.status < 500 and response.status not in _FOR_NOW:
                self._cache.residents.spared[tag.uid] = now + SPARED
            self._over(tag.uid, now)
            self._failed.append(eviction.preemptor)

    def _over(self, uid: str, now: Instant) -> None:
        self._ended(uid, now)
        self._cache.residents.leaving.discard(uid)

    def _ended(self, uid: str, now: Instant) -> None:
        asked = self._evictions.pop(uid).round
        asked.unanswered -= 1
        if not asked.unanswered:
            self.carried_out(asked, now)

    def note(self, entry: Entry, diagnosis: Diagnosis, priority: int) -> None:
        """An entry failed: what it waits for, if others run that could make room."""
        self._stuck.pop(entry.key, None)
        self._awaited.pop(entry.key, None)
        if not self.on or diagnosis.verdict is not Verdict.UNSCHEDULABLE:
            return
        preemption = diagnosis.preemption
        if preemption is not None and preemption.awaited:
            self._awaited[entry.key] = set(preemption.awaited)
        elif preemption is None or preemption.outcome is PreemptionOutcome.NO_VICTIMS:
            self._stuck[entry.key] = priority

    # -- as things change

    def cured(self, left: Iterable[PodRecord], now: Instant, *, nodes: bool) -> Iterator[tuple[EntryKey, bool]]:
        """Entries to be tried again, and whether at once: those that waited for room that is free now, and those for
        which evicting may help by now, since somebody more important left, or a node (`nodes`) or a group changed.
        """
        failed, self._failed = self._failed, []
        yield from ((key, False) for key in failed)
        regrouped = self._cache.residents.take_regrouped()
        if nodes:
            yield from ((key, False) for key in tuple(self._awaited))
        highest: int | None = None
        for record in left:
            if record.uid in self._evictions:
                self._ended(record.uid, now)
            priority = self._priority(record)
            highest = priority if highest is None else max(highest, priority)
            for key, awaited in tuple(self._awaited.items()):
                awaited.discard(record.uid)
                if not awaited:
                    del self._awaited[key]
                    yield key, True
        lowest = self._cache.residents.lowest
        if not self._stuck or lowest is None or (highest is None and not regrouped and not nodes):
            return
        for key, priority in tuple(self._stuck.items()):
            if priority > lowest and (nodes or regrouped or (highest is not None and highest >= priority)):
                del self._stuck[key]
                yield key, False

    def _priority(self, record: PodRecord) -> int:
        group = self._cache.groups.get(Key(record.key.namespace, record.group)) if record.group else None
        return record.priority if group is None else max(record.priority, group.priority)

    def waits(self, key: EntryKey) -> bool:
        """Whether it waits for evicted pods to go."""
        return key in self._awaited

    def forget(self, keys: Iterable[EntryKey]) -> None:
        for key in keys:
            self._stuck.pop(key, None)
            self._awaited.pop(key, None)


def _note(preemptor: EntryKey, uid: str, node: str) -> str:
    """What the event on a victim says (P22)."""
    where = node if preemptor.kind is EntryKind.POD else "cluster"
    return f"Preempted by {NOUN[preemptor.kind]} {uid} on node {where}"
