"""A hierarchy of groups as one unit (statements 45-55): all of its minimum or nothing, then as many more as fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from muster.engine.attempt import attempt
from muster.engine.branch import Branch
from muster.engine.gang import IMPROVING_SHARE
from muster.engine.goals import Goal, goal_of
from muster.engine.holds import Holds
from muster.engine.lacking import awaited, awaited_by_rest
from muster.engine.outcomes import Report
from muster.engine.placement import Refusal
from muster.engine.spots import Spot, counts_of, replay, total
from muster.engine.trial import Trial
from muster.engine.work import Work
from muster.model.diagnosis import Diagnosis, PodVerdict, Reason, Rejection, Verdict
from muster.model.records import PodRecord, QueueEntry


@dataclass(frozen=True, slots=True)
class PlacedTree:
    """What came of a hierarchy; its placements, if it has any, are on the ledger."""

    spots: Sequence[Spot]
    diagnosis: Diagnosis
    work: int


def place_tree(trial: Trial, holds: Holds, entry: QueueEntry, budget: Work) -> PlacedTree:
    """Decides one hierarchy. On failure the ledger is as before."""
    root = goal_of(trial, entry)
    for goal in root.all():
        refusal = _error(trial, goal)
        if refusal is not None:
            return PlacedTree((), _refused(trial, entry, goal, refusal), 0)
    start, limit = trial.ledger.checkpoint(), budget.for_attempt(entry.attempts)
    spots: list[Spot] = []
    satisfied = attempt(trial, root, max(limit // IMPROVING_SHARE, 1), spots)
    proven, work = True, 0
    if total(spots) < root.wanted or not root.possible:
        trial.ledger.rollback(start)
        branch = Branch(trial, root, limit, spots if satisfied and total(spots) else None)
        branch.run()
        spots, work = branch.best or [], branch.spent
        proven = bool(spots) or branch.proven
        replay(trial, spots)
    if root.whole and total(spots) == len(entry.pods):
        return PlacedTree(spots, all_scheduled(entry, trial.snapshot.revision), work)
    report = Report(trial, holds, entry, root, start)
    diagnosis = report.placed(spots) if spots else report.failed(proven)
    if not spots:
        trial.ledger.rollback(start)
    awaits = awaited_by_rest(trial, root, spots) if spots or root.done else awaited(trial, root)
    diagnosis = replace(diagnosis, awaits=awaits)
    return PlacedTree(spots, diagnosis, work)


def all_scheduled(entry: QueueEntry, revision: int) -> Diagnosis:
    """Every group has all its members; there is nothing to be told of any of them."""
    assert entry.tree is not None
    return Diagnosis(
        entry.key,
        entry.uid,
        Verdict.SCHEDULED,
        revision,
        min_count=entry.tree.record.min_count,
        running=entry.running,
        succeeded=entry.succeeded,
        pending=len(entry.pods),
        placed=len(entry.pods),
    )


class Chosen(NamedTuple):
    """For one leaf and class: the pods that are placed, the first ones of the class, and their nodes, ascending."""

    pods: Sequence[PodRecord]
    spots: list[int]
    bound: Sequence[PodRecord]
    """Running members of the leaf."""


def placements(spots: Sequence[Spot]) -> list[Chosen]:
    """What is placed, for each leaf and class."""
    found: list[Chosen] = []
    for goal in dict.fromkeys(spot.goal for spot in spots):
        where: dict[int, list[int]] = {}
        for spot in spots:
            if spot.goal is goal:
                for cls, node, count in spot.where:
                    where.setdefault(cls, []).extend([node] * count)
        for some, count in zip(goal.members, counts_of(goal, spots), strict=True):
            if count:
                found.append(Chosen(some.pods[:count], sorted(where[some.cls]), goal.node.bound))
    return found


def _error(trial: Trial, goal: Goal) -> Refusal | None:
    """Running members of a group that are not in one domain (statement 36): the attempt ends in an error."""
    if goal.key is None or goal.entry is None or not goal.entry.bound:
        return None
    found = goal.domains(trial)
    return found if isinstance(found, Refusal) and found.verdict is Verdict.ERROR else None


def _refused(trial: Trial, entry: QueueEntry, goal: Goal, refusal: Refusal) -> Diagnosis:
    assert entry.tree is not None
    rejections = (Rejection(Reason(refusal.reason), 0, goal.key or ""),)
    pods = dict.fromkeys((pod.key for pod in entry.pods), PodVerdict(rejections))
    return Diagnosis(
        entry.key,
        entry.uid,
        refusal.verdict,
        trial.snapshot.revision,
        min_count=entry.tree.record.min_count,
        running=entry.running,
        succeeded=entry.succeeded,
        pending=len(entry.pods),
        rejections=rejections,
        pods=pods,
        names=refusal.names,
    )
