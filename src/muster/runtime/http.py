"""The embedded API server over HTTP: JSON, watches as streams of lines; loopback only, unless `guard` says more."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from muster.api.calls import JSON, Request, Response
from muster.apiserver import status
from muster.apiserver.asking import Paused
from muster.apiserver.decode import MAX_BODY
from muster.apiserver.log import Raw
from muster.apiserver.ownership import dressed
from muster.apiserver.state import YES
from muster.apiserver.watch import BOOKMARK, Watch, WatchEvent
from muster.runtime.changes import Changes
from muster.runtime.telemetry import Log

Handle = Callable[[Request], Response | Watch | Paused]
Finish = Callable[[Response | Watch | Paused], Awaitable[Response | Watch]]
Settle = Callable[[], Awaitable[bool]]
Guard = Callable[[web.Request], bool]

LOG = Log("http")
LOOPBACK = "127.0.0.1"
LONGEST_WATCH = 3_600
"""Seconds after which a watch without timeoutSeconds ends, so that no stream is for ever."""
BOOKMARK_EVERY = 60
"""Seconds between bookmarks on a watch that asked for them."""
CLOSE_WITHIN = 0.4
"""Seconds that requests in flight get when the server stops; then their connections are cut."""
CUT_WITHIN = 0.2
"""Seconds that handlers get, twice, to notice it."""
LATE = 1.0
"""Seconds that a watch may last longer than asked for, while its reader does not read."""
EVENTS_AT_A_TIME = 500
"""Changes that a watch takes from the log before it has told them: a reader that is slow holds no more of them."""
BYTES_PER_WRITE = 1 << 16
"""What a watch writes at a time, or one event, if that is longer."""
READS_WITHIN = 60.0
"""Seconds that the reader of a watch gets to take what is written, before it is cut off."""
LONGEST_LINE = 1 << 16
"""Bytes of a path with its query; selectors can be long. A header may have 8,190, and a request 128 headers."""
IDLE_FOR = 90.0
"""Seconds that a connection may be open without a request, or with the half of one."""
EXPIRED = 410
STREAMED = {"Content-Type": JSON, "Cache-Control": "no-cache, private"}
MOST_OPEN = 4_000
"""Requests, watches among them, that are served at a time; more are told to come back."""
MOST_READING = 128
"""Bodies beyond SMALL that are read at a time."""
SMALL = 1 << 16
READ_WITHIN = 30.0
"""Seconds that a client gets to send a body."""
MANY, PAUSE = 10, 0.01
"""While more watches than that are open, each rests for so many seconds after it has told something: less to do."""
LINES_KEPT = 1_000
"""Encoded events that are kept for the other watches of the same changes."""


async def _at_once() -> bool:
    return True


async def _finished(made: Response | Watch | Paused) -> Response | Watch:
    assert not isinstance(made, Paused), "whoever calls webhooks says how a request is finished"
    return made


def application(
    handle: Handle,
    changes: Changes,
    *,
    routes: Sequence[web.AbstractRouteDef] = (),
    settle: Settle = _at_once,
    finish: Finish = _finished,
    guard: Guard | None = None,
) -> web.Application:
    """An application that answers every path by `handle`, but for those of `routes`.

    `handle` is called on the event loop's thread and must not block; `changes` must ring whenever the store moved on.

    Args:
        settle: waits until all that was written is safe, and says whether it is; nothing is answered before.
        finish: calls the webhooks that what `handle` gives is waiting for.
        guard: whether a request may come in; None: whatever comes from this machine.
    """
    front = Front(handle, changes, settle, finish)
    who = neighbours_only if guard is None else _known(guard)
    app = web.Application(client_max_size=MAX_BODY, middlewares=[who])
    app.router.add_routes(routes)
    app.router.add_route("*", "/{path:.*}", front.answer)
    app.on_shutdown.append(front.close)
    return app


async def listen(
    app: web.Application, port: int, host: str = LOOPBACK, tls: ssl.SSLContext | None = None
) -> tuple[web.AppRunner, int]:
    """Serves `app`; port 0 takes any that is free. Returns the runner, whose `cleanup` ends it, and the real port.

    `tls`: with it, on any address; whoever gives it has seen to it that `app` knows its clients.

    Raises:
        ValueError: the address is not a loopback one.
        OSError: the port is taken, or may not be used.
    """
    if tls is None and not is_loopback(host):
        raise ValueError(
            f"refusing to listen on {host}: the embedded API server has no authentication; use {LOOPBACK} or ::1"
        )
    runner = web.AppRunner(
        app,
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=CUT_WITHIN,
        keepalive_timeout=IDLE_FOR,
        max_line_size=LONGEST_LINE,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
    except OSError as failure:
        await runner.cleanup()
        raise OSError(failure.errno, f"cannot listen on {host} port {port}: {failure.strerror}") from None
    return runner, runner.addresses[0][1]


def is_loopback(host: str) -> bool:
    """Whether a name or address means this machine and nothing else."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=1_000)
def _here(address: str) -> bool:
    """Whether a URL, or none, leads to this machine."""
    try:
        host = urlsplit(address).hostname
    except ValueError:
        return False
    return not address if host is None else is_loopback(host)


@web.middleware
async def neighbours_only(request: web.Request, handler: Any) -> web.StreamResponse:
    """Refuses what a web page elsewhere could send through a browser on this machine."""
    for address in (f"//{request.headers.get('Host', LOOPBACK)}", request.headers.get("Origin", "")):
        if not _here(address):
            shown = _text(address.strip("/"))
            why = f"only requests to and from this machine are served (Host and Origin), not {shown!r}"
            return _response(status.Failure(403, "Forbidden", why).response)
    answer: web.StreamResponse = await handler(request)
    return answer


def _known(guard: Guard) -> Any:
    @web.middleware
    async def only_known(request: web.Request, handler: Any) -> web.StreamResponse:
        """Refuses whoever does not say, or cannot prove, who it is."""
        if not guard(request):
            challenge = {"WWW-Authenticate": "Bearer"}
            return _response(status.Failure(401, "Unauthorized", "Unauthorized", headers=challenge).response)
        answer: web.StreamResponse = await handler(request)
        return answer

    return only_known


class Front:
    """Turns HTTP requests into calls, and answers into HTTP."""

    def __init__(self, handle: Handle, changes: Changes, settle: Settle = _at_once, finish: Finish = _finished) -> None:
        self._handle = handle
        self._settle = settle
        self._finish = finish
        self._reading = 0
        self._lines: dict[tuple[int, str], tuple[Raw, bytes]] = {}
        self._changes = changes
        self._watches: set[Watch] = set()
        self._open: dict[int, web.Request] = {}
        self._quiet = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if len(self._open) >= MOST_OPEN:
            return _response(_busy(f"{MOST_OPEN} requests are open already").response)
        self._open[id(request)] = request  # requests have no hash
        try:
            return await self._answer(request)
        finally:
            del self._open[id(request)]
            if not self._open:
                self._quiet.set()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        try:
            body = await self._body(request)
        except status.Failure as failure:
            response = _response(failure.response)
            response.force_close()
            return response
        except web.HTTPRequestEntityTooLarge:
            response = _response(status.too_large(MAX_BODY).response)
            response.force_close()
            return response
        except (web.RequestPayloadError, ValueError) as failure:
            return _response(status.bad_request(f"the body cannot be read: {failure}").response)
        made = await self._made(_call(request, body))
        if isinstance(made, Watch):
            return await self._stream(request, made)
        if made.status == EXPIRED and request.query.get("watch") in YES:
            # As a real server says it: a watch that can be understood begins, and ends with what is wrong.
            return web.Response(body=_line("ERROR", made.body), headers=STREAMED)
        return _response(made)

    async def _made(self, call: Request) -> Response | Watch:
        """What is answered, once everything that it tells of is safe."""
        begun = self._handle(call)
        made = await self._finish(begun) if isinstance(begun, Paused) else begun
        if await self._settle():
            return made
        if call.method in ("GET", "HEAD"):  # what it told of was taken back: look again
            return await self._finish(self._handle(call))
        return status.storage_full("this change could not be kept, and was taken back").response

    async def _body(self, request: web.Request) -> bytes:
        if not request.body_exists:
            return b""
        if request.content.is_eof():  # it came with the head, as most do
            return await request.read()
        large = request.content_length is None or request.content_length > SMALL
        if large and self._reading >= MOST_READING:
            raise _busy(f"{MOST_READING} large bodies are being read already")
        self._reading += large
        try:
            async with asyncio.timeout(READ_WITHIN):
                return await request.read()
        except TimeoutError:
            raise status.Failure(408, "Timeout", f"the body did not arrive within {READ_WITHIN:.0f} s") from None
        finally:
            self._reading -= large

    async def close(self, app: web.Application) -> None:
        """Ends every open watch, and cuts off whoever does not read, or does not finish what it sends."""
        for watch in self._watches:
            watch.close()
        self._changes.ring()
        self._quiet.clear()
        if self._open:
            await _heard(self._quiet, CLOSE_WITHIN)
        for request in list(self._open.values()):
            _cut(request)

    async def _stream(self, request: web.Request, watch: Watch) -> web.StreamResponse:
        response = web.StreamResponse(headers=STREAMED)
        response.enable_chunked_encoding()
        self._watches.add(watch)
        try:
            await response.prepare(request)
            seconds = _seconds(request)
            async with asyncio.timeout(seconds + LATE):
                await self._tell(response, watch, seconds)
                await response.write_eof()
        except TimeoutError:
            about = {"path": _text(request.path), "client": _text(request.headers.get("User-Agent", "unknown"))}
            LOG.warning("a watch was cut: its reader does not read; it may go on from what it has", **about)
            _cut(request)
        except (ConnectionError, RuntimeError):
            pass  # the reader has gone
        finally:
            watch.close()
            self._watches.discard(watch)
        return response

    async def _tell(self, response: web.StreamResponse, watch: Watch, seconds: float) -> None:
        clock = asyncio.get_running_loop().time
        ends, bookmark_at = clock() + seconds, clock() + BOOKMARK_EVERY
        with self._changes.listening() as bell:
            while clock() < ends and not _over(watch):
                bell.clear()
                events = watch.poll(EVENTS_AT_A_TIME)
                await self._write(response, watch, events)
                if watch.behind:
                    await asyncio.sleep(0)  # others first, where nothing of it was for this reader
                    continue
                if watch.bookmarks and clock() >= bookmark_at:
                    bookmark_at += BOOKMARK_EVERY
                    await self._write(response, watch, [watch.bookmark()])
                if events and len(self._watches) > MANY:
                    await asyncio.sleep(PAUSE)
                if not _over(watch):
                    await _heard(bell, min(ends, bookmark_at) - clock())
        await self._take_leave(response, watch)

    async def _take_leave(self, response: web.StreamResponse, watch: Watch) -> None:
        if watch.expired:
            await _send(response, _line("ERROR", status.expired("too old resource version: list again").body))
        elif watch.bookmarks and not _over(watch):
            await self._write(response, watch, watch.poll(EVENTS_AT_A_TIME))
            if not watch.behind:
                await self._write(response, watch, [watch.bookmark()])

    async def _write(self, response: web.StreamResponse, watch: Watch, events: Sequence[WatchEvent]) -> None:
        lines, size = [], 0
        for event in events:
            lines.append(line := self._line(watch, event))
            size += len(line)
            if size >= BYTES_PER_WRITE:
                await _send(response, b"".join(lines))
                lines, size = [], 0
        if lines:
            await _send(response, b"".join(lines))

    def _line(self, watch: Watch, event: WatchEvent) -> bytes:
        if watch.shape is not None or event.type == BOOKMARK:
            return _line(event.type, dressed(watch.shown(event)))
        key = (id(event.object), event.type)
        known = self._lines.get(key)
        if known is not None and known[0] is event.object:
            return known[1]
        line = _line(event.type, dressed(event.object))
        if len(self._lines) >= LINES_KEPT:
            self._lines.clear()
        self._lines[key] = (event.object, line)
        return line


def _busy(why: str) -> status.Failure:
    return status.Failure(429, "TooManyRequests", f"{why}; try again", headers={"Retry-After": "1"})


def _cut(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def _over(watch: Watch) -> bool:
    return watch.closed


async def _send(response: web.StreamResponse, told: bytes) -> None:
    """
    Raises:
        TimeoutError: what is under way already is not read.
    """
    async with asyncio.timeout(READS_WITHIN):
        await response.write(told)


async def _heard(bell: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(bell.wait(), max(seconds, 0.001))
    except TimeoutError:
        return


def _line(change: str, raw: Any) -> bytes:
    return msgspec.json.encode({"type": change, "object": raw}) + b"\n"


def _call(request: web.Request, body: bytes) -> Request:
    headers = request.headers
    return Request(
        method=request.method,
        path=_text(request.path),
        query=_query(request),
        body=body or None,
        content_type=_text(headers.get("Content-Type", "")),
        accept=_text(", ".join(headers.getall("Accept", ()))),
        user_agent=_text(headers.get("User-Agent", "")),
    )


def _query(request: web.Request) -> dict[str, str]:
    """The query parameters; of one that is given several times the first, but every `dryRun`."""
    found = {_text(name): _text(request.query[name]) for name in request.query}
    if "dryRun" in found:
        found["dryRun"] = ",".join(map(_text, request.query.getall("dryRun")))
    return found


def _text(given: str) -> str:
    """Without the lone surrogates that stand for bytes that are no UTF-8, so that an answer may repeat it."""
    return given if given.isascii() else given.encode("utf-8", "surrogatepass").decode("utf-8", "backslashreplace")


def _seconds(request: web.Request) -> float:
    text = request.query.get("timeoutSeconds", "")
    wanted = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    return float(min(wanted or LONGEST_WATCH, LONGEST_WATCH))


def _response(made: Response) -> web.Response:
    headers = dict(made.headers)
    if isinstance(made.body, str):
        headers.setdefault("Content-Type", "text/plain; charset=utf-8")
        return web.Response(status=made.status, body=made.body.encode(), headers=headers)
    if isinstance(made.body, bytes):
        return web.Response(status=made.status, body=made.body, headers=headers)
    headers.setdefault("Content-Type", JSON)
    return web.Response(status=made.status, body=msgspec.json.encode(_dressed(made.body)), headers=headers)


def _dressed(body: Any) -> Any:
    """The body with managed fields written out."""
    if not isinstance(body, Mapping):
        return body
    if "items" in body:
        return {**body, "items": [dressed(raw) for raw in body["items"]]}
    return dressed(body)
