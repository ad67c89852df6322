"""What a controller of group apps remembers of one owner: what was asked for and is not there yet, and when to look."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from muster.api import selectors
from muster.api.instant import MINUTE, SECOND, Instant
from muster.api.machine import Effect, WakeAt
from muster.api.meta import LabelSelector
from muster.api.object import Object

SYNC = "sync"
LONGEST_RETRY: Instant = MINUTE
"""Between refused creates."""
BATCH = 500
"""Children of one owner that are asked for at a time, as in Kubernetes."""
_REMEMBERED = 200
"""Names of children that are gone and not to be given again soon."""


@dataclass(slots=True)
class Creation:
    """A child that was asked for and is not in the watch yet.

    `answered`: the server has it, or had it. `listed`: all were listed since, so that it may have come and gone.
    """

    answered: bool = False
    listed: bool = False


@dataclass(slots=True)
class Owner:
    """One owner by uid, as it is now."""

    object: Object
    selector: LabelSelector = field(default_factory=LabelSelector)
    selects: selectors.Selector = selectors.NOTHING
    creating: dict[str, Creation] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    """Names that children of others have."""
    gone: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    """Names of children that were there; a new one gets another name while there are others."""
    asked: bool = False
    """Whether the server was asked if the owner still is there to adopt."""
    pace: int = 1
    """Children to ask for together: doubles with every success, so that refusals are few (slow start)."""
    refusals: int = 0
    retry_at: Instant = 0
    problem: tuple[str, str] | None = None
    """Reason and message of the last refusal, until a child could be made or deleted."""
    timer: Instant | None = None
    said: tuple[str, str] | None = None
    """The last warning, so as not to say it twice."""

    @property
    def uid(self) -> str:
        return self.object.uid

    @property
    def spec(self) -> Mapping[str, Any]:
        return self.object.raw.get("spec") or {}

    @property
    def status(self) -> Mapping[str, Any]:
        return self.object.raw.get("status") or {}

    def see(self, obj: Object) -> None:
        """Takes the owner as it is now."""
        before, given = self.spec.get("selector"), (obj.raw.get("spec") or {}).get("selector")
        if self.selects.nothing or before != given:
            self.selector = msgspec.convert(given or {}, LabelSelector, strict=False)
            self.selects = selectors.of(self.selector) if given else selectors.NOTHING
        self.object = obj

    def wake(self, at: Instant) -> list[Effect]:
        """Makes sure that the owner is looked at by then."""
        if self.timer is not None and self.timer <= at:
            return []
        self.timer = at
        return [WakeAt(at, (SYNC, self.uid))]

    def relisted(self) -> None:
        """All children are about to be listed: those that were made before are among them, or gone."""
        self.creating = {name: each for name, each in self.creating.items() if not each.answered}
        for each in self.creating.values():
            each.listed = True

    def room(self) -> int:
        """How many children may be asked for now: none while earlier ones of this pace are not answered."""
        return 0 if self.waits() else self.pace

    def waits(self) -> bool:
        """Whether a child was asked for and the server has not answered yet."""
        return any(not each.answered for each in reversed(self.creating.values()))

    def made(self) -> bool:
        """All that was asked for could be made: next time it may be more. True if that ends a time of refusals."""
        ends = bool(self.refusals)
        self.refusals, self.retry_at, self.problem, self.said = 0, 0, None, None
        self.pace = min(self.pace * 2, BATCH) if not ends else 1
        return ends

    def refused(self, now: Instant) -> None:
        """A create was refused: one at a time, and after a wait that is longer each time."""
        self.pace = 1
        if now >= self.retry_at:
            self.retry_at = now + min(LONGEST_RETRY, SECOND << min(self.refusals, 10))
            self.refusals += 1

    def free(self, names: Iterator[str], used: set[str]) -> Iterator[str]:
        """The names that no child has, has had of late, or will have."""
        taken = used.union(self.gone, self.creating, self.taken)
        return (name for name in names if name not in taken)
