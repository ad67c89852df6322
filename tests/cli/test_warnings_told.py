"""What the server warns of is told by the commands, once each."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.cli.app import run
from served import serving

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_policy_that_warns_is_heard_once_for_all_pods(capsys, monkeypatch):
    with serving() as served:
        monkeypatch.setenv("MUSTER_SERVER", served.url)
        assert run(["apply", "-f", str(EXAMPLES / "admission" / "policy.yaml")]) == 0
        capsys.readouterr()
        assert run(["apply", "-f", str(EXAMPLES / "gang.yaml")]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 5
    assert err == (
        "Warning: Validation failed for ValidatingAdmissionPolicy 'gangs-name-a-team' with binding 'gangs-name-a-team'"
        ": a pod of a gang needs the label team\n"
    )


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ('299 - "a"', ["a"]),
        ('299 - "a \\"b\\" \\\\ c", 299 muster "d, e"', ['a "b" \\ c', "d, e"]),
        ("nonsense", []),
        ("", []),
    ],
)
def test_a_header_is_read_as_the_texts_in_it(header, told):
    from muster.cli.client import warnings_in

    assert warnings_in(header) == told
