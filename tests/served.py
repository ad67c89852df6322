"""A real `muster up` server in a thread of the test process, for tests that speak HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from muster.api.gates import WORKLOAD_AWARE, FeatureGates
from muster.api.instant import MILLISECOND
from muster.controllers.fleet import Shape, node_manifests
from muster.runtime.http import application, listen
from muster.runtime.pages import routes
from muster.runtime.wiring import Cluster, Setup, assemble

FLEET = Shape(zones=2, racks=2, nodes=4, gpus=8)


@dataclass
class Served:
    """A server that can be waited for."""

    url: str
    cluster: Cluster
    loop: asyncio.AbstractEventLoop
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def settle(self) -> None:
        """Until every machine has seen everything and no decision is under way."""
        asyncio.run_coroutine_threadsafe(self.cluster.loop.settle(), self.loop).result(timeout=30)


@contextmanager
def serving(gates: FeatureGates | None = None, fleet: Shape = FLEET, data: Path | None = None) -> Iterator[Served]:
    """A cluster of 16 nodes (unless told otherwise) whose pods start at once; with `data`, one that is kept there."""
    ready: Future[Served] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(ready, gates, fleet, data)), daemon=True)
    thread.start()
    served = ready.result(timeout=30)
    try:
        yield served
    finally:
        served.loop.call_soon_threadsafe(served.ended.set)
        thread.join(timeout=10)
        assert not thread.is_alive(), "the server did not end"


async def _serve(ready: Future[Served], gates: FeatureGates | None, fleet: Shape, data: Path | None) -> None:
    try:
        cluster = assemble(Setup(gates=gates or FeatureGates.of(*WORKLOAD_AWARE), start_delay=MILLISECOND, data=data))
        for node in node_manifests(fleet):
            assert cluster.create(node).ok or data is not None
        local, pages = cluster.local, routes(lambda: cluster)
        app = application(local.begin, local.told, routes=pages, settle=local.settle, finish=local.finish)
        driving = asyncio.create_task(cluster.loop.run())
        runner, port = await listen(app, 0)
    except BaseException as failure:
        ready.set_exception(failure)
        return
    served = Served(f"http://127.0.0.1:{port}", cluster, asyncio.get_running_loop())
    ready.set_result(served)
    await served.ended.wait()
    await runner.cleanup()
    cluster.loop.stop()
    cluster.worker.close()
    await driving
    await local.close()
    if local.keeper is not None:
        await local.keeper.close()
