"""Reads a decoded document field by field; whatever is wrong is said with the path of the field and what to write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.api.instant import SECOND, Instant

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")


class Wrong(ValueError):
    """A file that cannot be used: `file: profiles[0].schedulerName: ...`."""


@dataclass(frozen=True)
class Field:
    """One value and where it stands. None: it is not given."""

    value: Any
    path: str

    def wrong(self, why: str) -> Wrong:
        return Wrong(f"{self.path}: {why}")

    @property
    def given(self) -> bool:
        return self.value is not None

    def only(self, *known: str) -> Field:
        """Itself, a mapping with no other keys than these."""
        if not self.given:
            return Field({}, self.path)
        if not isinstance(self.value, Mapping):
            raise self.wrong(f"must be a mapping with {', '.join(known)}")
        for key in self.value:
            if key not in known:
                raise self.at(str(key)).wrong(f"unknown field; there are {', '.join(known)}")
        return self

    def at(self, name: str) -> Field:
        return Field(self.value.get(name) if isinstance(self.value, Mapping) else None, self._named(name))

    def _named(self, name: str) -> str:
        return f"{self.path}{name}" if self.path.endswith((": ", ".")) else f"{self.path}.{name}"

    def items(self, what: str) -> Iterator[Field]:
        """The entries of a list; none where it is not given."""
        if not self.given:
            return
        if not isinstance(self.value, list):
            raise self.wrong(f"must be a list of {what}")
        for number, entry in enumerate(self.value):
            yield Field(entry, f"{self.path}[{number}]")

    def text(self, default: str | None = None, example: str = "") -> str:
        if not self.given and default is not None:
            return default
        if not isinstance(self.value, str) or not self.value:
            raise self.wrong(f"{self._shown()}; give text{f', as {example}' if example else ''}")
        return self.value

    def flag(self, default: bool) -> bool:
        if not self.given:
            return default
        if type(self.value) is not bool:
            raise self.wrong(f"{self._shown()}; want true or false")
        return self.value

    def whole(self, default: int | None, least: int, most: int) -> int:
        if not self.given and default is not None:
            return default
        if type(self.value) is not int or not least <= self.value <= most:
            raise self.wrong(f"{self._shown()}; give a whole number from {least} to {most}")
        return self.value

    def one_of(self, known: Sequence[str], default: str) -> str:
        if not self.given:
            return default
        if self.value not in known:
            raise self.wrong(f"{self._shown()}; want {' or '.join(known)}")
        return str(self.value)

    def duration(self, default: Instant) -> Instant:
        """A Go duration: 15s, 1m30s, 500ms."""
        if not self.given:
            return default
        parts = _DURATION.findall(self.value) if isinstance(self.value, str) else []
        if not parts or "".join(number + unit for number, unit in parts) != self.value:
            raise self.wrong(f"{self._shown()}; give a duration, as 15s or 1m30s")
        return round(sum(float(number) * _UNITS[unit] for number, unit in parts) * SECOND)

    def _shown(self) -> str:
        return "missing" if not self.given else repr(self.value)
