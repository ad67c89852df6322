"""The one entry point: heads of the queue in, plans and diagnoses out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from muster.engine.entry import Decided, decide_entry
from muster.engine.fit import still_fits
from muster.engine.holds import Holds
from muster.engine.kinds import Kinds
from muster.engine.nominated import with_nominated
from muster.engine.preemption.attempt import preempt
from muster.engine.preemption.growing import grow
from muster.engine.profile import Profile
from muster.engine.trial import Trial
from muster.engine.work import Work
from muster.model.decision import Decision
from muster.model.diagnosis import Diagnosis, Verdict
from muster.model.plan import Plan
from muster.model.records import PodClass, QueueEntry
from muster.model.snapshot import Snapshot

NO_BUDGET_GIVEN = Work()


def decide(
    snapshot: Snapshot,
    heads: Sequence[QueueEntry],
    profile: Profile,
    *,
    now: int,
    budget: Work = NO_BUDGET_GIVEN,
) -> Decision:
    """Decides the heads in the given order, each with the earlier ones in place, on one ledger.

    A plan binds all of a group's minimum or nothing. Nothing given is changed, and the same arguments give the same
    decision. `now` (microseconds) is for what depends on the time: how long victims have run.

    A head that may preempt (`snapshot.running` is there) and does not fit is decided on what is, not on what earlier
    heads leave: unless it is the first one, the decision ends before it, with fewer plans than heads. Where it evicts,
    the decision ends with it. A deferred resize is decided alone, too.
    """
    if heads and heads[0].resize:
        grown = [grow(snapshot, entry, now) for entry in heads[:1]]
        return Decision(snapshot.revision, tuple(g.plan for g in grown), tuple(g.diagnosis for g in grown))
    seen, some = with_nominated(snapshot, heads)
    decision = _decided(seen, some, profile, now, budget)
    if seen is not snapshot and decision.plans[0].binds and not _fits(snapshot, some[0], decision.plans[0], profile):
        return _decided(snapshot, some, profile, now, budget)  # It needs those that are not there yet.
    return decision


def _fits(snapshot: Snapshot, entry: QueueEntry, plan: Plan, profile: Profile) -> bool:
    pods = {pod.uid: pod for pod in entry.pods}
    return still_fits(snapshot, profile, [(pods[bind.uid], bind.node) for bind in plan.binds])


def _decided(snapshot: Snapshot, heads: Sequence[QueueEntry], profile: Profile, now: int, budget: Work) -> Decision:
    kinds = Kinds(snapshot, (pod for entry in heads for pod in entry.pods))
    trial = Trial(snapshot, profile, _classes(snapshot, heads, kinds), kinds)
    holds = Holds(trial)
    plans: list[Plan] = []
    diagnoses: list[Diagnosis] = []
    work = 0
    for entry in heads:
        one = _one(trial, holds, entry, budget)
        plan, diagnosis = one.plan, one.diagnosis
        wants = not plan.binds and entry.may_preempt and snapshot.running is not None
        if wants and diagnosis.verdict is Verdict.UNSCHEDULABLE:
            if any(earlier.binds for earlier in plans):
                break
            one = _surer(trial, holds, entry, budget, one)
            plan, diagnosis = one.plan, one.diagnosis
            if not plan.binds:
                plan, preemption = preempt(snapshot, profile, entry, budget, now)
                diagnosis = replace(diagnosis, preemption=replace(preemption, needed=diagnosis.proven))
        work += one.work
        plans.append(plan)
        diagnoses.append(diagnosis)
        if plan.steps and not plan.binds:
            break
    return Decision(snapshot.revision, tuple(plans), tuple(diagnoses), work)


def _one(trial: Trial, holds: Holds, entry: QueueEntry, budget: Work) -> Decided:
    holds.enter(entry)
    decided = decide_entry(trial, holds, entry, budget)
    holds.leave(decided.plan)
    return decided


def _surer(trial: Trial, holds: Holds, entry: QueueEntry, budget: Work, found: Decided) -> Decided:
    """Where the budget ended the search, that of another one with more to spend: nobody is evicted in haste.

    If that one is ended by its budget too, the entry may evict: a gang must not starve for being hard to pack.
    """
    more = None if found.diagnosis.proven else budget.before_evicting(entry.attempts)
    if more is None:
        return found
    again = _one(trial, holds, replace(entry, attempts=0), more)
    return again._replace(work=found.work + again.work)


def _classes(snapshot: Snapshot, heads: Sequence[QueueEntry], kinds: Kinds) -> list[PodClass]:
    """Every class that can take room in this decision."""
    if kinds.plain:
        classes = {id(pod.cls): pod.cls for entry in heads for pod in entry.pods}
    else:
        classes = {id(cls): cls for entry in heads for pod in entry.pods for cls in (kinds.of(pod),)}
    classes.update((id(nomination.cls), nomination.cls) for nomination in snapshot.nominations)
    return list(classes.values())
