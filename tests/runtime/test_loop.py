"""The driver with machines made for the purpose, around a real API server."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from muster.api import writes
from muster.api.calls import Response
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND
from muster.api.machine import Listed, Observed, Refused, WakeAt, Woken, Write, Written
from muster.apiserver.server import ApiServer
from muster.runtime.changes import Changes
from muster.runtime.clock import Clock, HeldClock, SystemClock
from muster.runtime.local import Local
from muster.runtime.loop import Loop
from muster.runtime.telemetry import Log
from muster.runtime.worker import Worker

START = 1_767_225_600 * SECOND


@dataclass
class Recorder:
    """Notes what it is told; answers each kind of event with what it was given for it."""

    answers: dict[type, Callable[[Any], Sequence[Any]]] = field(default_factory=dict)
    resources: tuple[str, ...] = ("configmaps",)
    told: list[Any] = field(default_factory=list)

    def handle(self, event: Any, now: int) -> Sequence[Any]:
        self.told.append(event)
        return self.answers.get(type(event), lambda _: ())(event)


def node(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


class Rig:
    def __init__(self, clock: Clock | None = None, history: int = 1_000) -> None:
        numbers = itertools.count(1)
        self.clock = clock or HeldClock(START)
        server = ApiServer(FeatureGates(), new_uid=lambda: f"{next(numbers):032x}", history=history)
        self.local = Local(server, self.clock, Changes())
        self.worker = Worker()
        self.loop = Loop(self.local, self.worker, Log())

    def create(self, name: str) -> None:
        answer = self.local.handle(writes.create(node(name)))
        assert isinstance(answer, Response) and answer.ok, answer


def driven(rig_of: Callable[[], Rig], story: Callable[[Rig], Awaitable[None]]) -> None:
    """Runs a story beside a running loop, and ends the loop with it."""

    async def run() -> None:
        rig = rig_of()
        driving = asyncio.create_task(rig.loop.run())
        try:
            await asyncio.wait_for(story(rig), 10)
        finally:
            rig.loop.stop()
            rig.worker.close()
            await asyncio.wait_for(driving, 1)

    asyncio.run(run())


def names(events: Sequence[Any]) -> list[str]:
    return [event.object.name for event in events if isinstance(event, Observed)]


def test_a_machine_is_listed_first_and_then_observes() -> None:
    async def story(rig: Rig) -> None:
        rig.create("a")
        machine = Recorder(resources=("nodes",))
        rig.loop.add("m", lambda: machine)
        rig.create("b")
        await rig.loop.settle()
        assert isinstance(machine.told[0], Listed)
        assert [listed.name for listed in machine.told[0].objects] == ["a"]
        assert names(machine.told[1:]) == ["b"]

    driven(Rig, story)


def test_two_machines_share_one_watch_and_its_objects() -> None:
    async def story(rig: Rig) -> None:
        one, two = Recorder(resources=("nodes",)), Recorder(resources=("nodes",))
        rig.loop.add("one", lambda: one)
        rig.loop.add("two", lambda: two)
        rig.create("a")
        await rig.loop.settle()
        assert names(one.told) == names(two.told) == ["a"]
        assert one.told[-1].object is two.told[-1].object

    driven(Rig, story)


def test_changes_of_several_resources_arrive_in_the_order_in_which_they_were_made() -> None:
    async def story(rig: Rig) -> None:
        machine = Recorder(resources=("namespaces", "nodes"))
        rig.loop.add("m", lambda: machine)
        await rig.loop.settle()
        space = {"apiVersion": "v1", "kind": "Namespace"}
        rig.create("n1")
        rig.local.handle(writes.create({**space, "metadata": {"name": "s1"}}))
        rig.create("n2")
        rig.local.handle(writes.create({**space, "metadata": {"name": "s2"}}))
        await rig.loop.settle()
        assert names(machine.told) == ["n1", "s1", "n2", "s2"]

    driven(Rig, story)


def test_a_watch_that_fell_behind_is_listed_anew() -> None:
    async def story(rig: Rig) -> None:
        machine = Recorder(resources=("nodes",))
        rig.loop.add("m", lambda: machine)
        await rig.loop.settle()
        rig.create("a")
        rig.create("b")
        rig.local.server.compact()
        await rig.loop.settle()
        assert isinstance(machine.told[-1], Listed)
        assert [listed.name for listed in machine.told[-1].objects] == ["a", "b"]
        rig.create("c")
        await rig.loop.settle()
        assert names(machine.told[-1:]) == ["c"]

    driven(Rig, story)


def test_a_write_comes_back_as_written_or_refused_under_its_tag() -> None:
    async def story(rig: Rig) -> None:
        twice = [Write(writes.create(node("a")), "first"), Write(writes.create(node("a")), "second")]
        machine = Recorder({Listed: lambda _: [*twice, Write(writes.create(node("b")))]}, resources=("nodes",))
        rig.loop.add("m", lambda: machine)
        await rig.loop.settle()
        outcomes = [event for event in machine.told if isinstance(event, Written | Refused)]
        assert [(type(event), event.tag, event.response.status) for event in outcomes] == [
            (Written, "first", 201),
            (Refused, "second", 409),
        ]
        assert names(machine.told) == ["a", "b"]

    driven(Rig, story)


def test_a_timer_goes_off_once_when_it_is_due_and_not_when_it_was_taken_back() -> None:
    async def story(rig: Rig) -> None:
        soon = rig.clock.now() + 20_000
        wanted = [WakeAt(soon, "kept"), WakeAt(soon, "dropped"), WakeAt(None, "dropped")]
        woken = asyncio.Event()

        def wake(event: Woken) -> Sequence[Any]:
            woken.set()
            return ()

        machine = Recorder({Listed: lambda _: wanted, Woken: wake}, resources=("nodes",))
        rig.loop.add("m", lambda: machine)
        await woken.wait()
        await rig.loop.settle()
        assert [event for event in machine.told if isinstance(event, Woken)] == [Woken("kept")]
        assert rig.clock.now() >= soon

    driven(lambda: Rig(SystemClock()), story)


def test_on_a_held_clock_no_timer_goes_off_by_itself() -> None:
    async def story(rig: Rig) -> None:
        machine = Recorder({Listed: lambda _: [WakeAt(START + 1, "t")]}, resources=("nodes",))
        rig.loop.add("m", lambda: machine)
        assert isinstance(rig.clock, HeldClock)
        rig.clock.move_to(START + SECOND)
        await rig.loop.settle()
        assert Woken("t") not in machine.told
        timer = rig.loop.timers.earliest(brief_only=True)
        assert timer is not None
        rig.loop.ring(timer)
        await rig.loop.settle()
        assert machine.told[-1] == Woken("t")

    driven(Rig, story)


def test_a_machine_that_raises_is_built_anew_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    async def story(rig: Rig) -> None:
        lives: list[Recorder] = []

        def build() -> Recorder:
            fault = {Observed: fail} if not lives else {}
            lives.append(Recorder(fault, resources=("nodes",)))
            return lives[-1]

        def fail(event: Observed) -> Sequence[Any]:
            raise ZeroDivisionError("a bug")

        healthy = Recorder(resources=("nodes",))
        rig.loop.add("faulty", build)
        rig.loop.add("healthy", lambda: healthy)
        rig.create("a")
        await rig.loop.settle()
        assert len(lives) == 1 and names(healthy.told) == ["a"]
        timer = rig.loop.timers.earliest(brief_only=False)
        assert timer is not None and timer.at == START + SECOND
        rig.loop.ring(timer)
        rig.create("b")
        await rig.loop.settle()
        assert len(lives) == 2
        assert [listed.name for listed in lives[1].told[0].objects] == ["a"]
        assert names(lives[1].told) == ["b"]

    driven(Rig, story)
    assert "faulty failed and is built anew" in caplog.text


def test_a_rebuilt_machine_knows_nothing_of_its_earlier_timers_and_writes() -> None:
    async def story(rig: Rig) -> None:
        lives: list[Recorder] = []

        def build() -> Recorder:
            wanted = [WakeAt(START + 1, "old")] if not lives else []
            lives.append(Recorder({Listed: lambda _: wanted}, resources=("nodes",)))
            return lives[-1]

        station = rig.loop.add("m", build)
        await rig.loop.settle()
        rig.loop.rebuild(station, first=["told before anything else"])
        await rig.loop.settle()
        assert rig.loop.timers.earliest(brief_only=False) is None
        assert lives[1].told[0] == "told before anything else"
        assert isinstance(lives[1].told[1], Listed)

    driven(Rig, story)


def test_an_idle_loop_takes_no_processor_time() -> None:
    async def story(rig: Rig) -> None:
        far = rig.clock.now() + 3_600 * SECOND
        machine = Recorder({Listed: lambda _: [WakeAt(far, "safety retry")]}, resources=("nodes",))
        rig.loop.add("m", lambda: machine)
        await rig.loop.settle()
        before = time.process_time()
        await asyncio.sleep(0.3)
        assert time.process_time() - before < 0.03

    driven(lambda: Rig(SystemClock()), story)
