"""The given cases and our own, in the virtual world."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.conformance.cases import Case
from muster.conformance.report import Outcome
from muster.conformance.run import run, select

CASES = Path(__file__).parents[2] / "conformance" / "cases"
AREAS = ("gang", "basic", "queue", "elastic", "validation", "core", "field")
SEARCH_FAMILIES = ("gpu-mix", "roles")
MOST_SECONDS = 2.0
WANTED_OF_SEARCH = 25


def cases(area: str) -> list[Case]:
    return select([CASES / area], needs=["job"])


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


def test_placements_that_exist_are_found_within_two_seconds() -> None:
    searches = [case for case in cases("search") if case.name.startswith(SEARCH_FAMILIES)]
    results = list(run([case.path for case in searches]))
    assert len(results) == 30
    found = [result for result in results if result.passed and result.seconds <= MOST_SECONDS]
    assert len(found) >= WANTED_OF_SEARCH, [result.case.name for result in results if result not in found]


def test_cases_of_capabilities_that_are_not_built_are_skipped_and_say_so() -> None:
    results = list(run([CASES / "volumes"]))
    skipped = [result for result in results if result.outcome is Outcome.SKIPPED]
    assert skipped and all("not built: " in result.sentences[0] for result in skipped)
