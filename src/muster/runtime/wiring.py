"""The composition root: read top to bottom, it is the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.api.calls import Request, Response
from muster.api.gates import FeatureGates
from muster.engine.profile import Profile
from muster.runtime.clock import Clock
from muster.runtime.local import Local
from muster.runtime.loop import Loop, Station
from muster.scheduler.machine import Scheduler


@dataclass(frozen=True)
class Setup:
    """What one embedded cluster is made of."""

    gates: FeatureGates
    profile: Profile
    clock: Clock
    run_pods: bool = True
    """Whether hollow kubelets start pods (False: pods stay as they are; deletions finish)."""
    priority_admission: bool = True


class Cluster:
    """An embedded API server, the controllers and the scheduler around it, and the loop that drives them."""

    local: Local
    loop: Loop
    scheduler_station: Station

    @property
    def scheduler(self) -> Scheduler:
        """The living one (a restart replaces it)."""
        raise LookupError

    def call(self, request: Request) -> Response: ...  # type: ignore[empty-body]

    def create(self, *manifests: Mapping[str, Any]) -> Sequence[Response]: ...  # type: ignore[empty-body]


def assemble(setup: Setup) -> Cluster: ...  # type: ignore[empty-body]


async def serve(cluster: Cluster, *, port: int, control: bool = False) -> int:
    """Serves the cluster on 127.0.0.1 until SIGINT or SIGTERM; returns the exit code."""
    raise LookupError
