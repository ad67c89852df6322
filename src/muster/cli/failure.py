"""Mistakes that a person can make, told in one message with the fix in it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

FAILED, USAGE = 1, 2


class Failure(Exception):
    """What went wrong and what to do about it; `code` is the exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean "pods"?`, or nothing when no known word is near."""
    found = difflib.get_close_matches(word, list(known), n=1)
    return f'; did you mean "{found[0]}"?' if found else ""
