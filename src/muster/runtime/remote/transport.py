"""Calls of one API server over HTTP: connections, credentials, time limits, and calls that are made again."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from muster.api.calls import JSON, Request, Response
from muster.runtime.clock import Clock
from muster.runtime.remote.access import Access, NoAccess, Source
from muster.runtime.remote.retry import UNREACHED, pause
from muster.runtime.telemetry import Log

LOG = Log("client")
MOST_CONNECTIONS = 64
"""Calls that are under way at a time; watches have connections of their own."""
ANSWERED_WITHIN = 30.0
"""Seconds that one attempt of a call may take."""
CONNECTED_WITHIN = 10.0
GIVEN_UP_AFTER = 60.0
"""Seconds after which a call that keeps failing is answered with its last failure."""
MOST_ATTEMPTS = 6
MISSED_AFTER = 1.0
"""Seconds of failures after which a server counts as out of reach; a connection that breaks is nothing to tell of."""
UNAUTHORIZED = 401
NOT_SENT = "not sent: this scheduler does not lead any more"
_STATUS = {"apiVersion": "v1", "kind": "Status", "status": "Failure"}
_LIVELY = (("SO_KEEPALIVE", 1), ("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


class TooLate(Exception):
    """A connection was there when the call was not to be made any more: the process may have stood still meanwhile."""


class Cut(Exception):
    """A watch could not be read on; the text says why."""


@dataclass
class Counts:
    """What was asked and how it ended, for the metrics."""

    requests: dict[tuple[str, str], int] = field(default_factory=dict)
    """By method and code."""
    retries: int = 0
    renewals: int = 0
    """Credentials that were loaded again."""

    def answered(self, method: str, status: int) -> None:
        key = method, str(status) if status else "<error>"
        self.requests[key] = self.requests.get(key, 0) + 1


def unreached(why: str) -> Response:
    """The answer of a server that gave none."""
    body = {**_STATUS, "message": why, "reason": "ServiceUnavailable", "code": UNREACHED}
    return Response(UNREACHED, body)


def lively(address: Any) -> socket.socket:
    """A socket that notices within a minute when the other side is gone without a word."""
    made = socket.socket(address[0], address[1], address[2])
    for name, value in _LIVELY:
        level = socket.SOL_SOCKET if name.startswith("SO_") else socket.IPPROTO_TCP
        if hasattr(socket, name):
            made.setsockopt(level, getattr(socket, name), value)
    return made


class Transport:
    """Belongs to one event loop. `begin` it before the first call, `close` it in the end.

    Args:
        source: how to reach the server; loaded on a thread, again when it is stale or the server says 401.
        random: for the waits between attempts.
    """

    def __init__(self, source: Source, clock: Clock, random: Random, agent: str = "muster-scheduler") -> None:
        self._source, self._clock, self._random, self._agent = source, clock, random, agent
        self.counts = Counts()
        self.reached: bool | None = None
        """Whether the server answers; False once nothing was answered for a while, None: nobody can tell yet."""
        self._lost_at: float | None = None
        self._access = Access("")
        self._renewing = asyncio.Lock()
        self._calls: aiohttp.ClientSession
        self._streams: aiohttp.ClientSession

    @property
    def server(self) -> str:
        return self._access.server

    async def begin(self) -> None:
        """
        Raises:
            NoAccess: it cannot be said how to reach the server.
        """
        self._access = await asyncio.to_thread(self._source, self._clock.now())
        self._connect()

    async def close(self) -> None:
        await self._calls.close()
        await self._streams.close()

    async def call(
        self,
        request: Request,
        *,
        within: float = GIVEN_UP_AFTER,
        may: Callable[[], float] | None = None,
        patient: bool = True,
        limit: float = ANSWERED_WITHIN,
    ) -> Response:
        """The answer, after as many attempts as it takes; status 0 where the server cannot be reached.

        Args:
            within: seconds after which no further attempt is begun.
            may: how many seconds this call may go on, asked before each attempt; 0 or less: no more.
            patient: whether it is tried again at all.
            limit: seconds that one attempt may take.
        """
        here = asyncio.get_running_loop()
        ends, failures, renewed = here.time() + within, 0, False
        while True:
            lasts = limit if may is None else min(limit, may())
            if lasts <= 0:
                return unreached(NOT_SENT)
            access = await self._current()
            try:
                response = await self._attempt(request, access, lasts, may)
            except TooLate:
                return unreached(NOT_SENT)
            self._note(request.method, response)
            if response.status == UNAUTHORIZED and not renewed:
                renewed = True
                if await self._renew(access):
                    continue
            failures += 1
            rest = pause(response, failures, self._random) if patient and failures < MOST_ATTEMPTS else None
            if rest is None or here.time() + rest > ends:
                return response
            self.counts.retries += 1
            await asyncio.sleep(rest)

    @asynccontextmanager
    async def stream(self, request: Request, silent_for: float) -> AsyncIterator[Response | AsyncIterator[bytes]]:
        """The chunks of a watch, or the answer that refuses it.

        Raises:
            Cut: while it is read: the connection failed, or nothing came for `silent_for` seconds.
        """
        access = await self._current()
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECTED_WITHIN, sock_read=silent_for)
        headers = self._headers(request, access)
        try:
            got = await self._streams.request(
                request.method, self._url(request, access), headers=headers, timeout=limits, **_extras(access)
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            refused = unreached(_why(error, access))
            self._note("WATCH", refused)
            yield refused
            return
        self._note("WATCH", Response(got.status))
        try:
            if got.status == UNAUTHORIZED:
                await self._renew(access)
            yield _chunks(got) if got.status == 200 else await _refusal(got)
        finally:
            got.close()

    async def _attempt(
        self, request: Request, access: Access, limit: float, may: Callable[[], float] | None = None
    ) -> Response:
        limits = aiohttp.ClientTimeout(total=limit, sock_connect=min(limit, CONNECTED_WITHIN))
        body = request.body
        payload = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        headers = self._headers(request, access)
        try:
            async with self._calls.request(
                request.method, self._url(request, access), data=payload, timeout=limits, headers=headers,
                trace_request_ctx=may, **_extras(access),
            ) as got:  # fmt: skip
                return Response(got.status, _decoded(await got.read()), dict(got.headers))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return unreached(_why(error, access))

    def _note(self, method: str, response: Response) -> None:
        """Counts an answer; says when the server was out of reach for a while, and when it is back."""
        self.counts.answered(method, response.status)
        now = asyncio.get_running_loop().time()
        if response.status != UNREACHED:
            if self.reached is False:
                LOG.warning(f"{self.server} is reached again")
            self.reached, self._lost_at = True, None
        elif self._lost_at is None:
            self._lost_at = now
        elif self.reached is not False and now > self._lost_at + MISSED_AFTER:
            LOG.warning(response.body["message"])
            self.reached = False

    async def _current(self) -> Access:
        access = self._access
        if access.fresh_until is not None and self._clock.now() >= access.fresh_until:
            await self._renew(access)
        return self._access

    async def _renew(self, stale: Access) -> bool:
        """Loads credentials again unless somebody has meanwhile; whether there are others now."""
        async with self._renewing:
            if self._access is not stale:
                return True
            try:
                loaded = await asyncio.to_thread(self._source, self._clock.now())
            except NoAccess as error:
                LOG.warning("credentials cannot be loaded again; going on with the old ones", why=error)
                return False
            self.counts.renewals += 1
            before, self._access = self._access, loaded
            if loaded.identity != before.identity:
                calls, streams = self._calls, self._streams
                self._connect()
                await calls.close()
                await streams.close()
            return loaded.authorization != before.authorization or loaded.identity != before.identity

    def _connect(self) -> None:
        self._calls = self._session(MOST_CONNECTIONS)
        self._streams = self._session(0)

    def _session(self, most: int) -> aiohttp.ClientSession:
        tls: ssl.SSLContext | bool = self._access.tls or True
        watched = aiohttp.TraceConfig()
        watched.on_connection_create_end.append(_in_time)
        watched.on_connection_reuseconn.append(_in_time)
        connector = aiohttp.TCPConnector(limit=most, ssl=tls, socket_factory=lively, keepalive_timeout=60)
        return aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), read_bufsize=1 << 18, trace_configs=[watched]
        )

    def _url(self, request: Request, access: Access) -> URL:
        return URL(access.server + request.path).update_query(dict(request.query))

    def _headers(self, request: Request, access: Access) -> Mapping[str, str]:
        headers = {"Accept": request.accept or JSON, "Accept-Encoding": "gzip", "User-Agent": self._agent}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if access.authorization:
            headers["Authorization"] = access.authorization
        return headers


def _extras(access: Access) -> dict[str, Any]:
    extras: dict[str, Any] = {"allow_redirects": False}
    if access.server_name:
        extras["server_hostname"] = access.server_name
    if access.proxy:
        extras["proxy"] = access.proxy
    return extras


async def _in_time(session: aiohttp.ClientSession, context: Any, about: Any) -> None:
    """Looks once more whether a call may be made, when nothing is between it and the wire any more."""
    may = context.trace_request_ctx
    if may is not None and may() <= 0:
        raise TooLate


async def _chunks(got: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in got.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Cut(_named(error)) from None


async def _refusal(got: aiohttp.ClientResponse) -> Response:
    try:
        return Response(got.status, _decoded(await got.read()), dict(got.headers))
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return unreached(_named(error))


def _decoded(text: bytes) -> Any:
    """JSON, or a Status that tells what came instead."""
    if not text:
        return {}
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {**_STATUS, "message": text[:200].decode("utf-8", "replace"), "reason": "Unknown"}


def _why(error: Exception, access: Access) -> str:
    return f"cannot reach {access.server}: {_named(error)}"


def _named(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = getattr(error, "strerror", None) or str(error)
    return text or type(error).__name__
