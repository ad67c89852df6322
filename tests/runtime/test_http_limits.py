"""What many or slow clients may cost the server over HTTP: each limit is answered with a Status."""

from __future__ import annotations

import http.client
import json
import socket

from muster.runtime import http as front

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
