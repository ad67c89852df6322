"""Devices for claims, all of them or none: the first allocation in the order of wishes, or a proof that there is none.

The order: earlier claims, earlier requests, earlier choices of a list, then devices in the order of the inventory. It
is a depth-first search that comes back to earlier decisions, so that no claim takes what a later one cannot do without
(D7, D31). Devices that the claims cannot tell apart are of one kind, of which only the first free one is tried; states
that led nowhere are remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muster.devices.inventory import Device, Holdings, Inventory
from muster.devices.kinds import Ask, Board, Want, board
from muster.devices.selectors import Selectors
from muster.devices.tally import Given, Tally
from muster.model.devices import Grant

MOST_RESULTS = 32
"""Devices of one claim (D13)."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """`grants` has the devices of each claim, in their order; None: there is no allocation, if `proven`."""

    grants: tuple[tuple[Grant, ...], ...] | None
    proven: bool
    work: int
    """States looked at."""


def allocate(
    inventory: Inventory,
    devices: Sequence[Device],
    holdings: Holdings,
    wants: Sequence[Want],
    selectors: Selectors,
    *,
    budget: int,
) -> Allocation:
    """What each of the claims gets.

    Args:
        devices: those that can be used from any node of the claims, in the order of the inventory.
        holdings: what others have.
        budget: states that may be looked at.
    """
    table = board(devices, holdings, wants, selectors)
    search = _Search(Tally(inventory, table, holdings), table, wants, budget)
    found = search.claim(0) if search.enough() else False
    grants = tuple(map(tuple, search.grants)) if found else None
    return Allocation(grants, found or search.left >= 0, budget - max(search.left, 0))


class _Search:
    """`grants` says what is given so far; the tally what that leaves."""

    def __init__(self, tally: Tally, table: Board, wants: Sequence[Want], budget: int) -> None:
        self._tally = tally
        self._board = table
        self._wants = wants
        self._dead: set[object] = set()
        self.left = budget
        self.grants: list[list[Grant]] = [[] for _ in wants]

    def enough(self) -> bool:
        """Whether there are as many devices as each request asks for: what else may fail is searched."""
        return all(any(map(self._board.enough, choices)) for asks in self._board.asks for choices in asks)

    def claim(self, i: int) -> bool:
        """Gives all claims from the i-th on what they ask for."""
        if i == len(self._wants):
            return True
        before = self._tally.begin(self._wants[i].shape.constraints)
        if self._request(i, 0):
            return True
        self._tally.claim = before
        return False

    def _request(self, i: int, r: int) -> bool:
        """Gives the i-th claim what its requests from the r-th on ask for, and all later claims theirs."""
        asks = self._board.asks[i]
        if r == len(asks):
            return self.claim(i + 1)
        for c, ask in enumerate(asks[r]):
            if ask.wanted <= MOST_RESULTS - len(self.grants[i]):
                if ask.choice.count is None:
                    if self._all(i, r, ask):
                        return True
                elif self._some(i, r, c, ask.choice.count, -1):
                    return True
        return False

    def _some(self, i: int, r: int, c: int, count: int, last: int) -> bool:
        """Gives `count` more devices for a choice, none before the `last` one given for it."""
        if not count:
            return self._request(i, r + 1)
        key = (i, r, c, count, last, len(self.grants[i]), self._tally.key())
        if key in self._dead or not self._pay():
            return False
        ask = self._board.asks[i][r][c]
        for index in self._tally.candidates(ask, last):
            given = self._give(i, ask, index)
            if given is not None:
                if self._some(i, r, c, count - 1, index):
                    return True
                self._take_back(i, given)
        if self.left >= 0:
            self._dead.add(key)
        return False

    def _all(self, i: int, r: int, ask: Ask) -> bool:
        """Gives a choice all devices that it means (D4). Of one that it cannot judge it cannot be said (D5)."""
        if not self._wants[i].complete or not ask.meant or ask.failures or not self._pay():
            return False
        done: list[Given] = []
        for index in ask.meant:
            given = self._give(i, ask, index)
            if given is None:
                break
            done.append(given)
        if len(done) == len(ask.meant) and self._request(i, r + 1):
            return True
        for given in reversed(done):
            self._take_back(i, given)
        return False

    def _give(self, i: int, ask: Ask, index: int) -> Given | None:
        given = self._tally.give(ask, index)
        if given is not None:
            self.grants[i].append(self._tally.grant(ask.choice, index))
        return given

    def _take_back(self, i: int, given: Given) -> None:
        self.grants[i].pop()
        self._tally.take_back(given)

    def _pay(self) -> bool:
        """Whether one more state may be looked at."""
        self.left -= 1
        return self.left >= 0
