"""A pod that is to grow on its node: whether its kubelet would let it, and who has to go for that (KEP-5836).

Only the pod's own node counts, and only amounts (R3). What the kubelet will do is what decides (M17): it counts what is
allocated to the others, and what is desired by the pod that grows; of several it tries the most important one first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from muster.engine.preemption.attempt import NEVER, evictions
from muster.engine.preemption.cost import Cost, Costs
from muster.engine.preemption.units import Field
from muster.engine.preemption.victims import FEW, MOST_STEPS, Exact, lowest_level, spare
from muster.model.diagnosis import Preemption, PreemptionOutcome, Reason, Rejection, Verdict
from muster.model.keys import Key
from muster.model.plan import Plan
from muster.model.records import Amounts, NodeRecord, PodRecord, QueueEntry
from muster.model.resizing import Lacking, ResizeDiagnosis
from muster.model.running import Running
from muster.model.snapshot import Snapshot

FEW_IN_ALL_SETS = 10
"""Of so many units every set is tried, where a resize whose turn comes before may take the room."""
STEPS_AMONG_MANY = 1_000
"""How far the search for the best victims goes among more than `FEW` of them."""


class Grown(NamedTuple):
    plan: Plan
    diagnosis: ResizeDiagnosis


def grow(snapshot: Snapshot, entry: QueueEntry, now: int) -> Grown:
    """Decides one deferred resize: nothing is to be done, somebody is awaited, or these have to go (R4, R5).

    Nobody is evicted unless the kubelet will carry the resize out then; nor a second time while somebody is leaving
    who made room for any resize on the node; nor before the kubelet has made those smaller that are to be.
    """
    pod = entry.pods[0]
    at = snapshot.nodes.index.get(pod.node or "")
    if at is None or snapshot.running is None:
        return Grown(Plan(snapshot.revision), _diagnosis(snapshot, entry, known=False))
    host = Host(snapshot.nodes.records[at], snapshot.running)
    if host.lets(pod):
        return Grown(Plan(snapshot.revision), _diagnosis(snapshot, entry))
    if shrinking := host.shrinking(missing(host.free(), pod)):
        return _nobody(snapshot, entry, host, None, shrinking=shrinking)
    field = Field(snapshot, entry.priority)
    leaving = [gone.uid for gone in field.freeing if gone.node == pod.node]
    awaited = frozenset(leaving)
    if awaited and host.lets(pod, awaited):
        return _nobody(snapshot, entry, host, Preemption(PreemptionOutcome.AWAITED, awaited=awaited))
    if pod.preemption_policy == NEVER:
        return _nobody(snapshot, entry, host, Preemption(PreemptionOutcome.NEVER))
    if host.node.resize_owners:
        return _nobody(snapshot, entry, host, None, owners=host.node.resize_owners)
    awaited |= _for_others(snapshot, entry, host)
    if awaited:
        return _nobody(snapshot, entry, host, Preemption(PreemptionOutcome.ONGOING, awaited=awaited))
    return _evict(snapshot, entry, host, field, now)


class Host:
    """One node as its kubelet will see it: what is allocated to whom, and which resizes wait for room."""

    def __init__(self, node: NodeRecord, running: Running) -> None:
        self.node = node
        columns = running.columns
        place = columns.nodes.index(node.name) if node.name in columns.nodes else -1
        self.pods = [running.pods[i] for i in np.flatnonzero(columns.node == place).tolist()]
        self.room = dict(node.allocatable)
        growing = [pod for pod in self.pods if pod.growth is not None and not pod.terminating]
        self.growing = sorted(growing, key=turn)
        """In the order in which the kubelet tries them."""

    def free(self, gone: frozenset[str] = frozenset()) -> dict[str, int]:
        """What is not allocated, negative where more is than there is, without the pods of these uids."""
        return taken_off(self.room, (pod for pod in self.pods if pod.uid not in gone))

    def lets(self, pod: PodRecord, gone: frozenset[str] = frozenset()) -> bool:
        """Whether the kubelet lets this one grow, once it has tried those whose turn comes before, in their order."""
        free = self.free(gone)
        for other in self.growing:
            if other.uid in gone:
                continue
            lets = not missing(free, other)
            if other.uid == pod.uid:
                return lets
            if lets:
                free = after(free, other)
        return not missing(free, pod)

    def shrinking(self, lacks: Mapping[str, int]) -> int:
        """How many pods will give back some of what is lacking once the kubelet has looked at them."""
        return sum(_shrinks(pod, lacks) for pod in self.pods if pod.growth is None and not pod.terminating)

    def before(self, pod: PodRecord, gone: frozenset[str]) -> list[PodRecord]:
        """Those whose turn comes before and who would all fit together once these pods are gone."""
        free, found = self.free(gone), list[PodRecord]()
        for other in self.growing:
            if other.uid == pod.uid:
                break
            if other.uid not in gone and not missing(free, other):
                found.append(other)
                free = after(free, other)
        return found


def _shrinks(pod: PodRecord, lacks: Mapping[str, int]) -> bool:
    """Whether a pod is to be smaller, of something that is lacking, and nowhere larger: no kubelet defers that."""
    if pod.infeasible or allocated(pod) is pod.cls.requests:
        return False
    has, wants = dict(allocated(pod)), dict(pod.cls.requests)
    larger = any(amount > has.get(name, 0) for name, amount in wants.items())
    return not larger and any(wants.get(name, 0) < has.get(name, 0) for name in lacks)


def turn(pod: PodRecord) -> tuple[object, ...]:
    """Sorts deferred resizes as a kubelet tries them: what needs no more first, priority, quality of service, age."""
    assert pod.growth is not None
    present = dict(allocated(pod))
    grows = any(amount > present.get(name, 0) for name, amount in pod.cls.requests)
    return (grows, -pod.priority, pod.growth.rank, pod.growth.since, pod.key)


def allocated(pod: PodRecord) -> Amounts:
    """What its kubelet has set aside for it."""
    return pod.usage if pod.allocated is None else pod.allocated


def taken_off(room: Mapping[str, int], pods: Iterable[PodRecord]) -> dict[str, int]:
    """What these pods leave of it."""
    left = dict(room)
    for pod in pods:
        for name, amount in allocated(pod):
            left[name] = left.get(name, 0) - amount
    return left


def missing(free: Mapping[str, int], pod: PodRecord) -> dict[str, int]:
    """By resource, how much more a pod needs than is free beside what it has; only those of which it lacks any."""
    present = dict(allocated(pod))
    lacks = {name: amount - present.get(name, 0) - free.get(name, 0) for name, amount in pod.cls.requests}
    return {name: amount for name, amount in lacks.items() if amount > 0}


def after(free: Mapping[str, int], pod: PodRecord) -> dict[str, int]:
    """What is free once this pod has what it desires."""
    left = dict(free)
    for name, amount in allocated(pod):
        left[name] = left.get(name, 0) + amount
    for name, amount in pod.cls.requests:
        left[name] = left.get(name, 0) - amount
    return left


class Enough:
    """A judge: whether there is room for one pod, and for those before it, once some units are gone."""

    def __init__(self, field: Field, host: Host, pod: PodRecord, before: Sequence[PodRecord] = ()) -> None:
        self._field = field
        free = host.free()
        for other in before:
            free = after(free, other)
        self.lacks = missing(free, pod)
        for other in before:
            self.lacks |= {n: a for n, a in _short(free, other).items() if a > self.lacks.get(n, 0)}
        self._gives: dict[int, dict[str, int]] = {}
        """By unit, what of it there is on the node."""
        for place in np.flatnonzero(field.node == field.snapshot.nodes.index[host.node.name]).tolist():
            unit = field.unit.item(place)
            for name, amount in allocated(field.pods[place]):
                if name in self.lacks:
                    given = self._gives.setdefault(unit, {})
                    given[name] = given.get(name, 0) + amount
        own = {u for u in self._gives if any(record.uid == pod.uid for record in field.records([u]))}
        self.units = sorted(self._gives.keys() - own)
        """Those that give anything that is lacking."""

    def left(self, units: Iterable[int]) -> dict[str, int]:
        """What is lacking still."""
        lacks = dict(self.lacks)
        for unit in units:
            for name, amount in self._gives.get(unit, {}).items():
                lacks[name] -= amount
        return {name: max(amount, 0) for name, amount in lacks.items()}

    def placed(self, units: frozenset[int]) -> int:
        return int(not any(self.left(units).values()))


def _short(free: Mapping[str, int], pod: PodRecord) -> dict[str, int]:
    """What more than there is was given, of the resources that a pod asks for."""
    return {name: -free.get(name, 0) for name, _ in pod.cls.requests if free.get(name, 0) < 0}


def _for_others(snapshot: Snapshot, entry: QueueEntry, host: Host) -> frozenset[str]:
    """Whoever is leaving and may have been evicted for another resize on this node."""
    highest = max((pod.priority for pod in host.growing), default=entry.priority)
    leaving = Field(snapshot, max(highest, entry.priority)).freeing
    return frozenset(pod.uid for pod in leaving if pod.node == host.node.name)


def _evict(snapshot: Snapshot, entry: QueueEntry, host: Host, field: Field, now: int) -> Grown:
    pod = entry.pods[0]
    costs = Costs(field, now)
    judge = Enough(field, host, pod)
    found = _best(judge, costs)
    sure = True
    if found is not None and not host.lets(pod, _uids(field, found[0])):
        here = sorted(set(field.unit[field.node == snapshot.nodes.index[host.node.name]].tolist()))
        here = [unit for unit in here if pod.uid not in _uids(field, frozenset((unit,)))]
        sure = len(here) <= FEW_IN_ALL_SETS
        if sure:
            found = _of_all_sets(here, costs, lambda units: host.lets(pod, _uids(field, units)))
        else:
            judge = Enough(field, host, pod, host.before(pod, _uids(field, frozenset(here))))
            kept = _best(judge, costs)
            found = (kept[0], False) if kept is not None and host.lets(pod, _uids(field, kept[0])) else None
    if found is None:
        there = sum(other.node == pod.node for other in field.pods)
        tried = Preemption(PreemptionOutcome.NO_VICTIMS, candidates=there, best=sure)
        return _nobody(snapshot, entry, host, tried, judge=judge)
    plan, preemption = evictions(field, costs, *found, nodes={host.node.name})
    diagnosis = _diagnosis(snapshot, entry, preemption, lacking=_lacking(host, pod, judge))
    return Grown(plan, diagnosis)


def _best(judge: Enough, costs: Costs) -> tuple[frozenset[int], bool] | None:
    """The units that have to go, and whether no better choice exists; None: all of them would not be enough."""
    if not judge.placed(frozenset(judge.units)):
        return None
    level = lowest_level(judge.units, costs, lambda units: bool(judge.placed(frozenset(units))))
    known = spare(judge, judge.units if level is None else level, 1, costs)
    steps = MOST_STEPS if len(judge.units) <= FEW else STEPS_AMONG_MANY
    return Exact(judge, costs, 1, steps).improve(judge.units, known)


def _of_all_sets(
    units: Sequence[int], costs: Costs, lets: Callable[[frozenset[int]], bool]
) -> tuple[frozenset[int], bool] | None:
    """Where more room may help somebody whose turn comes before, fewer victims can be enough where more are not."""
    best: tuple[tuple[Cost, list[Key]], frozenset[int]] | None = None
    for count in range(1, len(units) + 1):
        for some in map(frozenset, combinations(units, count)):
            price = (costs(some), costs.names(some))
            if (best is None or price < best[0]) and lets(some):
                best = price, some
    return None if best is None else (best[1], True)


def _uids(field: Field, units: frozenset[int]) -> frozenset[str]:
    return frozenset(record.uid for record in field.records(units))


def _nobody(
    snapshot: Snapshot,
    entry: QueueEntry,
    host: Host,
    preemption: Preemption | None,
    *,
    owners: tuple[str, ...] = (),
    judge: Enough | None = None,
    shrinking: int = 0,
) -> Grown:
    lacking = _lacking(host, entry.pods[0], judge)
    diagnosis = _diagnosis(snapshot, entry, preemption, lacking=lacking, owners=owners, shrinking=shrinking)
    return Grown(Plan(snapshot.revision), diagnosis)


def _lacking(host: Host, pod: PodRecord, judge: Enough | None) -> tuple[Lacking, ...]:
    lacks = missing(host.free(), pod) if judge is None else judge.lacks
    then = judge.left(judge.units) if judge is not None else {}
    return tuple(Lacking(name, amount, then.get(name, 0)) for name, amount in sorted(lacks.items()))


def _diagnosis(
    snapshot: Snapshot,
    entry: QueueEntry,
    preemption: Preemption | None = None,
    *,
    known: bool = True,
    lacking: tuple[Lacking, ...] = (),
    owners: tuple[str, ...] = (),
    shrinking: int = 0,
) -> ResizeDiagnosis:
    fits = known and not lacking and preemption is None and not owners
    return ResizeDiagnosis(
        entry.key,
        entry.uid,
        Verdict.WAITING if fits else Verdict.UNSCHEDULABLE,
        snapshot.revision,
        pending=1,
        rejections=tuple(Rejection(Reason.INSUFFICIENT, 1, lack.resource) for lack in lacking),
        nodes=1,
        preemption=preemption,
        node=entry.pods[0].node or "",
        known=known,
        lacking=lacking,
        owners=owners,
        shrinking=shrinking,
    )
