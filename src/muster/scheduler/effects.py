"""What the scheduler asks for beyond the API: a decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from muster.api.machine import Effect
from muster.engine.profile import Profile
from muster.engine.work import Work
from muster.model.records import QueueEntry
from muster.model.snapshot import Snapshot


class Decide(NamedTuple):
    """Run `engine.decide.decide(snapshot, heads, profile, now=..., budget=budget)` and report `Decided(ticket, ...)`.

    At most one is under way at any time. The arguments are immutable, so it may run on another thread.
    """

    ticket: int
    snapshot: Snapshot
    heads: Sequence[QueueEntry]
    profile: Profile
    budget: Work


SchedulerEffect = Effect | Decide
