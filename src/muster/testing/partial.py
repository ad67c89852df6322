"""No part of a gang is bound while claims of others of its minimum are open: asked of what the server holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from muster.api import catalog
from muster.api.calls import Request, Response
from muster.api.instant import Instant
from muster.apiserver.server import ApiServer

Json = Mapping[str, Any]


def partly_bound(server: ApiServer, now: Instant) -> list[str]:
    """Gangs with bound members whose other claims, without which the minimum is not reached, are not bound.

    For runs in which no pod, claim or group is deleted.
    """
    claims = {one["metadata"]["name"]: one for one in _items(server, "persistentvolumeclaims", now)}
    ready: dict[str, int] = defaultdict(int)
    bound: dict[str, list[str]] = defaultdict(list)
    for pod in _items(server, "pods", now):
        group, name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName"), pod["metadata"]["name"]
        used = [v["persistentVolumeClaim"]["claimName"] for v in pod["spec"].get("volumes") or () if len(v) == 2]
        if group and all(claims[claim]["spec"].get("volumeName") for claim in used):
            ready[group] += 1
        if group and pod["spec"].get("nodeName"):
            bound[group].append(name)
    wrong = []
    for one in _items(server, "podgroups", now):
        group, least = one["metadata"]["name"], (one["spec"]["schedulingPolicy"].get("gang") or {}).get("minCount", 0)
        if bound[group] and ready[group] < least:
            wrong.append(f"{', '.join(bound[group])} of {group} are bound, {ready[group]} of {least} can be")
    return wrong


def _items(server: ApiServer, resource: str, now: Instant) -> Sequence[Json]:
    response = server.handle(Request("GET", catalog.by_resource(resource).path(None)), now)
    assert isinstance(response, Response)
    return response.body["items"] if response.ok else ()
