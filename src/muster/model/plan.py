"""What a decision wants done: steps, the revision they were decided on, and the nodes they rely on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from muster.model.keys import Key


class Bind(NamedTuple):
    """Give this incarnation of the pod to the node."""

    pod: Key
    uid: str
    node: str


class Nominate(NamedTuple):
    """Note the node on the pod (`""` clears it) without binding."""

    pod: Key
    uid: str
    node: str


class Evict(NamedTuple):
    """Take the pod off its node in favour of the preemptor."""

    pod: Key
    uid: str
    node: str


Step = Bind | Nominate | Evict


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps for one queue entry; empty when nothing is to be done.

    `generations` are those of the touched nodes in the snapshot: if none has changed since, the plan still holds.
    """

    revision: int
    steps: tuple[Step, ...] = ()
    generations: Mapping[str, int] | None = None
    neighbours: int | None = None
    """The version of the snapshot's neighbours, where the plan relies on pods of other nodes too."""
    mutual: bool = False
    """Its pods may open nodes to each other: a part of it need not hold by itself."""

    @property
    def binds(self) -> tuple[Bind, ...]:
        return tuple(step for step in self.steps if type(step) is Bind)
