"""What the scheduler is told beyond the API: a decision that was asked for is there; decisions are held or let go."""

from __future__ import annotations

from typing import NamedTuple

from muster.api.machine import Event
from muster.model.decision import Decision


class Decided(NamedTuple):
    """The answer to the `Decide` with this ticket.

    `decision` None: `decide` raised, and `error` says what; the heads go back with a SchedulerError and a backoff.
    """

    ticket: int
    decision: Decision | None
    error: str = ""


class Pause(NamedTuple):
    """From now on no `Decide` is emitted; watches and writes go on. A decision under way is still committed."""


class Resume(NamedTuple):
    """Decisions may be asked for again."""


SchedulerEvent = Event | Decided | Pause | Resume
