"""The scheduling machine: watch events in, bindings, conditions, events and decisions to take out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from muster.api.gates import FeatureGates
from muster.api.instant import Instant
from muster.api.machine import Listed, Observed, Refused, WakeAt, Woken, Written
from muster.engine.profile import Profile
from muster.engine.work import Work
from muster.model.decision import Decision
from muster.model.diagnosis import Diagnosis, Verdict
from muster.model.plan import Plan
from muster.model.records import EntryKey, EntryKind, GroupRecord, PodRecord, QueueEntry
from muster.scheduler import diagnoses, holds
from muster.scheduler.accounts import Accounts
from muster.scheduler.allocating import DeviceTag, keeps_away
from muster.scheduler.bindings import BindTag, Step
from muster.scheduler.broken import only_deficit
from muster.scheduler.cache import DEFAULT_SCHEDULER, Cache
from muster.scheduler.commit import Commit
from muster.scheduler.effects import Decide, SchedulerEffect
from muster.scheduler.entries import Entry, News
from muster.scheduler.events import Decided, Pause, Resume, SchedulerEvent
from muster.scheduler.families import FAMILIES, Families
from muster.scheduler.heldback import HeldBack
from muster.scheduler.ingest import Ingest
from muster.scheduler.metrics import Metrics
from muster.scheduler.neighbours import Move
from muster.scheduler.prebind import VolumeTag
from muster.scheduler.preempting import EvictTag, Preempting
from muster.scheduler.queue import MOST_GROUPS, Queue
from muster.scheduler.recording import ClearTag, RecordTag
from muster.scheduler.reports import MANY, ConditionTag, EventTag, Reports
from muster.scheduler.residents import BUDGETS
from muster.scheduler.resizes import Resizes
from muster.scheduler.rooms import Touch, missed
from muster.scheduler.stocktaking import DEVICES, STORAGE
from muster.scheduler.takeover import Takeover
from muster.scheduler.underway import Underway
from muster.scheduler.volumes import Topic
from muster.scheduler.watching import COMPOSITES, GROUPS, NAMESPACES, NODES, PODS, Watching

BACKOFF, SAFETY, RETRY, GIVE_UP, REPORT, REPEAT = "backoff", "safety", "retry", "give-up", "report", "repeat"
CLAIMS, RECORD, CLEAR, RESIZE, ALLOCATE = "claims", "record", "clear", "resize", "allocate"
"""Tags of the timers."""


class Scheduler:
    """A `Machine` that also emits `Decide` and takes `Decided`, `Pause` and `Resume`.

    Args:
        profile: the plugins and weights that `decide` is called with.
        scheduler_name: pods that name another scheduler are counted and otherwise left alone.
        gates: GenericWorkload off: `schedulingGroup` is ignored and PodGroups are not watched.
        levels: topology label keys, widest first: the order of nodes, and what keeps groups together (M16); none: those
            of the profile.
        budget: what a decision may spend on search.
        preemption: pods of lower priority are evicted where that makes room.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        scheduler_name: str = DEFAULT_SCHEDULER,
        gates: FeatureGates | None = None,
        levels: Sequence[str] = (),
        budget: Work | None = None,
        preemption: bool = False,
    ) -> None:
        gates = gates or FeatureGates()
        self.cache = Cache(scheduler_name, levels or profile.levels, checked=gates.checks_hierarchies)
        self.queue = Queue(self.cache, scheduler_name, profile)
        self.commit = Commit(self.cache, profile)
        self.paused = False
        self.resources = _watched(gates, spread=bool(profile.spread), preemption=preemption)
        """Watched resources, in the order in which they must be listed first."""
        self._profile = profile
        self._budget = budget or Work()
        self._reports = Reports(self.cache, scheduler_name, placements=gates.topology)
        self._heldback = HeldBack(self.queue)
        self._preempting = Preempting(self.cache, self._reports, scheduler_name, on=preemption)
        ingest, kept = _ingest(gates), Families(profile.spread)
        self.resizes = Resizes(self.cache, scheduler_name, on=preemption and gates.resize_preemption)
        self.accounts = Accounts(self.cache, self.queue, self._reports)
        """What came of evictions."""
        known = (self.cache, self.queue, self.commit)
        self._watching = Watching(ingest, *known, self._reports, self._heldback, kept, self.resizes, self.accounts)
        self._underway = Underway(
            self.commit, self.queue, self._watching, self._reports, self._heldback, self._preempting, self.accounts
        )
        self._preempting.reject = self._underway.reject
        self.metrics, self._asked_at = Metrics(scheduler_name), 0
        self._preempting.carried_out = self.metrics.evicted
        self._unlisted = set(self.resources)
        self._timers: dict[str, Instant | None] = {}
        self._takeover = Takeover(self.commit, self.queue, self._reports, scheduler_name)
        self._fresh = True
        """Nothing was decided yet, or not since it was paused: somebody else may have begun what is to be finished."""
        self._ticket = 0
        self._deciding: list[tuple[Entry, QueueEntry]] | None = None
        self._moved_meanwhile, self._topics_meanwhile = set[Move](), set[Topic]()
        self._meanwhile: dict[str, Touch] = {}
        """Nodes that got better while a decision was under way."""

    # -- reading

    @property
    def diagnoses(self) -> Mapping[EntryKey, Diagnosis]:
        """Why each waiting entry waits. Entries that are about to be decided, or are bound, have none."""
        return diagnoses.Diagnoses(self.queue, self.commit, self.resizes)

    def idle(self, now: Instant) -> bool:
        """Whether nothing is under way or can go on at `now` without a new event: no decision, write or due timer."""
        if self._deciding is not None or any(b.step is Step.BINDING for b in self.commit.bindings.values()):
            return False
        if any(binding.unanswered > 0 for binding in self.commit.claiming.values()):
            return False
        if self.commit.allocating.busy or any(
            record.unanswered > 0 for record in self.commit.recording.records.values()
        ):
            return False
        if (self.queue.has_active or self.resizes.has_active) and not self.paused:
            return False
        return not any(at is not None and at <= now for at in self._timers.values())

    # -- events

    def handle(self, event: SchedulerEvent, now: Instant) -> Sequence[SchedulerEffect]:
        effects = list(self._effects(event, now))
        if self.commit.claiming and isinstance(event, Observed | Listed):
            effects.extend(self._underway.claimed(now, nodes=event.resource == NODES))
            if event.resource in (GROUPS, COMPOSITES):
                self.commit.parties.look_again()
        self.commit.allocating.moved(self.cache.devices.moved)
        effects.extend(self._underway.let_go(now))
        self.metrics.bound(self.commit.take_landed(), now)
        self._wake_preemptors(now)
        self._wake(now)
        effects.extend(self._take_over(now))
        effects.extend(self._decide(now))
        effects.extend(self.commit.allocating.flush(now))
        effects.extend(self._set_timers(now))
        return effects

    def _effects(self, event: SchedulerEvent, now: Instant) -> Iterator[SchedulerEffect]:
        if isinstance(event, Observed):
            yield from self._watching.observed(event, now)
            for binding in self.commit.take_arrived():
                yield from self._underway.announce(binding, now)
        elif isinstance(event, Written | Refused):
            yield from self._answered(event, now)
        elif isinstance(event, Decided):
            yield from self._decided(event, now)
        elif isinstance(event, Woken):
            yield from self._woken(str(event.tag), now)
        elif isinstance(event, Listed):
            yield from self._watching.listed(event, now)
            self._unlisted.discard(event.resource)
            for binding in self.commit.take_arrived():
                yield from self._underway.announce(binding, now)
        elif isinstance(event, Pause | Resume):
            self._fresh = self._fresh or self.paused
            self.paused = isinstance(event, Pause)

    def _wake(self, now: Instant) -> None:
        topics = self.cache.stock.take_moved() | self.cache.devices.take_moved()
        if topics:
            self.queue.wake_storing(topics, now)
            if self._deciding is not None:
                self._topics_meanwhile |= topics
        moved = self.cache.neighbours.take_moved()
        if moved:
            self.queue.wake_neighbours(moved, now)
            if self._deciding is not None:
                self._moved_meanwhile |= moved
        touched = self.cache.take_touched()
        if touched:
            for node in touched:
                self.resizes.node_changed(node)
            self.queue.wake(touched, now)
            if self._deciding is not None:
                missed(self._meanwhile, touched)

    def _wake_preemptors(self, now: Instant) -> None:
        """Tries again whoever waited for evicted pods that are gone, or whom evicting may help now."""
        left = self.cache.residents.take_left()
        if self._preempting.on:
            nodes = self.cache.residents.take_nodes_changed()
            for key, at_once in tuple(self._preempting.cured(left, now, nodes=nodes)):
                self.resizes.rest(key, now)
                self._watching.refresh(key, now, News.URGENT if at_once else News.CURE)

    def _take_over(self, now: Instant) -> Iterator[SchedulerEffect]:
        """Before the first decision, what was begun by whoever led before is finished (M11)."""
        if self._fresh and self._deciding is None and not self.paused and not self._unlisted:
            self._fresh = False
            yield from self._takeover.finish(now)
            self.accounts.resume(now)

    def _decide(self, now: Instant) -> Iterator[Decide]:
        if self._deciding is None and not self.paused and not self._unlisted:
            self._deciding = self._next(now) or None
        else:
            return
        if self._deciding is not None:
            self._ticket += 1
            self._asked_at = now
            heads, snapshot = tuple(head for _, head in self._deciding), self.cache.snapshot()
            if any(head.may_preempt for head in heads):
                snapshot = replace(snapshot, running=self.cache.running())
            yield Decide(self._ticket, snapshot, heads, self._profile, self._budget)

    def _next(self, now: Instant) -> list[tuple[Entry, QueueEntry]]:
        """What is decided next: heads of the queue, or a resize by itself unless they are more important."""
        if self.resizes.comes_before(self.queue.first):
            return [self.resizes.take()]
        most = 1 if self._preempting.evicted else MOST_GROUPS
        return self._preempting.marked(self.queue.heads(most), now) if self.queue.has_active else []

    # -- timers

    def _set_timers(self, now: Instant) -> Iterator[WakeAt]:
        recording = self.commit.recording
        wanted = {
            BACKOFF: self.queue.backoff_due(),
            SAFETY: self.queue.safety_due(),
            RETRY: self.commit.retry_due(),
            GIVE_UP: self.commit.give_up_due(),
            CLAIMS: self.commit.claims_expire_at(),
            RECORD: recording.due(),
            CLEAR: recording.clear_due(now) if not self._fresh else None,
            REPORT: self._heldback.due(),
            REPEAT: self._reports.repeat_due(),
            RESIZE: self.resizes.due(),
            ALLOCATE: self.commit.allocating.due(),
        }
        for tag, at in wanted.items():
            if self._timers.get(tag) != at:
                self._timers[tag] = at
                yield WakeAt(at, tag)

    def _woken(self, tag: str, now: Instant) -> Iterator[SchedulerEffect]:
        self._timers.pop(tag, None)
        if tag == BACKOFF:
            self.queue.end_backoffs(now)
        elif tag == SAFETY:
            self.queue.retry_long_waiting(now)
        elif tag == RETRY:
            yield from self._underway.retry(now)
        elif tag == GIVE_UP:
            yield from self._underway.give_up(now)
        elif tag == CLAIMS:
            for binding in self.commit.expire_claims(now):
                yield from self._underway.lost_its_place(binding, now)
        elif tag == RECORD:
            yield from self._underway.record_again(now)
        elif tag == CLEAR:
            yield from self.commit.recording.clear(now)
        elif tag == RESIZE:
            self.resizes.woken(now)
        elif tag == REPEAT:
            yield from self._reports.repeat(now)
        elif tag == REPORT:
            for entry, hold in self._heldback.take(now):
                diagnosis = holds.diagnose(self.cache, entry.key, entry.uid, hold)
                pods = self.queue.pending(entry.key)
                self.commit.allocating.let_go(pods, away=False)
                yield from self._held(diagnosis, pods, now)
                yield from self._preempting.release(pods)

    def _held(self, diagnosis: Diagnosis, pods: Sequence[PodRecord], now: Instant) -> Iterator[SchedulerEffect]:
        key, cache = diagnosis.entry, self.cache
        if key.kind is EntryKind.COMPOSITE:
            wrong = diagnosis.verdict is Verdict.ERROR
            everything = [group for group, _ in cache.forest.everything(key.key)]
            below = [group for group in everything if wrong or isinstance(group, GroupRecord)]
            yield from self._reports.held(diagnosis, cache.forest.composites[key.key], pods, now, below)
        else:
            yield from self._reports.held(diagnosis, cache.groups.get(key.key), pods, now)

    # -- decisions

    def _decided(self, event: Decided, now: Instant) -> Iterator[SchedulerEffect]:
        if self._deciding is None or event.ticket != self._ticket:
            return
        heads, self._deciding = self._deciding, None
        if event.decision is None:
            for entry, head in heads:
                diagnosis = diagnoses.decision_failed(head, self.cache.rooms.revision, event.error)
                if head.resize:
                    self.resizes.decided(entry, diagnosis, now, failed=True)
                elif self._is_current(entry):
                    yield from self._fail(entry, head, diagnosis, now, retry=True)
        else:
            yield from self._commit_all(heads, event.decision, now)
        self.queue.wake_neighbours(self._moved_meanwhile, now)
        self._moved_meanwhile = set()
        self.queue.wake_storing(self._topics_meanwhile, now)
        self._topics_meanwhile = set()
        self.queue.wake(self._meanwhile, now)
        self._meanwhile = {}
        for entry, _ in heads:
            self._heldback.note(entry.key, now)
            yield from self.accounts.look(entry.key, now)

    def _commit_all(
        self, heads: Sequence[tuple[Entry, QueueEntry]], decision: Decision, now: Instant
    ) -> Iterator[SchedulerEffect]:
        """Takes plan after plan. Once one is not taken, later failures prove nothing: it held room against them."""
        changed = self.commit.recheck.changed_nodes(decision.plans)
        in_doubt = False
        decided = len(decision.plans)
        self._preempting.evicted = decided < len(heads) or any(plan.steps and not plan.binds for plan in decision.plans)
        for (entry, head), plan, diagnosis in zip(heads[:decided], decision.plans, decision.diagnoses, strict=True):
            if head.resize:
                yield from self._resized(entry, head, plan, diagnosis, now)
            elif not self._is_current(entry):
                in_doubt = in_doubt or bool(plan.binds)
            elif plan.steps and not plan.binds:
                yield from self._preempt(entry, head, plan, diagnosis, now)
            elif not plan.binds:
                if in_doubt and diagnosis.verdict is Verdict.UNSCHEDULABLE:
                    self.queue.again(entry, now, stale=False)
                else:
                    yield from self._fail(entry, head, diagnosis, now, plan=plan)
            elif self.commit.recheck.holds(head, plan, changed):
                yield from self._take(entry, head, plan, diagnosis, now, in_doubt=in_doubt)
            else:
                in_doubt = True
                self.queue.again(entry, now, stale=True)
        for entry, _ in heads[decided:]:
            if self._is_current(entry):
                self.queue.again(entry, now, stale=False)

    def _preempt(
        self, entry: Entry, head: QueueEntry, plan: Plan, diagnosis: Diagnosis, now: Instant
    ) -> Iterator[SchedulerEffect]:
        """Evicts, if everything is as it was when that was decided. The nominations come first: they hold the room."""
        assert diagnosis.preemption is not None
        if not self._preempting.holds(head, plan):
            self.queue.again(entry, now, stale=True)
            return
        yield from self.accounts.evict(head, plan, diagnosis.preemption, now)
        yield from self._preempting.nominate(plan)
        yield from self._preempting.evict(head, diagnosis.preemption, now)
        yield from self._fail(entry, head, diagnosis, now, plan=plan)

    def _resized(
        self, entry: Entry, head: QueueEntry, plan: Plan, diagnosis: Diagnosis, now: Instant
    ) -> Iterator[SchedulerEffect]:
        """Evicts for a resize, or lets it wait. Nothing is written to the pod itself (R6)."""
        if plan.steps and not (self.resizes.is_current(entry) and self._preempting.holds(head, plan)):
            self.resizes.again(entry)
            return
        if diagnosis.preemption is not None:
            self.metrics.looked_for_victims(head.key.kind, diagnosis.preemption, now - self._asked_at)
            yield from self._preempting.evict(head, diagnosis.preemption, now)
        yield from self.accounts.resized(head, plan, diagnosis, now)
        self.resizes.decided(entry, diagnosis, now)

    def _is_current(self, entry: Entry) -> bool:
        """Whether what was decided is still the entry of that name: not gone, and not made anew meanwhile."""
        return self.queue.entries.get(entry.key) is entry

    def _take(
        self, entry: Entry, head: QueueEntry, plan: Plan, diagnosis: Diagnosis, now: Instant, *, in_doubt: bool
    ) -> Iterator[SchedulerEffect]:
        """`in_doubt`: an earlier plan was not taken, so members that were left out may fit after all."""
        whole = len(plan.binds)
        plan = only_deficit(self.cache, head, plan)
        bound = len(plan.binds)
        nodes = len({step.node for step in plan.binds})
        self.metrics.decided(head, plan, diagnosis, now - self._asked_at)
        yield from self._reports.placed(head, diagnosis, bound, nodes, now)
        yield from self.commit.start(head, plan, now, quiet=head.key.kind is not EntryKind.POD and bound >= MANY)
        self.commit.could_be_placed(entry, plan)
        more = head.may_preempt and bound < len(head.pods)
        self.queue.placed(entry, head, diagnosis, now, trimmed=in_doubt or bound < whole or more)

    def _fail(
        self,
        entry: Entry,
        head: QueueEntry,
        diagnosis: Diagnosis,
        now: Instant,
        *,
        plan: Plan | None = None,
        retry: bool = False,
    ) -> Iterator[SchedulerEffect]:
        self.metrics.decided(head, plan or Plan(diagnosis.revision), diagnosis, now - self._asked_at)
        yield from self._reports.failed(head, diagnosis, now)
        yield from self._preempting.clear(head, diagnosis, plan)
        yield from self.accounts.failed(head, diagnosis, now)
        self._preempting.note(entry, diagnosis, head.priority)
        if plan is None or not plan.steps:
            self.commit.allocating.let_go(head.pods, away=keeps_away(diagnosis))
        self.queue.failed(entry, head, diagnosis, now, retry=retry)

    # -- bindings

    def _answered(self, event: Written | Refused, now: Instant) -> Iterator[SchedulerEffect]:
        if isinstance(event.tag, BindTag):
            binding = self.commit.outcome(event.tag, event.response, now)
            if binding is not None:
                yield from self._underway.bound(binding, now)
        elif isinstance(event.tag, VolumeTag):
            binding = self.commit.claim_outcome(event.tag, event.response, now)
            if binding is not None and binding.step is Step.DROPPED:
                yield from self._underway.lost_its_place(binding, now)
        elif isinstance(event.tag, DeviceTag):
            yield from self.commit.allocating.answered(event.tag, event.response, now)
            if isinstance(event, Refused):
                yield from self._underway.look_at(event.tag.claim, now)
        elif isinstance(event.tag, EvictTag):
            if isinstance(event, Refused) and event.response.status not in (404, 409):
                self.accounts.refused(event.tag.uid)
            yield from self._preempting.answered(event.tag, event.response, now)
        elif isinstance(event.tag, RecordTag):
            yield from self._underway.recorded(event.tag, event.response, now)
        elif isinstance(event.tag, ClearTag):
            self.commit.recording.cleared(event.tag, event.response, now)
        elif isinstance(event.tag, ConditionTag):
            self._reports.answered(event.tag, event.response, now)
        elif isinstance(event.tag, EventTag) and isinstance(event, Refused):
            self._reports.unknown(event.tag)


def _watched(gates: FeatureGates, *, spread: bool, preemption: bool) -> tuple[str, ...]:
    groups = (*((COMPOSITES,) if gates.composite_pod_group else ()), *((GROUPS,) if gates.generic_workload else ()))
    budgets, families = (BUDGETS,) if preemption else (), FAMILIES if spread else ()
    return (NODES, NAMESPACES, *families, *groups, *budgets, *STORAGE, *DEVICES, PODS)


def _ingest(gates: FeatureGates) -> Ingest:
    features = "NodeDeclaredFeatures" in gates.on
    return Ingest(
        groups=gates.generic_workload, topology=gates.topology, features=features, shares=gates.workload_resource_claims
    )
