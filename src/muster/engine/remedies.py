"""What would let a failed entry be placed: single changes that are enough by themselves, cheapest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from muster.engine.feasibility import feasible_nodes, relaxed
from muster.engine.gang import Placed
from muster.engine.members import Members
from muster.engine.shortage import domain_of, freeing
from muster.engine.trial import Trial
from muster.model.diagnosis import Reason, Remedy
from muster.model.records import Policy, QueueEntry
from muster.model.snapshot import NodeColumns

HOSTNAME = "kubernetes.io/hostname"


def remedies(
    trial: Trial, entry: QueueEntry, members: Sequence[Members], placed: Placed, missing: int, start: int
) -> tuple[Remedy, ...]:
    """For an entry that lacks `missing` members, those `placed` being on the ledger above the checkpoint `start`."""
    left = [(some.cls, len(some) - n) for some, n in zip(members, placed.counts, strict=True) if n < len(some)]
    if any(trial.depends(cls) for cls, _ in left):
        # Whether a change would be enough depends on everybody in the domains then: nothing is promised.
        return _lower(entry, placed)
    enough = [cls for cls, waiting in left if waiting >= missing]
    found = [remedy for cls in enough for remedy in _relaxing(trial, cls, missing)]
    found += _lower(entry, placed)
    ours = trial.ledger.taken_since(start)
    found += [remedy for cls in enough if (remedy := freeing(trial, cls, missing, ours)) is not None]
    found += _more_nodes(trial, left, missing)
    return tuple(dict.fromkeys(found))


def _lower(entry: QueueEntry, placed: Placed) -> tuple[Remedy, ...]:
    """A gang of which some can be placed could do with a lower minimum."""
    if entry.group is None or entry.group.policy is not Policy.GANG or not placed.total:
        return ()
    return (Remedy("lower-min-count", placed.total + entry.running + entry.succeeded),)


def _relaxing(trial: Trial, cls: int, missing: int) -> Iterator[Remedy]:
    """Changes to filters that open enough slots for all the missing pods."""
    ledger, snapshot = trial.ledger, trial.snapshot
    state = trial.state(cls)
    for action, detail, nodes in relaxed(snapshot.nodes, trial.classes[cls], trial.profile):
        slots = np.minimum(state.count_slots(ledger.used, trial.cut(nodes)), missing)
        order = np.argsort(-slots, kind="stable")
        enough = int(np.searchsorted(slots[order].cumsum(), missing))
        if enough < len(slots):
            where = trial.record(int(order[0])).name if action == "uncordon" and enough == 0 else ""
            yield Remedy(action, enough + 1, detail, where)


def _more_nodes(trial: Trial, left: Sequence[tuple[int, int]], missing: int) -> Iterator[Remedy]:
    """Empty nodes like the one that takes most of the missing pods, if one kind takes them all.

    Not where each node is a domain of its own: a new one is not in the domain that the group needs more room in.
    """
    if trial.placement is not None and any(key == HOSTNAME for key, _ in trial.placement.path):
        return
    nobody = np.zeros_like(trial.ledger.used)
    needed = np.zeros(len(trial), dtype=np.int64)
    short: list[int] = []
    for cls, waiting in left:
        count = min(waiting, missing)
        missing -= count
        if count:
            short.append(cls)
            slots = trial.state(cls).count_slots(nobody)
            nodes = np.where(slots > 0, -(-count // np.maximum(slots, 1)), _NEVER)
            needed = np.minimum(needed + nodes, _NEVER)
    best = int(needed.argmin())
    if needed[best] < _NEVER and all(_suits_another(trial, cls, best) for cls in short):
        yield Remedy("add-nodes", int(needed[best]), trial.record(best).name, domain_of(trial))


_NEVER = 1 << 40


def _suits_another(trial: Trial, cls: int, node: int) -> bool:
    """Whether the class could use a node like this one under another name: it may be bound to this very node."""
    nodes = trial.snapshot.nodes
    known = trial.record(node)
    if any(key in known.labels for key in _shared_domains(trial, cls)) or _lacks_volumes(trial, cls):
        return False
    name = f"{known.name}-like"
    labels = {**known.labels, HOSTNAME: name} if HOSTNAME in known.labels else known.labels
    other = NodeColumns((replace(known, name=name, labels=labels),), nodes.axis)
    return bool(feasible_nodes(other, trial.classes[cls], trial.profile).passes[0])


def _lacks_volumes(trial: Trial, cls: int) -> bool:
    """Whether free volumes or storage of nodes are counted for the class: a new node brings none."""
    return any(trial.owners[row] is Reason.VOLUME_AFFINITY for row in np.flatnonzero(trial.ledger.amounts[cls]))


def _shared_domains(trial: Trial, cls: int) -> Iterator[str]:
    """Keys of anti-affinity that bears on the class, other than the host: a node like another is in its domain."""
    for row in np.flatnonzero(trial.ledger.amounts[cls]).tolist():
        if trial.owners[row] is Reason.POD_ANTI_AFFINITY and trial.details[row] != HOSTNAME:
            yield trial.details[row]
