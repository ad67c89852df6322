"""What waits and why, in queue order."""

from __future__ import annotations

from muster.engine.profile import Profile
from muster.scheduler.machine import Scheduler
from muster.views.inquiry import Inquiry, inquire
from muster.views.why import Row, row


def queue(scheduler: Scheduler, profile: Profile) -> list[Row]:
    """The record (`why.row`) of every waiting entry, as of now: higher priority first, then older, then by name."""
    return rows(inquire(scheduler, profile))


def rows(inquiry: Inquiry) -> list[Row]:
    """The records of what was inquired about. Pure, and may take as long as decisions do."""
    return [row(diagnosis, inquiry) for diagnosis in inquiry.answer().values()]
