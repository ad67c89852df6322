"""A follower against a server that tells nonsense, and a store whose writes fail in odd ways."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from aiohttp import web

from muster.api import writes
from muster.api.calls import Response
from muster.runtime.clock import SystemClock
from muster.runtime.remote import follow
from muster.runtime.remote.access import plain
from muster.runtime.remote.discovery import Offer
from muster.runtime.remote.store import Remote
from muster.runtime.remote.transport import Transport

Use = Callable[[Remote], Awaitable[Any]]
OFFER = Offer({"pods": "v1"})


def used(handler: Any, use: Use, may: Callable[[], float] = lambda: 9.0) -> Any:
    async def run() -> Any:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        transport = Transport(plain(f"http://127.0.0.1:{runner.addresses[0][1]}"), SystemClock(), Random(1))
        await transport.begin()
        remote = Remote(transport, OFFER, SystemClock(), Random(1), may)
        try:
            return await use(remote)
        finally:
            await remote.close()
            await transport.close()
            await runner.cleanup()

    return asyncio.run(run())


def pod(name: str, revision: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "d", "uid": name, "resourceVersion": str(revision)}}


def listed(*pods: dict[str, Any]) -> web.Response:
    return web.json_response({"metadata": {"resourceVersion": "5"}, "items": list(pods)})


async def quiet(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():
            await quiet(0.01)


def test_nonsense_on_a_watch_ends_it_and_it_is_opened_again_where_it_was():
    asked: list[str] = []

    async def server(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return listed(pod("a", 3))
        asked.append(request.query["resourceVersion"])
        good = json.dumps({"type": "ADDED", "object": pod("b", 7)})
        bad = ("{", "[]", '{"type": 5}', '{"type": "ADDED", "object": []}')[len(asked) % 4]
        return web.Response(text=f"{good}\n{bad}\n")

    async def use(remote: Remote) -> set[str]:
        inbox: Any = []
        remote.subscribe(("pods",), inbox)
        await until(lambda: len(asked) >= 2)
        assert [type(one).__name__ for one in inbox] == ["Listed", "Observed"]
        return set(asked)

    assert used(server, use) == {"5", "7"}


def test_whoever_asks_for_what_is_not_served_is_told_that_there_is_none():
    async def server(_: web.Request) -> web.Response:
        return listed()

    async def use(remote: Remote) -> None:
        inbox: Any = []
        remote.subscribe(("podgroups", "pods"), inbox)
        await until(lambda: len(inbox) == 2)
        assert [(one.resource, len(one.objects)) for one in inbox] == [("podgroups", 0), ("pods", 0)]
        late: Any = []
        remote.subscribe(("pods",), late)
        assert [one.resource for one in late] == ["pods"], "what is known is told at once"

    used(server, use)


def test_a_fault_of_ours_is_logged_and_everything_is_listed_again(monkeypatch, caplog):
    monkeypatch.setattr(follow, "AFTER_A_FAULT", 0.01)
    lists: list[int] = []

    async def server(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            await quiet(1)
            return web.Response()
        lists.append(1)
        return web.json_response({"metadata": {"resourceVersion": "5"}, "items": [7] if len(lists) == 1 else []})

    async def use(remote: Remote) -> None:
        inbox: Any = []
        remote.subscribe(("pods",), inbox)
        await until(lambda: len(inbox) == 1)

    used(server, use)
    assert "pods cannot be followed and is listed again" in caplog.text


def test_writes_of_one_object_go_one_after_another_and_others_beside_them():
    at_once: dict[str, int] = {}
    most: dict[str, int] = {}
    order: list[str] = []

    async def server(request: web.Request) -> web.Response:
        name = request.path.split("/")[6]
        at_once[name] = at_once.get(name, 0) + 1
        most["any"] = max(most.get("any", 0), sum(at_once.values()))
        most[name] = max(most.get(name, 0), at_once[name])
        order.append((await request.json())["status"]["n"] if name == "a" else "")
        await quiet(0.02)
        at_once[name] -= 1
        return web.json_response({})

    async def use(remote: Remote) -> None:
        wanted = [writes.patch_status("pods", "d", name, {"n": n}) for n in range(4) for name in ("a", "b", "c")]
        await asyncio.gather(*(remote.finish(remote.begin(request)) for request in wanted))

    used(server, use)
    assert most["a"] == most["b"] == 1 and most["any"] == 3
    assert [n for n in order if n != ""] == [0, 1, 2, 3]


def test_a_write_that_comes_late_stands_at_the_end_of_the_line():
    order: list[str] = []

    async def server(request: web.Request) -> web.Response:
        order.append((await request.json())["status"]["n"])
        await quiet(0.01)
        return web.json_response({})

    async def use(remote: Remote) -> None:
        def writing(number: int) -> asyncio.Future[Response]:
            return asyncio.ensure_future(
                remote.finish(remote.begin(writes.patch_status("pods", "d", "a", {"n": number})))
            )

        first, second = writing(0), writing(1)
        await first  # the second is about to go
        await asyncio.gather(second, writing(2), writing(3))
        assert not remote._lines, "nothing is kept of it"

    used(server, use)
    assert order == [0, 1, 2, 3]


def test_writes_that_are_taken_back_are_answered_as_such():
    async def server(_: web.Request) -> web.Response:
        await quiet(2)
        return web.Response()

    async def use(remote: Remote) -> Response:
        writing = asyncio.ensure_future(remote.finish(remote.begin(writes.delete("pods", "d", "a"))))
        await until(lambda: remote.writes == 1)
        remote.drop_writes()
        return await writing

    answer = used(server, use)
    assert answer.status == 0 and "does not lead any more" in answer.body["message"]


def test_a_write_that_cannot_be_put_into_words_is_answered_and_not_lost():
    async def server(_: web.Request) -> web.Response:
        return web.Response()

    async def use(remote: Remote) -> Response:
        return await remote.finish(remote.begin(writes.patch("pods", "d", "a", {"x": object()})))

    answer = used(server, use)
    assert answer.status == 0 and not answer.ok
