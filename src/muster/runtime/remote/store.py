"""A real API server as the other end of the machine driver: it has the methods of `runtime.local`."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from muster.api import catalog
from muster.api.calls import Request, Response
from muster.api.machine import Listed
from muster.runtime.changes import Changes
from muster.runtime.clock import Clock
from muster.runtime.local import Inbox
from muster.runtime.remote.border import Border
from muster.runtime.remote.discovery import Offer
from muster.runtime.remote.follow import Follower
from muster.runtime.remote.reflector import News, Reflector
from muster.runtime.remote.refusals import FORBIDDEN, UNAUTHORIZED, Refusals, object_of, resource_of, verb_of
from muster.runtime.remote.transport import Transport, unreached
from muster.runtime.telemetry import Log

LOG = Log("client")
EVENTS_AT_A_TIME = 16
"""Writes of Events that are under way at a time, so that they do not hold up bindings."""
MOST_EVENTS = 20_000
"""Events that wait to be written; beyond that they are dropped."""
FOR_EVER = math.inf


@dataclass(frozen=True, slots=True)
class Sent:
    """A write that is on its way."""

    request: Request


@dataclass(slots=True)
class Line:
    """Writes of one object, in the order in which they were begun."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    length: int = 0


def for_ever() -> float:
    """Where nobody else can lead."""
    return FOR_EVER


class Remote:
    """One server: a reflector for each resource that it offers, and writes one after another for each object.

    Args:
        may: for how many seconds writes may still go on; 0: this process does not lead.
    """

    def __init__(
        self,
        transport: Transport,
        offer: Offer,
        clock: Clock,
        random: Random,
        may: Callable[[], float] = for_ever,
    ) -> None:
        self.transport, self.offer, self.clock = transport, offer, clock
        self.changes = Changes()
        self.refusals = Refusals()
        self.reflectors: dict[str, Reflector] = {}
        self.border = Border(offer.versions)
        self.may = may
        self.dropped_events = 0
        self._random = random
        self._readers: dict[str, list[Inbox]] = {}
        self._waiting: list[tuple[tuple[str, ...], Inbox]] = []
        self._followers: list[Follower] = []
        self._following: dict[str, asyncio.Task[None]] = {}
        self._lines: dict[str, Line] = {}
        self._under_way: set[asyncio.Task[Response]] = set()
        self._events = asyncio.Semaphore(EVENTS_AT_A_TIME)
        self._events_waiting = 0

    # -- what the machines are told

    @property
    def synced(self) -> bool:
        """Whether everything that was asked for was listed at least once."""
        return not self._waiting and all(reflector.synced for reflector in self.reflectors.values())

    @property
    def unlisted(self) -> list[str]:
        """Resources whose first list has not come yet."""
        return sorted(name for name, reflector in self.reflectors.items() if not reflector.synced)

    @property
    def live(self) -> bool:
        """Whether all that is known is as the server has it, or will be in a moment."""
        return self.synced and all(reflector.live for reflector in self.reflectors.values())

    def hurry(self) -> None:
        """Ends the waits of lists and watches that have failed."""
        for follower in self._followers:
            follower.hurry()

    def subscribe(self, resources: tuple[str, ...], inbox: Inbox) -> None:
        """From now on everything of these resources is told to `inbox`, once all of them were listed, in order."""
        for resource in resources:
            if self.offer.has(resource) and resource not in self.reflectors:
                self._follow(resource)
        self._waiting.append((resources, inbox))
        self._let_in()

    def unsubscribe(self, inbox: Inbox) -> None:
        for resource, readers in self._readers.items():
            self._readers[resource] = [reader for reader in readers if reader is not inbox]
        self._waiting = [one for one in self._waiting if one[1] is not inbox]

    def deliver(self) -> None:
        """News are put into inboxes as they come."""

    def restart(self) -> None:
        """What was told to machines stays true here: nothing is taken back."""

    def _let_in(self) -> None:
        """Tells those everything whose resources are all listed by now."""
        for resources, inbox in tuple(self._waiting):
            mine = [self.reflectors[name] for name in resources if name in self.reflectors]
            if not all(reflector.synced for reflector in mine):
                continue
            self._waiting.remove((resources, inbox))
            for name in resources:
                known = self.reflectors.get(name)
                inbox.append(Listed(name, tuple(known.objects.values()) if known else ()))
                self._readers.setdefault(name, []).append(inbox)
            self.changes.ring()

    def _follow(self, resource: str) -> None:
        reflector = self.reflectors[resource] = Reflector(resource, self._random)

        def tell(news: Sequence[News]) -> None:
            for one in news:
                if isinstance(one, Listed):
                    self._let_in()
                else:
                    for inbox in self._readers.get(resource, ()):
                        inbox.append(one)
            self.changes.ring()

        def made(raw: Any) -> Mapping[str, Any]:
            return self.border.incoming(resource, raw)

        def ended(verb: str, name: str, answer: Response) -> None:
            self.refusals.note(verb, catalog.by_resource(name).group, name, answer)

        follower = Follower(self.transport, self.border.path(resource), reflector, made, tell, ended, self._random)
        self._followers.append(follower)
        self._following[resource] = asyncio.create_task(follower.run(), name=f"follow {resource}")

    # -- what the machines write

    def begin(self, request: Request) -> Sent:
        """Takes a write; `finish` says what came of it."""
        return Sent(request)

    async def finish(self, made: Sent) -> Response:
        """Makes the call, after those of the same object that were begun earlier."""
        name, request = object_of(made.request), self.border.outgoing(made.request)
        if not name:
            return await self._written(request)
        line = self._lines.setdefault(name, Line())
        line.length += 1
        try:
            async with line.turn:
                return await self._written(request)
        finally:
            line.length -= 1
            if not line.length:
                del self._lines[name]

    async def _written(self, request: Request) -> Response:
        group, resource = resource_of(request.path)
        if resource != "events":
            return await self._called(request, group, resource)
        if self._events_waiting >= MOST_EVENTS:
            self.dropped_events += 1
            return unreached("not sent: too many Events wait already")
        self._events_waiting += 1
        try:
            async with self._events:
                return await self._called(request, group, resource)
        finally:
            self._events_waiting -= 1

    async def _called(self, request: Request, group: str, resource: str) -> Response:
        calling = asyncio.ensure_future(self.transport.call(request, may=self.may))
        self._under_way.add(calling)
        try:
            await asyncio.wait({calling})
        finally:
            self._under_way.discard(calling)
            calling.cancel()
        if calling.cancelled():
            return unreached("taken back: this scheduler does not lead any more")
        if failure := calling.exception():
            LOG.failure("a write could not be made", failure, verb=verb_of(request), resource=resource)
            return unreached(f"not sent: {type(failure).__name__}: {failure}")
        answer = calling.result()
        if answer.ok or answer.status in (UNAUTHORIZED, FORBIDDEN):
            self.refusals.note(verb_of(request), group, resource, answer)
        return answer

    @property
    def writes(self) -> int:
        """How many are under way."""
        return len(self._under_way)

    def drop_writes(self) -> None:
        """Ends all writes that are under way; whether the server has carried them out is for the watches to tell."""
        for calling in tuple(self._under_way):
            calling.cancel()

    async def close(self) -> None:
        """Ends every watch and write."""
        self.drop_writes()
        following = tuple(self._following.values())
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
