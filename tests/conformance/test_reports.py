"""Results as lines and as JSON."""

from __future__ import annotations

from pathlib import Path

from muster.conformance.cases import Case
from muster.conformance.report import Outcome, Result, as_json, closing, lines

CASE = Case(Path("a.yaml"), "a", "gang", "about")
PASSED = Result(CASE, Outcome.PASSED, (), 3, 0.0125, 0.01)
FAILED = Result(CASE, Outcome.FAILED, ("step 2: bound: p is not bound", "step 2: kept: q is gone"))
SKIPPED = Result(CASE, Outcome.SKIPPED, ("not built: topology",))


def test_a_case_is_one_line_with_its_decision_time_and_a_line_for_every_difference() -> None:
    assert lines(PASSED) == ["passed       12.5 ms  gang/a"]
    assert lines(SKIPPED) == ["skipped       0.0 ms  gang/a  (not built: topology)"]
    assert [line.strip() for line in lines(FAILED)[1:]] == list(FAILED.sentences)


def test_the_closing_line_counts_every_outcome() -> None:
    assert closing([PASSED, FAILED, PASSED, SKIPPED]) == "2 passed, 1 failed, 1 skipped"
    assert closing([]) == "0 passed, 0 failed, 0 skipped"


def test_json_has_the_counts_and_every_case() -> None:
    report = as_json([PASSED, FAILED])
    assert (report["passed"], report["failed"], report["skipped"]) == (1, 1, 0)
    assert report["cases"][0] == {
        "name": "a",
        "area": "gang",
        "outcome": "passed",
        "why": [],
        "decisions": 3,
        "decisionMs": 12.5,
        "longestDecisionMs": 10.0,
    }
    assert report["cases"][1]["why"] == list(FAILED.sentences)
