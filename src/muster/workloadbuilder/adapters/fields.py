"""A manifest read field by field: wrong types become errors at their own path instead of exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.validation import FieldError, Path
from muster.workloadbuilder.items import Block


class Field:
    """A place in a manifest, which may be empty. What is wrong there is added to `errors`, shared by all of them."""

    __slots__ = ("_value", "errors", "path")

    def __init__(self, value: Any, path: Path | None, errors: list[FieldError]) -> None:
        self._value = value
        self.path = path
        self.errors = errors

    @property
    def value(self) -> Any:
        return self._value

    @property
    def given(self) -> bool:
        return self._value is not None

    @property
    def place(self) -> Path:
        """Its path; of the whole manifest, nothing."""
        return self.path or Path("")

    def __truediv__(self, name: str) -> Field:
        return Field(self.mapping().get(name), Path(name, self.path), self.errors)

    def entry(self, key: str) -> Field:
        """The entry of a mapping whose keys are free: `metadata.annotations[key]`."""
        return Field(self.mapping().get(key), self.place.key(key), self.errors)

    def mapping(self) -> Block:
        return self._typed(Mapping, "a mapping", {})  # type: ignore[no-any-return]

    def items(self) -> list[Field]:
        listed = self._typed(list, "a list", [])
        found = [Field(value, self.place // index, self.errors) for index, value in enumerate(listed)]
        for each in found:
            if not each.given and not any(error.field == str(each.place) for error in self.errors):
                self.errors.append(each.place.required("an entry must not be empty"))
        return found

    def text(self, default: str = "") -> str:
        return self._typed(str, "text", default)  # type: ignore[no-any-return]

    def name(self) -> str:
        """Text that must be there."""
        if not self.given:
            self.errors.append(self.place.required())
        return self.text()

    def truth(self) -> bool:
        return self._typed(bool, "true or false", False)  # type: ignore[no-any-return]

    def number(self, default: int, least: int = 0, most: int = 2**31 - 1) -> int:
        if isinstance(self._value, bool):
            self.wrong("must be a whole number")
            return default
        found: int = self._typed(int, "a whole number", default)
        if self.given and found < least:
            self.wrong(f"must be at least {least}")
            return max(default, least)
        if found > most:
            self.wrong(f"must be at most {most}")
            return most
        return found

    def wrong(self, message: str) -> None:
        self.errors.append(self.place.invalid(self._value, message))

    def _typed(self, kind: type, what: str, default: Any) -> Any:
        if self._value is None:
            return default
        if isinstance(self._value, kind):
            return self._value
        if not any(error.field == str(self.place) for error in self.errors):
            self.wrong(f"must be {what}")
        return default
