"""Patterns and formats of strings in structural schemas.

Patterns run in linear time and have the syntax of the real server's (RE2); only those with flags or `\\z` run in the
engine of Python.
Formats that are not known are not checked, as in the real server.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from urllib.parse import urlsplit

import jsonschema_rs

from muster.api.instant import from_time
from muster.api.validation import names

Check = Callable[[str], bool]


@lru_cache(maxsize=1024)
def pattern(text: str) -> Check | None:
    """Whether a string has a match of a pattern somewhere; None: it is no pattern."""
    try:
        validator = jsonschema_rs.Draft7Validator(
            {"pattern": text}, pattern_options=jsonschema_rs.RegexOptions(size_limit=1 << 20)
        )
    except ValueError:
        return _other_pattern(text)
    return validator.is_valid


_NOT_IN_RE2 = re.compile(r"\(\?([=!>]|<[=!])|\\[1-9]")


_FLAGS = re.compile(r"^([^()]*)\((\?[ims]+)\)(.*)$", re.DOTALL)
"""Flags in the middle hold for what follows; in Python they have to say for what."""


def _other_pattern(text: str) -> Check | None:
    """A pattern with flags or `\\z`, which the linear engine is not given; what RE2 has not is none either."""
    if _NOT_IN_RE2.search(text):
        return None
    try:
        compiled = re.compile(_FLAGS.sub(r"\1(\2:\3)", text.replace("\\z", "\\Z"), count=1), re.ASCII)
    except (re.error, OverflowError, RecursionError):
        return None
    return lambda value: compiled.search(value) is not None


def _address(version: int) -> Check:
    def holds(value: str) -> bool:
        try:
            return ipaddress.ip_address(value).version == version
        except ValueError:
            return False

    return holds


def _cidr(value: str) -> bool:
    try:
        ipaddress.ip_interface(value)
    except ValueError:
        return False
    return "/" in value


def _date_time(value: str) -> bool:
    try:
        from_time(value)
    except (ValueError, OverflowError):
        return False
    return "T" in value.upper()


def _bytes(value: str) -> bool:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _uri(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme) or value.startswith("/")


def _date(value: str) -> bool:
    return bool(re.fullmatch(r"\d{4}-\d{2}-\d{2}", value, re.ASCII)) and _date_time(f"{value}T00:00:00Z")


def _matching(text: str) -> Check:
    compiled = re.compile(text, re.ASCII | re.IGNORECASE)
    return lambda value: compiled.fullmatch(value) is not None


_HEX = "[0-9a-f]"
_UUID = f"{_HEX}{{8}}-?{_HEX}{{4}}-?{{}}{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}"


def _uuid(version: str) -> Check:
    return _matching(_UUID.replace("{}", version))


FORMATS: Mapping[str, Check] = {
    "byte": _bytes,
    "cidr": _cidr,
    "date": _date,
    "date-time": _date_time,
    "datetime": _date_time,
    "duration": _matching(
        r"[-+]?(0|(\d+(\.\d*)?|\.\d+)\s*(ns|us|µs|ms|s|m|h|d|w)(\s*(\d+(\.\d*)?)(ns|us|µs|ms|s|m|h))*)"
    ),
    "email": _matching(r"[^@\s<>]+@[^@\s<>]+"),
    "hexcolor": _matching(rf"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "hostname": lambda value: names.dns_subdomain(value.lower().rstrip(".")) is None,
    "ipv4": _address(4),
    "ipv6": _address(6),
    "k8s-short-name": lambda value: names.dns_label(value) is None,
    "k8s-long-name": lambda value: names.dns_subdomain(value) is None,
    "mac": _matching(rf"{_HEX}{{2}}([:-]{_HEX}{{2}}){{5}}|{_HEX}{{4}}([.]{_HEX}{{4}}){{2}}"),
    "rgbcolor": _matching(r"rgb\(\s*(\d{1,3}%?)\s*,\s*(\d{1,3}%?)\s*,\s*(\d{1,3}%?)\s*\)"),
    "uri": _uri,
    "uuid": _uuid(_HEX),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4"),
    "uuid5": _uuid("5"),
}
"""What a string of each format must satisfy."""

BOUNDS = {"int32": (-(1 << 31), (1 << 31) - 1), "int64": (-(1 << 63), (1 << 63) - 1)}
"""What an integer of each format may be."""
