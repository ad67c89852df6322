"""What the scheduler knows, as JSON for `muster explain`, and what it counts: read-only routes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from aiohttp import web

from muster.engine.profile import Profile
from muster.scheduler.machine import Scheduler
from muster.scheduler.metrics import exposed
from muster.views.cluster import cluster as cluster_view
from muster.views.inquiry import inquire
from muster.views.queue import rows
from muster.views.why import ask

PREFIX = "/muster/v1"
KINDS = ("PodGroup", "CompositePodGroup", "Pod")


class Living(Protocol):
    """A scheduler that runs, and what it decides by."""

    @property
    def scheduler(self) -> Scheduler: ...

    @property
    def profile(self) -> Profile: ...


def routes(
    living: Callable[[], Living], others: Callable[[], Sequence[Living]] = tuple, *, metrics: bool = True
) -> list[web.RouteDef]:
    """GET why/{kind}/{namespace}/{name}, queue, cluster, and /metrics outside the prefix.

    What would be decided now is worked out on a thread, so that the API never waits for it.

    Args:
        living: what to speak of.
        others: schedulers of other profiles in the same process, whose pods are spoken of as well.
        metrics: whether /metrics is one of the routes.
    """

    async def get_why(request: web.Request) -> web.Response:
        kind = request.match_info["kind"]
        if kind not in KINDS:
            return _missing(f"nothing is known about kind {kind!r}; known kinds: {', '.join(KINDS)}")
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        for one in (living(), *others()):
            asked = ask(one.scheduler, one.profile, namespace, name, kind)
            if asked is not None:
                return web.json_response(await asyncio.to_thread(asked.answer))
        return _missing(f"{kind} {namespace}/{name} waits for nothing")

    async def get_queue(_: web.Request) -> web.Response:
        inquiries = [inquire(one.scheduler, one.profile) for one in (living(), *others())]
        waiting = [row for inquiry in inquiries for row in await asyncio.to_thread(rows, inquiry)]
        return web.json_response({"waiting": waiting})

    async def get_cluster(_: web.Request) -> web.Response:
        return web.json_response(cluster_view(living().scheduler))

    async def get_metrics(_: web.Request) -> web.Response:
        scheduler = living().scheduler
        pending = [(entry, len(scheduler.queue.pending(key))) for key, entry in scheduler.queue.entries.items()]
        return web.Response(
            text=exposed(scheduler.metrics.samples(pending)), content_type="text/plain", charset="utf-8"
        )

    return [
        *([web.get("/metrics", get_metrics)] if metrics else []),
        web.get(f"{PREFIX}/why/{{kind}}/{{namespace}}/{{name}}", get_why),
        web.get(f"{PREFIX}/queue", get_queue),
        web.get(f"{PREFIX}/cluster", get_cluster),
    ]


def _missing(message: str) -> web.Response:
    return web.json_response({"message": message}, status=404)
