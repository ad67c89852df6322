"""Drives machines in real time: brings them events, carries out their effects, sleeps while there is nothing to do."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from muster.api.instant import Instant
from muster.api.machine import Machine
from muster.runtime.local import Inbox, Local
from muster.runtime.worker import Worker


@dataclass
class Station:
    """One machine at its place: how to build it anew, what it has not been told yet, and its timers."""

    name: str
    build: Callable[[], Machine]
    machine: Machine
    inbox: Inbox = field(default_factory=Inbox)
    timers: dict[Hashable, Instant] = field(default_factory=dict)
    life: int = 0
    """Grows with every rebuild: outcomes and decisions of an earlier life are dropped."""


class Loop:
    """The asyncio driver. Everything runs on the event loop's thread, but for decisions."""

    def __init__(self, local: Local, worker: Worker) -> None: ...

    def add(self, name: str, build: Callable[[], Machine]) -> Station: ...

    async def run(self) -> None:
        """Until `stop`."""

    def stop(self) -> None: ...

    def send(self, station: Station, event: Any) -> None:
        """Hands an event from outside (Pause, Resume) to one machine."""

    def rebuild(self, station: Station) -> None:
        """Kills the machine and starts it again from what the server holds."""

    async def settle(self) -> None:
        """Returns once nothing is undelivered, no decision is in flight and no timer is due."""

    def next_timer(self, *stations: Station) -> Instant | None:
        """When the next timer (of these machines; of all if none is named) goes off."""
