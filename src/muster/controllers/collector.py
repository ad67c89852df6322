"""Garbage collection by owner references."""

from __future__ import annotations

from collections.abc import Sequence

from muster.api.gates import FeatureGates
from muster.api.instant import Instant
from muster.api.machine import Effect, Event


class Collector:
    """Garbage collection by owner references."""

    resources: tuple[str, ...] = ("pods",)

    def __init__(self, gates: FeatureGates) -> None: ...

    def handle(self, event: Event, now: Instant) -> Sequence[Effect]:
        return ()
