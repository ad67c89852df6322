"""A server with counted uids and a clock that tests move, and short calls to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import pytest

from muster.api import catalog, writes
from muster.api.calls import JSON, MERGE_PATCH, Request, Response
from muster.api.gates import WORKLOAD_AWARE, FeatureGates
from muster.api.instant import SECOND
from muster.apiserver.server import ApiServer
from muster.apiserver.watch import Watch

START = 1_767_225_600 * SECOND


class Api:
    """Calls of one server. `now` is the time of the next call."""

    def __init__(self, gates: FeatureGates | None = None, **settings: Any) -> None:
        numbers = count(1)
        settings.setdefault("new_uid", lambda: f"00000000-0000-0000-0000-{next(numbers):012d}")
        self.server = ApiServer(FeatureGates.of(*WORKLOAD_AWARE) if gates is None else gates, **settings)
        self.now = START

    def call(
        self, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None, content_type: str = JSON
    ) -> Response:
        answer = self.server.handle(Request(method, path, query or {}, body, content_type), self.now)
        assert isinstance(answer, Response), answer
        return answer

    def send(self, request: Request) -> Response:
        answer = self.server.handle(request, self.now)
        assert isinstance(answer, Response), answer
        return answer

    def create(self, manifest: Mapping[str, Any], **query: str) -> Response:
        request = writes.create(manifest)
        return self.call("POST", request.path, request.body, query)

    def made(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Creates an object that must be accepted."""
        answer = self.create(manifest)
        assert answer.status == 201, answer.body
        return answer.body

    def path(self, resource: str, name: str | None = None, subresource: str | None = None) -> str:
        return catalog.named(resource).path("default", name, subresource)

    def get(self, resource: str, name: str) -> dict[str, Any]:
        answer = self.call("GET", self.path(resource, name))
        assert answer.status == 200, answer.body
        return answer.body

    def gone(self, resource: str, name: str) -> bool:
        return self.call("GET", self.path(resource, name)).status == 404

    def names(self, resource: str, **query: str) -> list[str]:
        answer = self.call("GET", self.path(resource), query=query)
        assert answer.status == 200, answer.body
        return [item["metadata"]["name"] for item in answer.body["items"]]

    def put(self, manifest: Mapping[str, Any], subresource: str | None = None, **query: str) -> Response:
        request = writes.update(manifest, subresource=subresource)
        return self.call("PUT", request.path, request.body, query)

    def patch(
        self,
        resource: str,
        name: str,
        body: Any,
        content_type: str = MERGE_PATCH,
        subresource: str | None = None,
        **query: str,
    ) -> Response:
        return self.call("PATCH", self.path(resource, name, subresource), body, query, content_type)

    def delete(self, resource: str, name: str, body: Any = None, **query: str) -> Response:
        return self.call("DELETE", self.path(resource, name), body, query)

    def bind(self, name: str, node: str, **metadata: Any) -> Response:
        body = {"metadata": {"name": name, **metadata}, "target": {"kind": "Node", "name": node}}
        return self.call("POST", self.path("pods", name, "binding"), body)

    def watch(self, resource: str, **query: str) -> Watch:
        answer = self.server.handle(Request("GET", self.path(resource), {"watch": "true", **query}), self.now)
        assert isinstance(answer, Watch), answer
        return answer


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def new_api() -> Callable[..., Api]:
    return Api
