"""Expressions that select devices (`device.driver`, `device.attributes`, `device.capacity`), and what they look at."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from muster.api.cel.library import quantity_value, version_value
from muster.api.cel.programs import CompileError, EvaluationError, Program, compiled
from muster.api.quantity import NANOS

LONGEST = 10 * 1024
"""Characters of such an expression."""
_NAMES = frozenset({"device"})
_TEXT = r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DOMAIN = re.compile(rf"\[\s*\??\s*({_TEXT})\s*\]|({_TEXT})\s+in\b")
_BLANKS = re.compile(r"\s+(?=[^\w\s])|(?<=[^\w\s])\s+")
_NAME = re.compile(rf"\.\??\w+\b(?!\()|\[\??(?:{_TEXT})\]")
_ONE = re.compile(rf"\[\??(?:{_TEXT})\](?:{_NAME.pattern})")
_BOUND = re.compile(rf"cel\.bind\((\w+),device\.(?:attributes|capacity)\[(?:{_TEXT})\],")


class DeviceFacts(NamedTuple):
    """What an expression can see of a device. Names are complete: (domain, name)."""

    driver: str
    attributes: Mapping[tuple[str, str], Any]
    """A bool, an int, a str, a `Version`, or a list of one of these."""
    capacity: Mapping[tuple[str, str], int]
    """In billionths."""
    allow_multiple_allocations: bool = False


class Version(str):
    """A semantic version, as an attribute says it."""


class DeviceProgram:
    """A compiled expression over a device."""

    __slots__ = ("_domains", "_program", "reads", "text")

    def __init__(self, program: Program) -> None:
        self.text = program.text
        self._program = program
        self._domains = {one[1:-1] for pair in _DOMAIN.findall(self.text) for one in pair if one}
        self.reads = _reads(self.text)
        """Names, without domains, of the attributes and capacities that it may look at; None: it may look at any."""

    def matches(self, device: DeviceFacts) -> bool:
        """Whether it selects the device.

        A domain that the device says nothing of is an empty map (D5).

        Raises:
            EvaluationError: it has no value, or one that is neither true nor false.
        """
        attributes: dict[str, dict[str, Any]] = {domain: {} for domain in self._domains}
        capacity: dict[str, dict[str, Any]] = {domain: {} for domain in self._domains}
        for (domain, name), value in device.attributes.items():
            attributes.setdefault(domain, {})[name] = _value(value)
        for (domain, name), nanos in device.capacity.items():
            capacity.setdefault(domain, {})[name] = quantity_value(Fraction(nanos, NANOS))
        seen = {
            "driver": device.driver,
            "attributes": attributes,
            "capacity": capacity,
            "allowMultipleAllocations": device.allow_multiple_allocations,
        }
        value = self._program.evaluate({"device": seen})
        if not isinstance(value, bool):
            raise EvaluationError(f"the value is {value!r}, not true or false")
        return value


@lru_cache(maxsize=4_096)
def device_program(text: str) -> DeviceProgram:
    """The program of an expression over a device.

    Raises:
        CompileError: it is no expression, is too long, or cannot come out as true or false.
    """
    if len(text) > LONGEST:
        raise CompileError(f"compilation failed: an expression has at most {LONGEST} characters, this one {len(text)}")
    program = compiled(text, _NAMES)
    if not program.yields("bool"):
        raise CompileError(f"must evaluate to bool, not {program.type}")
    return DeviceProgram(program)


def _value(value: Any) -> Any:
    if isinstance(value, Version):
        return version_value(str(value))
    return [_value(one) for one in value] if isinstance(value, list | tuple) else value


def _reads(text: str) -> frozenset[str] | None:
    """Every word, in quotes or not, may name something; unless a map is used as a whole, which may mean any."""
    plain = _BLANKS.sub("", text)
    bound = list(_BOUND.finditer(plain))
    maps = "|".join((r"device\.(?:attributes|capacity)", *(re.escape(match[1]) for match in bound)))
    asked = re.compile(rf"(?:{_TEXT})\s*in\s*(?:{maps})(?:\[(?:{_TEXT})\])?(?![\[.\w])")
    fine = [match.span() for match in (*bound, *asked.finditer(plain))]
    for match in re.finditer(rf"(?<![\w.\"'])(?:{maps})\b", plain):
        within = any(start <= match.start() and match.end() <= end for start, end in fine)
        alias = not match[0].startswith("device.")
        if not within and not (_NAME if alias else _ONE).match(plain, match.end()):
            return None
    bare = plain.count("device") - sum(1 for _ in re.finditer(r"device\.(?:driver|attributes|capacity|allow)", plain))
    return None if bare else frozenset(_WORD.findall(text))
