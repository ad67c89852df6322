"""Which things belong to which: pods to nodes, to groups, to owners."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)


class Membership(Generic[K, V]):
    """Sets by key, in order of arrival, so that iteration does not depend on hash seeds. Empty sets take no room."""

    __slots__ = ("_sets",)

    def __init__(self) -> None:
        self._sets: dict[K, dict[V, None]] = {}

    def add(self, key: K, value: V) -> None:
        members = self._sets.get(key)
        if members is None:
            members = self._sets[key] = {}
        members[value] = None

    def discard(self, key: K, value: V) -> None:
        members = self._sets.get(key)
        if members is not None:
            members.pop(value, None)
            if not members:
                del self._sets[key]

    def of(self, key: K) -> Collection[V]:
        """The members of `key`; a view, not to be changed while it is iterated over."""
        members = self._sets.get(key)
        return () if members is None else members.keys()

    def __contains__(self, key: K) -> bool:
        return key in self._sets
