"""The small part of JSONPath that columns, scale subresources and selectable fields are written in.

`.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`, `.metadata.annotations.a\\.b/c`, `.items[0]`, `[*]`,
`..name` is not: a path says where things are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterable[Any]]

_NAME = re.compile(r"\.((?:[^.\[\]'\\]|\\.)+)")
_QUOTED = re.compile(r"\[\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")\s*\]")
_INDEX = re.compile(r"\[\s*(-?\d+)\s*\]", re.ASCII)
_EVERY = re.compile(r"\[\s*\*\s*\]|\.\*")
_FILTER = re.compile(
    r"\[\?\(\s*@((?:\.(?:[^.\[\]'\\()=!<>\s]|\\.)+)+)\s*(?:(==|!=)\s*(?:'([^']*)'|\"([^\"]*)\"|([^\s'\")]+)))?\s*\)\]"
)
_FIELDS = re.compile(r"(\.([A-Za-z_$@](?:[^.\[\]'\\]|\\.)*)|\['[^']+'\])+")


@lru_cache(maxsize=1024)
def path(text: str) -> tuple[Step, ...]:
    """The steps of a path, with or without braces.

    Raises:
        ValueError: it is none, or uses more of JSONPath than this.
    """
    rest = text.strip()
    if rest.startswith("{") and rest.endswith("}"):
        rest = rest[1:-1].strip()
    rest = rest.removeprefix("$")
    steps, position = [], 0
    while position < len(rest):
        for form, make in _FORMS:
            found = form.match(rest, position)
            if found:
                steps.append(make(found))
                position = found.end()
                break
        else:
            raise ValueError(f"cannot be read at {rest[position : position + 30]!r}")
    return tuple(steps)


def found(steps: Iterable[Step], value: Any) -> list[Any]:
    """The values that a path leads to."""
    values = [value]
    for step in steps:
        values = [inner for each in values for inner in step(each)]
    return values


def fields(text: str) -> tuple[str, ...] | None:
    """The fields of a path that only names fields, such as `.spec.replicas`; None: it is no such path."""
    if not _FIELDS.fullmatch(text):
        return None
    made: list[str] = []
    position = 0
    while position < len(text):
        match = _NAME.match(text, position) or _QUOTED.match(text, position)
        if match is None:
            return None
        made.append(_unescaped(next(part for part in match.groups() if part is not None)))
        position = match.end()
    return tuple(made)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _member(name: str) -> Step:
    return lambda value: (value[name],) if isinstance(value, Mapping) and name in value else ()


def _item(index: int) -> Step:
    return lambda value: value[index : index + 1 or None] if isinstance(value, list) else ()


def _inner(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def _filter(match: re.Match[str]) -> Step:
    steps = path(match[1])
    operator = match[2]
    wanted = next((part for part in match.groups()[2:] if part is not None), None)

    def chosen(item: Any) -> bool:
        values = found(steps, item)
        if operator is None:
            return bool(values)
        return bool(values) and (_text(values[0]) == wanted) is (operator == "==")

    return lambda value: [item for item in _inner(value) if chosen(item)]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]], ...] = (
    (_FILTER, _filter),
    (_EVERY, lambda match: _inner),
    (_INDEX, lambda match: _item(int(match[1]))),
    (_QUOTED, lambda match: _member(_unescaped(match[1] if match[1] is not None else match[2]))),
    (_NAME, lambda match: _member(_unescaped(match[1]))),
)
