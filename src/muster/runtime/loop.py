"""Drives machines in real time: brings them events, carries out their effects, sleeps while there is nothing to do."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from muster.api.calls import Request, Response
from muster.api.instant import SECOND, Instant
from muster.api.machine import Refused, WakeAt, Woken, Write, Written
from muster.apiserver.watch import Watch
from muster.model import resizing
from muster.model.decision import Decision
from muster.runtime.changes import Changes
from muster.runtime.clock import Clock
from muster.runtime.local import Inbox
from muster.runtime.telemetry import Log
from muster.runtime.worker import Outcome, Worker
from muster.scheduler.effects import Decide
from muster.scheduler.events import Decided
from muster.sim.timers import Timer, Timers

BREATH = 0.01
"""Seconds that machines may work in one go before HTTP gets its turn."""
FIRST_REST, LONGEST_REST = SECOND, 60 * SECOND
"""A machine that raised is built anew after this long, doubling while it keeps raising."""
_REST = object()
"""Tag of the timer that ends a rest."""


class Drivable(Protocol):
    """A `Machine`, or one with events and effects of its own (the scheduler)."""

    @property
    def resources(self) -> tuple[str, ...]: ...

    def handle(self, event: Any, now: Instant) -> Sequence[Any]: ...


class Store(Protocol):
    """The server at the other end, in this process or another: `Local`, or `remote.store.Remote`."""

    @property
    def clock(self) -> Clock: ...

    @property
    def changes(self) -> Changes: ...

    def subscribe(self, resources: tuple[str, ...], inbox: Inbox) -> None: ...

    def unsubscribe(self, inbox: Inbox) -> None: ...

    def deliver(self) -> None: ...

    def restart(self) -> None: ...

    def begin(self, request: Request) -> Any:
        """The answer, or what `finish` makes one of."""

    async def finish(self, made: Any) -> Response | Watch: ...


@dataclass(eq=False)
class Station:
    """One machine at its place: how to build it anew, what it has not been told yet, and its timers."""

    name: str
    build: Callable[[], Drivable]
    machine: Drivable
    inbox: Inbox = field(default_factory=deque)
    life: int = 0
    """Grows with every rebuild: decisions asked for in an earlier life are dropped."""
    rest: Instant = 0
    """How long it was out of service after it last raised."""
    failed: Instant = 0


class Loop:
    """The asyncio driver. Everything runs on the event loop's thread, but for decisions.

    Only one task may run `run`. While it sleeps nothing happens: no polling, no ticks. On a held clock no timer goes
    off by itself: whoever holds the clock rings them.

    Args:
        patient: machines whose timers are declared run times, grace periods or time-outs (see `sim.timers`).
    """

    def __init__(self, local: Store, worker: Worker, log: Log, patient: frozenset[str] = frozenset()) -> None:
        self._local = local
        self._worker = worker
        self._log = log
        self._stations: dict[str, Station] = {}
        self.timers = Timers(patient)
        self._deciding = 0
        self._asking: set[asyncio.Task[None]] = set()
        self._stopped = False
        self._at_rest = asyncio.Event()
        self.decisions: deque[float] = deque(maxlen=10_000)
        """Seconds that each of the latest decisions took."""
        self.after: Callable[[], None] | None = None
        """Called after every round over the machines; it may hand them events."""

    def add(self, name: str, build: Callable[[], Drivable]) -> Station:
        """Puts a machine to work, beginning with a Listed of each resource it watches."""
        station = self._stations[name] = Station(name, build, build())
        self._local.subscribe(station.machine.resources, station.inbox)
        self._stir()
        return station

    def stop(self) -> None:
        self._stopped = True
        self._stir()

    def send(self, station: Station, event: Any) -> None:
        """Hands an event from outside (Pause, Resume) to one machine."""
        station.inbox.append(event)
        self._stir()

    def rebuild(self, station: Station, first: Sequence[Any] = ()) -> None:
        """Kills the machine and starts it again from what the server holds: its state is a fold over the watch.

        `first`: events that it is told before anything else.
        """
        self._retire(station)
        station.machine = station.build()
        station.inbox.extend(first)
        self._local.subscribe(station.machine.resources, station.inbox)
        self._stir()

    def begin_anew(self) -> None:
        """Rebuilds every machine: what they saw was taken back, or what they wrote was refused."""
        self._local.restart()
        for station in self._stations.values():
            self.rebuild(station)

    def ring(self, timer: Timer) -> None:
        """Lets a timer go off, whatever the time."""
        self.timers.take(timer)
        station = self._stations[timer.machine]
        if timer.tag is _REST:
            self.rebuild(station)
        else:
            station.inbox.append(Woken(timer.tag))
            self._stir()

    async def run(self) -> None:
        """Brings events to machines until `stop`; sleeps on the store's bell and the next timer, nothing else."""
        with self._local.changes.listening() as bell:
            while not self._stopped:
                bell.clear()
                worked = self._turn()
                if self.after is not None:
                    self.after()
                if worked:
                    await asyncio.sleep(0)
                    continue
                if not self._deciding:
                    self._at_rest.set()
                await self._sleep(bell)

    async def settle(self) -> None:
        """Returns once nothing is undelivered and no decision is in flight."""
        self._stir()
        await self._at_rest.wait()

    def _stir(self) -> None:
        self._at_rest.clear()
        self._local.changes.ring()

    async def _sleep(self, bell: asyncio.Event) -> None:
        timer = self.timers.earliest(brief_only=False)
        delay = self._local.clock.seconds_until(timer.at) if timer else None
        if delay is None:
            await bell.wait()
        elif delay > 0:
            try:
                await asyncio.wait_for(bell.wait(), delay)
            except TimeoutError:
                return

    def _wake(self) -> None:
        """Rings every timer that is due by the clock's own account."""
        while timer := self.timers.earliest(brief_only=False):
            if self._local.clock.seconds_until(timer.at) != 0.0:
                return
            self.ring(timer)

    def _turn(self) -> bool:
        """One round over all machines; False if there was nothing to do."""
        self._wake()
        self._local.deliver()
        busy = False
        until = time.perf_counter() + BREATH
        for station in self._stations.values():
            while station.inbox:
                busy = True
                self._tell(station, station.inbox.popleft())
                if time.perf_counter() > until:
                    break
        return busy

    def _tell(self, station: Station, event: Any) -> None:
        try:
            effects = station.machine.handle(event, self._local.clock.now())
        except Exception as failure:  # a bug in one machine must not take the API down with it
            self._rest(station, failure)
            return
        self.carry_out(station, effects)

    def _rest(self, station: Station, failure: Exception) -> None:
        """Takes a machine that raised out of service until a fresh one takes its place."""
        self._log.failure(f"{station.name} failed and is built anew", failure)
        self._retire(station)
        now = self._local.clock.now()
        again = now - station.failed < 2 * LONGEST_REST
        station.rest = min(2 * station.rest, LONGEST_REST) if again else FIRST_REST
        station.failed = now
        self.timers.set(station.name, _REST, now + station.rest, now)

    def _retire(self, station: Station) -> None:
        self._local.unsubscribe(station.inbox)
        self.timers.drop(station.name)
        station.inbox = deque()
        station.life += 1

    def carry_out(self, station: Station, effects: Sequence[Any]) -> None:
        for effect in effects:
            self._carry_out(station, effect)

    def _carry_out(self, station: Station, effect: Any) -> None:
        kind = type(effect)
        if kind is Write:
            self._write(station, effect)
        elif kind is WakeAt:
            self.timers.set(station.name, effect.tag, effect.at, self._local.clock.now())
        elif kind is Decide:
            self._decide(station, effect)
        else:
            raise TypeError(f"{station.name} asked for {effect!r}, which no driver knows")

    def _write(self, station: Station, effect: Write) -> None:
        answer = self._local.begin(effect.request)
        if not isinstance(answer, Response | Watch):
            self._deciding += 1
            asked = asyncio.create_task(self._asked(station, station.life, effect, answer))
            self._asking.add(asked)
            asked.add_done_callback(self._asking.discard)
            return
        self._written(station, effect, answer)

    async def _asked(self, station: Station, life: int, effect: Write, paused: Any) -> None:
        """Finishes a write that is on its way, or that webhooks are asked about; others go on meanwhile."""
        try:
            answer = await self._local.finish(paused)
        finally:
            self._deciding -= 1
        self._stir()
        if station.life == life:
            self._written(station, effect, answer)

    def _written(self, station: Station, effect: Write, answer: Response | Watch) -> None:
        if effect.tag is None:
            return
        assert isinstance(answer, Response), answer
        station.inbox.append(Written(effect.tag, answer) if answer.ok else Refused(effect.tag, answer))

    def _decide(self, station: Station, asked: Decide) -> None:
        self._deciding += 1
        here, life = asyncio.get_running_loop(), station.life

        def done(asked: Decide, outcome: Outcome, seconds: float) -> None:
            if not here.is_closed():  # else nobody is left to be told
                here.call_soon_threadsafe(self._decided, station, life, asked, outcome, seconds)

        self._worker.submit(asked, self._local.clock.now(), done)

    def _decided(self, station: Station, life: int, asked: Decide, outcome: Outcome, seconds: float) -> None:
        self._deciding -= 1
        self._stir()
        self.decisions.append(seconds)
        if isinstance(outcome, Exception):
            self._log.failure("a decision failed", outcome)
            answer = Decided(asked.ticket, None, f"{type(outcome).__name__}: {outcome}")
        else:
            answer = Decided(asked.ticket, outcome)
            self._tell_of(outcome)
        self._log.event("decided", heads=len(asked.heads), milliseconds=round(seconds * 1000, 1))
        if station.life == life:
            station.inbox.append(answer)

    def _tell_of(self, decision: Decision) -> None:
        if not self._log.curious:
            return
        for plan, diagnosis in zip(decision.plans, decision.diagnoses, strict=True):
            entry = f"{diagnosis.entry.kind.value}/{diagnosis.entry.key}"
            if plan.binds:
                nodes = len({bind.node for bind in plan.binds})
                self._log.event("placed", entry=entry, pods=len(plan.binds), nodes=nodes)
            else:
                self._log.event("not placed", entry=entry, why=resizing.verdict(diagnosis))
