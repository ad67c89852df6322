"""One head of the queue: checks, placement, and what comes of it as a plan and a diagnosis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from muster.engine.assignment import best_node
from muster.engine.explain import Failure, among_domains, explain, in_domain, no_domain, no_nodes, refused, scheduled
from muster.engine.gang import Placed, place_group
from muster.engine.holds import Holds
from muster.engine.members import Members, disagreement, members_by_class
from muster.engine.placement import Refusal, candidates, choose
from muster.engine.ranks import match
from muster.engine.tree import place_tree, placements
from muster.engine.trial import Trial
from muster.engine.work import Work
from muster.model.diagnosis import Diagnosis
from muster.model.plan import Bind, Plan
from muster.model.records import PodRecord, QueueEntry


class Decided(NamedTuple):
    """What came of one head; its placements, if it has any, are on the ledger."""

    plan: Plan
    diagnosis: Diagnosis
    work: int = 0


def decide_entry(trial: Trial, holds: Holds, entry: QueueEntry, budget: Work) -> Decided:
    """Decides one head against the ledger. On failure the ledger is as before."""
    revision = trial.snapshot.revision
    nothing = Plan(revision)
    if not entry.pods:
        return Decided(nothing, scheduled(entry, revision))
    clash = disagreement(entry)
    if clash is not None:
        return Decided(nothing, refused(entry, revision, *clash))
    if not len(trial.snapshot.nodes):
        return Decided(nothing, no_nodes(entry, revision))
    if entry.tree is not None:
        return _decide_tree(trial, holds, entry, budget)
    if entry.group is not None and entry.group.topology_key is not None:
        return _decide_constrained(trial, holds, entry, budget)
    start = trial.ledger.checkpoint()
    levels = trial.snapshot.nodes.levels if entry.group else ()
    alone = len(entry.pods) == 1 == entry.needed and not (entry.bound and levels)
    if alone and (bind := _place_one(trial, entry.pods[0])) is not None:
        node = trial.snapshot.nodes.index[bind.node]
        relied = _neighbours(trial, [trial.class_of(entry.pods[0])])
        return Decided(Plan(revision, (bind,), _generations(trial, (node,)), relied), scheduled(entry, revision))
    members = members_by_class(trial, entry.pods)
    placed = place_group(trial, members, entry.needed, budget.for_attempt(entry.attempts), levels, entry.bound)
    if placed.enough and placed.total == len(entry.pods):
        diagnosis = scheduled(entry, revision)
    else:
        diagnosis = explain(trial, holds, entry, Failure(members, placed, start))
    if not placed.enough:
        trial.ledger.rollback(start)
        return Decided(nothing, diagnosis, placed.work)
    return Decided(_plan(trial, entry, members, placed, start), diagnosis, placed.work)


def _decide_constrained(trial: Trial, holds: Holds, entry: QueueEntry, budget: Work) -> Decided:
    """A group that has to be in one domain (statements 35-42)."""
    revision = trial.snapshot.revision
    found = candidates(trial, entry)
    if isinstance(found, Refusal):
        return Decided(Plan(revision), no_domain(entry, revision, found))
    start = trial.ledger.checkpoint()
    members = members_by_class(trial, entry.pods)
    choice = choose(trial, members, entry, found, budget.for_attempt(entry.attempts))
    placed = choice.placed
    if placed.enough and placed.total == len(entry.pods):
        diagnosis = among_domains(scheduled(entry, revision), choice, len(found.among))
    else:
        diagnosis = explain(choice.part, holds, entry, Failure(members, placed, 0))
        diagnosis = in_domain(diagnosis, entry, choice, len(found.among))
    if not placed.enough:
        return Decided(Plan(revision), diagnosis, placed.work)
    trial.adopt(choice.part)
    return Decided(_plan(trial, entry, members, placed, start), diagnosis, placed.work)


def _decide_tree(trial: Trial, holds: Holds, entry: QueueEntry, budget: Work) -> Decided:
    """A hierarchy of groups (statements 45-55)."""
    placed = place_tree(trial, holds, entry, budget)
    names = trial.snapshot.nodes.names
    binds: list[Bind] = []
    touched: dict[int, None] = {}
    for pods, spots, bound in placements(placed.spots):
        touched.update(dict.fromkeys(spots))
        where = match(trial.snapshot.nodes, pods, spots, bound)
        binds += [Bind(pod.key, pod.uid, names[n]) for pod, n in zip(pods, where, strict=True)]
    if not binds:
        return Decided(Plan(trial.snapshot.revision), placed.diagnosis, placed.work)
    classes = {cls for spot in placed.spots for cls, _, _ in spot.where}
    relied, mutual = _neighbours(trial, classes), _open_each_other(trial, classes)
    plan = Plan(trial.snapshot.revision, tuple(binds), _generations(trial, touched), relied, mutual)
    return Decided(plan, placed.diagnosis, placed.work)


def _place_one(trial: Trial, pod: PodRecord) -> Bind | None:
    """The short way for a pod alone: its nominated node if it still fits (P25), else the best; None: there is none."""
    cls = trial.class_of(pod)
    nodes = trial.snapshot.nodes
    wish = None if pod.nominated_node is None else nodes.index.get(pod.nominated_node)
    if wish is not None and trial.fits(cls, wish):
        trial.ledger.place(cls, wish)
        return Bind(pod.key, pod.uid, nodes.names[wish])
    node = best_node(trial, cls)
    if node is None:
        return None
    trial.ledger.place(cls, node)
    return Bind(pod.key, pod.uid, nodes.names[node])


def _plan(trial: Trial, entry: QueueEntry, members: Sequence[Members], placed: Placed, start: int) -> Plan:
    nodes = trial.snapshot.nodes
    where: dict[int, list[int]] = {some.cls: [] for some in members}
    for cls, node, count in trial.ledger.since(start):
        if isinstance(node, int):
            where[cls] += [node] * int(count)
        else:
            where[cls] += np.repeat(node, count).tolist()
    steps: list[tuple[int, Bind]] = []
    touched: dict[int, None] = {}
    relied, mutual = _neighbours(trial, where), _open_each_other(trial, where)
    for some, count in zip(members, placed.counts, strict=True):
        spots = sorted(where[some.cls])
        touched.update(dict.fromkeys(spots))
        chosen = some.pods if count == len(some) else some.pods[:count]
        matched = match(nodes, chosen, spots, entry.bound)
        binds = [Bind(pod.key, pod.uid, nodes.names[n]) for pod, n in zip(chosen, matched, strict=True)]
        if len(members) == 1:
            return Plan(trial.snapshot.revision, tuple(binds), _generations(trial, touched), relied, mutual)
        steps += zip(some.places, binds, strict=False)
    steps.sort(key=lambda step: step[0])
    binds = [bind for _, bind in steps]
    return Plan(trial.snapshot.revision, tuple(binds), _generations(trial, touched), relied, mutual)


def _neighbours(trial: Trial, classes: Iterable[int]) -> int | None:
    """What a plan for these classes relies on beside its nodes."""
    return trial.snapshot.neighbours.version if any(trial.depends(cls) for cls in classes) else None


def _open_each_other(trial: Trial, classes: Iterable[int]) -> bool:
    return trial.ties is not None and trial.ties.open_up(classes)


def _generations(trial: Trial, touched: Iterable[int]) -> dict[str, int]:
    names, generations = trial.snapshot.nodes.names, trial.snapshot.generations
    return {names[n]: generations.item(n) for n in touched}
