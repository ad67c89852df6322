"""`muster up` as a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import msgspec
import pytest
import yaml

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.cli.app import run
from muster.cli.client import DEFAULT_SERVER, Client
from muster.cli.failure import USAGE
from muster.cli.up import kubeconfig, welcome
from muster.testing.builders import composite_manifest, gang_manifest, pod_manifest, workload_ref

SMALL = ("--zones", "1", "--racks", "1", "--nodes", "2")


@contextmanager
def up(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The running process, and its URL."""
    command = [sys.executable, "-m", "muster.cli", "up", "--port", "0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert " up at http://127.0.0.1:" in line, line + (process.stderr.read() if process.stderr else "")
        yield process, next(word for word in line.split() if word.startswith("http"))
    finally:
        process.kill()
        process.communicate()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_within_a_second_though_a_watch_is_open(number: signal.Signals) -> None:
    with up(*SMALL) as (process, url):
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=5) as watching:
            request = f"GET /api/v1/nodes?watch=true&resourceVersion=0 HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"
            watching.sendall(request.encode())
            assert watching.recv(64).startswith(b"HTTP/1.1 200")
            began = time.monotonic()
            process.send_signal(number)
            assert process.wait(timeout=5) == 0
        assert time.monotonic() - began < 1
        assert process.stderr is not None and process.stderr.read() == ""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_a_cluster_with_a_gang_that_waits_takes_no_processor_time(tmp_path: Path) -> None:
    job = (Path(__file__).parents[2] / "examples" / "job.yaml").read_text()
    (tmp_path / "job.yaml").write_text(job)
    with up(*SMALL) as (process, url):
        assert run(["apply", "-f", str(tmp_path / "job.yaml"), "--server", url]) == 0
        client = Client(url)
        deadline = time.monotonic() + 10
        while not client.get("/muster/v1/queue")["waiting"]:
            assert time.monotonic() < deadline, "the gang got no verdict"
        before = cpu_seconds(process.pid)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=2)
        assert cpu_seconds(process.pid) - before <= 0.05
        counted = urlopen(f"{url}/metrics").read().decode()
        assert 'scheduler_pending_entities{type="podgroup",queue="unschedulable"} 1' in counted.splitlines()


def test_it_writes_a_kubeconfig_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    with up(*SMALL, "--kubeconfig", str(file)) as (process, url):
        assert process.stdout is not None
        while (line := process.stdout.readline()).strip() != f"export KUBECONFIG={file}":
            assert line, "the banner has ended"
        assert yaml.safe_load(file.read_text()) == yaml.safe_load(kubeconfig(url))
        assert yaml.safe_load(file.read_text())["clusters"][0]["cluster"]["server"] == url


def test_it_overwrites_a_kubeconfig_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig("http://127.0.0.1:1"))
    with up(*SMALL, "--kubeconfig", str(file)) as (process, url):
        assert process.stdout is not None
        process.stdout.readline()
        assert url in file.read_text()


def test_a_hint_names_the_server_only_where_the_port_is_not_the_usual_one() -> None:
    gates = FeatureGates()
    assert "export MUSTER_SERVER=http://127.0.0.1:9" in welcome("http://127.0.0.1:9", 1, gates)
    assert "MUSTER_SERVER" not in welcome(DEFAULT_SERVER, 1, gates)
    assert welcome(DEFAULT_SERVER, 1, gates).endswith("feature gates: none")


def test_nodes_come_from_a_fleet_file() -> None:
    fleet = Path(__file__).parents[2] / "examples" / "fleet.yaml"
    with up("--fleet", str(fleet)) as (_, url):
        nodes: dict[str, Any] = Client(url).get("/api/v1/nodes")
        assert [node["metadata"]["name"] for node in nodes["items"]] == ["big-1", "small-1"]


def test_without_gates_group_kinds_are_not_served() -> None:
    gates = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup", "PodGroupPreemptionPolicy")
    off = ",".join(f"{gate}=false" for gate in (*gates, "DRAWorkloadResourceClaims", "WorkloadWithJob"))
    with up(*SMALL, "--feature-gates", off) as (_, url):
        assert Client(url).call("GET", "/apis/scheduling.k8s.io/v1beta1/podgroups").status == 404


def test_a_port_that_is_taken_is_named_with_the_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert run(["up", *SMALL, "--port", port]) == USAGE
    error = capsys.readouterr().err
    assert "--port" in error and port in error and "give another one" in error


def test_a_controlled_server_is_empty_and_its_clock_stands() -> None:
    with up("--control") as (_, url):
        client = Client(url)
        assert client.get("/api/v1/nodes")["items"] == []
        assert client.call("POST", "/muster/control/advance", {"us": 5_000_000}).ok
        pod = msgspec.json.decode(
            b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}'
        )
        made = client.call("POST", "/api/v1/namespaces/default/pods", pod).body
        assert made["metadata"]["creationTimestamp"] == "2026-01-01T00:00:05Z"


def test_without_the_hidden_flag_there_is_no_control() -> None:
    with up(*SMALL) as (_, url):
        assert Client(url).call("POST", "/muster/control/pause", {}).status == 404


@pytest.mark.parametrize(("target", "refused"), [("1.37", False), ("1.38", True)])
def test_a_basic_group_below_a_gang_is_looked_at_by_the_rules_of_the_target(target: str, refused: bool) -> None:
    """Statement 55: only v1.38 refuses to place it."""
    root = composite_manifest("root", 1)
    leaf = gang_manifest("pg", None, parentCompositePodGroupName="root", workloadRef=workload_ref("root"))
    with up(*SMALL, "--target", target) as (_, url):
        client = Client(url)
        for manifest in (root, leaf, pod_manifest("p", group="pg")):
            request = writes.create(manifest)
            assert client.call("POST", request.path, request.body).ok
        deadline = time.monotonic() + 10
        while not (found := _scheduled(client.get("/api/v1/namespaces/default/pods/p"))):
            assert time.monotonic() < deadline, "the pod got no verdict"
    assert found == (("False", "SchedulerError") if refused else ("True", ""))


def _scheduled(pod: dict[str, Any]) -> tuple[str, str] | None:
    """Status and reason of the pod's condition, once it has one."""
    conditions = pod.get("status", {}).get("conditions", ())
    return next(((c["status"], c.get("reason", "")) for c in conditions if c["type"] == "PodScheduled"), None)


def test_a_target_that_is_not_known_is_refused_with_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["up", "--target", "1.36"]) == USAGE
    assert "known: 1.37, 1.38" in capsys.readouterr().err
