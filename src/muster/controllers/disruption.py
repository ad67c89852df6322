"""Status of PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Sequence

from muster.api.instant import Instant
from muster.api.machine import Effect, Event


class Disruption:
    """Status of PodDisruptionBudgets."""

    resources: tuple[str, ...] = ("pods", "poddisruptionbudgets")

    def __init__(self) -> None: ...

    def handle(self, event: Event, now: Instant) -> Sequence[Effect]:
        return ()
