"""The given cases and our own, in the virtual world."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.conformance.cases import Case
from muster.conformance.report import Outcome
from muster.conformance.run import run, select

CASES = Path(__file__).parents[2] / "conformance" / "cases"
AREAS = ("gang", "basic", "queue", "elastic", "topology", "validation", "core", "field")
MOST_SECONDS = 2.0


def cases(area: str) -> list[Case]:
    return select([CASES / area], needs=["job", "topology"])


@pytest.mark.parametrize(
    "case", [case for area in AREAS for case in cases(area)], ids=lambda case: f"{case.area}/{case.name}"
)
def test_a_case_of_flat_groups_passes(case: Case) -> None:
    (result,) = run([case.path])
    assert result.passed, "\n".join(result.sentences)


@pytest.mark.parametrize("case", select([CASES / "builder"]), ids=lambda case: case.name)
def test_a_builder_case_passes_as_far_as_it_is_built(case: Case) -> None:
    (result,) = run([case.path])
    assert not result.failed, "\n".join(result.sentences)


def test_every_placement_of_a_flat_group_that_exists_is_found_within_two_seconds() -> None:
    results = list(run([case.path for case in cases("search")]))
    assert len(results) >= 75
    assert [r.case.name for r in results if not r.passed or r.seconds > MOST_SECONDS] == []


def test_cases_of_capabilities_that_are_not_built_are_skipped_and_say_so() -> None:
    results = list(run([CASES / "field" / "052-bounded-wait-for-a-large-gang.yaml"]))
    skipped = [result for result in results if result.outcome is Outcome.SKIPPED]
    assert skipped and all("not built: " in result.sentences[0] for result in skipped)


RESIZES = [case for area in ("resize", "field", "core") for case in select([CASES / area]) if "resize" in case.needs]


@pytest.mark.parametrize("case", RESIZES, ids=lambda case: case.name)
def test_a_case_of_resizes_passes(case: Case) -> None:
    (result,) = run([case.path])
    assert result.passed, "\n".join(result.sentences)
