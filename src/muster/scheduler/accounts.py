"""What came of each eviction: the binding of the preemptor, or a recorded reason why there is none."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from muster.api.instant import Instant
from muster.api.machine import Write
from muster.model.accounts import Account, Ending, sentence
from muster.model.diagnosis import Diagnosis, Preemption, PreemptionOutcome
from muster.model.keys import Key
from muster.model.plan import Nominate, Plan
from muster.model.records import EntryKey, EntryKind, NodeRecord, Phase, PodClass, PodRecord, QueueEntry
from muster.model.resizing import ResizeDiagnosis
from muster.scheduler.cache import Cache
from muster.scheduler.queue import Queue
from muster.scheduler.recording import root_group
from muster.scheduler.reports import Reports, Subject, of_group, of_pod

KEPT = 1_000
"""So many closed accounts are remembered; what came of older ones is in the events."""
_STILL = frozenset({PreemptionOutcome.ONGOING, PreemptionOutcome.AWAITED, PreemptionOutcome.FOUND})


@dataclass(slots=True)
class _Open:
    """An account with what the cluster was like when it was opened."""

    account: Account
    subject: Subject
    nodes: Mapping[str, NodeRecord | None]
    """Those where room is made, as they were."""
    there: frozenset[str]
    """Uids of the pods that held room on them."""
    asks: tuple[object, ...]
    ran: frozenset[str]
    """Uids of the members that ran."""
    cls: PodClass | None = None
    """What a pod that is to be resized asks for."""
    refused: set[str] = field(default_factory=set)


class Accounts:
    """Opened with an eviction, closed with what came of it; a reason is told by an event on the preemptor."""

    def __init__(self, cache: Cache, queue: Queue, reports: Reports) -> None:
        self._cache, self._queue, self._reports = cache, queue, reports
        self._open: dict[EntryKey, _Open] = {}
        self.closed: deque[Account] = deque(maxlen=KEPT)

    def of(self, key: EntryKey) -> tuple[Account, ...]:
        """What was evicted for an entry, oldest first."""
        found = [account for account in self.closed if account.preemptor == key]
        return (*found, *([self._open[key].account] if key in self._open else ()))

    @property
    def open(self) -> tuple[Account, ...]:
        """Those whose room is still waited for."""
        return tuple(it.account for it in self._open.values())

    # -- opened

    def evict(self, head: QueueEntry, plan: Plan, preemption: Preemption, now: Instant) -> Iterator[Write]:
        """Pods are evicted for this entry. Where some were before, that is closed: it did not do.

        Without victims the plan only holds room that others leave anyway, those evicted before among them.
        """
        if not preemption.victims:
            return
        yield from self._fail(head, now)
        account = Account(head.key, head.uid, now, preemption.victims, resize=head.resize)
        nodes = {step.node for step in plan.steps if isinstance(step, Nominate)}
        nodes |= {victim.node for victim in preemption.victims}
        self._open[head.key] = self._opened(account, head, nodes)

    def resized(self, head: QueueEntry, plan: Plan, diagnosis: Diagnosis, now: Instant) -> Iterator[Write]:
        """A resize was decided: pods are evicted for it, or it waits, or will not have its room."""
        tried = diagnosis.preemption
        if plan.steps and tried is not None:
            yield from self.evict(head, plan, tried, now)
            if head.key in self._open:
                self._open[head.key].cls = head.pods[0].cls
        elif isinstance(diagnosis, ResizeDiagnosis) and diagnosis.lacking:
            yield from self.failed(head, diagnosis, now)

    def resume(self, now: Instant) -> None:
        """A scheduler that starts: whoever is nominated waits for room that was made before."""
        for key, entry in self._queue.entries.items():
            if entry.hold is None and key not in self._open:
                nodes = {it.nominated_node for it in self._queue.pending(key) if it.nominated_node}
                if nodes:
                    account = Account(key, entry.uid, now, ())
                    self._open[key] = self._opened(account, self._queue.head(entry), nodes)

    def _opened(self, account: Account, head: QueueEntry, nodes: Iterable[str]) -> _Open:
        group = root_group(self._cache, head.key)
        subject = of_pod(head.pods[0]) if group is None else of_group(group)
        before = {name: self._cache.nodes.get(name) for name in nodes}
        there = frozenset(pod.uid for pod in self._on(before))
        return _Open(
            account, subject, before, there, _asks(head), frozenset(pod.uid for pod in self._members(head.key))
        )

    def refused(self, uid: str) -> None:
        """The server would not have this pod evicted."""
        for it in self._open.values():
            it.refused.update(victim.uid for victim in it.account.victims if victim.uid == uid)

    # -- closed

    def look(self, key: EntryKey, now: Instant) -> Iterator[Write]:
        """Something happened to an entry or its pods."""
        it = self._open.get(key)
        if it is None:
            return
        if it.account.resize:
            ending = self._of_resize(it)
            if ending is not None:
                yield from self._close(it, ending, now)
            return
        entry = self._queue.entries.get(key)
        if any(pod.uid not in it.ran and pod.uid not in self._cache.assumed for pod in self._members(key)):
            yield from self._close(it, Ending.BOUND, now)
        elif entry is not None:
            if entry.uid != it.account.uid:
                yield from self._close(it, Ending.GONE, now)
            elif entry.hold is not None:
                yield from self._close(it, Ending.CHANGED, now)
        elif all(pod.uid in it.ran for pod in self._members(key)):
            yield from self._close(it, Ending.GONE, now)

    def _of_resize(self, it: _Open) -> Ending | None:
        """What became of a pod that was to grow; None: it still waits for its kubelet."""
        record = self._cache.pods.get(it.account.preemptor.key)
        if record is None or record.uid != it.account.uid or record.terminating or record.phase is not Phase.BOUND:
            return Ending.GONE
        if record.growth is not None:
            return None
        if record.cls != it.cls:
            return Ending.CHANGED
        has = dict(record.usage if record.allocated is None else record.allocated)
        return Ending.RESIZED if all(has.get(name, 0) >= wants for name, wants in record.cls.requests) else None

    def failed(self, head: QueueEntry, diagnosis: Diagnosis, now: Instant) -> Iterator[Write]:
        """It was tried again and does not fit, without anybody's going being waited for."""
        tried = diagnosis.preemption
        if tried is None or tried.outcome not in _STILL:
            yield from self._fail(head, now)

    def unbound(self, key: EntryKey, now: Instant) -> Iterator[Write]:
        """The server refused to bind it until it gave the room back."""
        if key in self._open:
            yield from self._close(self._open[key], Ending.UNBOUND, now)

    def _fail(self, head: QueueEntry, now: Instant) -> Iterator[Write]:
        it = self._open.get(head.key)
        if it is not None:
            ending, who = self._cause(it, head)
            yield from self._close(it, ending, now, who)

    def _cause(self, it: _Open, head: QueueEntry) -> tuple[Ending, tuple[str, ...]]:
        lost = tuple(
            sorted(name for name, was in it.nodes.items() if was is None or self._cache.nodes.get(name) != was)
        )
        if lost:
            return Ending.NODE_LOST, lost
        mine = {pod.uid for pod in (*head.pods, *self._members(head.key))}
        came = [pod for pod in self._on(it.nodes) if pod.uid not in it.there and pod.uid not in mine]
        held = (one for one in self._cache.snapshot().nominations if one.node in it.nodes and one.uid not in mine)
        taken = [(-pod.priority, str(pod.key)) for pod in came]
        taken += [(-one.priority, str(one.pod)) for one in held if one.priority >= head.priority]
        if taken:
            return Ending.ROOM_TAKEN, tuple(f"{name} (priority {-order})" for order, name in sorted(taken))
        if _asks(head) != it.asks:
            return Ending.CHANGED, ()
        if it.refused:
            return Ending.REFUSED, tuple(str(one.pod) for one in it.account.victims if one.uid in it.refused)
        return Ending.ELSEWHERE, ()

    def _close(self, it: _Open, ending: Ending, now: Instant, who: tuple[str, ...] = ()) -> Iterator[Write]:
        account = replace(it.account, ending=ending, ended_at=now, who=who)
        del self._open[account.preemptor]
        self.closed.append(account)
        if ending not in (Ending.BOUND, Ending.RESIZED):
            yield from self._reports.wasted(it.subject, sentence(account), now)

    # -- reading

    def _on(self, nodes: Mapping[str, object]) -> Iterator[PodRecord]:
        """The pods that hold room on these nodes, assumed ones included."""
        return (pod for pod in self._cache.running().pods if pod.node in nodes)

    def _members(self, key: EntryKey) -> Iterator[PodRecord]:
        """The pods of an entry that have a node, assumed ones included, and for a single pod, once it has ended too."""
        if key.kind is EntryKind.POD:
            record = self._cache.pods.get(key.key)
            if record is not None and (record.phase is not Phase.PENDING or record.uid in self._cache.assumed):
                yield record
            return
        leaves: Iterable[Key] = self._cache.forest.leaves(key.key) if key.kind is EntryKind.COMPOSITE else (key.key,)
        for leaf in leaves:
            members = self._cache.members.get(leaf)
            yield from members.running.values() if members is not None else ()


def _asks(head: QueueEntry) -> tuple[object, ...]:
    """What of an entry decides whether it fits."""
    minimums: tuple[object, ...] = (head.group,)
    if head.tree is not None:
        minimums = tuple(leaf.record for leaf in head.tree.leaves())
    minimum = tuple(getattr(group, "min_count", 1) for group in minimums)
    return frozenset((pod.uid, pod.cls, pod.priority) for pod in head.pods), minimum, head.running, head.succeeded
