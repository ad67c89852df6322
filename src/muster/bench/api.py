"""What the API server alone holds: writes made durable, watches, lists, memory.

The server over HTTP is a process of its own on one core, where the system can say so; its clients are this process.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from muster.api.calls import Request, Response
from muster.bench.cluster import GATES, Unfinished
from muster.bench.fleet import scaled
from muster.bench.measure import in_child
from muster.runtime.collector import calm_collector
from muster.runtime.wiring import Setup, alone

PODS = "/api/v1/namespaces/default/pods"
Values = Mapping[str, float]
GROUPS, GROUP = 4, 50
"""Writers in process, and how many pods each creates before it waits for all of them to be on the disk."""
CONNECTIONS = 64
"""Writers over HTTP, each with a connection of its own."""
IN_PROCESS, OVER_HTTP, LISTED = 20_000, 10_000, 20_000
WATCHERS, EVENTS_PER_SECOND, WATCHED_FOR = 50, 500, 6


def pod(number: int) -> dict[str, Any]:
    """A pod as a training job makes them: two labels, an owner's name, one container with requests and limits."""
    labels = {"app": "training", "batch.kubernetes.io/job-name": f"job-{number % 100:03d}"}
    amounts = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
    environment = [{"name": "RANK", "value": str(number)}, {"name": "WORLD_SIZE", "value": "1024"}]
    container = {
        "name": "trainer",
        "image": "registry.example/trainer:1",
        "env": environment,
        "resources": {"requests": amounts, "limits": amounts},
    }
    meta = {"name": f"pod-{number:06d}", "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}


def bodies(count: int) -> list[bytes]:
    return [msgspec.json.encode(pod(number)) for number in range(count)]


def api(nodes: int) -> Values:
    """All figures; the numbers of pods are scaled down with the nodes."""
    return {**in_process(scaled(IN_PROCESS, nodes)), **over_http(nodes)}


def in_process(count: int) -> Values:
    """Creates a second, each answered when it is on the disk; and bytes of memory a stored pod takes."""
    rate, memory = msgspec.json.decode(in_child("muster.bench.api", count))
    return {"api-create": rate, "api-memory": memory / 1024}


def main(count: int) -> None:
    """The child process of `in_process`: prints creates a second, and bytes a pod."""
    with tempfile.TemporaryDirectory() as folder:
        print(msgspec.json.encode(asyncio.run(_created(Path(folder) / "data", bodies(count)))).decode())


async def _created(data: Path, texts: list[bytes]) -> tuple[float, float]:
    server = alone(Setup(gates=GATES, data=data), ())
    local, count = server.local, len(texts)
    assert local.keeper is not None
    calm_collector()
    before, began = _resident(), time.perf_counter()
    left = iter(range(0, count, GROUP))

    async def work() -> None:
        for start in left:
            for text in texts[start : start + GROUP]:
                _expect(local.handle(Request("POST", PODS, body=text)), 201)
            if not await local.settle():
                raise Unfinished("the disk is full")

    await asyncio.gather(*(work() for _ in range(GROUPS)))
    rate = count / (time.perf_counter() - began)
    gc.collect()
    memory = (_resident() - before) / count
    server.worker.close()
    await local.keeper.close()
    return rate, memory


def _resident() -> int:
    """Bytes that this process holds in memory now, or where the system does not say, has held at most."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _expect(answer: Any, status: int) -> None:
    if not (isinstance(answer, Response) and answer.status == status):
        raise Unfinished(f"the server answered {answer}")


def over_http(nodes: int) -> Values:
    """Creates a second over HTTP, seconds that a list of 20,000 pods takes, and how late the slowest watcher hears."""
    created, listed = scaled(OVER_HTTP, nodes), scaled(LISTED, nodes)
    return asyncio.run(_over_http(created, listed, scaled(EVENTS_PER_SECOND * WATCHED_FOR, nodes)))


async def _over_http(created: int, there: int, watched: int) -> Values:
    texts = bodies(there + watched)
    async with _server() as address:
        began = time.perf_counter()
        await _post(address, texts[:created], CONNECTIONS)
        rate = created / (time.perf_counter() - began)
        await _post(address, texts[created:there], CONNECTIONS)
        listed = await _list(address)
        late = await _watched(address, texts[there:])
    return {"api-http-create": rate, "api-list": listed, "api-watch": late}


@asynccontextmanager
async def _server() -> AsyncIterator[tuple[str, int]]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "muster.cli", "api-server", "--port", "0", "--data", f"{folder}/data"]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        try:
            said = (await process.stdout.readline()).decode()
            address = next((word.rstrip(";") for word in said.split() if word.startswith("http://")), "")
            if not address:
                raise Unfinished("the server did not start")
            _one_core(process.pid)
            yield "127.0.0.1", int(address.rpartition(":")[2])
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


def _one_core(process: int) -> None:
    """The server's threads share one core, and whoever else runs on this machine leaves the others to the clients."""
    if sys.platform == "linux":
        os.sched_setaffinity(process, {max(os.sched_getaffinity(process))})


def _request(method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def _post(address: tuple[str, int], texts: list[bytes], connections: int) -> None:
    """Creates the pods, each connection one after the other."""
    left = iter(texts)

    async def work() -> None:
        reader, writer = await asyncio.open_connection(*address)
        for text in left:
            writer.write(_request("POST", PODS, text))
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 201"):
                raise Unfinished(f"the server answered {head[:60]!r}")
            await reader.readexactly(_length(head))
        writer.close()

    await asyncio.gather(*(work() for _ in range(connections)))


def _length(head: bytes) -> int:
    _, _, rest = head.lower().partition(b"content-length:")
    return int(rest.partition(b"\r\n")[0])


async def _list(address: tuple[str, int]) -> float:
    reader, writer = await asyncio.open_connection(*address, limit=1 << 26)
    began = time.perf_counter()
    writer.write(_request("GET", PODS))
    await reader.readexactly(_length(await reader.readuntil(b"\r\n\r\n")))
    took = time.perf_counter() - began
    writer.close()
    return took


async def _watched(address: tuple[str, int], texts: list[bytes]) -> float:
    """Seconds from the moment a pod was to be created until the last of the watchers had heard of it, at worst."""
    asked: list[float] = []
    heard = [asyncio.create_task(_heard(address, len(texts))) for _ in range(WATCHERS)]
    await asyncio.sleep(1)  # all watches are open
    began = time.perf_counter()
    writers: list[asyncio.Task[None]] = []
    for start in range(0, len(texts), 10):
        due = began + start / EVENTS_PER_SECOND
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        asked += [due] * len(texts[start : start + 10])
        writers.append(asyncio.create_task(_post(address, texts[start : start + 10], 1)))
    await asyncio.gather(*writers)
    times = await asyncio.wait_for(asyncio.gather(*heard), 60)
    return max(late - due for one in times for late, due in zip(one, sorted(asked), strict=True))


async def _heard(address: tuple[str, int], count: int) -> list[float]:
    """When each of so many events came."""
    reader, writer = await asyncio.open_connection(*address)
    path = f"{PODS}?watch=true&resourceVersion={await _revision(address)}"
    writer.write(_request("GET", path))
    await reader.readuntil(b"\r\n\r\n")
    times: list[float] = []
    while len(times) < count:
        got = await reader.read(1 << 18)
        if not got:
            raise Unfinished(f"a watch ended after {len(times)} of {count} events")
        times += [time.perf_counter()] * got.count(b'{"type":"ADDED"')
    writer.close()
    return times


async def _revision(address: tuple[str, int]) -> str:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(_request("GET", "/api/v1/namespaces/default/pods?limit=1"))
    text = await reader.readexactly(_length(await reader.readuntil(b"\r\n\r\n")))
    writer.close()
    found: str = msgspec.json.decode(text)["metadata"]["resourceVersion"]
    return found
