"""Cases that belong to the next release hold when the cluster aims at it."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.conformance.cases import Case
from muster.conformance.report import Outcome
from muster.conformance.run import run, select

COMPOSITE = Path(__file__).parents[2] / "conformance" / "cases" / "composite"
LATER: list[Case] = [case for case in select([COMPOSITE], target="1.38") if case.since is not None]


@pytest.mark.parametrize("case", LATER, ids=lambda case: case.name)
def test_it_passes(case: Case) -> None:
    (result,) = run([case.path], target="1.38")
    assert result.outcome is Outcome.PASSED, result


def test_there_are_some_and_none_counts_for_the_present_release() -> None:
    assert len(LATER) >= 8
    assert not {case.name for case in LATER} & {case.name for case in select([COMPOSITE])}
