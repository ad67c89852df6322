"""Counts that may be given as a percentage."""

from __future__ import annotations


def count_of(given: int | str, whole: int, *, round_up: bool) -> int:
    """`given` as a number of pods; "25%" is a part of `whole`."""
    if isinstance(given, int):
        return given
    share = int(given.rstrip("%")) * whole
    return -(-share // 100) if round_up else share // 100
