"""An API server with hollow nodes, a road to it that can be cut, and schedulers in processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muster.api import writes
from muster.api.calls import Request, Response
from muster.api.gates import WORKLOAD_AWARE, FeatureGates
from muster.api.instant import MILLISECOND
from muster.cli.up import kubeconfig as config_of
from muster.controllers.fleet import Shape, node_manifests
from muster.runtime.http import application, listen
from muster.runtime.remote.refusals import verb_of
from muster.runtime.wiring import Alone, Setup, alone, controllers

PATIENCE = 20.0


@dataclass
class Apart:
    """A server without a scheduler."""

    url: str
    server: Alone
    loop: asyncio.AbstractEventLoop
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    calls: set[tuple[str, str]] = field(default_factory=set)
    """Verb (as RBAC calls it) and path of everything that schedulers have asked."""
    doors: list[str] = field(default_factory=list)
    """Other addresses of the same server, one for each scheduler that is to be told apart."""
    identities: dict[int, str] = field(default_factory=dict)
    """By door, whom the scheduler there calls itself."""
    stray: list[tuple[int, str, str]] = field(default_factory=list)
    """Writes through a door while somebody else held the lease: the door, the call, who held it."""
    written: dict[int, int] = field(default_factory=dict)
    """By door, how many writes came through it."""

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        return ask(self.url, method, path, body)

    def create(self, path: str, body: Mapping[str, Any]) -> None:
        status, made = self.ask("POST", path, body)
        assert status == 201, made

    def nodes_of(self, group: str = "") -> dict[str, str]:
        """Pod -> node, of the pods of a group, or of all."""
        _, listed = self.ask("GET", "/api/v1/pods")
        return {
            pod["metadata"]["name"]: pod["spec"].get("nodeName", "")
            for pod in listed["items"]
            if not group or (pod["spec"].get("schedulingGroup") or {}).get("podGroupName") == group
        }

    def bound(self, group: str = "") -> int:
        return sum(bool(node) for node in self.nodes_of(group).values())

    def lease(self) -> Mapping[str, Any]:
        status, body = self.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/muster-scheduler")
        return body["spec"] if status == 200 else {}


def ask(url: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        return answer.status, json.loads(text) if text.startswith("{") else text
    finally:
        connection.close()


def until(holds: Callable[[], bool], what: str, patience: float = PATIENCE) -> float:
    """Seconds until it holds."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < patience, f"not within {patience:.0f} s: {what}"
        threading.Event().wait(0.05)
    return time.monotonic() - began


@contextmanager
def apart(gates: FeatureGates | None = None, fleet: Shape | None = None, doors: int = 0) -> Iterator[Apart]:
    """A server with all controllers and hollow nodes (4 of 8 accelerators unless told otherwise)."""
    ready: Future[Apart] = Future()
    shape = fleet or Shape(zones=1, racks=2, nodes=2, gpus=8)
    thread = threading.Thread(target=lambda: asyncio.run(_serve(ready, gates, shape, doors)), daemon=True)
    thread.start()
    served = ready.result(timeout=PATIENCE)
    try:
        yield served
    finally:
        served.loop.call_soon_threadsafe(served.ended.set)
        thread.join(timeout=10)
        assert not thread.is_alive(), "the server did not end"


async def _serve(ready: Future[Apart], gates: FeatureGates | None, fleet: Shape, doors: int) -> None:
    setup = Setup(gates=gates or FeatureGates.of(*WORKLOAD_AWARE), start_delay=MILLISECOND)
    server = alone(setup, controllers(setup))
    local = server.local
    for node in node_manifests(fleet):
        local.handle(writes.create(node))
    calls = set[tuple[str, str]]()

    def begin(request: Request) -> Any:
        if request.user_agent.startswith("muster-scheduler"):
            listing = "watch" if "watch" in request.query else "list" if "limit" in request.query else "get"
            calls.add((listing if request.method == "GET" else verb_of(request), request.path))
        return local.begin(request)

    app = application(begin, local.told, settle=local.settle, finish=local.finish)
    driving = asyncio.create_task(server.loop.run())
    runner, port = await listen(app, 0)
    served = Apart(f"http://127.0.0.1:{port}", server, asyncio.get_running_loop(), calls=calls)
    runners = [runner]
    for number in range(doors):
        behind = application(_door(served, number), local.told, settle=local.settle, finish=local.finish)
        runner, port = await listen(behind, 0)
        runners.append(runner)
        served.doors.append(f"http://127.0.0.1:{port}")
    ready.set_result(served)
    await served.ended.wait()
    server.loop.stop()
    server.worker.close()
    for runner in runners:
        await runner.cleanup()
    await driving
    await local.close()


LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


def _door(served: Apart, number: int) -> Callable[[Request], Any]:
    """Notes who writes while somebody else holds the lease."""
    local = served.server.local

    def begin(request: Request) -> Any:
        if request.method == "GET":
            return local.begin(request)
        if request.path.startswith(LEASE):
            served.identities[number] = json.loads(request.body)["spec"]["holderIdentity"] or served.identities[number]
            return local.begin(request)
        held = local.handle(Request("GET", f"{LEASE}/muster-scheduler"))
        holder = held.body["spec"]["holderIdentity"] if isinstance(held, Response) and held.ok else ""
        if holder != served.identities.get(number):
            served.stray.append((number, f"{request.method} {request.path}", holder))
        served.written[number] = served.written.get(number, 0) + 1
        return local.begin(request)

    return begin


class Road:
    """A port that leads to another one, until it is cut: what goes over it then breaks off, and nobody gets through."""

    def __init__(self, target: int) -> None:
        self._target, self._open, self._writers = target, True, set[asyncio.StreamWriter]()
        self._loop = asyncio.new_event_loop()
        started: Future[int] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        self.port = started.result(timeout=PATIENCE)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Breaks every connection off, and lets nobody through any more."""
        self._open = False
        self.shake()

    def shake(self) -> None:
        """Breaks every connection off; new ones get through."""

        def abort() -> None:
            for writer in tuple(self._writers):
                writer.transport.abort()

        self._loop.call_soon_threadsafe(abort)

    def mend(self) -> None:
        self._open = True

    def close(self) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)

    def _run(self, started: Future[int]) -> None:
        asyncio.set_event_loop(self._loop)
        listening = self._loop.run_until_complete(asyncio.start_server(self._lead, "127.0.0.1", 0))
        started.set_result(listening.sockets[0].getsockname()[1])
        self._loop.run_forever()
        listening.close()
        leading = asyncio.all_tasks(self._loop)
        for task in leading:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*leading, return_exceptions=True))
        self._loop.close()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._open:
            writer.transport.abort()
            return
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, there_writer}
        try:
            await asyncio.gather(_pump(reader, there_writer), _pump(there_reader, writer))
        finally:
            self._writers -= {writer, there_writer}
            for one in (writer, there_writer):
                one.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()


@dataclass
class Process:
    """A `muster scheduler` that has said that it is there."""

    popen: subprocess.Popen[str]
    url: str
    log: Path

    def end(self, number: int = signal.SIGTERM) -> int:
        self.popen.send_signal(number)
        return self.popen.wait(timeout=10)

    def ready(self) -> bool:
        return ask(self.url, "GET", "/readyz")[0] == 200

    def said(self) -> str:
        return self.log.read_text()


def kubeconfig(folder: Path, url: str) -> Path:
    file = folder / f"kubeconfig-{url.rpartition(':')[2]}"
    file.write_text(config_of(url))
    return file


@contextmanager
def scheduler(folder: Path, url: str, *options: str) -> Iterator[Process]:
    """`muster scheduler` on that server, once it answers."""
    log = folder / f"scheduler-{time.monotonic_ns()}.log"
    command = [sys.executable, "-m", "muster.cli", "scheduler", "--kubeconfig", str(kubeconfig(folder, url))]
    with log.open("w") as err:
        popen = subprocess.Popen(
            [*command, "--port", "0", *options], stdout=subprocess.PIPE, stderr=err, text=True, env=dict(os.environ)
        )
    try:
        assert popen.stdout is not None
        line = popen.stdout.readline()
        found = re.search(r"answers at (http://\S+)", line)
        assert found is not None, f"{line}\n{log.read_text()}"
        yield Process(popen, found[1], log)
    finally:
        if popen.poll() is None:
            popen.kill()
        popen.wait(timeout=10)
        if popen.stdout is not None:
            popen.stdout.close()


def pod(name: str, group: str = "", gpus: int = 8, scheduler_name: str = "muster") -> dict[str, Any]:
    wants = {"requests": {"cpu": "1", "nvidia.com/gpu": str(gpus)}, "limits": {"nvidia.com/gpu": str(gpus)}}
    spec: dict[str, Any] = {
        "schedulerName": scheduler_name,
        "containers": [{"name": "c", "image": "i", "resources": wants}],
    }
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def gang(served: Apart, name: str, size: int, gpus: int = 8) -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
    }
    served.create("/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups", group)
    for number in range(size):
        served.create("/api/v1/namespaces/default/pods", pod(f"{name}-{number}", name, gpus))
