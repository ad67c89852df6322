"""Schedules pods of a real API server until the process is told to end."""

from __future__ import annotations

import asyncio
import signal
import socket
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from aiohttp import web

from muster.api.calls import Response
from muster.runtime.clock import Clock, SystemClock
from muster.runtime.guard import Guard
from muster.runtime.remote.access import NoAccess, Source
from muster.runtime.remote.discovery import Offer, offered, questions, unusable
from muster.runtime.remote.health import application
from muster.runtime.remote.refusals import FORBIDDEN, UNAUTHORIZED
from muster.runtime.remote.session import Duty, Session, wanted_resources
from muster.runtime.remote.transport import Transport
from muster.runtime.telemetry import Log

LOG = Log("scheduler")
FOUND_WITHIN = 30.0
"""Seconds in which the server must be reached when the process starts."""
LOOK_AGAIN = 300.0
"""Seconds between looks whether the server offers something else by now."""
NOT_FOUND = 404
CUT_WITHIN = 0.5


@dataclass(frozen=True)
class Post:
    """Where a scheduler process works, and where it answers."""

    source: Source
    duty: Duty
    host: str = "127.0.0.1"
    port: int = 7078
    guard: Guard | None = None
    """Who may read more than the probes; None: whoever is on this machine."""
    seed: int | None = None
    """Of the lengths of waits; None: another one each time."""


def identity() -> str:
    """Another one for each process, and telling where it runs."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


Ready = Callable[[str, str], None]
"""Told where the process answers, and which server it schedules for."""


async def schedule(post: Post, ready: Ready) -> None:
    """Schedules until SIGINT or SIGTERM.

    Raises:
        NoAccess: the server cannot be reached, or does not know who asks.
        OSError: the port cannot be used.
    """
    ended = asyncio.Event()
    here = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        here.add_signal_handler(number, ended.set)
    clock, random = SystemClock(), Random(post.seed)
    transport = Transport(post.source, clock, random)
    await transport.begin()
    try:
        await _schedule(post, transport, clock, random, ended, ready)
    finally:
        await transport.close()


async def _schedule(
    post: Post, transport: Transport, clock: Clock, random: Random, ended: asyncio.Event, ready: Ready
) -> None:
    offer = await _found(post.duty, transport, ended)
    runner = None
    living: list[Session] = []
    try:
        while offer is not None and not ended.is_set():
            for remark in offer.remarks(wanted_resources(post.duty)):
                LOG.warning(remark)
            session = Session(post.duty, offer, transport, clock, random)
            living[:] = [session]
            if runner is None:
                runner, url = await _listen(post, lambda: living[0])
                ready(url, transport.server)
            offer = await _until_changed(session, offer, transport, ended)
    finally:
        if runner is not None:
            await runner.cleanup()


async def _until_changed(session: Session, offer: Offer, transport: Transport, ended: asyncio.Event) -> Offer | None:
    """Runs the session until the process is to end, or the server offers something else; what it offers then."""
    over = asyncio.Event()
    found: list[Offer] = []

    async def look() -> None:
        while not over.is_set():
            await asyncio.sleep(LOOK_AGAIN)
            now = await offers(session.duty, transport)
            if isinstance(now, Offer) and not unusable(now) and now.versions != offer.versions:
                LOG.warning("the server offers something else by now; beginning anew with it")
                found.append(now)
                over.set()

    async def end() -> None:
        await ended.wait()
        over.set()

    beside = [asyncio.create_task(look(), name="look again"), asyncio.create_task(end())]
    try:
        await session.run(over)
    finally:
        for task in beside:
            task.cancel()
    return found[0] if found else None


async def offers(duty: Duty, transport: Transport) -> Offer | Response:
    """What the server offers, or the answer that does not say it."""
    resources = wanted_resources(duty)
    asked = questions(resources)
    answers = await asyncio.gather(*(transport.call(request, within=10.0) for request in asked))
    for answer in answers:
        if not answer.ok and answer.status != NOT_FOUND:
            return answer
    return offered(resources, {request.path: answer for request, answer in zip(asked, answers, strict=True)})


async def _found(duty: Duty, transport: Transport, ended: asyncio.Event) -> Offer | None:
    """What the server offers; None: the process is to end already.

    Raises:
        NoAccess: nobody answers for FOUND_WITHIN, or not what was asked.
    """
    here = asyncio.get_running_loop()
    until = here.time() + FOUND_WITHIN
    while not ended.is_set():
        found = await offers(duty, transport)
        if isinstance(found, Offer):
            if why := unusable(found):
                raise NoAccess(f"{transport.server}: {why}")
            return found
        message = found.body.get("message", "") if isinstance(found.body, dict) else ""
        if found.status in (UNAUTHORIZED, FORBIDDEN):
            fix = "renew the credentials" if found.status == UNAUTHORIZED else "bind system:discovery to it"
            raise NoAccess(f"{transport.server} does not tell us what it offers ({found.status} {message}): {fix}")
        if here.time() > until:
            raise NoAccess(message or f"{transport.server} answers {found.status}")
        try:
            await asyncio.wait_for(ended.wait(), 1.0)
        except TimeoutError:
            continue
    return None


async def _listen(post: Post, session: Callable[[], Session]) -> tuple[web.AppRunner, str]:
    guard = post.guard
    asked = guard.admits if guard is not None and guard.asks else None
    runner = web.AppRunner(application(session, asked), access_log=None, shutdown_timeout=CUT_WITHIN)
    await runner.setup()
    tls = None if guard is None else guard.tls
    try:
        await web.TCPSite(runner, post.host, post.port, ssl_context=tls).start()
    except OSError as failure:
        await runner.cleanup()
        where = f"{post.host} port {post.port}"
        raise OSError(failure.errno, f"cannot listen on {where}: {failure.strerror}") from None
    named = f"[{post.host}]" if ":" in post.host else post.host
    return runner, f"{'http' if tls is None else 'https'}://{named}:{runner.addresses[0][1]}"
