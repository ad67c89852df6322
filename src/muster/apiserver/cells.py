"""Cells that many kinds have: a value at a path, the name, the age."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muster.apiserver.log import Raw
from muster.apiserver.sheet import Column, Sheet

Cell = Callable[[Raw, Sheet], Any]

WIDE = 1


def at(path: str, absent: Any = "") -> Cell:
    """The value at a path such as `spec.nodeName`."""
    steps = path.split(".")

    def cell(raw: Raw, sheet: Sheet) -> Any:
        value: Any = raw
        for step in steps:
            value = (value or {}).get(step)
        return absent if value in (None, "") else value

    return cell


def text(path: str, absent: Any = "") -> Cell:
    inner = at(path, absent)
    return lambda raw, sheet: (
        str(inner(raw, sheet)).lower() if inner(raw, sheet) in (True, False) else str(inner(raw, sheet))
    )


def flag(path: str, absent: bool = False) -> Cell:
    inner = at(path, absent)
    return lambda raw, sheet: "true" if inner(raw, sheet) else "false"


NAME = Column("Name", at("metadata.name"), description="The name of the object, unique in its namespace.")
AGE = Column(
    "Age",
    lambda raw, sheet: sheet.age(raw["metadata"].get("creationTimestamp")),
    description="Time since it was created.",
)
GENERIC = (NAME, AGE)
