"""`muster up --target`: the releases that it takes, and what it says of others."""

from __future__ import annotations

import subprocess
import sys

import pytest

from muster.cli.app import run
from muster.cli.failure import USAGE


@pytest.mark.parametrize("release", ["1.37", "1.38"])
def test_a_known_release_is_accepted(release: str) -> None:
    command = [sys.executable, "-m", "muster.cli", "up", "--port", "0", "--target", release]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        assert " up at http://127.0.0.1:" in process.stdout.readline()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("release", ["1.36", "1.380", "v1.38", "latest"])
def test_another_one_is_refused_and_the_known_ones_are_named(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["up", "--port", "0", "--target", release]) == USAGE
    said = capsys.readouterr().err
    assert "--target" in said and "1.37" in said and "1.38" in said
