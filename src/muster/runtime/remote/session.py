"""The schedulers of one process on one server: what is put together once it is known what the server offers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from random import Random
from typing import Any, cast

from muster.api.gates import WORKLOAD_AWARE, FeatureGates
from muster.api.instant import SECOND
from muster.api.machine import Listed
from muster.engine.profile import Profile
from muster.runtime.clock import Clock
from muster.runtime.local import Inbox
from muster.runtime.loop import Loop, Station
from muster.runtime.remote.discovery import Offer
from muster.runtime.remote.election import Election, Terms
from muster.runtime.remote.leader import Leader
from muster.runtime.remote.store import Remote
from muster.runtime.remote.transport import Transport
from muster.runtime.remote.turns import Player, Turns
from muster.runtime.telemetry import Log
from muster.runtime.worker import Worker
from muster.scheduler.events import Pause, Resume
from muster.scheduler.machine import Scheduler

LOG = Log("scheduler")
GROUP_GATES = tuple(name for name in WORKLOAD_AWARE if name != "WorkloadWithJob")
LOOK_EVERY = 0.05
"""Seconds between looks whether everything was listed, before the election, and is up to date, after it."""
HURRY_EVERY = 20
"""Looks after which whatever has failed is tried again at once."""


@dataclass(frozen=True)
class Duty:
    """What to schedule, and as whom."""

    profiles: Mapping[str, Profile]
    """By schedulerName."""
    terms: Terms | None = None
    """Of the election; None: nobody else schedules these pods."""
    gates: FeatureGates = field(default_factory=FeatureGates)
    """Those of groups are on in any case."""
    preemption: bool = True


def made_for(name: str, profile: Profile, gates: FeatureGates, *, preemption: bool) -> Scheduler:
    return Scheduler(profile, scheduler_name=name, gates=gates, preemption=preemption)


def with_groups(gates: FeatureGates) -> FeatureGates:
    """The gates of a scheduler that knows groups. A server without them drops the fields that name them."""
    return gates.changed(dict.fromkeys(GROUP_GATES, True))


def wanted_resources(duty: Duty) -> tuple[str, ...]:
    """Everything that a scheduler of this duty watches if the server offers it."""
    gates = with_groups(duty.gates)
    wanted = [
        resource
        for name, profile in duty.profiles.items()
        for resource in made_for(name, profile, gates, preemption=duty.preemption).resources
    ]
    return tuple(dict.fromkeys(wanted))


@dataclass
class Employed:
    """One profile at work."""

    name: str
    profile: Profile
    station: Station

    loop: Loop
    clock: Clock

    @property
    def scheduler(self) -> Scheduler:
        """The living one: a rebuild replaces it."""
        return cast("Scheduler", self.station.machine)

    @property
    def busy(self) -> bool:
        return self.scheduler.queue.has_active or self.scheduler.resizes.has_active

    @property
    def clear(self) -> bool:
        idle = not self.station.inbox and self.scheduler.paused and self.scheduler.idle(self.clock.now())
        return idle and not self.scheduler.cache.assumed

    def pause(self) -> None:
        self.loop.send(self.station, Pause())

    def resume(self) -> None:
        self.loop.send(self.station, Resume())


def first(inbox: Inbox) -> Iterator[Any]:
    """Of what a machine has not been told yet, what can be of its first lists."""
    return islice(inbox, 50)


class Session:
    """Schedulers, one for each profile, the server they watch, and the election that says whether they may write.

    Must be made inside the event loop that will run it. On standby the schedulers are paused, with all that they need
    to know at hand; one that is deposed is built anew, paused, from what the reflectors know.
    """

    def __init__(
        self, duty: Duty, offer: Offer, transport: Transport, clock: Clock, random: Random, log: Log | None = None
    ) -> None:
        self.duty, self.offer, self.transport, self.clock = duty, offer, transport, clock
        self.remote = Remote(transport, offer, clock, random)
        self.worker = Worker()
        self.loop = Loop(self.remote, self.worker, log or Log("scheduler"))
        self.leader: Leader | None = None
        self._starting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        if duty.terms is not None:
            election = Election(duty.terms, random)
            self.leader = Leader(election, transport, clock, self.remote.refusals, self._lead)
            self.remote.may = self.leader.may
        gates = with_groups(duty.gates)
        self.employed: list[Employed] = []
        self.turns = Turns(self.employed, self._stuck) if len(duty.profiles) > 1 else None
        for name, profile in duty.profiles.items():
            station = self.loop.add(name, self._builder(name, profile, gates))
            self.employed.append(Employed(name, profile, station, self.loop, clock))
        if self.turns is not None:
            self.loop.after = self._look
            if self.leader is None:
                self.turns.begin(clock.now())

    def _builder(self, name: str, profile: Profile, gates: FeatureGates) -> Callable[[], Scheduler]:
        make = partial(made_for, name, profile, gates, preemption=self.duty.preemption)

        def build() -> Scheduler:
            made = make()
            if not self._plays(name):
                made.handle(Pause(), self.clock.now())
            return made

        return build

    @property
    def leads(self) -> bool:
        return self.leader is None or self.leader.leads

    def _plays(self, name: str) -> bool:
        """Whether the scheduler of that name may decide."""
        begun = self.leads and (self._starting is None or self._starting.done())
        if self.turns is None:
            return begun
        return begun and any(one.name == name and self.turns.may_play(one) for one in self.employed)

    def _look(self) -> None:
        """Whose turn it is; looked at again in time, if nothing happens before."""
        assert self.turns is not None
        again = self.turns.look(self.clock.now())
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if again is not None:
            wait = max(again - self.clock.now(), 0) / SECOND
            self._timer = asyncio.get_running_loop().call_later(wait, self.remote.changes.ring)

    def _stuck(self, player: Player) -> None:
        name = next(one.name for one in self.employed if one is player)
        LOG.warning("placements are not told of by the server; others decide meanwhile without them", profile=name)

    def _lead(self, leads: bool) -> None:
        if self._starting is not None:
            self._starting.cancel()
            self._starting = None
        if leads:
            self._starting = asyncio.create_task(self._start(), name="begin to lead")
            return
        self.remote.drop_writes()
        if self.turns is not None:
            self.turns.end()
        for one in self.employed:
            self.loop.rebuild(one.station)

    async def _start(self) -> None:
        """Begins to decide once what is known is up to date: whoever led before may have placed pods until just now."""
        for look in count():
            if self.remote.live:
                break
            if look % HURRY_EVERY == 0:
                self.remote.hurry()
            await asyncio.sleep(LOOK_EVERY)
        if self.turns is not None:
            self.turns.begin(self.clock.now())
            return
        for one in self.employed:
            one.resume()

    @property
    def heard(self) -> bool:
        """Whether every scheduler has taken in what was listed first."""
        inboxes = (one.station.inbox for one in self.employed)
        return self.remote.synced and not any(isinstance(event, Listed) for inbox in inboxes for event in first(inbox))

    async def _elect(self, leader: Leader) -> None:
        """Takes part in the election once there is something to decide by."""
        while not self.heard:
            await asyncio.sleep(LOOK_EVERY)
        await leader.run()

    async def run(self, ended: asyncio.Event) -> None:
        """Schedules until `ended` is set, or something that must not end has.

        Raises:
            Exception: what made the loop or the election fail: a fault of this program.
        """
        running: list[asyncio.Task[Any]] = [asyncio.create_task(self.loop.run(), name="loop")]
        if self.leader is not None:
            running.append(asyncio.create_task(self._elect(self.leader), name="leader"))
        waiting = asyncio.create_task(ended.wait())
        try:
            done, _ = await asyncio.wait([waiting, *running], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await self._close([waiting, *running])

    async def _close(self, running: Sequence[asyncio.Task[Any]]) -> None:
        """Stops deciding, ends what is being written, lets the lease go."""
        self.loop.stop()
        self.worker.close()
        self.remote.drop_writes()
        for task in running:
            if task.get_name() != "loop":
                task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self.remote.close()
        for pending in (self._timer, self._starting):
            if pending is not None:
                pending.cancel()
        if self.leader is not None:
            await self.leader.release()
