"""The outcome of one cycle: for each head, in the order they were given, a plan and a diagnosis."""

from __future__ import annotations

from dataclasses import dataclass

from muster.model.diagnosis import Diagnosis
from muster.model.plan import Plan


@dataclass(frozen=True, slots=True)
class Decision:
    """`plans[i]` and `diagnoses[i]` belong to head `i`; a later head was decided with the earlier ones in place."""

    revision: int
    plans: tuple[Plan, ...]
    diagnoses: tuple[Diagnosis, ...]
    work: int = 0
    """Search nodes expanded: what the budget counts."""
