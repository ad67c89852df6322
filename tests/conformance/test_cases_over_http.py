"""The same cases against a real server process: what a user does goes over the wire."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.conformance.cases import Case
from muster.conformance.run import run, select

CASES = Path(__file__).parents[2] / "conformance" / "cases"


def cases(area: str) -> list[Case]:
    return select([CASES / area], needs=["job", "topology", "composite"])


@pytest.mark.parametrize("area", ["gang", "basic", "queue", "topology", "composite", "validation"])
def test_every_case_of_the_area_passes_over_http(area: str) -> None:
    results = list(run([case.path for case in cases(area)], over="http"))
    failed = [f"{result.case.name}: {'; '.join(result.sentences)}" for result in results if not result.passed]
    assert results and not failed, "\n".join(failed)
