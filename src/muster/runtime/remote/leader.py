"""Runs an election over a transport, and tells when leading begins and ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from muster.api.calls import Request, Response
from muster.api.instant import SECOND
from muster.runtime.clock import Clock
from muster.runtime.remote.election import Claim, Election, Look, Sleep
from muster.runtime.remote.refusals import Refusals, resource_of, verb_of
from muster.runtime.remote.transport import Transport
from muster.runtime.telemetry import Log

LOG = Log("leader")


class Leader:
    """Whether this process may write, and for how long.

    `changed(True)` is told when it begins to lead, `changed(False)` as soon as it does not any more.
    """

    def __init__(
        self,
        election: Election,
        transport: Transport,
        clock: Clock,
        refusals: Refusals,
        changed: Callable[[bool], None],
    ) -> None:
        self.election = election
        self._transport, self._clock, self._refusals, self._changed = transport, clock, refusals, changed
        self._led = False
        self._holder = ""

    @property
    def leads(self) -> bool:
        return self.election.leads(self._clock.now())

    def may(self) -> float:
        """Seconds that a write may last that is begun now."""
        return self.election.remaining(self._clock.now()) / SECOND

    async def run(self) -> None:
        """Until it is cancelled; tells of every change at once."""
        watching = asyncio.create_task(self._watch_the_end(), name="lease expiry")
        try:
            while True:
                await self._step()
                self._tell()
        finally:
            watching.cancel()

    async def release(self) -> None:
        """Lets the lease go, if it is held: others take over without waiting."""
        request = self.election.release(self._clock.now())
        self._tell()
        if request is not None:
            await self._transport.call(request, within=2.0, may=lambda: 2.0, patient=False)

    async def _step(self) -> None:
        step = self.election.step
        if isinstance(step, Sleep):
            await asyncio.sleep(max(0, step.until - self._clock.now()) / SECOND)
            self.election.slept(self._clock.now())
            return
        answer = await self._ask(step.request)
        if isinstance(step, Look):
            self.election.looked(answer, self._clock.now())
        else:
            assert isinstance(step, Claim)
            self.election.claimed(answer, self._clock.now())
        if self.election.holder != self._holder:
            self._holder = self.election.holder
            LOG.note("new leader", holder=self._holder or "nobody")

    async def _ask(self, request: Request) -> Response:
        within = self.election.terms.renew / SECOND / 2
        answer = await self._transport.call(request, within=within, may=lambda: within, patient=False)
        group, resource = resource_of(request.path)
        if answer.ok or answer.status in (401, 403):
            self._refusals.note(verb_of(request), group, resource, answer)
        return answer

    async def _watch_the_end(self) -> None:
        """Notices when the time is over, even while a renewal is still waited for."""
        while True:
            ends = self.election.expires_at()
            rest = SECOND // 2 if ends is None else ends - self._clock.now()
            await asyncio.sleep(min(max(rest, SECOND // 100), self.election.terms.retry) / SECOND)
            self._tell()

    def _tell(self) -> None:
        leads = self.leads
        if leads is not self._led:
            self._led = leads
            LOG.note("leading" if leads else "not leading any more", identity=self.election.terms.identity)
            self._changed(leads)
