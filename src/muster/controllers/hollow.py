"""Hollow kubelets: what happens to a pod once it is bound."""

from __future__ import annotations

from collections.abc import Sequence

from muster.api.instant import SECOND, Instant
from muster.api.machine import Effect, Event


class Hollow:
    """All kubelets of the cluster in one machine."""

    resources: tuple[str, ...] = ("nodes", "pods")

    def __init__(self, *, run: bool = True, start_delay: Instant = SECOND, stop_delay: Instant = SECOND) -> None: ...

    def hold(self) -> None:
        """From now on deleted pods stay terminating (conformance: `termination: hold`)."""

    def finish(self, now: Instant) -> Sequence[Effect]:
        """Ends what `hold` held, and holding itself; the driver carries out the effects."""
        return ()

    def handle(self, event: Event, now: Instant) -> Sequence[Effect]:
        return ()
