"""The embedded API server in process: requests at the time of the clock, one watch per resource for all machines."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from muster.api import catalog
from muster.api.calls import Request, Response
from muster.api.instant import Instant
from muster.api.machine import Listed, Observed
from muster.api.object import Object
from muster.apiserver import status
from muster.apiserver.asking import Heard, Paused
from muster.apiserver.server import ApiServer
from muster.apiserver.watch import Watch, WatchEvent
from muster.runtime.changes import Changes
from muster.runtime.clock import Clock
from muster.runtime.keeper import Keeper
from muster.runtime.webhooks import Caller

_READING = frozenset({"GET", "HEAD"})
Inbox = deque[Any]
"""What one machine has not been told yet, oldest first."""


class Local:
    """One embedded server and the watches of the machines around it. Single-threaded: it belongs to the event loop."""

    def __init__(self, server: ApiServer, clock: Clock, changes: Changes, keeper: Keeper | None = None) -> None:
        self.server = server
        self.clock = clock
        self.changes = changes
        self.told = changes if keeper is None else keeper.told
        """Rung when there is something to tell those outside."""
        self.keeper = keeper
        """Makes everything durable; None: nothing is kept."""
        self._streams: dict[str, _Stream] = {}
        self._told = -1
        self._caller = Caller()

    def handle(self, request: Request) -> Response | Watch:
        """Carries out one call at the clock's time; rings `changes` if the store moved on.

        With a keeper, what it answers is only safe once `settle` says so. Webhooks are not called: a write that needs
        one fails. `ask` calls them.
        """
        made = self._moved(request, self.server.handle)
        assert not isinstance(made, Paused)
        return made

    def begin(self, request: Request) -> Response | Watch | Paused:
        """Like `handle`, up to where webhooks have to be called."""
        return self._moved(request, self.server.begin)

    async def finish(self, made: Response | Watch | Paused) -> Response | Watch:
        """Calls the webhooks that a request waits for, until it is answered."""
        while isinstance(made, Paused):
            answers = await self._caller.ask(made.asks)
            made = self._moved(made.request, partial(self._resumed, made, answers))
        return made

    async def ask(self, request: Request) -> Response | Watch:
        """Carries out one call, webhooks included."""
        return await self.finish(self.begin(request))

    async def close(self) -> None:
        """Ends the connections to webhooks."""
        await self._caller.close()

    def _resumed(
        self, paused: Paused, answers: Sequence[Heard], request: Request, now: Instant
    ) -> Response | Watch | Paused:
        return self.server.resume(paused, answers)

    def _moved(
        self, request: Request, step: Callable[[Request, Instant], Response | Watch | Paused]
    ) -> Response | Watch | Paused:
        if self.keeper is not None and self.keeper.full and request.method not in _READING:
            self.keeper.look_for_room()
            return status.storage_full(self.keeper.full).response
        before = self.server.revision
        answer = step(request, self.clock.now())
        if self.server.revision != before:
            self.changes.ring()
            if self.keeper is not None:
                self.keeper.wake()
        return answer

    async def settle(self) -> bool:
        """Waits until all that was written so far is safe; False: some of it could not be kept, and was taken back."""
        return self.keeper is None or await self.keeper.settled()

    def restart(self) -> None:
        """Forgets what was told to whom: changes that machines know of were taken back, and all begin anew."""
        self._streams.clear()
        self._told = -1

    def subscribe(self, resources: tuple[str, ...], inbox: Inbox) -> None:
        """From now on everything of these resources is told to `inbox`, beginning with a Listed of each, in order."""
        self.deliver()
        for resource in resources:
            stream = self._streams.get(resource)
            if stream is None:
                stream = self._streams[resource] = _Stream(self, resource)
            stream.readers.append(inbox)
            inbox.append(stream.listed())

    def unsubscribe(self, inbox: Inbox) -> None:
        for stream in self._streams.values():
            stream.readers = [reader for reader in stream.readers if reader is not inbox]

    def deliver(self) -> None:
        """Puts what is new into every inbox, in the order in which it was written, whatever the resource.

        Costs nothing while the store stands still.
        """
        if self._told == self.server.revision:
            return
        self._told = self.server.revision
        news = [(event.revision, stream, event) for stream in self._streams.values() for event in stream.drain()]
        news.sort(key=lambda one: one[0])
        for _, stream, event in news:
            stream.tell(Observed(stream.resource, event.type, Object(event.object)))


class _Stream:
    """The watch of one resource, fanned out. Events and their typed views are shared by all readers."""

    def __init__(self, local: Local, resource: str) -> None:
        self.resource = resource
        self.readers: list[Inbox] = []
        self._local = local
        self._path = catalog.by_resource(resource).path(None)
        self._watch: Watch | None = None

    def listed(self) -> Listed:
        """All there is now. Begins a watch there if there is none; an existing one must have been drained."""
        body = self._get({}).body
        if self._watch is None:
            self._watch = self._open(body["metadata"]["resourceVersion"])
        return Listed(self.resource, tuple(Object(raw) for raw in body["items"]))

    def drain(self) -> Sequence[WatchEvent]:
        """What changed; a watch that fell behind is begun anew, with a Listed to every reader."""
        assert self._watch is not None
        events = self._watch.poll()
        if self._watch.expired or self._watch.closed:
            self._watch = None
            self.tell(self.listed())
        return events

    def tell(self, event: Listed | Observed) -> None:
        for reader in self.readers:
            reader.append(event)

    def _open(self, revision: str) -> Watch:
        answer = self._local.handle(Request("GET", self._path, {"watch": "true", "resourceVersion": revision}))
        assert isinstance(answer, Watch), answer
        answer.ahead = True
        return answer

    def _get(self, query: Mapping[str, str]) -> Response:
        answer = self._local.handle(Request("GET", self._path, query))
        assert isinstance(answer, Response) and answer.ok, answer
        return answer
