"""A bare API server over HTTP, in a thread of the test process: no controllers, no scheduler."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from aiohttp import web

from muster.api.calls import Request, Response
from muster.api.gates import WORKLOAD_AWARE, FeatureGates
from muster.apiserver.server import ApiServer
from muster.apiserver.watch import Watch
from muster.runtime.changes import Changes
from muster.runtime.clock import SystemClock
from muster.runtime.http import application, listen


class Bare:
    """An API server, its address, and the loop that it runs on."""

    def __init__(self) -> None:
        numbers = count(1)
        self.api = ApiServer(
            FeatureGates.of(*WORKLOAD_AWARE), new_uid=lambda: f"00000000-0000-0000-0000-{next(numbers):012d}"
        )
        self.changes = Changes()
        self.clock = SystemClock()
        self.port = 0
        self.loop: asyncio.AbstractEventLoop
        self.ended: asyncio.Event
        self.runner: web.AppRunner

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def handle(self, request: Request) -> Response | Watch:
        before = self.api.revision
        answer = self.api.handle(request, self.clock.now())
        if self.api.revision != before:
            self.changes.ring()
        return answer

    def on_loop(self, function: Any, *arguments: Any) -> None:
        """Calls a function on the server's thread, and waits for it."""
        done: Future[None] = Future()

        def call() -> None:
            function(*arguments)
            done.set_result(None)

        self.loop.call_soon_threadsafe(call)
        done.result(timeout=10)

    async def run(self, ready: Future[None]) -> None:
        self.loop, self.ended = asyncio.get_running_loop(), asyncio.Event()
        self.runner, self.port = await listen(application(self.handle, self.changes), 0)
        ready.set_result(None)
        await self.ended.wait()
        await self.runner.cleanup()

    def connections(self) -> int:
        assert self.runner.server is not None
        return len(self.runner.server.connections)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.ended.set)


def started() -> tuple[Bare, threading.Thread]:
    bare, ready = Bare(), Future[None]()
    thread = threading.Thread(target=lambda: asyncio.run(bare.run(ready)), daemon=True)
    thread.start()
    ready.result(timeout=10)
    return bare, thread


@pytest.fixture(scope="session")
def start() -> Callable[[], tuple[Bare, threading.Thread]]:
    return started


@pytest.fixture
def bare() -> Iterator[Bare]:
    server, thread = started()
    yield server
    server.stop()
    thread.join(timeout=10)
    assert not thread.is_alive(), "the server did not end"


@pytest.fixture(scope="session")
def certificates(tmp_path_factory) -> Path:
    """`server.pem`, `client.pem` (for 127.0.0.1) and `service.pem` (for hooks.default.svc) with their keys, signed by
    `ca.pem`; `stranger.pem` by itself; `tokens`.
    """
    if which("openssl") is None:
        pytest.skip("makes its certificates with openssl")
    folder: Path = tmp_path_factory.mktemp("certificates")

    def made(name: str, *more: str) -> None:
        files = ("-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.pem")
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        command = ["openssl", "req", "-x509", *curve, *files, "-days", "2", "-subj", f"/CN={name}", *more]
        subprocess.run(command, check=True, capture_output=True)

    made("ca")
    made("stranger")
    signed = ("-CA", f"{folder}/ca.pem", "-CAkey", f"{folder}/ca.key", "-addext")
    for name, whose in (("server", "IP:127.0.0.1"), ("client", "IP:127.0.0.1"), ("service", "DNS:hooks.default.svc")):
        made(name, *signed, f"subjectAltName={whose}")
    (folder / "tokens").write_text("# ours\na-token-of-at-least-16,admin\n")
    return folder
