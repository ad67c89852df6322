"""What many or slow clients may cost the server over HTTP: each limit is answered with a Status."""

from __future__ import annotations

import http.client
import json
import logging
import os
import resource
import socket
import threading

import pytest

from muster.runtime import http as front
from muster.runtime import serve
from muster.testing.builders import pod_manifest

PODS = "/api/v1/namespaces/default/pods"


def ask(bare, method="GET", path="/version", body=None):
    connection = http.client.HTTPConnection("127.0.0.1", bare.port, timeout=10)
    connection.request(method, path, body)
    answer = connection.getresponse()
    return answer.status, answer.headers, json.loads(answer.read())


def sent(bare, text):
    connection = socket.create_connection(("127.0.0.1", bare.port), timeout=10)
    connection.sendall(text)
    return connection


def head(length):
    return f"POST {PODS} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n".encode()


def test_more_requests_than_it_serves_at_a_time_are_told_to_come_back(bare, monkeypatch):
    monkeypatch.setattr(front, "MOST_OPEN", 3)
    watches = [sent(bare, f"GET {PODS}?watch=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()) for _ in range(3)]
    for watch in watches:
        assert watch.recv(100).startswith(b"HTTP/1.1 200")
    status, headers, body = ask(bare)
    assert (status, headers["Retry-After"], body["reason"]) == (429, "1", "TooManyRequests")
    for watch in watches:
        watch.close()


def test_only_so_many_large_bodies_are_read_at_a_time(bare, monkeypatch):
    monkeypatch.setattr(front, "MOST_READING", 2)
    halves = [sent(bare, head(front.SMALL + 1) + b"{") for _ in range(2)]
    ask(bare)
    halves.append(sent(bare, head(front.SMALL + 1) + b"{"))
    answer = halves[-1].recv(10_000)
    assert answer.startswith(b"HTTP/1.1 429") and b'"reason":"TooManyRequests"' in answer
    assert ask(bare, "POST", PODS, b"{}")[0] == 422, "small ones go on"
    for half in halves:
        half.close()


def test_a_body_that_does_not_arrive_is_given_up(bare, monkeypatch):
    monkeypatch.setattr(front, "READ_WITHIN", 0.2)
    half = sent(bare, head(50) + b"{")
    answer = half.recv(10_000)
    assert answer.startswith(b"HTTP/1.1 408") and b'"reason":"Timeout"' in answer
    half.close()


def test_watches_of_the_same_changes_are_told_the_same(bare):
    streams = [sent(bare, f"GET {PODS}?watch=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()) for _ in range(5)]
    files = [stream.makefile("rb") for stream in streams]
    for file in files:
        while file.readline() != b"\r\n":
            pass
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert ask(bare, "POST", PODS, json.dumps(pod))[0] == 201
    lines = {(file.readline(), file.readline())[1] for file in files}
    assert len(lines) == 1 and b'"managedFields"' in lines.pop()
    for stream in streams:
        stream.close()


WATCH = f"GET {PODS}?watch=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


def create(bare, name, size=0):
    pod = pod_manifest(name, annotations={"x": "y" * size})
    assert ask(bare, "POST", PODS, json.dumps(pod))[0] == 201


def stalled(bare):
    """A watch whose reader never reads."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", bare.port))
    connection.sendall(WATCH.replace(b"127.0.0.1\r\n", b"127.0.0.1\r\nUser-Agent: sleeper/1\r\n"))
    return connection


def test_a_reader_that_does_not_read_is_cut_off_and_holds_little_until_then(bare, monkeypatch, caplog):
    monkeypatch.setattr(front, "READS_WITHIN", 0.3)
    cut, kept, ended = threading.Event(), [], front._cut

    def noted(request):
        kept.append(request.transport.get_write_buffer_size())
        ended(request)
        cut.set()

    monkeypatch.setattr(front, "_cut", noted)
    sleeper, reader, heard = stalled(bare), sent(bare, WATCH), []
    lines = reader.makefile("rb")

    def read():
        while len(heard) < 80 and (line := lines.readline()):
            heard.extend([line] * line.startswith(b'{"type"'))

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    with caplog.at_level(logging.WARNING, "muster.http"):
        for number in range(80):  # more than the system takes for a reader that sleeps
            create(bare, f"big{number}", 100_000)
        assert cut.wait(10)
    assert kept[0] < 3 * front.BYTES_PER_WRITE + 150_000
    assert "a watch was cut" in caplog.text and "client=sleeper/1" in caplog.text
    reading.join(timeout=10)
    assert len(heard) == 80, "one who reads is told everything"
    for connection in (sleeper, reader):
        connection.close()


def test_hundreds_of_watches_are_told_and_each_costs_little(bare):
    serve.allow_connections()
    count = min(400, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100) // 2)
    before = resident()
    watches = [sent(bare, WATCH) for _ in range(count)]
    files = [watch.makefile("rb") for watch in watches]
    for file in files:
        while file.readline() != b"\r\n":
            pass
    create(bare, "a")
    assert all(b'"name":"a"' in (file.readline(), file.readline())[1] for file in files)
    assert (resident() - before) / count < 100_000
    for watch in watches:
        watch.close()


def resident():
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


@pytest.mark.parametrize("begun", [b"", b"GET /version HTTP/1.1\r\nHost: 127", WATCH[:-2]])
def test_a_connection_without_a_whole_request_is_closed_after_a_while(start, monkeypatch, begun):
    monkeypatch.setattr(front, "IDLE_FOR", 0.2)
    server, thread = start()
    connection = sent(server, begun)
    assert connection.recv(100) == b""
    assert ask(server)[0] == 200
    connection.close()
    server.stop()
    thread.join(timeout=10)


def test_requests_that_are_sent_without_waiting_are_answered_one_after_the_other(bare):
    one = b"GET /api/v1/namespaces/%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    connection = sent(bare, b"")
    writer = threading.Thread(target=connection.sendall, args=(b"".join(one % number for number in range(500)),))
    writer.start()
    answers = connection.makefile("rb")
    for number in range(500):
        head = dict(line.split(b": ", 1) for line in iter(answers.readline, b"\r\n") if b": " in line)
        body = json.loads(answers.read(int(head[b"Content-Length"])))
        assert (body["code"], body["details"]["name"]) == (404, str(number))
    writer.join(timeout=10)
    connection.close()


@pytest.mark.parametrize(
    "head",
    [
        b"GET /api/v1/pods?labelSelector=" + b"a" * 2 * front.LONGEST_LINE + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        b"GET /api HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 9_000 + b"\r\n",
        b"GET /api HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"".join(b"X%d: a\r\n" % number for number in range(200)),
    ],
    ids=["line", "header", "headers"],
)
def test_a_head_that_is_too_large_is_refused_and_said_so(bare, head):
    answer = sent(bare, head + b"\r\n").recv(10_000)
    assert answer.startswith(b"HTTP/1.0 400") and (b"more than" in answer or b"Too many headers" in answer)


def test_a_long_selector_is_none_too_long(bare):
    selector = "a%20in%20(" + ",".join(f"value-{number}" for number in range(3_000)) + ")"
    assert ask(bare, path=f"/api/v1/pods?labelSelector={selector}")[0] == 200


def test_the_limit_of_open_files_is_only_raised(monkeypatch):
    made = []
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: made.append(limits))
    for soft, hard in ((1_024, 4_096), (1_024, resource.RLIM_INFINITY), (20_000, 20_000)):
        monkeypatch.setattr(resource, "getrlimit", lambda which, limits=(soft, hard): limits)
        serve.allow_connections()
    assert made == [(4_096, 4_096), (2 * front.MOST_OPEN, resource.RLIM_INFINITY)]
