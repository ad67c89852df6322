"""What follows the answers to bindings: pods that are bound, tried again, or come back to the queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from muster.api.calls import Response
from muster.api.instant import Instant
from muster.model.keys import Key
from muster.model.records import EntryKey
from muster.scheduler import diagnoses
from muster.scheduler.accounts import Accounts
from muster.scheduler.bindings import UNTOLD, Binding, Step
from muster.scheduler.commit import Commit
from muster.scheduler.devices import CLAIM
from muster.scheduler.effects import SchedulerEffect
from muster.scheduler.entries import LONGEST_BACKOFF, News
from muster.scheduler.heldback import HeldBack
from muster.scheduler.preempting import Preempting
from muster.scheduler.queue import PATIENCE, Queue
from muster.scheduler.recording import Record, RecordTag, Saved, root_group
from muster.scheduler.reports import Reports
from muster.scheduler.volumes import Topic
from muster.scheduler.watching import Watching

CONFLICT = 409
"""To a binding: the pod is bound already, or another one by now. The watch tells which; until then its slot is kept."""


class Underway:
    """Drives what `Commit` holds, and tells queue and users what becomes of it."""

    def __init__(
        self,
        commit: Commit,
        queue: Queue,
        watching: Watching,
        reports: Reports,
        heldback: HeldBack,
        preempting: Preempting,
        accounts: Accounts,
    ) -> None:
        self._commit, self._queue, self._watching = commit, queue, watching
        self._reports, self._heldback, self._cache = reports, heldback, commit.cache
        self._preempting, self._accounts = preempting, accounts

    def bound(self, binding: Binding, now: Instant) -> Iterator[SchedulerEffect]:
        if binding.step is Step.BOUND:
            self._preempting.accepted(binding.entry)
            yield from self.announce(binding, now)
        elif binding.step is Step.DROPPED:
            self._back_to_queue(binding.entry, binding.message, now)
        elif binding.step is Step.RETRYING and binding.attempts == 1 and binding.status != CONFLICT:
            yield from self._reports.refused(binding.record, binding.message, now)

    def announce(self, binding: Binding, now: Instant) -> Iterator[SchedulerEffect]:
        if not binding.quiet:
            binding.quiet = True
            yield from self._reports.bound(binding.record, binding.node, now)

    def retry(self, now: Instant) -> Iterator[SchedulerEffect]:
        """Sends refused bindings again where they can still be carried out; the others give their slots back."""
        for binding in tuple(self._commit.due_retries(now)):
            if binding.step is not Step.RETRYING:
                continue
            trouble = "" if binding.ready else self._commit.trouble(binding)
            if trouble:
                binding.message = trouble
                self._commit.drop(binding)
                yield from self.lost_its_place(binding, now)
            elif self._commit.may_be_sent_again(binding):
                yield from self._commit.send_again(binding, now)
            else:
                self._commit.drop(binding)
                self._commit.drop_hopeless(binding.entry)
                self._watching.refresh(binding.entry, now, News.CURE)

    def claimed(self, now: Instant, *, nodes: bool) -> Iterator[SchedulerEffect]:
        """Looks at pods that wait for claims: what is bound goes on, what cannot be bound any more comes back."""
        moved = {*self._cache.stock.moved, *self._cache.devices.moved}
        yield from self._look(self._commit.claiming.values() if nodes else self._commit.concerned(moved), now)

    def look_at(self, claim: Key, now: Instant) -> Iterator[SchedulerEffect]:
        """A write for a claim for devices was refused."""
        yield from self._look(self._commit.concerned([Topic(CLAIM, claim)]), now)

    def _look(self, bindings: Iterable[Binding], now: Instant) -> Iterator[SchedulerEffect]:
        claiming = self._commit.claiming
        for binding in tuple(bindings):
            if claiming.get(binding.record.uid) is not binding:
                continue  # Taken back with another one of its group.
            trouble = self._commit.trouble(binding)
            if trouble:
                binding.message = trouble
                self._commit.drop(binding)
                yield from self.lost_its_place(binding, now)
            elif binding.step is Step.CLAIMING and not self._commit.lacks_claims(binding.record):
                yield from self._go_on(binding, now)

    def _go_on(self, binding: Binding, now: Instant) -> Iterator[SchedulerEffect]:
        """Its claims are bound: so is the pod, unless it has to wait for others or does not fit any more."""
        if self._commit.may_be_sent_again(binding):
            yield from self._commit.send_again(binding, now)
        else:
            binding.message = "its claims were bound where it does not fit any more"
            self._commit.drop(binding)
            yield from self.lost_its_place(binding, now)

    def let_go(self, now: Instant) -> Iterator[SchedulerEffect]:
        """Members that waited for claims of others go on once these are bound, or come back if they never will be."""
        parties = self._commit.parties
        while changed := parties.take_changed():
            for key in changed:
                yield from self._come_back(key, "its minimum is out of reach", now)
                for binding in parties.free(key):
                    if self._commit.bindings.get(binding.record.uid) is binding and binding.step is Step.READY:
                        yield from self._go_on(binding, now)

    def _come_back(self, key: EntryKey, why: str, now: Instant) -> Iterator[SchedulerEffect]:
        dropped = self._commit.drop_short(key)
        for binding in dropped:
            yield from self._reports.claims_failed(binding.record, f"waited with its group: {why}", now)
        if dropped:
            self._back_to_queue(key, why, now)

    def recorded(self, tag: RecordTag, response: Response, now: Instant) -> Iterator[SchedulerEffect]:
        """The answer to a plan that is to be recorded: its pods are bound now, or later, or not at all."""
        answer = self._commit.recording.answered(tag, response, now)
        if answer is None:
            return
        record, saved = answer
        if saved is Saved.REFUSED:
            group = root_group(self._cache, record.entry)
            if record.attempts == 1 and group is not None:
                yield from self._reports.unrecorded(group, record.message, now)
            for binding in record.waiting:
                binding.message = record.message
        elif saved is Saved.DONE and self._commit.may_be_bound(record):
            self._commit.recording.replanned.pop(record.entry, None)
            yield from self._commit.bind_recorded(record, now)
        else:
            self._replan(record, now)

    def _replan(self, record: Record, now: Instant) -> None:
        """The cluster has changed since the plan was made: all of it is decided anew, the third time with a backoff."""
        replanned = self._commit.recording.replanned
        times = replanned[record.entry] = replanned.get(record.entry, 0) + 1
        self._commit.drop_recording(record)
        if times > PATIENCE:
            self._back_to_queue(record.entry, "the cluster changes while the plan is recorded", now)
        else:
            self._watching.refresh(record.entry, now, News.CURE)

    def record_again(self, now: Instant) -> Iterator[SchedulerEffect]:
        """Sends plans again that were refused, or gives their slots back."""
        recording = self._commit.recording
        for record in recording.due_records(now):
            group = root_group(self._cache, record.entry)
            if group is None or group.uid != record.uid or not self._commit.may_be_bound(record):
                self._replan(record, now)
            elif recording.is_stuck(record, now):
                self._commit.drop_recording(record)
                yield from self._give_room_back(record.entry, record.message, now)
            else:
                yield from recording.write(record)

    def reject(self, uid: str, now: Instant) -> bool:
        """Takes back the decision about a pod that waits to be bound (P26); False: it does not wait."""
        binding = self._commit.bindings.get(uid)
        if binding is None or binding.step not in UNTOLD:
            return False
        binding.message = "its room was taken by something more important"
        record = self._commit.recording.records.get(binding.entry) if binding.step is Step.RECORDING else None
        self._commit.drop(binding)
        if record is not None:
            self._commit.drop_out_of_reach(record)
        self._commit.drop_hopeless(binding.entry)
        self._commit.drop_short(binding.entry)
        self._watching.refresh(binding.entry, now, News.CURE)
        return True

    def lost_its_place(self, binding: Binding, now: Instant) -> Iterator[SchedulerEffect]:
        """A pod whose claims could not be bound is pending again, and so are others of no use without it."""
        yield from self._reports.claims_failed(binding.record, binding.message, now)
        yield from self._come_back(binding.entry, f"{binding.record.key.name}: {binding.message}", now)
        self._back_to_queue(binding.entry, binding.message, now)

    def give_up(self, now: Instant) -> Iterator[SchedulerEffect]:
        for key, message in self._commit.give_up(now):
            yield from self._come_back(key, message, now)
            yield from self._give_room_back(key, message, now)

    def _give_room_back(self, key: EntryKey, message: str, now: Instant) -> Iterator[SchedulerEffect]:
        """It was refused for too long: others get a turn, in the room that was made for it too."""
        self._back_to_queue(key, message, now, LONGEST_BACKOFF)
        entry = self._queue.entries.get(key)
        if entry is not None:
            yield from self._preempting.gave_up(entry, self._queue.pending(key), now)
            yield from self._accounts.unbound(key, now)

    def _back_to_queue(self, key: EntryKey, message: str, now: Instant, wait: Instant | None = None) -> None:
        """What was placed and could not be bound is pending again, behind a backoff, so that others get a turn."""
        self._watching.refresh(key, now)
        entry = self._queue.entries.get(key)
        if entry is not None:
            pending = len(self._queue.pending(key))
            revision, bound = self._cache.rooms.revision, self._commit.bound(key)
            diagnosis = diagnoses.binding_refused(key, entry.uid, revision, message, pods=pending, bound=bound)
            self._queue.back_off(entry, diagnosis, now, wait)
            self._heldback.note(key, now)
