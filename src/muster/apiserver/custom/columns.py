"""The columns of a user's kind: name, what its definition says, and age if it says nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from muster.api.structure import jsonpath
from muster.apiserver.cells import AGE, NAME
from muster.apiserver.custom.kinds import CustomKind
from muster.apiserver.log import Raw
from muster.apiserver.sheet import Column, Sheet


def columns(kind: CustomKind) -> tuple[Column, ...]:
    if not kind.columns:
        return (NAME, AGE)
    return (NAME, *map(_column, kind.columns))


def _column(given: Mapping[str, Any]) -> Column:
    steps = jsonpath.path(given["jsonPath"])
    form = given["type"]

    def cell(raw: Raw, sheet: Sheet) -> Any:
        found = jsonpath.found(steps, raw)
        return None if not found else _FORMS[form](found, sheet)

    said = given.get("description") or f"Custom resource definition column (in JSONPath format): {given['jsonPath']}"
    return Column(given["name"], cell, form, given.get("priority", 0), said, given.get("format", ""))


def _text(values: list[Any], sheet: Sheet) -> Any:
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    shown = [value if isinstance(value, str) else msgspec.json.encode(value).decode() for value in values]
    return shown[0] if len(shown) == 1 else f"[{','.join(shown)}]"


def _number(values: list[Any], sheet: Sheet) -> Any:
    value = values[0]
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(values: list[Any], sheet: Sheet) -> Any:
    value = _number(values, sheet)
    return None if value is None else int(value)


def _flag(values: list[Any], sheet: Sheet) -> Any:
    return values[0] if isinstance(values[0], bool) else None


def _date(values: list[Any], sheet: Sheet) -> Any:
    try:
        return sheet.age(values[0])
    except (TypeError, ValueError, OverflowError):
        return "<unknown>"


_FORMS: Mapping[str, Callable[[list[Any], Sheet], Any]] = {
    "boolean": _flag,
    "date": _date,
    "integer": _whole,
    "number": _number,
    "string": _text,
}
