"""The one entry point: heads of the queue in, plans and diagnoses out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from muster.engine.entry import decide_entry
from muster.engine.holds import Holds
from muster.engine.kinds import Kinds
from muster.engine.profile import Profile
from muster.engine.trial import Trial
from muster.engine.work import Work
from muster.model.decision import Decision
from muster.model.diagnosis import Diagnosis
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
    decision. `now` (microseconds) is for policies that depend on the time; none of the built-in ones does.
    """
    del now
    kinds = Kinds(snapshot, (pod for entry in heads for pod in entry.pods))
    trial = Trial(snapshot, profile, _classes(snapshot, heads, kinds), kinds)
    holds = Holds(trial)
    plans: list[Plan] = []
    diagnoses: list[Diagnosis] = []
    work = 0
    for entry in heads:
        holds.enter(entry)
        one = decide_entry(trial, holds, entry, budget)
        holds.leave(one.plan)
        plans.append(one.plan)
        diagnoses.append(one.diagnosis)
        work += one.work
    return Decision(snapshot.revision, tuple(plans), tuple(diagnoses), work)


def _classes(snapshot: Snapshot, heads: Sequence[QueueEntry], kinds: Kinds) -> list[PodClass]:
    """Every class that can take room in this decision."""
    if kinds.plain:
        classes = {id(pod.cls): pod.cls for entry in heads for pod in entry.pods}
    else:
        classes = {id(cls): cls for entry in heads for pod in entry.pods for cls in (kinds.of(pod),)}
    classes.update((id(nomination.cls), nomination.cls) for nomination in snapshot.nominations)
    return list(classes.values())
