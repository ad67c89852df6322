"""The shape of gangs and hierarchies that nearly fill their cluster: as good as no room to spare."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from statistics import median

from muster.bench import fleet
from muster.bench.measure import seconds
from muster.engine.decide import decide
from muster.engine.profile import Profile
from muster.engine.work import Work
from muster.model.decision import Decision
from muster.model.records import QueueEntry
from muster.model.snapshot import Snapshot
from muster.plugins import default_profile
from muster.testing.tight import tight as instance

GANGS = 120


def tight(nodes: int) -> Mapping[str, float]:
    """Milliseconds a gang, the median, and the share in percent that is placed within a first attempt's budget.

    Each has a cluster of its own, of 60 nodes; `nodes` only scales their number. The engine is asked directly.
    """
    profile, taken, placed = default_profile(), [], 0
    for number in range(fleet.scaled(GANGS, nodes)):
        gang = instance(number)
        decisions: list[Decision] = []
        taken.append(seconds(partial(_decide, gang.snapshot, gang.entry, profile, decisions)))
        placed += len(decisions[0].plans[0].binds) == len(gang.pods)
    return {"tight": 1e3 * median(taken), "tight-placed": 100 * placed / len(taken)}


def _decide(snapshot: Snapshot, entry: QueueEntry, profile: Profile, decisions: list[Decision]) -> None:
    decisions.append(decide(snapshot, [entry], profile, now=0, budget=Work()))
