"""Sets of completion indexes as the API writes them: `0-2,5`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

LARGEST = 99_999
"""An Indexed Job has no higher index."""


@lru_cache(maxsize=4_096)
def parse(text: str) -> frozenset[int]:
    """The indexes of `completedIndexes`. Parts that are no number are left out, and so is what is above LARGEST."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if first.isdecimal() and (not dash or last.isdecimal()):
            found.update(range(_number(first), min(_number(last if dash else first), LARGEST) + 1))
    return frozenset(found)


def _number(digits: str) -> int:
    return int(digits) if len(digits) <= len(str(LARGEST)) else LARGEST + 1


def compress(indexes: Iterable[int]) -> str:
    """The shortest text for a set of indexes, as Kubernetes writes it: two neighbours `0,1`, three `0-2`."""
    parts: list[str] = []
    run: list[int] = []
    for index in sorted(indexes):
        if run and index != run[-1] + 1:
            parts.append(_run(run))
            run = []
        run.append(index)
    if run:
        parts.append(_run(run))
    return ",".join(parts)


def _run(run: list[int]) -> str:
    if len(run) == 1:
        return str(run[0])
    return f"{run[0]}{'-' if len(run) > 2 else ','}{run[-1]}"
