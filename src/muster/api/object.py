"""A Kubernetes object: its raw JSON, and a typed view of the fields Muster reads, decoded on first use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T")


class Object:
    """Raw JSON with a lazily decoded typed view, so that fields unknown to Muster survive.

    `raw` is shared with the store and with other readers: it is never changed in place.
    """

    __slots__ = ("_view", "raw")

    raw: Mapping[str, Any]

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self._view: Any = None

    def view(self, struct: type[T]) -> T:
        """The fields of `struct`, decoded once and kept.

        Raises:
            msgspec.ValidationError: a field has another type than the API says.
        """
        if type(self._view) is not struct:
            self._view = msgspec.convert(self.raw, struct, strict=False)
        return cast("T", self._view)

    @property
    def meta(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self.raw.get("metadata") or {})

    @property
    def name(self) -> str:
        return cast("str", self.meta.get("name", ""))

    @property
    def namespace(self) -> str:
        return cast("str", self.meta.get("namespace", ""))

    @property
    def uid(self) -> str:
        return cast("str", self.meta.get("uid", ""))

    @property
    def revision(self) -> str:
        """`metadata.resourceVersion`: opaque, compare for equality only."""
        return cast("str", self.meta.get("resourceVersion", ""))

    @property
    def kind(self) -> str:
        return cast("str", self.raw.get("kind", ""))

    def __repr__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"<{self.kind} {where} @{self.revision}>"
