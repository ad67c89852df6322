"""Several profiles on the same nodes, one after another: the next decides once all that the last placed is known to it.

Each scheduler keeps its own account of the nodes. What one has decided and the server has not told yet is in that one's
account alone; so only one decides at a time, and hands over when nothing of it is under way any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from muster.api.instant import SECOND, Instant

SHARE = SECOND // 5
"""How long one may go on while another has something to decide."""
LONGEST = 30 * SECOND
"""Placements that take longer to be told (a volume that is being made) are not waited for."""


class Player(Protocol):
    """One scheduler, as far as turns are concerned."""

    @property
    def busy(self) -> bool:
        """Something to be decided waits."""

    @property
    def clear(self) -> bool:
        """Nothing is being decided, and everything that was is told by the server."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class Turns:
    """`look` whenever something may have changed; it pauses and resumes, and says when to look again."""

    def __init__(self, players: Sequence[Player], stuck: Callable[[Player], None]) -> None:
        self._players, self._stuck = players, stuck
        self._playing: int | None = None
        self._since: Instant = 0
        self._leaving: Instant | None = None
        """Since when the one that plays is paused to hand over."""

    def may_play(self, player: Player) -> bool:
        """Whether it is this one's turn, and not over."""
        return self._playing is not None and self._players[self._playing] is player and self._leaving is None

    def begin(self, now: Instant) -> None:
        """From now on somebody plays: the first."""
        self._playing, self._since, self._leaving = 0, now, None
        self._players[0].resume()

    def end(self) -> None:
        """Nobody plays any more; all of them are paused by whoever calls this."""
        self._playing = self._leaving = None

    def look(self, now: Instant) -> Instant | None:
        """Moves the turn on where it is time; when to look again at the latest, None: whenever something happens."""
        if self._playing is None:
            return None
        player, following = self._players[self._playing], self._next(self._playing)
        if self._leaving is not None:
            if player.clear or now >= self._leaving + LONGEST:
                if not player.clear:
                    self._stuck(player)
                self._hand_over(following if following is not None else self._playing, now)
                return self.look(now) if following is None else None
            return self._leaving + LONGEST
        if following is None:
            return None
        if player.busy and now < self._since + SHARE:
            return self._since + SHARE
        player.pause()
        self._leaving = now
        return self.look(now)

    def _next(self, playing: int) -> int | None:
        """Who has something to decide, in turn after the one that plays."""
        count = len(self._players)
        order = [(playing + step) % count for step in range(1, count)]
        return next((number for number in order if self._players[number].busy), None)

    def _hand_over(self, to: int, now: Instant) -> None:
        self._playing, self._since, self._leaving = to, now, None
        self._players[to].resume()
