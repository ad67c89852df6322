"""How the scheduler names things: namespaced objects by key, nodes by name, incarnations by uid."""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """A namespaced object of a kind that the context says."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
