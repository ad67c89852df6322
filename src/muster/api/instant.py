"""Points in time as integers: microseconds since the Unix epoch, UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

Instant = int
"""Microseconds since 1970-01-01T00:00:00Z. Arithmetic is plain integer arithmetic."""

MILLISECOND: int = 1_000
SECOND: int = 1_000_000
MINUTE: int = 60 * SECOND

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_time(at: Instant) -> str:
    """The `metav1.Time` form, whole seconds, rounded down: `2026-11-30T21:14:09Z`."""
    return _second(at // SECOND)


@lru_cache(maxsize=1_000)
def _second(number: int) -> str:
    return f"{(_EPOCH + timedelta(seconds=number)).isoformat()[:19]}Z"


def to_micro_time(at: Instant) -> str:
    """The `metav1.MicroTime` form: `2026-11-30T21:14:09.000123Z`."""
    return f"{(_EPOCH + timedelta(microseconds=at)).isoformat(timespec='microseconds')[:26]}Z"


def from_time(text: str) -> Instant:
    """Reads either form, with `Z` or an offset.

    Raises:
        ValueError: the text is no RFC 3339 time.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; want RFC 3339, for example 2026-11-30T21:14:09Z")
    return (moment - _EPOCH) // timedelta(microseconds=1)
