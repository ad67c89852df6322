"""Runs decisions off the event loop, one at a time, so that the API never waits for a search."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from muster.api.instant import Instant
from muster.engine.decide import decide
from muster.model.decision import Decision
from muster.scheduler.effects import Decide

Outcome = Decision | Exception
Done = Callable[[Decide, Outcome, float], None]
"""Told on the worker's thread: what was asked, what came out, and the seconds it took."""


class Worker:
    """One thread. It reads no clock but a stopwatch: the instant of a decision comes with the call.

    The thread is a daemon: a search that is under way when the process ends is given up, and nobody waits for it.
    """

    def __init__(self) -> None:
        self._asked: SimpleQueue[tuple[Decide, Instant, Done] | None] = SimpleQueue()
        threading.Thread(target=self._work, name="decide", daemon=True).start()

    def submit(self, asked: Decide, now: Instant, done: Done) -> None:
        self._asked.put((asked, now, done))

    def close(self) -> None:
        """Takes no further decision; waits for nothing."""
        self._asked.put(None)

    def _work(self) -> None:
        while (job := self._asked.get()) is not None:
            asked, now, done = job
            began = time.perf_counter()
            outcome = _outcome(asked, now)
            done(asked, outcome, time.perf_counter() - began)


def _outcome(asked: Decide, now: Instant) -> Outcome:
    try:
        return decide(asked.snapshot, asked.heads, asked.profile, now=now, budget=asked.budget)
    except Exception as failure:  # the heads go back with a SchedulerError instead of the thread going down
        return failure
