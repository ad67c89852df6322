"""What a scheduler finds begun when it starts to lead: recorded plans of gangs, finished before all else (M11)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from muster.api.instant import Instant
from muster.api.machine import Write
from muster.model.diagnosis import Diagnosis, Verdict
from muster.model.plan import Bind, Plan
from muster.model.records import EntryKey, PodRecord, QueueEntry
from muster.scheduler.commit import Commit
from muster.scheduler.entries import Entry, State
from muster.scheduler.queue import Queue
from muster.scheduler.recording import root_group
from muster.scheduler.reports import MANY, Reports
from muster.scheduler.slots import Slot, slot_of

Placements = Sequence[tuple[PodRecord, str]]


class Takeover:
    """Carries out what is recorded as far as it can be; what cannot is decided anew, the whole of it."""

    def __init__(self, commit: Commit, queue: Queue, reports: Reports, scheduler_name: str) -> None:
        self._commit, self._queue, self._reports, self._name = commit, queue, reports, scheduler_name

    def finish(self, now: Instant) -> Iterator[Write]:
        """Takes up each plan that somebody else has recorded, in order of the queue."""
        found = self._commit.recording.left_behind()
        for key in self._queue.in_order(found):
            entry = self._queue.entries.get(key)
            if entry is not None and entry.hold is None and entry.state is not State.DECIDING:
                yield from self._finish(entry, found[key], now)

    def _finish(self, entry: Entry, slots: Mapping[Slot, str], now: Instant) -> Iterator[Write]:
        head = self._queue.head(entry)
        wanted = [(record, slots[slot]) for record in head.pods if (slot := slot_of(record)) in slots]
        plan = self._plan(head, wanted)
        if plan is None:
            return
        text, bound = self._commit.recording.found[entry.key], len(plan.binds)
        group = root_group(self._commit.cache, entry.key)
        if group is not None and bound >= MANY:
            yield from self._reports.finished(group, bound, len({step.node for step in plan.binds}), now)
        yield from self._commit.start(head, plan, now, quiet=bound >= MANY, recorded=text)
        self._queue.placed(entry, head, _diagnosis(entry.key, head, plan), now, trimmed=True)

    def _plan(self, head: QueueEntry, wanted: Placements) -> Plan | None:
        """All of it, or what of it is possible still, if that is enough for the minimum; None: nothing."""
        if not wanted or not self._agree(head):
            return None
        for placements in (wanted, [one for one in wanted if self._commit.recheck.fits([one])]):
            steps = tuple(Bind(record.key, record.uid, node) for record, node in placements)
            plan = Plan(self._commit.cache.rooms.revision, steps)
            if steps and self._commit.recheck.holds(head, plan, frozenset(step.node for step in steps)):
                return plan
        return None

    def _agree(self, head: QueueEntry) -> bool:
        """Whether the members are alike in what all of them must be, as they were when the plan was made."""
        if any(record.scheduler_name != self._name for record in head.pods):
            return False
        return len({(record.priority, record.preemption_policy) for record in head.pods}) == 1


def _diagnosis(key: EntryKey, head: QueueEntry, plan: Plan) -> Diagnosis:
    return Diagnosis(
        key,
        head.uid,
        Verdict.SCHEDULED,
        plan.revision,
        min_count=head.group.min_count if head.group else head.tree.record.min_count if head.tree else 1,
        running=head.running,
        succeeded=head.succeeded,
        pending=len(head.pods),
        placed=len(plan.binds),
    )
