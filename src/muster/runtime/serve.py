"""Runs a cluster behind HTTP until the process is told to end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from aiohttp import web

from muster.runtime.control import Control
from muster.runtime.guard import Guard
from muster.runtime.http import LOOPBACK, MOST_OPEN, application, listen
from muster.runtime.pages import routes
from muster.runtime.wiring import Alone, Cluster

Ready = Callable[[str], None]
"""Told the URL once requests are answered."""
OPEN = Guard(None, frozenset(), False)
"""For loopback: whoever is on this machine."""


async def serve(cluster: Cluster, port: int, ready: Ready, host: str = LOOPBACK, guard: Guard = OPEN) -> None:
    """Serves `cluster`, wherever `guard` has found it safe, until SIGINT or SIGTERM; ends within a second."""
    await _serve(cluster, port, ready, host, guard, routes(lambda: cluster))


async def serve_alone(server: Alone, port: int, host: str, guard: Guard, ready: Ready) -> None:
    """Serves an API server without a scheduler, likewise."""
    await _serve(server, port, ready, host, guard, ())


async def _serve(
    served: Cluster | Alone,
    port: int,
    ready: Ready,
    host: str,
    guard: Guard,
    pages: Sequence[web.AbstractRouteDef],
) -> None:
    local, loop, worker = served.local, served.loop, served.worker
    asked = guard.admits if guard.asks else None
    app = application(local.begin, local.told, routes=pages, settle=local.settle, finish=local.finish, guard=asked)
    driving = asyncio.create_task(loop.run())
    try:
        await _listen_until_signalled(app, port, ready, driving, host, guard)
    finally:
        loop.stop()
        worker.close()
        await driving
        await local.close()
        if local.keeper is not None:
            await local.keeper.close()


async def serve_controlled(port: int, ready: Ready, data: Path | None = None) -> None:
    """Serves an empty cluster on a held clock, with the control endpoints of a conformance driver.

    With `data`, each cluster after a reset is kept in a directory of its own in there.
    """
    control = Control(data)
    pages = routes(lambda: control.cluster)
    app = application(
        control.begin,
        control.changes,
        routes=[*pages, *control.routes()],
        settle=control.settle_writes,
        finish=control.finish,
    )
    try:
        await _listen_until_signalled(app, port, ready)
    finally:
        await control.close()


def allow_connections() -> None:
    """As many as the server serves, where the system lets a process have so many: what it begins with is often less."""
    try:
        import resource
    except ImportError:  # not on this system
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MOST_OPEN if hard == resource.RLIM_INFINITY else min(2 * MOST_OPEN, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _listen_until_signalled(
    app: web.Application,
    port: int,
    ready: Ready,
    driving: asyncio.Task[None] | None = None,
    host: str = LOOPBACK,
    guard: Guard = OPEN,
) -> None:
    allow_connections()
    ended = asyncio.Event()
    here = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        here.add_signal_handler(number, ended.set)
    if driving is not None:
        driving.add_done_callback(lambda _: ended.set())
    runner, bound = await listen(app, port, host, guard.tls)
    try:
        named = f"[{host}]" if ":" in host else host
        ready(f"{'http' if guard.tls is None else 'https'}://{named}:{bound}")
        await ended.wait()
    finally:
        await runner.cleanup()
