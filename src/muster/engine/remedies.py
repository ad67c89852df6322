"""What would let a failed entry be placed: single changes that are enough by themselves, cheapest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from muster.engine.feasibility import relaxed
from muster.engine.gang import Placed
from muster.engine.members import Members
from muster.engine.trial import Trial
from muster.model.diagnosis import Remedy, Shortfall
from muster.model.records import Policy, QueueEntry


def remedies(
    trial: Trial,
    entry: QueueEntry,
    members: Sequence[Members],
    placed: Placed,
    missing: int,
    shortfall: Shortfall | None,
) -> tuple[Remedy, ...]:
    """For an entry that lacks `missing` members, those `placed` being on the ledger."""
    left = [(some.cls, len(some) - n) for some, n in zip(members, placed.counts, strict=True) if n < len(some)]
    found = [remedy for cls, waiting in left if waiting >= missing for remedy in _relaxing(trial, cls, missing)]
    if entry.group is not None and entry.group.policy is Policy.GANG and placed.total:
        found.append(Remedy("lower-min-count", placed.total + entry.running + entry.succeeded))
    if shortfall is not None:
        found.append(Remedy("free", shortfall.lacking, shortfall.resource))
    found += _more_nodes(trial, left, missing)
    return tuple(dict.fromkeys(found))


def _relaxing(trial: Trial, cls: int, missing: int) -> Iterator[Remedy]:
    """Changes to filters that open enough slots for all the missing pods."""
    ledger, snapshot = trial.ledger, trial.snapshot
    state = trial.state(cls)
    for action, detail, nodes in relaxed(snapshot.nodes, trial.classes[cls], trial.profile):
        slots = np.sort(state.count_slots(ledger.used, nodes))[::-1].cumsum()
        enough = int(np.searchsorted(slots, missing))
        if enough < len(slots):
            yield Remedy(action, enough + 1, detail)


def _more_nodes(trial: Trial, left: Sequence[tuple[int, int]], missing: int) -> Iterator[Remedy]:
    """Empty nodes like the one that takes most of the missing pods, if one kind takes them all."""
    nobody = np.zeros_like(trial.ledger.used)
    needed: np.ndarray | None = None
    for cls, waiting in left:
        count = min(waiting, missing)
        missing -= count
        if not count:
            continue
        slots = trial.state(cls).count_slots(nobody)
        nodes = np.where(slots > 0, -(-count // np.maximum(slots, 1)), _NEVER)
        needed = nodes if needed is None else np.minimum(needed + nodes, _NEVER)
    if needed is not None:
        best = int(needed.argmin())
        if needed[best] < _NEVER:
            yield Remedy("add-nodes", int(needed[best]), trial.snapshot.nodes.names[best])


_NEVER = 1 << 40
