"""What a machine is told (events) and what it asks for (effects), in terms of API objects.

A machine waits for nothing: `handle` takes one event and returns the effects it wants. The driver (`sim` or `runtime`)
carries them out and reports how each write ended under the tag the machine gave it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from muster.api.calls import Request, Response
from muster.api.instant import Instant
from muster.api.object import Object

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"


class Listed(NamedTuple):
    """Everything there is of one resource: what is not in `objects` is gone, and what was known may be stale.

    Comes first for every resource a machine watches, and again whenever a watch was lost.
    """

    resource: str
    objects: Sequence[Object]


class Observed(NamedTuple):
    """One watch event. `change` is ADDED, MODIFIED or DELETED; a deletion carries the last state."""

    resource: str
    change: str
    object: Object


class Written(NamedTuple):
    """The server carried out the write with this tag; `response.body` is the stored object or a Status."""

    tag: Hashable
    response: Response


class Refused(NamedTuple):
    """The server refused the write with this tag, or could not be reached (status 0): `response.body` is a Status."""

    tag: Hashable
    response: Response

    @property
    def conflict(self) -> bool:
        return self.response.status == 409


class Woken(NamedTuple):
    """The timer set under this tag went off."""

    tag: Hashable


Event = Listed | Observed | Written | Refused | Woken


class Write(NamedTuple):
    """Send this request. Its outcome comes back as Written or Refused under `tag`; a tag of None wants no outcome."""

    request: Request
    tag: Hashable = None


class WakeAt(NamedTuple):
    """Set the timer `tag`, replacing an earlier one of that tag; `at` in the past means at once, None takes it back."""

    at: Instant | None
    tag: Hashable


Effect = Write | WakeAt


@runtime_checkable
class Machine(Protocol):
    """A pure state machine. Its state is a fold over what it saw: thrown away and rebuilt, it must be equal."""

    @property
    def resources(self) -> tuple[str, ...]:
        """Names in `api.catalog` of the resources it watches, in the order in which they must be listed first."""

    def handle(self, event: Event, now: Instant) -> Sequence[Effect]: ...
