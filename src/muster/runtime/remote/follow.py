"""Does what a reflector asks for, until it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from random import Random
from typing import Any

import msgspec

from muster.api.calls import Request, Response
from muster.api.object import Object
from muster.runtime.remote.lines import Lines
from muster.runtime.remote.reflector import BOOKMARK, ERROR, Follow, List, News, Reflector, Rest
from muster.runtime.remote.transport import Cut, Transport
from muster.runtime.telemetry import Log

LOG = Log("client")
WATCHED_FOR = 300
"""Seconds that a watch is asked to last, at least; each lasts up to twice as long, so that not all end at once."""
SLACK = 60
"""Seconds beyond that, after which a watch that says nothing is cut."""
LISTED_WITHIN = 120.0
"""Seconds that a page may take."""
AFTER_A_FAULT = 30.0
"""Seconds until everything is listed again after this program has failed on what the server told."""
LINES_AT_A_TIME = 200
"""Events after which others get their turn."""

Made = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""What the machines see of a raw object."""
Tell = Callable[[Sequence[News]], None]
Ended = Callable[[str, str, Response], None]
"""Told how a list or the opening of a watch ended: the verb, the resource, the answer."""
OPENED = Response(200)


class Told(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: dict[str, Any]


TOLD = msgspec.json.Decoder(Told)


class Follower:
    """Lists and watches one resource at `path`."""

    def __init__(
        self, transport: Transport, path: str, reflector: Reflector, made: Made, tell: Tell, ended: Ended,
        random: Random,
    ) -> None:  # fmt: skip
        self._transport, self._path, self.reflector = transport, path, reflector
        self._hurry = asyncio.Event()
        self._made, self._tell, self._ended, self._random = made, tell, ended, random

    async def run(self) -> None:
        while True:
            try:
                await self._step()
            except Exception as failure:  # a fault must not leave the machines with what they know for ever
                LOG.failure(f"{self.reflector.resource} cannot be followed and is listed again", failure)
                await asyncio.sleep(AFTER_A_FAULT)
                self.reflector.begin_anew()

    async def _step(self) -> None:
        step = self.reflector.step
        if isinstance(step, List):
            await self._list(step)
        elif isinstance(step, Follow):
            await self._watch(step)
        else:
            await self._rest(step)

    async def _rest(self, step: Rest) -> None:
        self._hurry.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), step.seconds)
        self.reflector.rested()

    def hurry(self) -> None:
        """Ends a rest: somebody needs to know now."""
        self._hurry.set()

    async def _list(self, step: List) -> None:
        query = {"limit": str(step.limit)} if step.limit else {}
        if step.token:
            query["continue"] = step.token
        answer = await self._transport.call(Request("GET", self._path, query), patient=False, limit=LISTED_WITHIN)
        items = answer.body.get("items", []) if isinstance(answer.body, dict) else None
        if not answer.ok or not isinstance(items, list | None) or not isinstance(answer.body.get("metadata"), dict):
            self._ended("list", self.reflector.resource, answer)
            self.reflector.list_refused(answer)
            return
        self._ended("list", self.reflector.resource, answer)
        meta = answer.body["metadata"]
        objects = [Object(self._made(raw)) for raw in items or ()]
        news = self.reflector.page(objects, str(meta.get("resourceVersion", "")), str(meta.get("continue") or ""))
        if news:
            self._tell(news)

    async def _watch(self, step: Follow) -> None:
        seconds = WATCHED_FOR + self._random.randrange(WATCHED_FOR)
        query = {
            "watch": "true",
            "resourceVersion": step.revision,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        request = Request("GET", self._path, query)
        async with self._transport.stream(request, seconds + SLACK) as got:
            if isinstance(got, Response):
                self._ended("watch", self.reflector.resource, got)
                self.reflector.watch_refused(got)
                return
            self._ended("watch", self.reflector.resource, OPENED)
            self.reflector.watching()
            try:
                await self._read(got)
            finally:
                self.reflector.live = False

    async def _read(self, chunks: AsyncIterator[bytes]) -> None:
        lines, fruitful, failed = Lines(), False, False
        try:
            async for chunk in chunks:
                for number, line in enumerate(lines.feed(chunk), 1):
                    fruitful = True
                    if not self._line(line):
                        return
                    if number % LINES_AT_A_TIME == 0:
                        await asyncio.sleep(0)
        except Cut as cut:
            failed = True
            LOG.event("watch cut", resource=self.reflector.resource, why=cut)
        except msgspec.DecodeError as error:
            failed = True
            LOG.warning(
                "a watch told what is no event; it is opened again", resource=self.reflector.resource, why=error
            )
        self.reflector.watch_ended(failed=failed, fruitful=fruitful)

    def _line(self, line: bytes) -> bool:
        """Whether the watch goes on after it."""
        told = TOLD.decode(line)
        change, raw = told.type, told.object
        if change in (BOOKMARK, ERROR):
            self.reflector.event(change, raw)
            return isinstance(self.reflector.step, Follow)
        news = self.reflector.event(change, self._made(raw))
        if news:
            self._tell(news)
        return True
