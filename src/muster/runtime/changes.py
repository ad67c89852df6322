"""Wakes whoever waits for the store to move on, without a thread and without polling."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Changes:
    """One bell for many waiters. `ring` is cheap and belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._bells: set[asyncio.Event] = set()

    def ring(self) -> None:
        for bell in self._bells:
            bell.set()

    @contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """A bell of one's own: wait for it, clear it, look what is new, wait again."""
        bell = asyncio.Event()
        self._bells.add(bell)
        try:
            yield bell
        finally:
            self._bells.discard(bell)
