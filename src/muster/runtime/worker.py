"""Runs decisions off the event loop, one at a time, so that the API never waits for a search."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from muster.engine.decide import decide
from muster.model.decision import Decision
from muster.scheduler.effects import Decide

Done = Callable[[Decide, Decision | BaseException, float], None]
"""Told on the worker's thread: what was asked, what came out, and the seconds it took."""


class Worker:
    """One thread. `clock` is not read here: the instant a decision is made at comes with the call."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="decide")

    def submit(self, asked: Decide, now: int, done: Done) -> None:
        begun = time.perf_counter()
        future = self._pool.submit(_decide, asked, now)
        future.add_done_callback(lambda f: done(asked, _outcome(f), time.perf_counter() - begun))

    def close(self) -> None:
        """Waits for nothing: a decision in flight is abandoned with the process."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _decide(asked: Decide, now: int) -> Decision:
    return decide(asked.snapshot, asked.heads, asked.profile, now=now, budget=asked.budget)


def _outcome(future: Future[Decision]) -> Decision | BaseException:
    failure = future.exception()
    return future.result() if failure is None else failure
