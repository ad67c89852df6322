"""`muster get -o tree` against a server."""

from pathlib import Path

import pytest

from muster.cli.app import run
from served import serving

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "tree.yaml")


@pytest.fixture
def served(monkeypatch):
    with serving() as server:
        monkeypatch.setenv("MUSTER_SERVER", server.url)
        yield server


@pytest.fixture
def replica(served, capsys):
    assert run(["apply", "-f", EXAMPLE]) == 0
    served.settle()
    capsys.readouterr()


def test_a_hierarchy_is_shown_with_its_domains(replica, capsys):
    assert run(["get", "cpg/replica", "-o", "tree"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1][:2] == ["replica", "2"] and lines[1][-2] == "zone"
    assert [line[-2] for line in lines if line[0] in ("replica-prefill", "replica-decode")] == ["rack", "rack"]


def test_explain_of_one_that_waits_for_nothing_shows_where_it_is(replica, capsys):
    assert run(["explain", "cpg/replica"]) == 0
    assert "zone z" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pods"], "pods have no tree"),
        (["cpg", "-A"], "leave out -l and -A"),
        (["cpg", "gone"], 'compositepodgroups.scheduling.k8s.io "gone" not found'),
    ],
)
def test_what_has_no_tree_says_so(served, capsys, arguments, said):
    assert run(["get", *arguments, "-o", "tree"]) != 0
    assert said in capsys.readouterr().err


def test_without_any_hierarchy_it_says_so(served, capsys):
    assert run(["get", "cpg", "-o", "tree"]) == 0
    assert capsys.readouterr().out == "no compositepodgroups found\n"
