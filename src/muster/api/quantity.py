"""Kubernetes quantities as exact integers: the only place that converts units.

A quantity is a signed decimal number and a suffix (`n u m k M G T P E`, `Ki Mi Gi Ti Pi Ei`, `e3`, `E-2`). Kubernetes
keeps no fraction below a billionth and rounds away from zero, so an integer count of billionths ("nanos") is exact.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

NANOS = 1_000_000_000
"""Nanos in one unit."""

LARGEST = 1 << 55
"""What `amount` saturates at (36 PB of memory): no node is larger, and a few hundred pods still add up in an int64."""

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SUFFIX_OF_EXPONENT = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_MAX_NANOS = ((1 << 63) - 1) * NANOS
_FORM = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?([eE][+-]?\d+|[KMGTPE]i|[numkMGTPE]?)", re.ASCII)
_LONGEST = 64

_WANT = "want a number with an optional suffix, for example 500m, 2, 1.5, 64Mi, 8Gi or 1e3"


class Parsed(NamedTuple):
    """`nanos` billionths; `form` says how it was written: "Ki" binary, "e" decimal exponent, "" decimal suffix."""

    nanos: int
    form: str


@lru_cache(maxsize=65_536)
def parse(text: str | int | float) -> Parsed:
    """Reads a quantity; a JSON number is read as its decimal text.

    Raises:
        ValueError: the text is no quantity; says what one looks like.
    """
    digits = str(text).strip() if not isinstance(text, bool) else "boolean"
    match = _FORM.fullmatch(digits)
    if match is None or len(digits) > _LONGEST or not (match[2] or match[3]):
        raise ValueError(f"{text!r} is no quantity: {_WANT}")
    sign, whole_part, fraction, suffix = match.groups()
    fraction = fraction or ""
    mantissa = int(whole_part + fraction or "0")
    nanos = _scaled(mantissa, len(fraction), suffix)
    return Parsed(-nanos if sign == "-" else nanos, _form_of(suffix))


def _form_of(suffix: str) -> str:
    if suffix in _BINARY:
        return "Ki"
    return "e" if suffix not in _DECIMAL else ""


def _scaled(mantissa: int, decimals: int, suffix: str) -> int:
    """`mantissa / 10^decimals` with its suffix, in nanos, rounded up, no more than Kubernetes' largest number."""
    if suffix in _BINARY:
        return min(_up(mantissa * NANOS << _BINARY[suffix], 10**decimals), _MAX_NANOS)
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else max(-200, min(200, int(suffix[1:])))
    power = exponent - decimals + 9
    value = mantissa * 10**power if power >= 0 else _up(mantissa, 10**-power)
    return min(value, _MAX_NANOS)


def _up(number: int, divisor: int) -> int:
    """`number / divisor`, rounded towards positive infinity."""
    return -(-number // divisor)


def nanos(quantity: str | int | float) -> int:
    """Exact value in billionths; compare quantities by it."""
    return parse(quantity).nanos


def milli(quantity: str | int | float) -> int:
    """Thousandths, rounded up."""
    return _up(parse(quantity).nanos, NANOS // 1000)


def whole(quantity: str | int | float) -> int:
    """Whole units, rounded up."""
    return _up(parse(quantity).nanos, NANOS)


@lru_cache(maxsize=65_536)
def amount(resource: str, quantity: str | int | float) -> int:
    """In the units of `model.resources`: cpu in thousandths of a core, everything else whole; saturates at LARGEST.

    Raises:
        ValueError: the text is no quantity.
    """
    value = milli(quantity) if resource == "cpu" else whole(quantity)
    return max(-LARGEST, min(LARGEST, value))


@lru_cache(maxsize=65_536)
def canonical(quantity: str | int | float) -> str:
    """The form the API server writes: no fraction, the largest suffix that allows it, same kind of suffix as given.

    Raises:
        ValueError: the text is no quantity.
    """
    value, form = parse(quantity)
    if value == 0:
        return "0"
    if form == "Ki" and abs(value) >= 1024 * NANOS and value % NANOS == 0:
        return format_binary(value // NANOS)
    mantissa, exponent = _thousands(value)
    return _written(mantissa, exponent, "e" if form == "e" else "")


def _thousands(value: int) -> tuple[int, int]:
    """Nanos as (mantissa, exponent) with an exponent that is a multiple of 3, and as large as it can be up to 18."""
    exponent = -9
    while value % 1000 == 0 and exponent < 18:
        value //= 1000
        exponent += 3
    return value, exponent


def _written(mantissa: int, exponent: int, form: str) -> str:
    if form == "e":
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_SUFFIX_OF_EXPONENT[exponent]}"


def format_milli(thousandths: int) -> str:
    """`1500` -> `1500m`, `2000` -> `2`."""
    return canonical(f"{thousandths}m")


def format_binary(units: int) -> str:
    """`1073741824` -> `1Gi`; what is no multiple of 1024 is written out."""
    for suffix, shift in reversed(_BINARY.items()):
        if units and units % (1 << shift) == 0:
            return f"{units >> shift}{suffix}"
    return str(units)


def format_amount(resource: str, value: int) -> str:
    """The quantity of an `amount`: cores for cpu, binary bytes for memory, storage and huge pages, else plain."""
    if resource == "cpu":
        return format_milli(value)
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return format_binary(value)
    return str(value)
