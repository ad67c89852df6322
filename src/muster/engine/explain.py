"""Why an entry, or some of its members, found no node: counted over nodes, with what is lacking and what would help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from muster.engine.feasibility import static_rejections
from muster.engine.gang import Placed
from muster.engine.holds import Holds
from muster.engine.members import Members
from muster.engine.placement import Choice, Refusal
from muster.engine.remedies import remedies
from muster.engine.shortage import ROOM, lacking
from muster.engine.trial import Trial
from muster.model.diagnosis import Diagnosis, Lack, PodVerdict, Reason, Rejection, Remedy, Shortfall, Verdict
from muster.model.keys import Key
from muster.model.records import QueueEntry

HAD_A_NODE = ()
"""Rejections of a member that could be placed, but whose group is short of its minimum."""


KINDS = 16
"""What so many kinds of unplaced members lack is worked out."""


class Failure(NamedTuple):
    """A placement that leaves members out; it is still on the ledger, above the checkpoint `start`."""

    members: Sequence[Members]
    placed: Placed
    start: int


def scheduled(entry: QueueEntry, revision: int) -> Diagnosis:
    """Every pending member has a node."""
    return _diagnosis(entry, revision, Verdict.SCHEDULED, len(entry.pods))


def refused(entry: QueueEntry, revision: int, reason: Reason, values: tuple[str, str]) -> Diagnosis:
    """Nothing was tried, since members or group disagree; `values` are the two that do (statements 31, 32)."""
    rejections = (Rejection(reason, 0),)
    pods = dict.fromkeys((pod.key for pod in entry.pods), PodVerdict(rejections))
    helps = (Remedy("match-priority"),) if reason is Reason.PRIORITY_MISMATCH else ()
    return _diagnosis(entry, revision, Verdict.ERROR, 0, rejections, pods, remedies=helps, names=values)


def no_nodes(entry: QueueEntry, revision: int) -> Diagnosis:
    """The cluster is empty."""
    rejections = (Rejection(Reason.NO_NODES, 0),)
    pods = dict.fromkeys((pod.key for pod in entry.pods), PodVerdict(rejections))
    return _diagnosis(entry, revision, Verdict.UNSCHEDULABLE, 0, rejections, pods, remedies=(Remedy("add-nodes", 1),))


def no_domain(entry: QueueEntry, revision: int, refusal: Refusal) -> Diagnosis:
    """There is no domain to be tried: no node has the label, or running members do not agree on one (statement 36)."""
    assert entry.group is not None
    rejections = (Rejection(refusal.reason, 0, entry.group.topology_key or ""),)
    pods = dict.fromkeys((pod.key for pod in entry.pods), PodVerdict(rejections))
    diagnosis = _diagnosis(entry, revision, refusal.verdict, 0, rejections, pods, names=refusal.names)
    return replace(diagnosis, topology_key=entry.group.topology_key or "")


def in_domain(diagnosis: Diagnosis, entry: QueueEntry, choice: Choice, placements: int) -> Diagnosis:
    """Adds which domain it is about, of how many, and what the others lack."""
    assert entry.group is not None and choice.part.placement is not None
    return replace(
        among_domains(diagnosis, choice, placements),
        topology_key=entry.group.topology_key or "",
        domain=choice.part.placement.value,
        deficits=choice.deficits,
    )


def among_domains(diagnosis: Diagnosis, choice: Choice, placements: int) -> Diagnosis:
    """Adds how many domains were looked at, and in how many the group fits and does not."""
    return replace(diagnosis, placements=placements, feasible=choice.feasible, infeasible=choice.infeasible)


def _diagnosis(
    entry: QueueEntry,
    revision: int,
    verdict: Verdict,
    placed: int,
    rejections: tuple[Rejection, ...] = (),
    pods: dict[Key, PodVerdict] | None = None,
    shortfall: Shortfall | None = None,
    remedies: tuple[Remedy, ...] = (),
    proven: bool = True,
    nodes: int = 0,
    names: tuple[str, ...] = (),
) -> Diagnosis:
    return Diagnosis(
        entry.key,
        entry.uid,
        verdict,
        revision,
        entry.group.min_count if entry.group else 1,
        entry.running,
        entry.succeeded,
        len(entry.pods),
        placed,
        rejections,
        pods or {},
        shortfall,
        remedies,
        proven,
        nodes,
        names,
    )


def explain(trial: Trial, holds: Holds, entry: QueueEntry, failure: Failure) -> Diagnosis:
    """What stands in the way, with as many members placed as could be."""
    members, placed, start = failure
    count = len(trial)
    verdicts: dict[Key, PodVerdict] = {}
    lucky = PodVerdict(HAD_A_NODE, count)
    first: tuple[int, PodVerdict] | None = None
    for i, (some, number) in enumerate(zip(members, placed.counts, strict=True)):
        if not placed.enough:
            verdicts.update(dict.fromkeys((pod.key for pod in some.pods[:number]), lucky))
        if number < len(some):
            verdict = class_verdict(trial, holds, some.cls, start)
            verdicts.update(dict.fromkeys((pod.key for pod in some.pods[number:]), verdict))
            if first is None or some.places[number] < members[first[0]].places[placed.counts[first[0]]]:
                first = (i, verdict)
    missing = max(entry.needed - placed.total, 0)
    shortfall: Shortfall | None = None
    helps: tuple[Remedy, ...] = ()
    if first is not None:
        some = members[first[0]]
        waiting = len(some) - placed.counts[first[0]]
        shortfall = lacking(trial, some.cls, min(max(missing, 1), waiting))
        if missing:
            helps = remedies(trial, entry, members, placed, missing, start)
    found = _diagnosis(
        entry,
        trial.snapshot.revision,
        Verdict.SCHEDULED if placed.enough else Verdict.UNSCHEDULABLE,
        placed.total,
        first[1].rejections if first else (),
        verdicts,
        shortfall,
        helps,
        placed.proven,
        count,
    )
    return replace(found, lacks=_lacks(trial, members, placed, verdicts, missing))


def _lacks(
    trial: Trial, members: Sequence[Members], placed: Placed, verdicts: Mapping[Key, PodVerdict], missing: int
) -> tuple[Lack, ...]:
    """What each kind of unplaced members lacks, if there are several kinds."""
    left = [(some, len(some) - n) for some, n in zip(members, placed.counts, strict=True) if n < len(some)]
    if len(left) < 2:
        return ()
    found: list[Lack] = []
    for n, (some, waiting) in enumerate(sorted(left, key=lambda one: (-one[1], one[0].places[-1]))):
        first = some.pods[len(some) - waiting].key
        shortfall = lacking(trial, some.cls, min(max(missing, 1), waiting)) if n < KINDS else None
        found.append(Lack(first.name, waiting, verdicts[first].rejections, shortfall))
    return tuple(found)


def class_verdict(trial: Trial, holds: Holds, cls: int, start: int) -> PodVerdict:
    """Why no further pod of the class finds a node; alike pods share it while the ledger stands still."""
    version = len(trial.ledger.touched)
    known = trial.verdicts.get(cls)
    if known is not None and known[0] == version:
        return known[1]
    static = [Rejection(*found) for found in _static(trial, cls)]
    counted, open_nodes = _counted(trial, holds, cls, start)
    verdict = PodVerdict((*static, *counted, *_tied(trial, cls, open_nodes)), len(trial))
    trial.verdicts[cls] = (version, verdict)
    return verdict


def _static(trial: Trial, cls: int) -> list[tuple[Reason, int, str]]:
    among = None if trial.placement is None else trial.placement.nodes
    found = static_rejections(trial.snapshot.nodes, trial.classes[cls], trial.profile, among)
    return [(reason, nodes, detail) for reason, detail, nodes in found]


def _tied(trial: Trial, cls: int, open_nodes: np.ndarray) -> Iterator[Rejection]:
    """Rejections of nodes that have room, for the pods in their domains; fellow members that are placed count."""
    ledger = trial.ledger
    found = list(trial.ties.rejected(cls)) if trial.ties is not None else []
    for row in np.flatnonzero(ledger.amounts[cls]).tolist():
        if trial.owners[row] not in ROOM:
            full = ledger.capacity[row] - ledger.used[row] < ledger.amounts[cls, row]
            found.append((trial.reason(cls, row), full))
    for reason, column in sorted(found, key=lambda told: told[0]):
        count = int(np.count_nonzero(open_nodes & column))
        open_nodes = open_nodes & ~column
        if count:
            yield Rejection(reason, count)


def _counted(trial: Trial, holds: Holds, cls: int, start: int) -> tuple[list[Rejection], np.ndarray]:
    """Rejections by counted limits: for what others hold, for what is nominated, for what fellow members took.

    Also bool[N] of the nodes that none of them rejects.
    """
    ledger, passes = trial.ledger, trial.state(cls).feasible.passes
    without_members = ledger.used - ledger.taken_since(start)
    held = holds.held()
    without_held = without_members if held is None else without_members - trial.cut(held)
    open_nodes = passes
    found: list[Rejection] = []
    for used, reason in (
        (without_held, None),
        (without_members, Reason.NOMINATED_AWAY),
        (ledger.used, Reason.TAKEN_BY_MEMBERS),
    ):
        blocked, rejections = _short(trial, cls, used, open_nodes, reason)
        open_nodes = open_nodes & ~blocked
        found += rejections
        if not open_nodes.any():
            break
    return found, open_nodes


def _short(
    trial: Trial, cls: int, used: np.ndarray, among: np.ndarray, reason: Reason | None
) -> tuple[np.ndarray, list[Rejection]]:
    """bool[N] of the nodes among these that are short of anything, and their counts by what they are short of.

    A node short of several resources counts under each; of ports, or of resources after ports, under the first.
    """
    ledger = trial.ledger
    blocked = np.zeros(len(among), dtype=bool)
    before = blocked
    owner: Reason | None = None
    found: list[Rejection] = []
    for row in np.flatnonzero(ledger.amounts[cls]).tolist():
        if trial.owners[row] not in ROOM:
            continue
        if trial.owners[row] is not owner:
            owner, before = trial.owners[row], blocked.copy()
        short = among & (ledger.capacity[row] - used[row] < ledger.amounts[cls, row])
        short &= ~(before if owner is Reason.INSUFFICIENT else blocked)
        count = int(np.count_nonzero(short))
        if count:
            found.append(Rejection(reason or owner, count, trial.details[row]))
            blocked |= short
    return blocked, found
