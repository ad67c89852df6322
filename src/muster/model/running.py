"""The pods that hold room, as preemption sees them, and what protects them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from muster.model.keys import Key
from muster.model.neighbours import PodSelector
from muster.model.records import CompositeRecord, PodRecord
from muster.model.roster import Columns, Roster


class DisruptionBudget(NamedTuple):
    """A PodDisruptionBudget: so many of the pods that it means may be disrupted now."""

    key: Key
    selector: PodSelector
    allowed: int


@dataclass(frozen=True, eq=False)
class Running:
    """Everything that has a node and has not ended, at the revision of its snapshot."""

    pods: tuple[PodRecord, ...]
    """All BOUND, assumed ones included."""
    leaving: frozenset[str] = frozenset()
    """Uids of pods whose eviction is under way, though they are not seen terminating yet."""
    composites: Mapping[Key, CompositeRecord] = field(default_factory=dict)
    budgets: tuple[DisruptionBudget, ...] = ()
    kept: Columns | None = None
    """The columns of `pods`, where somebody keeps them."""
    spared: frozenset[str] = frozenset()
    """Uids of pods that deleting does not end: they, and what would go with them, are no victims."""

    @property
    def columns(self) -> Columns:
        return Roster(self.pods).seen()[1] if self.kept is None else self.kept
