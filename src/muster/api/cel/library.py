"""What Kubernetes adds to the language: lists, sets, regular expressions, quantities, versions, URLs, the authorizer.

A quantity, a version, a URL and the steps of an authorizer are maps with one key that no field of an object has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

from muster.api import quantity
from muster.api.cel.versions import Precedence, normalized

_QUANTITY, _URL, _CHECK, _VERSION = "quantity()", "url()", "check()", "semver()"


def functions() -> list[Any]:
    """Declarations, with what carries them out."""
    from cel_expr_python import cel

    kinds = cel.Type
    types = {
        "any": kinds.DYN, "text": kinds.STRING, "int": kinds.INT, "bool": kinds.BOOL, "list": kinds.LIST,
        "float": kinds.DOUBLE, "map": kinds.MAP,
    }  # fmt: skip
    overloads: dict[str, list[Any]] = {}
    for name, member, takes, gives, does in _TABLE:
        parameters = [types[one] for one in takes.split()]
        made = cel.Overload(f"muster_{name}_{'_'.join(takes.split())}", types[gives], parameters, member, _plain(does))
        overloads.setdefault(name, []).append(made)
    return [cel.FunctionDecl(name, found) for name, found in overloads.items()]


def _plain(does: Callable[..., Any]) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        return does(*map(_json, given))

    return call


def _json(value: Any) -> Any:
    """A value of the library as JSON has it."""
    if hasattr(value, "plain_value"):
        return value.plain_value()
    if isinstance(value, Mapping):
        return {_json(key): _json(one) for key, one in value.items()}
    return [_json(one) for one in value] if isinstance(value, list | tuple) else value


# --- lists and sets ----------------------------------------------------------------------------------------------


def _index(items: Sequence[Any], wanted: Any) -> int:
    return next((place for place, item in enumerate(items) if item == wanted), -1)


def _last_index(items: Sequence[Any], wanted: Any) -> int:
    return next((place for place in range(len(items) - 1, -1, -1) if items[place] == wanted), -1)


def _contains(items: Sequence[Any], wanted: Sequence[Any]) -> bool:
    return all(one in items for one in wanted)


def _intersects(items: Sequence[Any], others: Sequence[Any]) -> bool:
    return any(one in others for one in items)


# --- regular expressions, URLs -----------------------------------------------------------------------------------


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    found = [match[0] for match in re.finditer(pattern, text)]
    return found if most < 0 else found[:most]


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme or text.startswith("/"))


def _url(text: str) -> dict[str, str]:
    if not _is_url(text):
        raise ValueError(f"{text!r} is no URL")
    return {_URL: text}


def _part(choose: Callable[[Any], Any]) -> Callable[[Mapping[str, str]], Any]:
    return lambda url: choose(urlsplit(url[_URL]))


# --- quantities --------------------------------------------------------------------------------------------------


def _is_quantity(text: str) -> bool:
    try:
        quantity.nanos(text)
    except ValueError:
        return False
    return True


def _amount(value: Any) -> Fraction:
    """Of a quantity as `quantity(text)` makes it, or of a whole number."""
    return Fraction(value[_QUANTITY]) if isinstance(value, Mapping) else Fraction(value)


def _quantity(text: str) -> dict[str, str]:
    return quantity_value(Fraction(quantity.nanos(text), quantity.NANOS))


def _integer(value: Any) -> int:
    amount = _amount(value)
    if amount.denominator != 1:
        raise ValueError("cannot convert value to integer")
    return int(amount)


def _difference(one: Any, other: Any) -> int:
    """How two quantities, or two versions, compare: -1, 0 or 1."""
    if isinstance(one, Mapping) and _VERSION in one:
        a, b = Precedence.of(one[_VERSION]), Precedence.of(other[_VERSION])
        return (a > b) - (a < b)
    return _sign(_amount(one) - _amount(other))


def _is_version(text: str, normal: bool = False) -> bool:
    try:
        version_value(text, normal)
    except ValueError:
        return False
    return True


def _number(place: int) -> Callable[[Mapping[str, str]], int]:
    return lambda version: Precedence.of(version[_VERSION]).numbers[place]


def quantity_value(amount: Fraction) -> dict[str, str]:
    """A quantity as expressions have it."""
    return {_QUANTITY: str(amount)}


def version_value(text: str, normal: bool = False) -> dict[str, str]:
    """A semantic version as expressions have it. `normal`: a v before it, leading zeros and missing parts are mended.

    Raises:
        ValueError: it is none.
    """
    if normal:
        text = normalized(text)
    Precedence.of(text)
    return {_VERSION: text}


def _sign(amount: Fraction) -> int:
    return (amount > 0) - (amount < 0)


# --- the authorizer: everybody may do everything here ------------------------------------------------------------


def _step(before: Any, *said: str) -> dict[str, str]:
    return {_CHECK: "allowed"}


_TABLE: tuple[tuple[str, bool, str, str, Callable[..., Any]], ...] = (
    ("sum", True, "list", "any", sum),
    ("min", True, "list", "any", min),
    ("max", True, "list", "any", max),
    ("isSorted", True, "list", "bool", lambda items: all(a <= b for a, b in pairwise(items))),
    ("indexOf", True, "list any", "int", _index),
    ("lastIndexOf", True, "list any", "int", _last_index),
    ("sets.contains", False, "list list", "bool", _contains),
    ("sets.intersects", False, "list list", "bool", _intersects),
    ("sets.equivalent", False, "list list", "bool", lambda a, b: _contains(a, b) and _contains(b, a)),
    ("find", True, "text text", "text", _find),
    ("findAll", True, "text text", "list", _find_all),
    ("findAll", True, "text text int", "list", _find_all),
    ("isURL", False, "text", "bool", _is_url),
    ("url", False, "text", "any", _url),
    ("getScheme", True, "any", "text", _part(lambda url: url.scheme)),
    ("getHost", True, "any", "text", _part(lambda url: url.netloc)),
    ("getHostname", True, "any", "text", _part(lambda url: url.hostname or "")),
    ("getPort", True, "any", "text", _part(lambda url: "" if url.port is None else str(url.port))),
    ("getEscapedPath", True, "any", "text", _part(lambda url: url.path)),
    ("getQuery", True, "any", "map", _part(lambda url: parse_qs(url.query, keep_blank_values=True))),
    ("isQuantity", False, "text", "bool", _is_quantity),
    ("quantity", False, "text", "any", _quantity),
    ("isInteger", True, "any", "bool", lambda value: _amount(value).denominator == 1),
    ("asInteger", True, "any", "int", _integer),
    ("asApproximateFloat", True, "any", "float", lambda value: float(_amount(value))),
    ("sign", True, "any", "int", lambda value: _sign(_amount(value))),
    ("add", True, "any any", "any", lambda a, b: quantity_value(_amount(a) + _amount(b))),
    ("sub", True, "any any", "any", lambda a, b: quantity_value(_amount(a) - _amount(b))),
    ("compareTo", True, "any any", "int", _difference),
    ("isGreaterThan", True, "any any", "bool", lambda a, b: _difference(a, b) > 0),
    ("isLessThan", True, "any any", "bool", lambda a, b: _difference(a, b) < 0),
    ("isSemver", False, "text", "bool", _is_version),
    ("isSemver", False, "text bool", "bool", _is_version),
    ("semver", False, "text", "any", version_value),
    ("semver", False, "text bool", "any", version_value),
    ("major", True, "any", "int", _number(0)),
    ("minor", True, "any", "int", _number(1)),
    ("patch", True, "any", "int", _number(2)),
    ("includes", True, "any any", "bool", lambda a, b: b in a if isinstance(a, list | tuple) else a == b),
    ("group", True, "any text", "any", _step),
    ("resource", True, "any text", "any", _step),
    ("subresource", True, "any text", "any", _step),
    ("namespace", True, "any text", "any", _step),
    ("name", True, "any text", "any", _step),
    ("path", True, "any text", "any", _step),
    ("serviceAccount", True, "any text text", "any", _step),
    ("fieldSelector", True, "any text", "any", _step),
    ("labelSelector", True, "any text", "any", _step),
    ("check", True, "any text", "any", _step),
    ("allowed", True, "any", "bool", lambda step: True),
    ("errored", True, "any", "bool", lambda step: False),
    ("error", True, "any", "text", lambda step: ""),
    ("reason", True, "any", "text", lambda step: ""),
)  # fmt: skip
"""Name, whether the first parameter stands before the dot, parameters, result, and what does it."""
