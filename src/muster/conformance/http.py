"""The driver over HTTP: a real server process with a clock that the case controls, one for all cases."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlencode, urlsplit

import msgspec

from muster.api.calls import Request, Response
from muster.api.gates import TARGETS
from muster.api.instant import Instant
from muster.conformance.cases import Case

CONTROL = "/muster/control"
PATIENCE = 60.0
"""Seconds that one call may take."""


class ServerFailed(Exception):
    """The server process did not start, or ended, or answered nonsense."""


class Server:
    """A server process on loopback. `driver` gives it a fresh cluster for a case."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._process = process
        self._connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

    @classmethod
    @contextmanager
    def started(cls, data: Path | None = None) -> Iterator[Server]:
        """Starts `muster up --control` on a free port, and ends it afterwards.

        With `data`, each case's cluster is kept in a directory of its own in there.

        Raises:
            ServerFailed: it did not say where it listens.
        """
        command = [sys.executable, "-m", "muster.cli", "up", "--port", "0", "--control"]
        command += [] if data is None else ["--data", str(data)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                yield cls(process, _port(process.stdout))
            finally:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()

    def driver(self, case: Case, target: str = TARGETS[0]) -> HttpDriver:
        self.control(
            "reset",
            {
                "gates": dict.fromkeys(case.gates, True),
                "target": target,
                "priorityAdmission": case.priority_admission,
                "volumes": case.volumes,
                "apps": case.apps,
                "levels": list(case.levels),
                "reservation": case.profile == "reservation",
            },
        )
        return HttpDriver(self)

    def control(self, operation: str, body: Mapping[str, Any] | None = None) -> Any:
        """One call of the control endpoints.

        Raises:
            ServerFailed: it was refused.
        """
        answer = self.send("POST", f"{CONTROL}/{operation}", msgspec.json.encode(body or {}), "application/json")
        if not answer.ok:
            raise ServerFailed(f"{operation}: {answer.status} {answer.body}")
        return answer.body

    def send(self, method: str, path: str, body: bytes | None, content_type: str) -> Response:
        """One HTTP exchange.

        Raises:
            ServerFailed: the process has ended.
        """
        headers = {"Content-Type": content_type} if body is not None else {}
        try:
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
            content = answer.read()
        except OSError as error:
            self._connection.close()
            code = self._process.poll()
            state = "is still running" if code is None else f"has ended with {code}"
            raise ServerFailed(f"{method} {path}: {error}; the server process {state}") from error
        return Response(answer.status, _decoded(content), dict(answer.getheaders()))


class HttpDriver:
    """A case over HTTP: what users do goes through the Kubernetes API, the rest through the control endpoints."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def call(self, request: Request) -> Response:
        path = f"{request.path}?{urlencode(request.query)}" if request.query else request.path
        body = None if request.body is None else msgspec.json.encode(request.body)
        return self._server.send(request.method, path, body, request.content_type)

    def tick(self, us: Instant) -> None:
        self._server.control("tick", {"us": us})

    def settle(self) -> None:
        self._server.control("settle")

    def quiesce(self) -> None:
        self._server.control("quiesce")

    def advance(self, us: Instant) -> None:
        self._server.control("advance", {"us": us})

    def pause(self) -> None:
        self._server.control("pause")

    def resume(self) -> None:
        self._server.control("resume")

    def restart(self) -> None:
        self._server.control("restart")

    def refuse_binds(self, pods: Sequence[str]) -> None:
        self._server.control("refuse", {"bind": list(pods)})

    def hold_terminations(self, held: bool) -> None:
        self._server.control("termination", {"mode": "hold" if held else "finish"})

    def decision_times(self) -> Sequence[float]:
        """One figure for all decisions: the server counts, it does not list."""
        found = self._server.control("decisions")
        count, seconds = int(found["count"]), float(found["seconds"])
        return [seconds / count] * count if count else []


def _port(lines: IO[str]) -> int:
    """Reads what the process prints until it names its address."""
    heard = []
    for line in lines:
        heard.append(line)
        for word in line.split():
            address = urlsplit(word.strip(".,"))
            if address.scheme == "http" and address.port:
                return address.port
    raise ServerFailed("the server did not say where it listens: " + "".join(heard)[-500:])


def _decoded(content: bytes) -> Any:
    if not content:
        return None
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        return content.decode(errors="replace")
