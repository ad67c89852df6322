"""One attempt to make room for an entry that did not fit: whom to evict, and where its pods go then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from muster.engine.feasibility import feasible_nodes
from muster.engine.kinds import Kinds
from muster.engine.preemption import bargains, greedy
from muster.engine.preemption.cost import Costs
from muster.engine.preemption.judges import Judge, Ordinary, Slots, slots_judge
from muster.engine.preemption.narrowing import narrow
from muster.engine.preemption.program import NAMED, Told, best_victims
from muster.engine.preemption.units import Field
from muster.engine.preemption.victims import FEW, FEW_ASKED, MANY, MOST_ASKED, MOST_STEPS, Exact, lowest_level, spare
from muster.engine.profile import Profile
from muster.engine.work import Work
from muster.model.diagnosis import Preemption, PreemptionOutcome, Victim
from muster.model.plan import Bind, Evict, Nominate, Plan
from muster.model.records import PodRecord, QueueEntry
from muster.model.snapshot import Snapshot

NEVER = "Never"


class Preempted(NamedTuple):
    """Evictions and nominations, if any; nothing is bound."""

    plan: Plan
    preemption: Preemption


def preempt(snapshot: Snapshot, profile: Profile, entry: QueueEntry, budget: Work, now: int) -> Preempted:
    """Looks for the best set of victims (M7). The entry must have failed on this very snapshot.

    Without the victims the ordinary decision places as many of the pods as it would with everything of lower priority
    gone, the minimum at least; and putting any victim back would spoil that.
    """
    nothing = Plan(snapshot.revision)
    if policy(entry) == NEVER:
        return Preempted(nothing, Preemption(PreemptionOutcome.NEVER))
    field = Field(snapshot, entry.priority)
    if not field.pods and not field.freeing:
        return Preempted(nothing, Preemption(PreemptionOutcome.NO_VICTIMS))
    awaited = _ongoing(field, profile, entry)
    if awaited:
        return Preempted(nothing, Preemption(PreemptionOutcome.ONGOING, awaited=awaited))
    ordinary = Ordinary(field, profile, entry, budget)
    if field.freeing and (decided := ordinary.decide(frozenset())).plan.binds:
        return _awaiting(field, decided.plan.binds, snapshot)
    costs = Costs(field, now)
    found = _victims(field, ordinary, costs, profile, entry)
    if found is None:
        sure = not ordinary.stopped
        return Preempted(nothing, Preemption(PreemptionOutcome.NO_VICTIMS, candidates=len(field.pods), best=sure))
    binds = ordinary.decide(found.units).plan.binds
    return _evicting(field, costs, binds, found._replace(best=found.best and not ordinary.stopped))


def policy(entry: QueueEntry) -> str:
    """What the root group says, else the pods, which agree (P30)."""
    record = entry.tree.record if entry.tree is not None else entry.group
    if record is not None and record.preemption_policy is not None:
        return record.preemption_policy
    return entry.pods[0].preemption_policy


def _ongoing(field: Field, profile: Profile, entry: QueueEntry) -> frozenset[str]:
    """Terminating pods of lower priority on nodes that members are nominated to and may still use (P27)."""
    nominated = [pod for pod in entry.pods if pod.nominated_node is not None]
    if not nominated or not field.freeing:
        return frozenset()
    leaving: dict[str, list[str]] = {}
    for pod in field.freeing:
        leaving.setdefault(pod.node or "", []).append(pod.uid)
    snapshot, kinds = field.snapshot, Kinds(field.snapshot, entry.pods)
    awaited: set[str] = set()
    for pod in nominated:
        at = snapshot.nodes.index.get(pod.nominated_node or "")
        if at is None or pod.nominated_node not in leaving:
            continue
        cls = pod.cls if kinds.plain else kinds.of(pod)
        if feasible_nodes(snapshot.nodes, cls, profile).passes[at]:
            awaited.update(leaving[pod.nominated_node])
    return frozenset(awaited)


class _Found(NamedTuple):
    units: frozenset[int]
    best: bool


def _victims(field: Field, ordinary: Ordinary, costs: Costs, profile: Profile, entry: QueueEntry) -> _Found | None:
    """None: all of them would not be enough."""
    everything = list(range(len(field)))
    asked = field, ordinary.base, costs, profile, entry
    slots = slots_judge(field, ordinary.base, profile, entry)
    if slots is not None:
        found = _counted(field, slots, ordinary, costs, lambda: best_victims(*asked, slots.target))
        if found is None or ordinary.placed(found.units) >= slots.target:
            return found
    target = ordinary.placed(frozenset(everything))
    if not target:
        return None
    if len(field) > FEW_ASKED:
        told = best_victims(*asked, target)
        if told is not None and ordinary.placed(told.units) >= target:
            return _Found(told.units if told.best else spare(ordinary, told.units, target, costs), told.best)
    known = _by_asking(field, ordinary, costs, target, everything)
    if len(field) > FEW:
        return _Found(known, best=False)
    return _Found(*Exact(ordinary, costs, target, MOST_ASKED).improve(everything, known))


def _counted(
    field: Field, slots: Slots, ordinary: Ordinary, costs: Costs, exactly: Callable[[], Told | None]
) -> _Found | None:
    """By counting slots. None: all of them would not be enough."""
    everything = list(range(len(field)))
    if not slots.target:
        return None
    level = _level(slots, costs, slots.target)
    if level is not None and len(field) > NAMED:
        sorted_out = bargains.cheapest(slots, costs, level, slots.target)
        if sorted_out is not None and slots.placed(sorted_out) >= slots.target:
            return _Found(sorted_out, best=True)
    known = None if level is None else greedy.choose(slots, costs, np.flatnonzero(level).tolist(), slots.target)
    if known is None:
        known = _by_asking(field, slots, costs, slots.target, everything)
    if len(field) > FEW:
        told = exactly() if len(field) <= MANY or costs(known)[0] else None
        if told is not None and slots.placed(told.units) >= slots.target and costs(told.units) <= costs(known):
            return _Found(*told)
    if len(field) > FEW or ordinary.placed(known) < slots.target:
        return _Found(known, best=False)
    units, best = Exact(slots, costs, slots.target, MOST_STEPS).improve(everything, known)
    if units != known and ordinary.placed(units) < slots.target:
        return _Found(known, best=False)
    return _Found(units, best)


def _level(slots: Slots, costs: Costs, target: int) -> np.ndarray | None:
    """bool[U]: the units up to the lowest priority at which they suffice, no protected ones among them if possible."""
    field = slots.field
    priority = np.array(field.priority, dtype=np.int64)
    guarded = bool(field.snapshot.running and field.snapshot.running.budgets)
    free = np.array([not costs.protected(u) for u in range(len(field))] if guarded else True, dtype=bool)
    free = np.broadcast_to(free, priority.shape)

    def suffices(chosen: np.ndarray) -> bool:
        return int(slots.sums_without(np.flatnonzero(chosen[field.unit])).max(initial=0)) >= target

    for among in (free, np.ones(len(field), dtype=bool)):
        levels = np.unique(priority[among])
        if not len(levels) or not suffices(among):
            continue
        low, high = 0, len(levels) - 1
        while low < high:
            middle = (low + high) // 2
            if suffices(among & (priority <= levels[middle])):
                high = middle
            else:
                low = middle + 1
        return np.asarray(among & (priority <= levels[low]))
    return None


def _by_asking(field: Field, judge: Judge, costs: Costs, target: int, everything: Sequence[int]) -> frozenset[int]:
    """Sparing whoever can be spared, question by question."""
    level = lowest_level(everything, costs, lambda units: judge.placed(frozenset(units)) >= target)
    chosen = everything if level is None else level
    return spare(judge, narrow(field, judge, costs, chosen, target), target, costs)


def _awaiting(field: Field, binds: Sequence[Bind], snapshot: Snapshot) -> Preempted:
    nodes = {bind.node for bind in binds}
    awaited = frozenset(pod.uid for pod in field.freeing if pod.node in nodes)
    steps = tuple(Nominate(bind.pod, bind.uid, bind.node) for bind in binds)
    plan = Plan(snapshot.revision, steps, _generations(snapshot, nodes))
    return Preempted(plan, Preemption(PreemptionOutcome.AWAITED, awaited=awaited, placed=len(binds)))


def _evicting(field: Field, costs: Costs, binds: Sequence[Bind], found: _Found) -> Preempted:
    nominations = [Nominate(bind.pod, bind.uid, bind.node) for bind in binds]
    return Preempted(*evictions(field, costs, *found, nodes={bind.node for bind in binds}, nominations=nominations))


def evictions(
    field: Field,
    costs: Costs,
    units: frozenset[int],
    best: bool,
    *,
    nodes: set[str],
    nominations: Sequence[Nominate] = (),
) -> tuple[Plan, Preemption]:
    """What evicting these units comes to, for pods that are to have these nodes.

    `best`: it is proven that there is no better choice. Without nominations, one pod stays on its node.
    """
    snapshot = field.snapshot
    victims = tuple(_victim(field, u, field.pods[place]) for u in sorted(units) for place in field.pods_of[u])
    steps = [Evict(victim.pod, victim.uid, victim.node) for victim in victims]
    awaited = {pod.uid for pod in field.freeing if pod.node in nodes} | {victim.uid for victim in victims}
    cost = costs(units)
    preemption = Preemption(
        PreemptionOutcome.FOUND,
        victims,
        tuple(field.groups(units)),
        frozenset(awaited),
        placed=len(nominations) or 1,
        candidates=len(field.pods),
        violations=cost[0],
        highest=cost[1],
        started=cost[3],
        best=best,
    )
    return Plan(snapshot.revision, (*steps, *nominations), _generations(snapshot, nodes)), preemption


def _victim(field: Field, unit: int, pod: PodRecord) -> Victim:
    return Victim(pod.key, pod.uid, pod.node or "", field.priority[unit], field.whole[unit])


def _generations(snapshot: Snapshot, nodes: set[str]) -> dict[str, int]:
    return {node: snapshot.generations.item(snapshot.nodes.index[node]) for node in nodes}
