"""Makes every write durable: groups of calls in one transaction each, committed on a thread of their own.

While one group is on its way to the disk, the next one gathers. Machines in this process see changes at once: whatever
they write about one comes after it in the file. Nobody else is told of a change, or of anything that may follow from
it, before it is committed. If it cannot be, all changes that were not committed are taken back.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from muster.apiserver.durable import record
from muster.apiserver.storage import Change, Store
from muster.runtime.changes import Changes
from muster.runtime.journal import Journal, Unwritten

LOOK_EVERY = 1.0
"""Seconds between two looks for room on a full disk; only a refused write makes one."""
CLOSE_WITHIN = 30.0
"""Seconds that the last transaction gets when the process ends."""


class Keeper:
    """Keeps one store in one journal. All methods belong to the event loop's thread.

    Args:
        store: as `Journal.load` made it, and not written to since.
        told: rung whenever more is safe.
    """

    def __init__(self, store: Store, journal: Journal, told: Changes) -> None:
        self.full = ""
        """Why nothing can be written; "": it can."""
        self.begin_anew: Callable[[], None] = lambda: None
        """Called when changes were taken back, or when writing is possible again: who acted on them starts afresh."""
        self.told = told
        self._store = store
        self._journal = journal
        self._writing: list[Change] = []
        self._due = False
        self._looked = 0.0
        self._waiting: deque[tuple[int, asyncio.Future[bool]]] = deque()
        self._jobs: SimpleQueue[Callable[[], Unwritten | None] | None] = SimpleQueue()
        self._here: asyncio.AbstractEventLoop | None = None
        store.outbox = []
        store.settled = store.revision

    def wake(self) -> None:
        """Something was written: a transaction begins when the calls of this turn of the loop are done."""
        if not self._due and not self._writing:
            self._due = True
            asyncio.get_running_loop().call_soon(self._begin)

    async def settled(self) -> bool:
        """Waits for everything that was written so far; False: it was taken back."""
        revision = self._store.revision
        if self._store.told >= revision:
            return True
        self.wake()
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((revision, future))
        return await future

    def _begin(self) -> None:
        self._due = False
        if self._writing or not self._store.outbox:
            return
        self._writing, self._store.outbox = self._store.outbox, []
        try:
            self._journal.begin([record(change) for change in self._writing])
        except Unwritten as failure:
            self._take_back(failure)
            return
        if self._here is None:
            self._here = asyncio.get_running_loop()
            threading.Thread(target=self._work, name="commit", daemon=True).start()
        self._jobs.put(self._commit)

    def _commit(self) -> Unwritten | None:
        """On the thread."""
        try:
            self._journal.commit(self._store.compacted)
        except Unwritten as failure:
            return failure
        return None

    def _work(self) -> None:
        assert self._here is not None
        while (job := self._jobs.get()) is not None:
            failure = job()
            try:
                self._here.call_soon_threadsafe(self._done, failure)
            except RuntimeError:  # the loop is closed: nobody is left to be told
                return

    def _done(self, failure: Unwritten | None) -> None:
        if not self._writing:  # `close` has seen to it
            return
        if failure is not None:
            self._take_back(failure)
            return
        self._safe()
        self._begin()

    def _safe(self) -> None:
        """What was being written is committed."""
        self._store.settled = revision = self._writing[-1].event.revision
        self._writing = []
        while self._waiting and self._waiting[0][0] <= revision:
            _tell(self._waiting.popleft()[1], True)
        self.told.ring()

    def _take_back(self, failure: Unwritten) -> None:
        self.full = str(failure)
        self._looked = time.monotonic()
        self._store.retract([*self._writing, *(self._store.outbox or ())])
        self._writing, self._store.outbox = [], []
        while self._waiting:
            _tell(self._waiting.popleft()[1], False)
        self._start_over(self.full)

    def _start_over(self, full: str) -> None:
        def now() -> None:
            self.full = full
            self.begin_anew()

        asyncio.get_running_loop().call_soon(now)

    def look_for_room(self) -> None:
        """Finds out, once in a while, whether writing is possible again."""
        if time.monotonic() - self._looked < LOOK_EVERY:
            return
        self._looked = time.monotonic()
        if self._journal.has_room():
            self._start_over("")

    def flush(self) -> None:
        """Commits what was written while no loop runs.

        Raises:
            Unwritten: it could not be; the store is not to be used any more.
        """
        changes, self._store.outbox = self._store.outbox or [], []
        if changes:
            self._writing = changes
            self._journal.begin([record(change) for change in changes])
            self._journal.commit(self._store.compacted)
            self._safe()

    async def close(self) -> None:
        """Ends when everything is committed, or cannot be."""
        try:
            async with asyncio.timeout(CLOSE_WITHIN):
                await self.settled()
        except TimeoutError:
            return  # the disk hangs; what was acknowledged is safe
        self._jobs.put(None)
        self._journal.close()


def _tell(future: asyncio.Future[bool], safe: bool) -> None:
    if not future.done():
        future.set_result(safe)
