"""`muster scheduler` on a server that speaks scheduling.k8s.io/v1alpha2, as 1.36 does: gangs are bound whole."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from scheduling_apart import Apart, apart, gang, scheduler, until

from muster.api.calls import Request, Response
from muster.apiserver.asking import Paused
from muster.apiserver.watch import Watch
from muster.runtime.http import application, listen

GROUP = "/apis/scheduling.k8s.io/"
GONE = Response(404, {"kind": "Status", "status": "Failure", "message": "not found", "code": 404})


def older(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A PodGroup as 1.36 shows it; written without the code under test."""
    spec = dict(raw.get("spec", {}))
    mode = spec.pop("disruptionMode", None)
    if mode:
        spec["disruptionMode"] = "PodGroup" if "all" in mode else "Pod"
    return {**raw, "apiVersion": "scheduling.k8s.io/v1alpha2", "spec": spec}


class Older:
    """In front of a server of 1.37: the door of one of 1.36."""

    def __init__(self, served: Apart) -> None:
        self._local = served.server.local
        self.written: list[str] = []
        self.foreign: list[str] = []

    def begin(self, request: Request) -> Response | Watch | Paused:
        if request.path == "/version":
            return Response(200, {"major": "1", "minor": "36", "gitVersion": "v1.36.2"})
        if not request.path.startswith(GROUP) or request.path.startswith(f"{GROUP}v1/"):
            return self._local.begin(request)
        if not request.path.startswith(f"{GROUP}v1alpha2"):
            self.foreign.append(request.path)
            return GONE
        if request.method != "GET":
            self.written.append(f"{request.method} {request.path}")
            body = json.loads(request.body) if isinstance(request.body, bytes) else request.body
            assert not isinstance(body, dict) or body.get("apiVersion", "v1alpha2").endswith("v1alpha2")
        answer = self._local.begin(replace(request, path=request.path.replace("v1alpha2", "v1beta1", 1)))
        if isinstance(answer, Watch):
            answer.shape = lambda event: event.object if event.type == "BOOKMARK" else older(event.object)
        elif isinstance(answer, Response) and isinstance(answer.body, Mapping) and "items" in answer.body:
            return replace(answer, body={**answer.body, "items": [older(raw) for raw in answer.body["items"]]})
        return answer


@contextmanager
def of_1_36(served: Apart) -> Iterator[tuple[str, Older]]:
    door, started = Older(served), Future[Any]()
    local = served.server.local

    async def start() -> None:
        app = application(door.begin, local.told, settle=local.settle, finish=local.finish)
        started.set_result(await listen(app, 0))

    asyncio.run_coroutine_threadsafe(start(), served.loop)
    runner, port = started.result(timeout=10)
    try:
        yield f"http://127.0.0.1:{port}", door
    finally:
        ended = threading.Event()

        async def stop() -> None:
            await runner.cleanup()
            ended.set()

        asyncio.run_coroutine_threadsafe(stop(), served.loop)
        assert ended.wait(10)


def test_gangs_of_1_36_are_bound_whole_and_told_about_in_its_own_version(tmp_path):
    with (
        apart() as served,
        of_1_36(served) as (url, door),
        scheduler(tmp_path, url, "--no-leader-elect") as process,
    ):
        gang(served, "whole", 3)
        gang(served, "too-large", 5)
        until(lambda: served.bound("whole") == 3, "the gang is bound")
        path = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
        until(lambda: "Unschedulable" in str(served.ask("GET", f"{path}/too-large")[1]), "the other one is told why")
        until(lambda: '"Scheduled"' in json.dumps(served.ask("GET", f"{path}/whole")[1]), "this one that it is placed")
        assert served.bound("too-large") == 0
        assert any("v1alpha2/namespaces/default/podgroups/whole/status" in call for call in door.written)
        assert not [path for path in door.foreign if path.count("/") > 3], "only what is there was asked"
        assert process.said().count("hierarchies of groups need Kubernetes 1.37") == 1
