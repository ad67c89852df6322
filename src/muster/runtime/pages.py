"""What the scheduler knows, as JSON for `muster explain`: read-only routes under /muster/v1."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from muster.runtime.wiring import Cluster
from muster.views.cluster import cluster as cluster_view
from muster.views.queue import queue
from muster.views.why import why

PREFIX = "/muster/v1"
KINDS = ("PodGroup", "Pod")


def routes(living: Callable[[], Cluster]) -> list[web.RouteDef]:
    """GET why/{kind}/{namespace}/{name}, queue and cluster. `living`: the cluster to speak of."""

    async def get_why(request: web.Request) -> web.Response:
        kind = request.match_info["kind"]
        if kind not in KINDS:
            return _missing(f"nothing is known about kind {kind!r}; known kinds: {', '.join(KINDS)}")
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        found = why(living().scheduler, namespace, name, kind)
        return web.json_response(found) if found else _missing(f"{kind} {namespace}/{name} waits for nothing")

    async def get_queue(_: web.Request) -> web.Response:
        return web.json_response({"waiting": queue(living().scheduler)})

    async def get_cluster(_: web.Request) -> web.Response:
        return web.json_response(cluster_view(living().scheduler))

    return [
        web.get(f"{PREFIX}/why/{{kind}}/{{namespace}}/{{name}}", get_why),
        web.get(f"{PREFIX}/queue", get_queue),
        web.get(f"{PREFIX}/cluster", get_cluster),
    ]


def _missing(message: str) -> web.Response:
    return web.json_response({"message": message}, status=404)
