"""The one entry point: heads of the queue in, plans and diagnoses out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from muster.engine.profile import Profile
from muster.engine.work import Work
from muster.model.decision import Decision
from muster.model.records import QueueEntry
from muster.model.snapshot import Snapshot


def decide(
    snapshot: Snapshot, heads: Sequence[QueueEntry], profile: Profile, *, now: int, budget: Work | None = None
) -> Decision:
    """Decides the heads in the given order, each with the earlier ones in place."""
    raise RuntimeError("being written")
