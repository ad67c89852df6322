"""Semantic versions (semver.org 2.0.0) in their order of precedence."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_NUMBER = r"0|[1-9][0-9]*"
_PART = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_PART}(?:\.{_PART})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?\Z"
)


class Precedence(NamedTuple):
    """Compares as the version does: numbers first, then a release after what led up to it, part by part."""

    numbers: tuple[int, int, int]
    release: bool
    parts: tuple[tuple[int, int, str], ...]
    """Of a pre-release: numbers before words."""

    @staticmethod
    @lru_cache(maxsize=4_096)
    def of(text: str) -> Precedence:
        """
        Raises:
            ValueError: the text is no version.
        """
        match = _VERSION.match(text)
        if match is None:
            raise ValueError(f'"{text}" is no semantic version, such as 1.2.3')
        major, minor, patch, before = match.groups()
        parts = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in (before or "").split(".") if p)
        return Precedence((int(major), int(minor), int(patch)), before is None, parts)


def normalized(text: str) -> str:
    """The version with a v before it taken off, leading zeros too, and missing minor and patch numbers filled in."""
    head, mark, tail = re.match(r"v?([^-+]*)([-+]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    numbers = [number.lstrip("0") or "0" for number in head.split(".")] if head else []
    if 0 < len(numbers) < 3 and not mark:
        numbers += ["0"] * (3 - len(numbers))
    return ".".join(numbers) + mark + str(tail)
