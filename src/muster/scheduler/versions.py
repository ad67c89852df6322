"""Which watch events are news: late, reordered and repeated ones are told apart by uid and resourceVersion."""

from __future__ import annotations

from collections.abc import Set

from muster.model.keys import Key

_REMEMBERED = 20_000
"""Ended incarnations remembered, so that a late event does not bring one back."""


def version(revision: str) -> int | None:
    """A resourceVersion as a number (KEP-5504: they are comparable); None where it is none, which is always news."""
    return int(revision) if revision.isdecimal() else None


class Versions:
    """The newest known incarnation and version of every object of one resource."""

    __slots__ = ("_current", "_ended")

    def __init__(self) -> None:
        self._current: dict[Key, tuple[str, int | None]] = {}
        self._ended: dict[str, None] = {}

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return bool(self._current)

    def accepts(self, key: Key, uid: str, at: int | None) -> bool:
        """Whether this state of an object is news, and if so, notes it.

        Another incarnation under the same name is news unless it is known to have ended or is older than the known one.
        """
        if uid in self._ended:
            return False
        known = self._current.get(key)
        if known is not None:
            if at is not None and known[1] is not None and (at <= known[1] if uid == known[0] else at < known[1]):
                return False
            if known[0] != uid:
                self._end(known[0])
        self._current[key] = (uid, at)
        return True

    def ends(self, key: Key, uid: str) -> bool:
        """Whether a deletion of this incarnation is news, and if so, notes it."""
        known = self._current.get(key)
        self._end(uid)
        if known is None or known[0] != uid:
            return False
        del self._current[key]
        return True

    def missing(self, listed: Set[Key]) -> list[Key]:
        """Known objects that are not among those listed; they are noted as ended."""
        gone = [key for key in self._current if key not in listed]
        for key in gone:
            self._end(self._current.pop(key)[0])
        return gone

    def _end(self, uid: str) -> None:
        if len(self._ended) >= _REMEMBERED:
            del self._ended[next(iter(self._ended))]
        self._ended[uid] = None
