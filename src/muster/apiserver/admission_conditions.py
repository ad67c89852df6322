"""Conditions in CEL that decide whether a policy or webhook is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muster.api.cel import programs
from muster.apiserver.admission_attempt import Attempt
from muster.apiserver.log import Raw

AUTHORIZER: Mapping[str, Any] = {"requestResource": {}}


class Unclear(Exception):
    """A condition came to no value, and no other is false."""


def values(attempt: Attempt, version: str) -> dict[str, Any]:
    """The variables that every expression may use."""
    made, old = attempt.seen(version)
    return {"object": made, "oldObject": old, "request": attempt.request(version), "authorizer": AUTHORIZER}


def hold(conditions: Sequence[Raw], evaluate: Any) -> bool:
    """Whether all conditions are true; one that is false decides, whatever is wrong with others.

    Raises:
        Unclear: no condition is false, and at least one has no value.
    """
    problems = []
    for condition in conditions:
        try:
            if evaluate(condition["expression"]) is not True:
                return False
        except (programs.CompileError, programs.EvaluationError) as failure:
            problems.append(f"expression '{condition['expression']}' resulted in error: {failure}")
    if problems:
        raise Unclear("; ".join(problems))
    return True
