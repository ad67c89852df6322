"""How the demo shows itself: a live picture of the racks on a terminal, plain lines everywhere else."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from textwrap import wrap
from typing import Any, Protocol

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from muster.cli.demo.cast import FLEET, PARTS
from muster.controllers.fleet import GPU

WIDTH = 70
"""Characters of the story on one line, beside the time stamp."""
MARGIN = 9
"""Blanks before what continues a line of the story: as wide as its time stamp."""
BAR = 20
"""Characters of a full bar."""
READING = 1.5
"""Seconds after each act in which somebody at a terminal can read what happened."""
Racks = Mapping[str, Counter[str]]


class Screen(Protocol):
    def say(self, text: str) -> None:
        """One line of the story, with the seconds since the beginning."""

    def racks(self, seen: Racks) -> None:
        """How the racks look now."""

    async def rest(self) -> None:
        """The end of an act."""


class PlainScreen:
    """Lines only: for files, pipes and continuous integration."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.perf_counter()

    def say(self, text: str) -> None:
        self._console.print(stamped(self._began, text), highlight=False, soft_wrap=True, markup=False)

    def racks(self, seen: Racks) -> None:
        pass

    async def rest(self) -> None:
        pass


class LiveScreen:
    """The story scrolls by above a picture of the racks."""

    def __init__(self, console: Console) -> None:
        self._began = time.perf_counter()
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> LiveScreen:
        self._live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        self._live.console.print(stamped(self._began, text), highlight=False, markup=False)

    def racks(self, seen: Racks) -> None:
        self._live.update(picture(seen), refresh=True)

    async def rest(self) -> None:
        await asyncio.sleep(READING)


def stamped(began: float, text: str) -> str:
    """The text behind the seconds since the beginning, on lines of at most 80 characters."""
    lines = [part for line in text.splitlines() for part in _folded(line)]
    return f"{time.perf_counter() - began:5.1f} s  " + f"\n{' ' * MARGIN}".join(lines)


def _folded(line: str) -> list[str]:
    """What fits stays as it is, so that tables keep their columns."""
    return [line] if len(line) <= WIDTH else wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False)


def picture(seen: Racks) -> Table:
    """One row per rack: a bar of the accelerators in use, and who runs there."""
    table = Table(box=None, pad_edge=False)
    for title in ("rack", "accelerators in use", "", *PARTS):
        table.add_column(title, no_wrap=True, justify="left" if title in ("rack", "accelerators in use") else "right")
    capacity = FLEET.nodes * FLEET.gpus
    for rack, count in seen.items():
        used = count[GPU]
        filled = round(used / capacity * BAR)
        bar = Text.assemble(("█" * filled, "green"), ("░" * (BAR - filled), "dim"))
        table.add_row(rack, bar, f"{used}/{capacity}", *(str(count[app] or "") for app in PARTS))
    return table
