"""One call of a Kubernetes API server, as data: what machines ask for and what the embedded server answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

NOTHING: Mapping[str, str] = MappingProxyType({})

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request without a socket.

    `body` is bytes as they came over the wire, or an already decoded JSON value; whoever hands over a decoded value
    gives it away and does not touch it again.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    body: Any = None
    content_type: str = JSON
    accept: str = ""
    user_agent: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP answer. `body` is a JSON value that may be shared with the store: read it, never change it."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the call was carried out; status 0, of a server that gave no answer, says no."""
        return 0 < self.status < 300
