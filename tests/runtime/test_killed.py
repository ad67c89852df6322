"""A real `muster api-server --data` that is killed under load and started again."""

from __future__ import annotations

import http.client
import json
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


@contextmanager
def running(data: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", "muster.cli", "api-server", "--port", "0", "--data", str(data), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            yield process, int(said.partition(";")[0].rpartition(":")[2])
        finally:
            process.kill()


def call(connection: http.client.HTTPConnection, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def write(port: int, who: int, done: dict[str, int], moment: threading.Event, enough: int) -> None:
    """Until the server is gone; says so when `enough` writes are acknowledged."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    for number in range(1_000_000):
        name = f"lease-{who}-{number}"
        try:
            status, made = call(connection, "POST", LEASES, {"metadata": {"name": name}})
        except (OSError, http.client.HTTPException, ValueError):
            return
        assert status == 201
        done[name] = int(made["metadata"]["resourceVersion"])
        if len(done) >= enough:
            moment.set()


def follow(port: int, since: int, heard: list[tuple[int, str]], enough: int = 1 << 60) -> None:
    """Notes every whole line of a watch, until it breaks off or has told of revision `enough`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", f"{LEASES}?watch=true&resourceVersion={since}")
        for line in connection.getresponse():
            meta = json.loads(line)["object"]["metadata"]
            heard.append((int(meta["resourceVersion"]), meta["name"]))
            if heard[-1][0] >= enough:
                return
    except (OSError, http.client.HTTPException, ValueError):
        return


@pytest.mark.parametrize("run", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 6))])
def test_a_killed_server_has_everything_it_acknowledged(tmp_path, run):
    data, chance = tmp_path / "data", random.Random(run)
    done: dict[str, int] = {}
    heard: list[tuple[int, str]] = []
    with running(data) as (process, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        _, listed = call(connection, "GET", LEASES)
        begun = int(listed["metadata"]["resourceVersion"])
        moment, enough = threading.Event(), chance.randrange(5, 800)
        threads = [threading.Thread(target=write, args=(port, who, done, moment, enough)) for who in range(3)]
        threads.append(threading.Thread(target=follow, args=(port, begun, heard)))
        for thread in threads:
            thread.start()
        assert moment.wait(30)
        process.kill()
        for thread in threads:
            thread.join(20)
    assert done and heard
    with running(data) as (_, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        _, listed = call(connection, "GET", LEASES)
        there = {lease["metadata"]["name"]: int(lease["metadata"]["resourceVersion"]) for lease in listed["items"]}
        assert done.items() <= there.items()
        revision = int(listed["metadata"]["resourceVersion"])
        assert revision >= max(*done.values(), *(seen for seen, _ in heard))
        _, made = call(connection, "POST", LEASES, {"metadata": {"name": "after"}})
        assert int(made["metadata"]["resourceVersion"]) == revision + 1
        follow(port, heard[-1][0], heard, enough=revision + 1)
        assert heard == sorted((number, name) for name, number in {**there, "after": revision + 1}.items())
