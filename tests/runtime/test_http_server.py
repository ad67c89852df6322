"""HTTP itself: what is no proper request is answered or dropped, and the server goes on."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import socket
import time

import pytest

from muster.api.calls import Request
from muster.apiserver.decode import MAX_BODY
from muster.runtime.changes import Changes
from muster.runtime.http import application, is_loopback, listen
from muster.testing.builders import pod_manifest

PODS = "/api/v1/namespaces/default/pods"
JSON = {"Content-Type": "application/json"}


def ask(bare, method, path, body=None, headers=None):
    """(status, headers, body) of one request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", bare.port, timeout=10)
    try:
        connection.request(method, path, body, headers or JSON)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def raw(bare, text, *, finish=True):
    """What comes back for these bytes."""
    with socket.create_connection(("127.0.0.1", bare.port), timeout=10) as connection:
        connection.sendall(text)
        if finish:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while part := connection.recv(65_536):
                answer += part
        except OSError:
            pass
        return answer


def create(bare, name):
    return ask(bare, "POST", PODS, json.dumps(pod_manifest(name)).encode())


@pytest.fixture(autouse=True)
def goes_on(bare):
    """Every test ends with a server that still works."""
    yield
    status, _, body = create(bare, "afterwards")
    assert status == 201, body


def test_answers_are_json_with_a_length(bare):
    status, headers, body = create(bare, "a")
    assert (status, headers["Content-Type"]) == (201, "application/json")
    assert json.loads(body)["metadata"]["name"] == "a"


def test_health_is_plain_text(bare):
    status, headers, body = ask(bare, "GET", "/healthz")
    assert (status, body) == (200, b"ok") and headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "code"),
    [
        ("POST", PODS, b"{", JSON, 400),
        ("POST", PODS, b"", JSON, 400),
        ("POST", PODS, b"\xff\xfe\x00", JSON, 400),
        ("POST", PODS, b"[" * 1_000_000, JSON, 400),
        ("POST", PODS, b"kind: Pod", {"Content-Type": "application/yaml"}, 415),
        ("POST", PODS, b"k8s\x00", {"Content-Type": "application/vnd.kubernetes.protobuf"}, 400),
        ("PATCH", f"{PODS}/a", b"{}", {"Content-Type": "application/apply-patch+yaml"}, 422),
        ("GET", PODS, None, {"Accept": "application/vnd.kubernetes.protobuf"}, 406),
        ("GET", "/api/v1/unknown", None, JSON, 404),
        ("GET", "/%2e%2e/%2e%2e/etc/passwd", None, JSON, 404),
        ("GET", "/api/v1/namespaces/%00/pods/%ff", None, JSON, 404),
        ("GET", f"{PODS}?labelSelector=%ff%fe", None, JSON, 400),
        ("GET", f"{PODS}?limit=-1", None, JSON, 400),
        ("GET", f"{PODS}?watch=perhaps", None, JSON, 400),
        ("OPTIONS", PODS, None, JSON, 405),
        ("PUT", PODS, b"{}", JSON, 405),
        ("DELETE", f"{PODS}/a", b"{", JSON, 400),
        ("POST", PODS, b"not gzip", JSON | {"Content-Encoding": "gzip"}, 400),
    ],
)
def test_what_makes_no_sense_is_answered_with_a_status(bare, method, path, body, headers, code):
    status, _, answer = ask(bare, method, path, body, headers)
    assert status == code, answer
    found = json.loads(answer)
    assert (found["kind"], found["status"], found["code"]) == ("Status", "Failure", code) and found["message"]


@pytest.mark.parametrize("declared", [True, False])
def test_a_huge_body_is_refused_without_being_kept(bare, declared):
    part = b"x" * 65_536
    parts = (part for _ in range(2 * MAX_BODY // len(part)))
    connection = http.client.HTTPConnection("127.0.0.1", bare.port, timeout=10)
    try:
        headers = JSON | ({"Content-Length": str(2 * MAX_BODY)} if declared else {})
        connection.request("POST", PODS, parts, headers, encode_chunked=not declared)
        answer = connection.getresponse()
        assert answer.status == 413 and json.loads(answer.read())["reason"] == "RequestEntityTooLarge"
    except (BrokenPipeError, ConnectionResetError):
        pass  # the server hung up while we were still sending
    finally:
        connection.close()


def test_a_compressed_body_counts_unpacked(bare):
    status, _, _ = ask(bare, "POST", PODS, gzip.compress(b" " * (20 * MAX_BODY)), JSON | {"Content-Encoding": "gzip"})
    assert status in (400, 413)


def test_a_compressed_body_is_understood(bare):
    body = gzip.compress(json.dumps(pod_manifest("a")).encode())
    assert ask(bare, "POST", PODS, body, JSON | {"Content-Encoding": "gzip"})[0] == 201


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\r\n\r\n",
        b"hello\r\n\r\n",
        b"GET\r\n\r\n",
        b"BREW / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nBad Header\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"GET /" + b"y" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"POST " + PODS.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: abc\r\n\r\n{}",
        b"POST " + PODS.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n{}",
        b"POST " + PODS.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\n{}",
        b"POST " + PODS.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
        b"POST " + PODS.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: [::bad\r\n\r\n",
    ],
)
def test_bytes_that_are_no_http_do_not_harm(bare, text):
    answer = raw(bare, text)
    assert b" 200 " not in answer.split(b"\r\n")[0]


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "127.0.0.1.evil"}],
)
def test_web_pages_from_elsewhere_cannot_reach_it(bare, headers):
    status, _, body = ask(bare, "GET", "/api", None, headers)
    assert status == 403 and json.loads(body)["reason"] == "Forbidden"


@pytest.mark.parametrize(
    "headers", [{"Host": "localhost:8001"}, {"Host": "[::1]:80"}, {"Origin": "http://127.0.0.1:1"}]
)
def test_this_machine_can(bare, headers):
    assert ask(bare, "GET", "/api", None, headers)[0] == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.com", ""])
def test_it_listens_to_nobody_else(host):
    async def attempt():
        await listen(application(lambda _: None, Changes()), 0, host)

    with pytest.raises(ValueError, match="refusing to listen"):
        asyncio.run(attempt())


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost"])
def test_loopback_has_several_names(host):
    assert is_loopback(host)


def test_a_taken_port_is_named(bare):
    async def attempt():
        await listen(application(lambda _: None, Changes()), bare.port)

    with pytest.raises(OSError, match=f"port {bare.port}"):
        asyncio.run(attempt())


# --- watches


def opened(bare, query=""):
    connection = http.client.HTTPConnection("127.0.0.1", bare.port, timeout=10)
    connection.request("GET", f"{PODS}?watch=1{query}")
    answer = connection.getresponse()
    assert answer.status == 200 and answer.headers["Transfer-Encoding"] == "chunked"
    return connection, answer


def line(answer):
    return json.loads(answer.readline())


def test_many_watches_are_told_at_once(bare):
    watches = [opened(bare) for _ in range(20)]
    create(bare, "a")
    for connection, answer in watches:
        event = line(answer)
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
        connection.close()


def test_a_watch_ends_after_its_time_with_a_bookmark(bare):
    began = time.monotonic()
    connection, answer = opened(bare, "&timeoutSeconds=1&allowWatchBookmarks=true")
    event = line(answer)
    assert event["type"] == "BOOKMARK" and event["object"]["kind"] == "Pod"
    assert answer.readline() == b"" and 0.9 < time.monotonic() - began < 5
    connection.close()


def test_a_watch_that_falls_behind_ends_with_gone(bare):
    connection, answer = opened(bare)

    def lose():
        bare.api.handle(Request("DELETE", f"{PODS}/lost"), bare.clock.now())
        bare.api.compact()
        bare.changes.ring()

    create(bare, "lost")
    assert line(answer)["type"] == "ADDED"
    bare.on_loop(lose)
    event = line(answer)
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert answer.readline() == b""
    connection.close()


def test_readers_that_vanish_are_forgotten(bare):
    for _ in range(5):
        connection, _ = opened(bare)
        connection.sock.close()
        connection.close()
    create(bare, "a")
    deadline = time.monotonic() + 5
    while bare.connections() > 1 and time.monotonic() < deadline:
        create(bare, "b")
    assert bare.connections() <= 1


def test_open_watches_do_not_keep_the_server_from_ending(start):
    other, thread = start()
    connection, answer = opened(other)
    began = time.monotonic()
    other.stop()
    thread.join(timeout=5)
    assert not thread.is_alive() and time.monotonic() - began < 2
    assert answer.readline() == b""
    connection.close()


def test_a_slow_reader_does_not_hold_others_up(bare):
    big = pod_manifest("big", annotations={"x": "y" * 200_000})
    stuck, _ = opened(bare)
    for number in range(60):
        given = {**big, "metadata": {**big["metadata"], "name": f"big{number}"}}
        assert ask(bare, "POST", PODS, json.dumps(given).encode())[0] == 201
    quick, answer = opened(bare, "&fieldSelector=metadata.name=big59")
    assert line(answer)["object"]["metadata"]["name"] == "big59"
    stuck.close()
    quick.close()


@pytest.mark.parametrize(
    ("line", "header", "code"),
    [
        (b"GET " + PODS.encode(), b"Accept: caf\xe9/json", 406),
        (b"POST " + PODS.encode(), b"Content-Type: text/\xff\xfe", 415),
        (b"PATCH " + PODS.encode() + b"/a", b"Content-Type: \xc3\x28", 404),
        (b"GET " + PODS.encode(), b"Origin: http://\xff.example", 403),
    ],
)
def test_header_bytes_that_are_no_text_are_answered_with_a_status(bare, line, header, code):
    head = line + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 2\r\n" + header + b"\r\n\r\n{}"
    answer = raw(bare, head, finish=False)
    status = int(answer.split(b" ")[1])
    found = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert status == code and (found["kind"], found["code"]) == ("Status", code)


def test_every_dry_run_of_a_query_counts(bare):
    body = json.dumps(pod_manifest("a")).encode()
    status, _, answer = ask(bare, "POST", f"{PODS}?dryRun=Bogus&dryRun=All", body)
    assert status == 422 and "Bogus" in json.loads(answer)["message"]
    status, _, answer = ask(bare, "POST", f"{PODS}?dryRun=All&dryRun=Bogus", body)
    assert status == 422 and "Bogus" in json.loads(answer)["message"]
    assert ask(bare, "GET", f"{PODS}/a")[0] == 404


def stalled(bare, query=""):
    """A watch whose reader never reads, with more to tell than the kernel takes."""
    big = pod_manifest("big", annotations={"x": "y" * 200_000})
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", bare.port))
    connection.sendall(f"GET {PODS}?watch=1{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    for number in range(60):
        given = {**big, "metadata": {**big["metadata"], "name": f"big{number}"}}
        assert ask(bare, "POST", PODS, json.dumps(given).encode())[0] == 201
    return connection


def test_a_watch_ends_after_its_time_though_its_reader_does_not_read(bare):
    connection = stalled(bare, "&timeoutSeconds=1")
    deadline = time.monotonic() + 5
    while bare.connections() and time.monotonic() < deadline:
        bare.on_loop(lambda: None)
    assert bare.connections() == 0
    connection.close()


def test_neither_stalled_readers_nor_half_sent_bodies_keep_the_server_from_ending(start):
    other, thread = start()
    watching = stalled(other)
    halves = [socket.create_connection(("127.0.0.1", other.port), timeout=10) for _ in range(3)]
    for number, half in enumerate(halves):
        head = f"POST {PODS} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        half.sendall((head + ("Content-Length: 5000\r\n\r\n{" if number else "Content-")).encode())
    ask(other, "GET", "/healthz")
    began = time.monotonic()
    other.stop()
    thread.join(timeout=10)
    assert not thread.is_alive() and time.monotonic() - began < 1
    for connection in (watching, *halves):
        connection.close()
