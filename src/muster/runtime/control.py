"""The hidden endpoints that a conformance driver holds a server process by: its clock, its scheduler, its faults.

Served only under `muster up --control`, on loopback. Every call answers when what it asks for is done. The rule which
timers may go off is that of the virtual world (`sim.world`; conformance README, "Time").
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from muster.api.calls import Request, Response
from muster.api.gates import TARGETS, FeatureGates
from muster.api.instant import Instant
from muster.apiserver.asking import Paused
from muster.apiserver.watch import Watch
from muster.plugins import default_profile
from muster.runtime.changes import Changes
from muster.runtime.clock import HeldClock
from muster.runtime.wiring import Cluster, Setup, assemble
from muster.scheduler.events import Pause, Resume
from muster.sim.timers import BRIEF
from muster.sim.world import START

PREFIX = "/muster/control"
Body = Mapping[str, Any]


class Control:
    """One cluster on a held clock, thrown away and made anew by `reset`."""

    def __init__(self, data: Path | None = None) -> None:
        self._data = data
        self._begun = 0
        self.changes = Changes()
        self._turn = asyncio.Lock()
        self._running: asyncio.Task[None] | None = None
        self._paused = False
        self._begin(FeatureGates(), {})

    def handle(self, request: Request) -> Response | Watch:
        return self.cluster.local.handle(request)

    def begin(self, request: Request) -> Response | Watch | Paused:
        return self.cluster.local.begin(request)

    async def finish(self, made: Response | Watch | Paused) -> Response | Watch:
        return await self.cluster.local.finish(made)

    async def settle_writes(self) -> bool:
        """Waits until the present cluster's writes are safe."""
        return await self.cluster.local.settle()

    def routes(self) -> list[web.RouteDef]:
        """One POST route per operation."""
        operations: tuple[Callable[[Body], Awaitable[Body]], ...] = (
            self.reset,
            self.settle,
            self.advance,
            self.tick,
            self.quiesce,
            self.pause,
            self.resume,
            self.restart,
            self.refuse,
            self.termination,
            self.decisions,
        )
        return [web.post(f"{PREFIX}/{operation.__name__}", self._answering(operation)) for operation in operations]

    async def close(self) -> None:
        if self._running is not None:
            self.cluster.loop.stop()
            self.cluster.worker.close()
            await self._running
            await self.cluster.local.close()
            self._running = None
            if self.cluster.local.keeper is not None:
                await self.cluster.local.keeper.close()

    async def reset(self, body: Body) -> Body:
        """A new, empty cluster at the start of time, with these gates and options."""
        gates = FeatureGates().changed(body.get("gates", {})).aiming_at(body.get("target", TARGETS[0]))
        await self.close()
        self._begin(gates, body)
        return {}

    async def settle(self, _: Body) -> Body:
        await self._run_until(self._clock.now(), brief_only=True)
        return {}

    async def quiesce(self, _: Body) -> Body:
        """Lets backoffs of up to 10 s end."""
        await self._run_until(self._clock.now() + BRIEF, brief_only=True)
        return {}

    async def advance(self, body: Body) -> Body:
        """Moves the clock by `us`, stopping at every timer on the way."""
        target = self._clock.now() + int(body["us"])
        await self._run_until(target, brief_only=False)
        self._clock.move_to(target)
        return {}

    async def tick(self, body: Body) -> Body:
        """Moves the clock by `us` and runs nothing."""
        self._clock.move_to(self._clock.now() + int(body["us"]))
        return {}

    async def pause(self, _: Body) -> Body:
        self._paused = True
        self.cluster.loop.send(self.cluster.scheduler_station, Pause())
        return {}

    async def resume(self, _: Body) -> Body:
        self._paused = False
        self.cluster.loop.send(self.cluster.scheduler_station, Resume())
        return {}

    async def restart(self, _: Body) -> Body:
        """Kills the scheduler and starts a fresh one; a paused one stays paused."""
        station = self.cluster.scheduler_station
        self.cluster.loop.rebuild(station, first=[Pause()] if self._paused else [])
        return {}

    async def refuse(self, body: Body) -> Body:
        """From now on bindings of these pods (`namespace/name`) are answered 403."""
        self.cluster.refuse_bindings(body["bind"])
        return {}

    async def termination(self, body: Body) -> Body:
        """`hold`: deleted pods stay terminating; `finish`: they end."""
        await self.cluster.loop.settle()
        self.cluster.hold_terminations(body["mode"] == "hold")
        return {}

    async def decisions(self, _: Body) -> Body:
        """Seconds that each decision since the reset took."""
        times = list(self.cluster.loop.decisions)
        return {"count": len(times), "seconds": sum(times), "times": times}

    def _begin(self, gates: FeatureGates, body: Body) -> None:
        if body.get("reservation"):
            raise ValueError("reservation: this build has no reservation profile")
        self._clock = HeldClock(START)
        self._paused = False
        self._begun += 1
        setup = Setup(
            gates=gates,
            profile=default_profile(),
            clock=self._clock,
            run_pods=False,
            priority_admission=bool(body.get("priorityAdmission", False)),
            volumes=bool(body.get("volumes", False)),
            apps=bool(body.get("apps", False)),
            levels=tuple(body.get("levels", ())),
            data=None if self._data is None else self._data / f"{self._begun:05d}",
        )
        self.cluster: Cluster = assemble(setup, self.changes)
        self._running = asyncio.get_running_loop().create_task(self.cluster.loop.run())

    async def _run_until(self, until: Instant, *, brief_only: bool) -> None:
        loop = self.cluster.loop
        while True:
            await loop.settle()
            timer = loop.timers.earliest(brief_only=brief_only)
            if timer is None or timer.at > until:
                return
            self._clock.move_to(timer.at)
            loop.ring(timer)

    def _answering(
        self, operation: Callable[[Body], Awaitable[Body]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            text = await request.read()
            try:
                async with self._turn:
                    done = await operation(msgspec.json.decode(text) if text else {})
            except (ValueError, KeyError, TypeError) as error:
                return web.json_response({"message": f"{type(error).__name__}: {error}"}, status=400)
            return web.json_response(done)

        return answer
