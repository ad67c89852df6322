"""Annotations that steer hollow pods and nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from muster.api.instant import MILLISECOND, MINUTE, SECOND, Instant

RUN_FOR = "muster.dev/run-for"
"""On a pod: how long it runs before it ends by itself, for example 30s or 1m30s. Without it, for ever."""
EXIT = "muster.dev/exit"
"""On a pod: the exit code with which it ends. 0, the default, is success."""
LOST = "muster.dev/lost"
"""On a node: "true" while its kubelet cannot be reached."""
CSI_DRIVERS = "muster.dev/csi-drivers"
"""On a node: the CSI drivers on it, each with the most volumes it attaches: `disk.example.com=16,other.example.com`."""

_UNITS = {"ms": MILLISECOND, "s": SECOND, "m": MINUTE, "h": 60 * MINUTE, "d": 24 * 60 * MINUTE}
_DURATION = re.compile(r"(?:\d+(?:ms|[smhd]))+")
_PIECE = re.compile(r"(\d+)(ms|[smhd])")


def duration(text: str) -> Instant:
    """Microseconds of a duration such as `30s`, `1m30s`, `500ms`, `2h`.

    Raises:
        ValueError: it is none; says what one looks like.
    """
    if not _DURATION.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is no duration; want for example 500ms, 30s, 1m30s or 2h")
    return sum(int(number) * _UNITS[unit] for number, unit in _PIECE.findall(text))


def run_time(annotations: Mapping[str, str]) -> Instant | None:
    """How long a pod runs; None: for ever.

    Raises:
        ValueError: the annotation is no duration.
    """
    text = annotations.get(RUN_FOR)
    if text is None:
        return None
    try:
        return duration(text)
    except ValueError as problem:
        raise ValueError(f"annotation {RUN_FOR}: {problem}") from None


def exit_code(annotations: Mapping[str, str]) -> int:
    """With what a pod ends.

    Raises:
        ValueError: the annotation is no exit code.
    """
    text = annotations.get(EXIT, "0")
    if not text.isdecimal() or int(text) > 255:
        raise ValueError(f"annotation {EXIT}: {text!r} is no exit code; want a number from 0 to 255")
    return int(text)


def csi_drivers(annotations: Mapping[str, str]) -> list[tuple[str, int | None]]:
    """(driver, most volumes; None: no limit). What cannot be read is left out."""
    found: dict[str, int | None] = {}
    for part in annotations.get(CSI_DRIVERS, "").split(","):
        name, _, limit = part.strip().partition("=")
        if name and (not limit or limit.isdecimal()):
            found[name] = int(limit) if limit else None
    return list(found.items())


def is_lost(annotations: Mapping[str, str]) -> bool:
    return annotations.get(LOST) == "true"
