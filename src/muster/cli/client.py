"""A small HTTP client for the commands: one connection, JSON in and out, mistakes in plain words."""

from __future__ import annotations

import http.client
import os
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from muster.cli.failure import USAGE, Failure

DEFAULT_SERVER = "http://127.0.0.1:7077"
VARIABLE = "MUSTER_SERVER"
TIMEOUT = 30.0
"""Seconds to wait for one answer."""


class Answer(NamedTuple):
    status: int
    body: Any

    @property
    def ok(self) -> bool:
        return self.status < 300


class Client:
    """Talks to one server. `server` None: $MUSTER_SERVER, else where `muster up` listens by default."""

    def __init__(self, server: str | None = None) -> None:
        self.server = (server or os.environ.get(VARIABLE) or DEFAULT_SERVER).rstrip("/")
        parts = urlsplit(self.server)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme != "http" or not parts.hostname or port == -1:
            wanted = f"--server (or ${VARIABLE}) must look like {DEFAULT_SERVER}"
            raise Failure(f"{wanted}, not {self.server!r}", USAGE)
        self._connection = http.client.HTTPConnection(parts.hostname, port or 80, timeout=TIMEOUT)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        """One request.

        Raises:
            Failure: nobody answers there, or what answers is no API server.
        """
        target = _target(path, query)
        payload = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content_type, "Accept": "application/json", "User-Agent": "muster"}
        try:
            self._connection.request(method, target, payload, headers)
            response = self._connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise Failure(
                f"cannot reach {self.server} ({reason}); start one with `muster up`, or name it with --server"
            ) from None
        try:
            return Answer(response.status, msgspec.json.decode(text) if text else None)
        except msgspec.DecodeError:
            raise Failure(f"{self.server} answered something that is not JSON; is it a `muster up` server?") from None

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """The body of a GET.

        Raises:
            Failure: the server refuses; carries its own words.
        """
        answer = self.call("GET", path, query=query)
        if not answer.ok:
            raise Failure(told(answer))
        return answer.body


def _target(path: str, query: Mapping[str, str] | None) -> str:
    """The request target; what is odd in a name or a selector stays part of it."""
    try:
        return quote(path) + (f"?{urlencode(query)}" if query else "")
    except UnicodeEncodeError as error:
        raise Failure(f"{error.object!r} is not UTF-8 text", USAGE) from None


def told(answer: Answer) -> str:
    """A refusal in the server's own words: each wrong field on a line of its own, where the Status names fields."""
    body = answer.body if isinstance(answer.body, dict) else {}
    message = str(body.get("message") or f"HTTP {answer.status}")
    causes = (body.get("details") or {}).get("causes") or []
    fields = [f"  {cause['field']}: {cause.get('message', '')}" for cause in causes if cause.get("field")]
    if len(fields) < 2:
        return message
    subject = message.split(": ", 1)[0] if ": " in message else message
    return "\n".join([f"{subject}:", *fields])
