"""Mistakes that a person can make, told in one message with the fix in it."""

from __future__ import annotations

import contextlib
import difflib
import signal
import sys
from collections.abc import Iterable

FAILED, USAGE = 1, 2


class Failure(Exception):
    """What went wrong and what to do about it; `code` is the exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def heed_interrupts() -> None:
    """From here on Ctrl-C raises KeyboardInterrupt: for commands that leave something behind if they just end."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def complain(text: str) -> None:
    """Says on standard error what is wrong, if anybody can hear it."""
    _say(f"muster: {shown(text, keep=chr(10))}")


def warn(text: str) -> None:
    """Says on standard error what the server warns of, as kubectl does."""
    _say(f"Warning: {shown(text)}")


def _say(line: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(line, file=sys.stderr, flush=True)


def shown(text: str, keep: str = "") -> str:
    """Text in which everything that a terminal would obey is written out, but for `keep`: ESC as `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in keep else letter.encode("unicode_escape").decode()
        for letter in text
    )


def not_a_segment(text: str) -> str:
    """Why a name or namespace cannot be a segment of a URL's path; "" if it can (apimachinery's path segment names).

    An empty one would name the whole collection, and `..` what is above it.
    """
    if not text:
        return "is empty"
    if text in (".", "..") or "/" in text or "%" in text:
        return f"{text!r} is no name; it may not be . or .., nor contain / or %"
    if not text.isprintable():
        return f"{text!r} is no name; it has characters that cannot be printed"
    return ""


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean "pods"?`, or nothing when no known word is near."""
    found = difflib.get_close_matches(word, list(known), n=1)
    return f'; did you mean "{found[0]}"?' if found else ""
