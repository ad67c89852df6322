"""The cluster that simulations start from: server, controllers and scheduler, wired into one World."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from random import Random

from muster.api.gates import FeatureGates
from muster.apiserver.server import ApiServer
from muster.controllers.machine import makers
from muster.plugins import default_profile
from muster.scheduler.machine import Scheduler
from muster.sim.faults import CALM, Faults, Rates
from muster.sim.world import SCHEDULER, START, AnyMachine, World


def uids(random: Random) -> Callable[[], str]:
    """Makes uids that look like those of Kubernetes and replay with the seed."""

    def new_uid() -> str:
        digits = f"{random.getrandbits(128):032x}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    return new_uid


def cluster(
    gates: FeatureGates | None = None,
    *,
    seed: int = 0,
    levels: Sequence[str] = (),
    priority_admission: bool = True,
    volumes: bool = True,
    apps: bool = True,
    only: Collection[str] = (),
    rates: Rates = CALM,
    run: bool = False,
    stopwatch: Callable[[], float] = lambda: 0.0,
) -> World:
    """An empty cluster at START. Unless they are to `run`, pods stay as they are once bound and deletions end at once.

    `levels`: topology label keys, widest first. `volumes`: whether claims get volumes. `apps`: whether
    ReplicaSets and the like get pods. `only`: no controllers but these.
    `stopwatch`: seconds, for decision times.
    """
    gates = gates or FeatureGates()
    server = ApiServer(gates, new_uid=uids(Random(seed)), priority_admission=priority_admission, started=START)
    machines: dict[str, Callable[[], AnyMachine]] = {**makers(gates, run=run, volumes=volumes, apps=apps)}
    if only:
        machines = {name: make for name, make in machines.items() if name in only}
    machines[SCHEDULER] = partial(Scheduler, default_profile(), gates=gates, levels=tuple(levels), preemption=True)
    return World(server, machines, Faults(Random(seed), rates), stopwatch=stopwatch, now=START)
