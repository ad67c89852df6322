"""Label and field selectors: parsed once, matched often.

>>> labels("app in (a, b), !draft").matches({"app": "a"})
True
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from muster.api.meta import LabelSelector
from muster.api.validation import names

_WORD = r"[^\s,()=!<>]+"
_TERM = re.compile(
    rf"\s*(?:(?P<absent>!)\s*)?(?P<key>{_WORD})\s*"
    rf"(?:(?P<set>(?:not)?in)\s*\((?P<values>[^()]*)\)|(?P<operator>==|=|!=|<|>)\s*(?P<value>[^\s,()=!<>]*))?\s*",
    re.ASCII,
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn", ">": "Gt", "<": "Lt"}
_WANT = "want for example app=web, app!=web, app in (a,b), app or !app"
_SETS = {"In": "in", "NotIn": "notin"}


class Requirement(NamedTuple):
    """One expression. `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt; NotIn holds where the key is absent."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        if self.operator == "In":
            return value is not None and value in self.values
        if self.operator == "NotIn":
            return value is None or value not in self.values
        if self.operator == "Exists":
            return value is not None
        if self.operator == "DoesNotExist":
            return value is None
        return value is not None and _compare(self.operator, value, self.values[0])

    def __str__(self) -> str:
        if self.operator in _SETS:
            if len(self.values) == 1:
                return f"{self.key}{'=' if self.operator == 'In' else '!='}{self.values[0]}"
            return f"{self.key} {_SETS[self.operator]} ({','.join(self.values)})"
        if self.operator in ("Gt", "Lt"):
            return f"{self.key}{'>' if self.operator == 'Gt' else '<'}{self.values[0]}"
        return self.key if self.operator == "Exists" else f"!{self.key}"


def _compare(operator: str, label: str, bound: str) -> bool:
    """Gt and Lt hold only between integers."""
    if not (_INTEGER.fullmatch(label) and _INTEGER.fullmatch(bound)):
        return False
    return int(label) > int(bound) if operator == "Gt" else int(label) < int(bound)


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold; without any, everything matches. `nothing` matches nothing."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        return not self.nothing and all(requirement.holds(labels) for requirement in self.requirements)

    def __bool__(self) -> bool:
        """Whether it can refuse anything."""
        return self.nothing or bool(self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


NOTHING = Selector(nothing=True)


def labels(text: str) -> Selector:
    """Reads a `labelSelector` parameter: `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>3`.

    Raises:
        ValueError: says which part is wrong, and what a selector looks like.
    """
    return Selector(tuple(_requirement(part) for part in _parts(text)))


def of(selector: LabelSelector | None) -> Selector:
    """A selector of an object's spec: absent matches nothing, empty matches everything."""
    if selector is None:
        return NOTHING
    equal = tuple(Requirement(key, "In", (value,)) for key, value in selector.match_labels.items())
    listed = tuple(Requirement(entry.key, entry.operator, entry.values) for entry in selector.match_expressions)
    return Selector(equal + listed)


def _parts(text: str) -> Iterable[str]:
    """Splits at commas outside parentheses."""
    depth, start = 0, 0
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            yield text[start:i]
            start = i + 1
    if text.strip():
        yield text[start:]


def _requirement(part: str) -> Requirement:
    match = _TERM.fullmatch(part)
    if match is None:
        raise ValueError(
            f"{part.strip()!r} is no label selector: want for example app=web, app!=web, app in (a,b), app or !app"
        )
    key, symbol = match["key"], match["operator"] or match["set"]
    if match["absent"] and symbol:
        raise ValueError(f"{part.strip()!r} is no label selector: `!` stands alone before a key")
    if problem := names.label_key(key):
        raise ValueError(f"{key!r} is no label key: {problem}")
    if symbol is None:
        return Requirement(key, "DoesNotExist" if match["absent"] else "Exists")
    given = match["values"] if match["set"] else match["value"]
    values = tuple(value.strip() for value in given.split(",")) if match["set"] else (given,)
    for value in values:
        if problem := names.label_value(value):
            raise ValueError(f"{value!r} is no label value: {problem}")
    if symbol in ("<", ">") and not _INTEGER.fullmatch(given):
        raise ValueError(f"{part.strip()!r} compares with no whole number: want for example rank{symbol}5")
    return Requirement(key, _OPERATORS[symbol], values)


# --- fields ------------------------------------------------------------------------------------------------------


class FieldRequirement(NamedTuple):
    """A field equals a value, or does not (`negated`)."""

    path: tuple[str, ...]
    value: str
    negated: bool = False

    def holds(self, raw: Mapping[str, Any]) -> bool:
        value: Any = raw
        for step in self.path:
            value = value.get(step) if isinstance(value, Mapping) else None
        # An absent boolean is false: nodes that were never cordoned have no spec.unschedulable.
        text = "false" if value is None and self.value in ("true", "false") else _text(value)
        return (text == self.value) is not self.negated

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}{'!=' if self.negated else '='}{self.value}"


def _text(value: Any) -> str:
    if value is None or value is False:
        return "" if value is None else "false"
    return "true" if value is True else str(value)


@dataclass(frozen=True, slots=True)
class FieldSelector:
    requirements: tuple[FieldRequirement, ...] = ()

    def matches(self, raw: Mapping[str, Any]) -> bool:
        """Whether an object, as JSON, has these values; an absent field is the empty string."""
        return all(requirement.holds(raw) for requirement in self.requirements)

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def fields(text: str, selectable: Iterable[str] = ()) -> FieldSelector:
    """Reads a `fieldSelector` parameter: `spec.nodeName=n1,status.phase!=Failed`.

    `selectable` are the kind's fields (`Kind.selectable`); metadata.name and metadata.namespace always are.

    Raises:
        ValueError: no such form, or a field that cannot be selected by; lists those that can.
    """
    known = ("metadata.name", "metadata.namespace", *selectable)
    return FieldSelector(tuple(_field(part.strip(), known) for part in text.split(",") if part.strip()))


def _field(part: str, known: tuple[str, ...]) -> FieldRequirement:
    name, symbol, value = _split(part)
    if not symbol:
        raise ValueError(f"{part!r} is no field selector: want for example metadata.name=web or status.phase!=Failed")
    if name not in known:
        raise ValueError(f"field label not supported: {name}; supported: {', '.join(known)}")
    return FieldRequirement(tuple(name.split(".")), value, negated=symbol == "!=")


def _split(part: str) -> tuple[str, str, str]:
    for symbol in ("!=", "==", "="):
        name, found, value = part.partition(symbol)
        if found:
            return name.strip(), symbol, value.strip()
    return part, "", ""
