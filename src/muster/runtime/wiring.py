"""The composition root: read top to bottom, it is the program."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from muster.api import writes
from muster.api.calls import Request, Response
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND, Instant
from muster.api.machine import Machine
from muster.apiserver.server import HISTORY, ApiServer
from muster.controllers.hollow import Hollow
from muster.controllers.machine import makers
from muster.engine.profile import Profile
from muster.plugins import default_profile
from muster.runtime.changes import Changes
from muster.runtime.clock import Clock, SystemClock
from muster.runtime.journal import Journal
from muster.runtime.keeper import Keeper
from muster.runtime.local import Local
from muster.runtime.loop import Loop, Station
from muster.runtime.telemetry import Log
from muster.runtime.uids import Uids
from muster.runtime.worker import Worker
from muster.scheduler.machine import Scheduler

PATIENT = frozenset({"hollow", "nodes"})
"""Machines whose timers are declared run times, grace periods and time-outs; the others' short timers are backoffs."""


@dataclass(frozen=True)
class Setup:
    """What one embedded cluster is made of."""

    gates: FeatureGates
    profile: Profile = field(default_factory=default_profile)
    clock: Clock = field(default_factory=SystemClock)
    run_pods: bool = True
    """Whether hollow kubelets start pods (False: pods stay as they are; deletions finish at once)."""
    start_delay: Instant = SECOND
    priority_admission: bool = True
    volumes: bool = True
    """Whether claims get volumes: the volume controller and its hollow driver run."""
    apps: bool = True
    """Whether Deployments, ReplicaSets and the other kinds of group apps get their pods."""
    data: Path | None = None
    """Directory in which everything is kept; None: it ends with the process."""
    levels: tuple[str, ...] = ()
    """Topology label keys, widest first, that keep groups together; none: the well-known ones that nodes carry."""
    preemption: bool = True
    """Whether the scheduler evicts pods of lower priority where that makes room."""


@dataclass
class Cluster:
    """An embedded API server, the controllers and the scheduler around it, and the loop that drives them."""

    server: ApiServer
    local: Local
    loop: Loop
    worker: Worker
    log: Log
    profile: Profile
    scheduler_station: Station
    hollow_station: Station

    @property
    def scheduler(self) -> Scheduler:
        """The living one: a restart replaces it."""
        return cast("Scheduler", self.scheduler_station.machine)

    def call(self, request: Request) -> Response:
        """One request from outside that is no watch, and that no webhook is asked about: see `Local.ask`."""
        answer = self.local.handle(request)
        assert isinstance(answer, Response), "a watch was opened where an answer was wanted"
        return answer

    def create(self, manifest: Mapping[str, Any]) -> Response:
        """Creates the object, in its own namespace or in `default`."""
        return self.call(writes.create(manifest))

    def refuse_bindings(self, pods: Iterable[str]) -> None:
        """Bindings of these pods (`namespace/name`) are refused with 403 from now on."""
        self.server.refuse_binding.clear()
        self.server.refuse_binding.update(pods)

    def hold_terminations(self, hold: bool) -> None:
        """Whether deleted pods stay terminating; False ends all that do."""
        hollow = cast("Hollow", self.hollow_station.machine)
        if hold:
            hollow.hold()
        else:
            self.loop.carry_out(self.hollow_station, hollow.finish(self.local.clock.now()))


def assemble(setup: Setup, changes: Changes | None = None) -> Cluster:
    """Puts the parts together. Must run inside the event loop that will drive them."""
    bare = alone(setup, frozenset(), changes)
    local, loop = bare.local, bare.loop
    around = _makers(setup)
    stations = {name: loop.add(name, make) for name, make in around.items()}
    made = partial(Scheduler, setup.profile, gates=setup.gates, levels=setup.levels, preemption=setup.preemption)
    scheduler = loop.add("scheduler", made)
    return Cluster(local.server, local, loop, bare.worker, bare.log, setup.profile, scheduler, stations["hollow"])


@dataclass
class Alone:
    """An embedded API server without a scheduler, and the loop that drives the controllers chosen."""

    local: Local
    loop: Loop
    worker: Worker
    log: Log


def controllers(setup: Setup) -> tuple[str, ...]:
    """Names of all that there are."""
    return tuple(makers(setup.gates))


def alone(setup: Setup, chosen: Collection[str], changes: Changes | None = None) -> Alone:
    """The server, and of the controllers the chosen ones.

    Raises:
        Unusable: the directory of its data is.
    """
    log = Log()
    local = _local(setup, changes)
    worker = Worker()
    loop = Loop(local, worker, log, PATIENT)
    if local.keeper is not None:
        local.keeper.begin_anew = partial(_begin_anew, local.keeper, loop, log)
    around = _makers(setup)
    for name in chosen:
        loop.add(name, around[name])
    return Alone(local, loop, worker, log)


def _makers(setup: Setup) -> dict[str, Callable[[], Machine]]:
    return makers(
        setup.gates,
        run=setup.run_pods,
        start_delay=setup.start_delay,
        volumes=setup.volumes,
        apps=setup.apps,
    )


def _local(setup: Setup, given: Changes | None) -> Local:
    """Whoever gives a bell of its own hears everything by it; else those outside get another one than the machines."""
    changes = given or Changes()
    store = keeper = None
    if setup.data is not None:
        journal = Journal(setup.data)
        store = journal.load(HISTORY)
        keeper = Keeper(store, journal, given or Changes())
    server = ApiServer(
        setup.gates,
        new_uid=Uids(),
        priority_admission=setup.priority_admission,
        started=setup.clock.now(),
        store=store,
    )
    if keeper is not None:
        keeper.flush()
    return Local(server, setup.clock, changes, keeper)


def _begin_anew(keeper: Keeper, loop: Loop, log: Log) -> None:
    log.event("storage", full=keeper.full or "no more")
    loop.begin_anew()
