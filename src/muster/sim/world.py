"""The virtual world: one in-process API server and the machines around it, on a clock that only moves when told to."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from muster.api import catalog
from muster.api.calls import Request, Response
from muster.api.instant import Instant
from muster.api.machine import Listed, Observed, Refused, WakeAt, Woken, Write, Written
from muster.api.object import Object
from muster.apiserver.server import ApiServer
from muster.apiserver.watch import Watch
from muster.engine.decide import decide
from muster.model.decision import Decision
from muster.model.records import EntryKey
from muster.scheduler.effects import Decide
from muster.scheduler.events import Decided, Pause, Resume
from muster.sim.faults import Faults
from muster.sim.timers import BRIEF, Timer, Timers

SCHEDULER, HOLLOW, NODES = "scheduler", "hollow", "nodes"
START: Instant = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z."""

# At equal times: what machines have written reaches the server first, then answers, then watch events.
WRITES, ANSWERS, CHANGES = range(3)


class AnyMachine(Protocol):
    """A `Machine`, or the scheduler with its further events and effects."""

    @property
    def resources(self) -> tuple[str, ...]: ...

    def handle(self, event: Any, now: Instant) -> Sequence[Any]: ...


class BusyLoop(Exception):
    """More happened at one instant than any finite piece of work explains."""


@dataclass(frozen=True, slots=True)
class DecisionTime:
    """One call of `decide`: when in virtual time, for which entries and how many pods, and how long it really took."""

    at: Instant
    entries: tuple[EntryKey, ...]
    pods: int
    seconds: float


@dataclass(slots=True)
class _Client:
    """A machine with its watches. Items made for an earlier `life` are void."""

    name: str
    make: Callable[[], AnyMachine]
    machine: Any
    life: int = 0
    watches: dict[str, Watch] = field(default_factory=dict)
    horizon: dict[str, Instant] = field(default_factory=dict)
    """Per resource, no event is delivered before this time: a stream keeps its order however late it is."""


@dataclass(slots=True)
class World:
    """Machines around an API server in virtual time. Deterministic: the same calls and seed give the same run.

    Args:
        server: the API server; the world is its only caller.
        makers: name -> a function that makes the machine; the one named "scheduler" can be paused and restarted.
        faults: what goes wrong; calm unless its rates say otherwise.
        patient: machines whose timers are declared run times, grace periods or time-outs.
        witness: sees every question and its answer.
        overhear: sees what each machine is told and what it asks for, by the machine's name.
        stopwatch: a clock in seconds that decision times are read from; without one they are 0.
        most: how many steps may happen at one instant before `BusyLoop` is raised.
    """

    server: ApiServer
    makers: Mapping[str, Callable[[], AnyMachine]]
    faults: Faults = field(default_factory=lambda: Faults(Random(0)))
    patient: frozenset[str] = frozenset({HOLLOW, NODES})
    witness: Callable[[Decide, Decision], None] = lambda asked, decision: None
    overhear: Callable[[str, object, Sequence[Any]], None] = lambda name, event, effects: None
    stopwatch: Callable[[], float] = lambda: 0.0
    now: Instant = START
    most: int = 1_000_000
    decisions: list[DecisionTime] = field(default_factory=list)
    paused: bool = False
    _clients: dict[str, _Client] = field(default_factory=dict)
    _heap: list[tuple[Instant, int, int, str, int, Callable[[], None]]] = field(default_factory=list)
    _sequence: int = 0
    _polled: int = -1
    _timers: Timers = field(default_factory=Timers)
    _seen: dict[int, Object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._timers.patient = self.patient
        for name, make in self.makers.items():
            client = self._clients[name] = _Client(name, make, make())
            self._list_all(client)

    # -- what a user does

    def request(self, request: Request) -> Response | Watch:
        """One API call from outside, carried out at once; machines learn of it when the world moves."""
        return self.server.handle(request, self.now)

    def call(self, request: Request) -> Response:
        """Like `request`, for calls that are no watch."""
        answer = self.request(request)
        assert isinstance(answer, Response), "a watch was opened where an answer was wanted"
        return answer

    def machine(self, name: str = SCHEDULER) -> Any:
        return self._clients[name].machine

    @property
    def at_rest(self) -> bool:
        """Whether nothing is under way; timers may be pending."""
        return not self._heap and self.server.revision == self._polled

    # -- time

    def tick(self, us: Instant) -> None:
        """Moves the clock without running anything; what became due happens later, late."""
        self.now += us

    def settle(self) -> None:
        """Lets everything happen that happens at the present time; long timers stay pending."""
        self._run(self.now, brief_only=True)

    def quiesce(self) -> None:
        """Settles, and lets backoffs end: moves the clock by up to 10 s while a brief timer or a late event is due.

        Timers that are not brief wait for `advance`, also if they are due (conformance README, "Time").
        """
        self._run(self.now + BRIEF, brief_only=True)

    def advance(self, us: Instant) -> None:
        """Moves the clock, stopping at every timer and event on the way."""
        target = self.now + us
        self._run(target, brief_only=False)
        self.now = target

    def step(self, us: Instant) -> bool:
        """Lets one thing happen that is due within `us`, as `quiesce` would; whether there was one."""
        for at, action in self._steps(self.now + us, brief_only=True):
            self.now = max(self.now, at)
            action()
            return True
        return False

    # -- the scheduler

    def pause(self) -> None:
        """No decision is taken until `resume`; a scheduler that is restarted meanwhile stays paused."""
        self.paused = True
        self._tell(self._clients[SCHEDULER], Pause())

    def resume(self) -> None:
        self.paused = False
        self._tell(self._clients[SCHEDULER], Resume())

    def restart(self, name: str = SCHEDULER) -> None:
        """Kills a machine and starts it anew: all it knew is gone, its writes under way may or may not arrive."""
        client = self._clients[name]
        client.life += 1
        kept = []
        for item in self._heap:
            if item[3] != name:
                kept.append(item)
            elif item[1] == WRITES and self.faults.arrives():
                kept.append((*item[:4], -1, item[5]))
        heapq.heapify(kept)
        self._heap = kept
        self._timers.drop(name)
        client.machine = client.make()
        if self.paused and name == SCHEDULER:
            self._tell(client, Pause())
        self._list_all(client)

    # -- the kubelets

    def hold_terminations(self, held: bool) -> None:
        """While held, deleted pods stay terminating and keep their room; letting go ends them all."""
        self.settle()
        client = self._clients[HOLLOW]
        if held:
            client.machine.hold()
        else:
            self._carry_out(client, client.machine.finish(self.now))

    # -- the engine room

    def _run(self, until: Instant, *, brief_only: bool) -> None:
        """Takes step after step in order of time until none is left up to `until`."""
        instant, steps = self.now, 0
        for at, step in self._steps(until, brief_only=brief_only):
            if at > self.now:
                self.now = at
            if self.now != instant:
                instant, steps = self.now, 0
            steps += 1
            if steps > self.most:
                raise BusyLoop(f"more than {self.most} steps at one instant; the last was for {step}")
            step()

    def _steps(self, until: Instant, *, brief_only: bool) -> Iterator[tuple[Instant, Callable[[], None]]]:
        while True:
            if self.server.revision != self._polled and not (self._heap and self._heap[0][:2] <= (self.now, WRITES)):
                self._poll()
            timer = self._timers.earliest(brief_only=brief_only)
            if self._heap and (timer is None or self._heap[0][0] <= max(timer.at, self.now)):
                if self._heap[0][0] > until:
                    return
                if SCHEDULER in self._clients and self.faults.kills():
                    self.restart()
                    continue
                at, _, _, name, life, action = heapq.heappop(self._heap)
                if life in (-1, self._clients[name].life):
                    yield at, action
            elif timer is not None and timer.at <= until:
                yield timer.at, lambda timer=timer: self._ring(timer)  # type: ignore[misc]
            else:
                return

    def _push(self, client: _Client, at: Instant, priority: int, action: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._heap, (at, priority, self._sequence, client.name, client.life, action))

    def _ring(self, timer: Timer) -> None:
        self._timers.take(timer)
        self._tell(self._clients[timer.machine], Woken(timer.tag))

    def _tell(self, client: _Client, event: object) -> None:
        effects = tuple(client.machine.handle(event, self.now))
        self.overhear(client.name, event, effects)
        self._carry_out(client, effects)

    def _carry_out(self, client: _Client, effects: Sequence[Any]) -> None:
        for effect in effects:
            if type(effect) is Write:
                self._push(client, self.now, WRITES, lambda effect=effect: self._write(client, effect))  # type: ignore[misc]
            elif type(effect) is WakeAt:
                self._timers.set(client.name, effect.tag, effect.at, self.now)
            elif type(effect) is Decide:
                self._decide(client, effect)
            else:
                raise TypeError(f"{client.name} asked for {effect!r}, which is no effect")

    def _write(self, client: _Client, write: Write) -> None:
        response = self.faults.refusal(write.request)
        if response is None:
            response = self.call(write.request)
            if response.ok:
                response = self.faults.loses_answer() or response
        if write.tag is not None:
            outcome = (Written if 0 < response.status < 300 else Refused)(write.tag, response)
            self._push(client, self.now + self.faults.delay(), ANSWERS, lambda: self._tell(client, outcome))

    def _decide(self, client: _Client, asked: Decide) -> None:
        began = self.stopwatch()
        decision = decide(asked.snapshot, asked.heads, asked.profile, now=self.now, budget=asked.budget)
        seconds = self.stopwatch() - began
        self.witness(asked, decision)
        entries = tuple(head.key for head in asked.heads)
        self.decisions.append(DecisionTime(self.now, entries, sum(len(h.pods) for h in asked.heads), seconds))
        answer = Decided(asked.ticket, decision)
        self._push(client, self.now + self.faults.delay(), ANSWERS, lambda: self._tell(client, answer))

    # -- watches

    def _list_all(self, client: _Client) -> None:
        client.watches.clear()
        client.horizon.clear()
        for resource in client.machine.resources:
            self._list(client, resource, self.now)

    def _list(self, client: _Client, resource: str, at: Instant) -> None:
        """The machine is Listed at `at`, from then on it observes."""
        client.watches.pop(resource, None)
        self._push(client, at, CHANGES, lambda: self._listed(client, resource))

    def _listed(self, client: _Client, resource: str) -> None:
        path = catalog.by_resource(resource).path(None)
        body = self.call(Request("GET", path)).body
        revision = body["metadata"]["resourceVersion"]
        watch = self.request(Request("GET", path, {"watch": "true", "resourceVersion": revision}))
        assert isinstance(watch, Watch), f"no watch on {path}: {watch}"
        client.watches[resource] = watch
        self._tell(client, Listed(resource, [self._object(raw) for raw in body["items"]]))

    def _poll(self) -> None:
        """Puts what is new on its way to each machine, in the order in which it was written, whatever the resource."""
        self._polled = self.server.revision
        for client in self._clients.values():
            news: list[tuple[int, Observed]] = []
            for resource, watch in list(client.watches.items()):
                changes = watch.poll()
                if watch.closed or (changes and self.faults.loses_watch()):
                    at = max(client.horizon.get(resource, 0), self.now + self.faults.delay())
                    self._list(client, resource, at)
                    continue
                for change in changes:
                    observed = Observed(resource, change.type, self._object(change.object))
                    news.append((change.revision, observed))
            for _, event in sorted(news, key=lambda item: item[0]):
                at = max(client.horizon.get(event.resource, 0), self.now + self.faults.delay())
                client.horizon[event.resource] = at
                self._push(client, at, CHANGES, lambda c=client, e=event: self._tell(c, e))  # type: ignore[misc]
        self._seen.clear()

    def _object(self, raw: Mapping[str, Any]) -> Object:
        """The same stored value is decoded once, however many machines see it in one round."""
        found = self._seen.get(id(raw))
        if found is None:
            found = self._seen[id(raw)] = Object(raw)
        return found
