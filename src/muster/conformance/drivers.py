"""Where a case runs: the operations that every driver offers, and the driver over the virtual world."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from muster.api.calls import Request, Response
from muster.api.gates import TARGETS, FeatureGates
from muster.api.instant import Instant
from muster.conformance.cases import Case
from muster.sim.cluster import cluster
from muster.sim.world import World


class Driver(Protocol):
    """One empty cluster on a clock that the case controls."""

    def call(self, request: Request) -> Response:
        """What a user does."""

    def tick(self, us: Instant) -> None:
        """The clock moves, nothing runs."""

    def settle(self) -> None:
        """Watches are delivered and machines run until nothing moves at the present time."""

    def quiesce(self) -> None:
        """Settles; timers of up to 10 s may end as well."""

    def advance(self, us: Instant) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def restart(self) -> None: ...

    def refuse_binds(self, pods: Sequence[str]) -> None:
        """From now on the bindings of exactly these (`namespace/name`) are answered 403."""

    def hold_terminations(self, held: bool) -> None:
        """While held, deleted pods stay terminating; letting go ends them all."""

    def decision_times(self) -> Sequence[float]:
        """Seconds of every decision so far."""


def gates_of(case: Case, target: str = TARGETS[0]) -> FeatureGates:
    """The case's gates on, all others at their defaults, under the rules of a release."""
    return FeatureGates.of(*case.gates).aiming_at(target)


class SimDriver:
    """A case in the virtual world. `stopwatch` gives seconds."""

    def __init__(self, case: Case, stopwatch: Callable[[], float], target: str = TARGETS[0]) -> None:
        self.world: World = cluster(
            gates_of(case, target),
            levels=case.levels,
            priority_admission=case.priority_admission,
            volumes=case.volumes,
            apps=case.apps,
            stopwatch=stopwatch,
        )
        self.tick, self.settle, self.quiesce = self.world.tick, self.world.settle, self.world.quiesce
        self.call, self.advance = self.world.call, self.world.advance
        self.pause, self.resume, self.restart = self.world.pause, self.world.resume, self.world.restart

    def refuse_binds(self, pods: Sequence[str]) -> None:
        refused = self.world.server.refuse_binding
        refused.clear()
        refused.update(pods)

    def hold_terminations(self, held: bool) -> None:
        self.world.hold_terminations(held)

    def decision_times(self) -> Sequence[float]:
        return [decision.seconds for decision in self.world.decisions]
