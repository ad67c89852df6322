"""Runs a cluster behind HTTP on loopback until the process is told to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from aiohttp import web

from muster.runtime.control import Control
from muster.runtime.http import application, listen
from muster.runtime.pages import routes
from muster.runtime.wiring import Cluster

Ready = Callable[[str], None]
"""Told the URL once requests are answered."""


async def serve(cluster: Cluster, port: int, ready: Ready) -> None:
    """Serves `cluster` until SIGINT or SIGTERM; ends within a second."""
    app = application(cluster.local.handle, cluster.local.changes, routes=routes(lambda: cluster))
    driving = asyncio.create_task(cluster.loop.run())
    try:
        await _listen_until_signalled(app, port, ready, driving)
    finally:
        cluster.loop.stop()
        cluster.worker.close()
        await driving


async def serve_controlled(port: int, ready: Ready) -> None:
    """Serves an empty cluster on a held clock, with the control endpoints of a conformance driver."""
    control = Control()
    pages = routes(lambda: control.cluster)
    app = application(control.handle, control.changes, routes=[*pages, *control.routes()])
    try:
        await _listen_until_signalled(app, port, ready)
    finally:
        await control.close()


async def _listen_until_signalled(
    app: web.Application, port: int, ready: Ready, driving: asyncio.Task[None] | None = None
) -> None:
    ended = asyncio.Event()
    here = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        here.add_signal_handler(number, ended.set)
    if driving is not None:
        driving.add_done_callback(lambda _: ended.set())
    runner, bound = await listen(app, port)
    try:
        ready(f"http://127.0.0.1:{bound}")
        await ended.wait()
    finally:
        await runner.cleanup()
