"""Standard streams that are full, closed, or of another encoding; text that a terminal would obey; Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.cli.app import run
from muster.testing.builders import pod_manifest
from served import Served, serving

MUSTER = (sys.executable, "-m", "muster.cli")
BEGUN = """
import sys
class Says:
    def find_spec(self, name, *_):
        if name == "muster.cli.app":
            print("begun", flush=True)
sys.meta_path.insert(0, Says())
import muster.cli
muster.cli.main()
"""
"""The command, saying so when its modules begin to load."""


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as server:
        odd: Any = pod_manifest("odd", schedulerName="volcano")
        odd["metadata"]["annotations"] = {"a": "é\u4e2d"}
        assert server.cluster.create(odd).ok
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "odd", "namespace": "default"},
            "message": "\x1b[31mred\x1b[0m\nNAME\tx \x9b1m é",
        }
        assert server.cluster.create(event).ok
        yield server


def shell(line: str, served: Served, **environment: str) -> tuple[int, str, str]:
    """Exit code and both outputs of a shell line in which `muster` is the command."""
    line = line.replace("muster", " ".join(MUSTER))
    known = {**os.environ, "MUSTER_SERVER": served.url, "PYTHONIOENCODING": "utf-8", **environment}
    done = subprocess.run(["bash", "-c", line], env=known, capture_output=True, timeout=60, check=False)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["get pods", "get nodes -o yaml", "--help", "version", "explain"])
def test_output_that_cannot_be_written_is_said_in_one_line(command: str, served: Served) -> None:
    code, _, err = shell(f"muster {command} > /dev/full", served)
    assert (code, err) == (1, "muster: the output cannot be written: No space left on device\n")


def test_a_reader_that_has_gone_is_told_nothing(served: Served) -> None:
    code, _, err = shell("muster get nodes -o yaml | true; exit ${PIPESTATUS[0]}", served)
    assert (code, err) == (1, "")


def test_a_closed_standard_input_is_said_in_one_line(served: Served) -> None:
    code, _, err = shell("muster apply -f - <&-", served)
    assert code == 1 and err.startswith("muster: standard input: closed")


def test_closed_outputs_are_borne(served: Served) -> None:
    assert shell("muster get pods >&-", served)[0] == 0
    assert shell("muster get pod missing 2>&-", served) == (1, "", "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_the_encoding_lacks_is_escaped(encoding: str, served: Served) -> None:
    code, out, err = shell("muster get pod 'é\u4e2d'; muster get events", served, PYTHONIOENCODING=encoding)
    assert code == 0 and "\\u4e2d" in err and "Traceback" not in err
    assert "\\x9b1m" in out


def test_an_argument_that_is_no_text_is_refused(served: Served) -> None:
    for line in (
        "get pod $'\\xff'",
        "get pods -l $'\\xff'",
        "get $'\\xff'",
        "apply -f $'\\xff'",
        "get pods --server $'\\xff'",
    ):
        code, out, err = shell(f"muster {line}", served)
        assert code in (1, 2) and out == "" and "Traceback" not in err and "\\udcff" in err, line


def test_a_table_shows_control_characters_instead_of_obeying_them(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MUSTER_SERVER", served.url)
    assert run(["get", "events"]) == 0
    out = capsys.readouterr().out
    assert "\\x1b[31mred\\x1b[0m\\nNAME\\tx \\x9b1m é" in out
    assert len(out.splitlines()) == 2


def test_a_message_shows_control_characters_instead_of_obeying_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["get", "pods", "--server", "http://\x1b[31m\x07"]) == 2
    assert run(["get", "\x1b[31m\x07"]) == 2
    assert run(["apply", "-f", "\x1b[31m\x07"]) == 1
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("command", [["get", "pods"], ["up", "--port", "0"], ["version"]])
def test_ctrl_c_at_any_moment_of_the_start_ends_quietly(command: list[str], served: Served) -> None:
    """Interrupts while modules load: the process says when it has begun, and is stopped a little later each time."""
    for microseconds in (100, 3_000, 10_000, 30_000, 60_000, 100_000, 200_000):
        process = subprocess.Popen(
            [sys.executable, "-c", BEGUN, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "MUSTER_SERVER": served.url},
        )
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        signal.sigtimedwait([], microseconds / 1e6)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert err == "" and process.returncode in (0, 130, -signal.SIGINT), (microseconds, err)


@pytest.mark.parametrize("microseconds", [100_000, 200_000, 300_000, 400_000, 500_000, 700_000])
def test_two_ctrl_c_at_the_start_of_up_end_it_quietly(microseconds: int) -> None:
    process = subprocess.Popen(
        [*MUSTER, "up", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for _ in range(3):
        signal.sigtimedwait([], microseconds / 1e6)
        process.send_signal(signal.SIGINT)
        microseconds = 5_000
    _, err = process.communicate(timeout=30)
    assert err == "" and process.returncode in (0, 130, -signal.SIGINT)
