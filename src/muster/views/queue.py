"""What waits and why, in queue order."""

from __future__ import annotations

from muster.scheduler.machine import Scheduler
from muster.views.why import Row, row


def queue(scheduler: Scheduler) -> list[Row]:
    """The record (`why.row`) of every waiting entry: higher priority first, then older, then by name."""
    waiting = scheduler.diagnoses
    return [row(waiting[key]) for key in scheduler.queue.in_order(waiting)]
