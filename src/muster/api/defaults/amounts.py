"""Amounts in canonical form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api import quantity


def amounts(given: Any) -> Any:
    """A resource list in canonical form; what is no quantity is left for validation to find."""
    if not isinstance(given, Mapping):
        return given
    return {name: _canonical(value) for name, value in given.items()}


def _canonical(value: Any) -> Any:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return value
    try:
        return quantity.canonical(value)
    except ValueError:
        return value
