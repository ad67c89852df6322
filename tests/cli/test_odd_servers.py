"""Addresses that are none, and servers that are not Muster: one clear error each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from muster.cli.app import run
from muster.cli.failure import FAILED, USAGE

COMMANDS = (
    ["get", "pods"],
    ["get", "pods", "-o", "name"],
    ["get", "pod", "a"],
    ["get", "pod", "a", "b", "-o", "yaml"],
    ["delete", "pod", "a"],
    ["apply", "-f", "pod.yaml"],
    ["explain"],
    ["explain", "a"],
    ["explain", "pod/a"],
    ["explain", "job/a"],
    ["explain", "pg/a"],
)
BODIES = (
    b"",
    b"{}",
    b"[]",
    b"null",
    b"5",
    b'"pods"',
    b"<html></html>",
    b'"\xff"',
    b"[" * 100_000,
    b'{"kind": "PodList"}',
    b'{"kind": "PodList", "items": 5}',
    b'{"kind": "PodList", "items": [5]}',
    b'{"kind": "PodList", "items": [{}]}',
    b'{"kind": "Pod", "metadata": 5}',
    b'{"kind": "Pod", "metadata": {"name": 5}}',
    b'{"waiting": 5}',
    b'{"waiting": [5]}',
    b'{"waiting": [{}], "sentence": 5}',
)
REFUSALS = (
    b'{"kind": "Status", "message": 5}',
    b'{"kind": "Status", "details": 5}',
    b'{"message": "no", "details": []}',
    b'{"message": "no", "details": {"causes": 5}}',
    b'{"message": "no", "details": {"causes": [5, {"field": 7}, {"field": "a", "message": {}}, {"field": []}]}}',
)


class Stranger(BaseHTTPRequestHandler):
    """Answers everything with the same."""

    status, body = 200, b""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    do_POST = do_PATCH = do_DELETE = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Stranger)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")


def lines(captured: pytest.CaptureFixture[str], command: list[str], url: str) -> list[str]:
    """What the command says on its way to failing."""
    assert run([*command, "--server", url]) == FAILED
    out, err = captured.readouterr()
    assert out == "" and "Traceback" not in err
    return err.splitlines()


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body[:30].decode(errors="replace"))
def test_an_answer_that_is_none_of_musters_is_one_clear_error(
    body: bytes, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Stranger, "status", 200)
    monkeypatch.setattr(Stranger, "body", body)
    for command in COMMANDS:
        said = lines(capsys, command, url)
        assert len(said) == 1 and url in said[0] and "is it a `muster up` server?" in said[0], (command, said)


@pytest.mark.parametrize("status", [302, 404, 422, 500])
@pytest.mark.parametrize("body", [*BODIES, *REFUSALS], ids=lambda body: body[:30].decode(errors="replace"))
def test_a_refusal_of_an_odd_shape_is_one_clear_error(
    body: bytes, status: int, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Stranger, "status", status)
    monkeypatch.setattr(Stranger, "body", body)
    for command in COMMANDS:
        said = lines(capsys, command, url)
        assert len(said) == 1 and said[0].startswith(("muster: ", "pod.yaml:1: ")), (command, said)


@pytest.mark.parametrize(
    "server",
    [
        "http://[bad",
        "http://[::1",
        "http://",
        "http://127.0.0.1:7077/api",
        "http://127.0.0.1:7077?a=b",
        "http://me@127.0.0.1:7077",
        "http://127.0.0.1:99999",
        "127.0.0.1:7077",
        "http://a b",
    ],
)
def test_an_address_that_is_none_is_a_usage_error(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["get", "pods", "--server", server]) == USAGE
    said = capsys.readouterr().err
    assert "--server" in said and "http://127.0.0.1:7077" in said


@pytest.mark.parametrize("server", ["http://\udcff", "http://" + "a" * 70 + ".invalid", "http://é.invalid"])
def test_a_host_that_cannot_be_looked_up_is_one_clear_error(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["get", "pods", "--server", server]) != 0
    said = capsys.readouterr().err
    assert said.startswith("muster: ") and len(said.splitlines()) == 1
