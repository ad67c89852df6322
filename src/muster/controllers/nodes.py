"""Node lifecycle."""

from __future__ import annotations

from collections.abc import Sequence

from muster.api.instant import SECOND, Instant
from muster.api.gates import FeatureGates
from muster.api.machine import Effect, Event


class Nodes:
    """Node lifecycle."""

    resources: tuple[str, ...] = ("nodes", "pods")

    def __init__(self) -> None: ...

    def handle(self, event: Event, now: Instant) -> Sequence[Effect]:
        return ()
