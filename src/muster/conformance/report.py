"""Results as lines for people and as JSON for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from muster.conformance.cases import Case


class Outcome(Enum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Result:
    """How one case ended. `sentences` say why it failed or was skipped."""

    case: Case
    outcome: Outcome
    sentences: tuple[str, ...] = ()
    decisions: int = 0
    seconds: float = 0.0
    """Decision time of the whole case."""
    longest: float = 0.0
    """The longest single decision, in seconds."""

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASSED

    @property
    def failed(self) -> bool:
        return self.outcome is Outcome.FAILED


def lines(result: Result) -> list[str]:
    """A line for the case with its decision time in milliseconds, and one for each sentence."""
    name = f"{result.case.area}/{result.case.name}"
    first = f"{result.outcome.value:<7}  {result.seconds * 1000:8.1f} ms  {name}"
    if result.outcome is Outcome.SKIPPED:
        return [f"{first}  ({'; '.join(result.sentences)})"]
    return [first, *(f"         {sentence}" for sentence in result.sentences)]


def closing(results: Iterable[Result]) -> str:
    """`N passed, N failed, N skipped`."""
    counts = Counter(result.outcome for result in results)
    return ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome)


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    """The same as one JSON value; times in milliseconds."""
    counts = Counter(result.outcome for result in results)
    return {
        **{outcome.value: counts[outcome] for outcome in Outcome},
        "cases": [
            {
                "name": result.case.name,
                "area": result.case.area,
                "outcome": result.outcome.value,
                "why": list(result.sentences),
                "decisions": result.decisions,
                "decisionMs": round(result.seconds * 1000, 3),
                "longestDecisionMs": round(result.longest * 1000, 3),
            }
            for result in results
        ],
    }
