"""`muster explain` of a running group says in which domain of each level it is."""

from pathlib import Path

import pytest

from muster.cli.app import run
from served import serving

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "racked.yaml")


@pytest.fixture
def served(monkeypatch):
    with serving() as server:
        monkeypatch.setenv("MUSTER_SERVER", server.url)
        yield server


def test_each_level_has_its_domains_and_counts(served, capsys):
    assert run(["apply", "-f", EXAMPLE]) == 0
    served.settle()
    capsys.readouterr()
    assert run(["explain", "podgroup", "racked"]) == 0
    first, *levels = capsys.readouterr().out.splitlines()
    assert "waits for nothing" in first
    bound = first.partition("; ")[2].split()[0]
    keys = [line.split(":")[0].strip() for line in levels]
    assert keys[-2:] == ["topology.kubernetes.io/zone", "topology.muster.dev/rack"]
    assert levels[-2].endswith(f"({bound})")
    assert levels[-1].endswith(f"({bound}); must be one")
