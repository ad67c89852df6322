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
from muster.devices.kinds import Board, board
from muster.devices.selectors import Selectors
from muster.devices.tally import Given, Tally
from muster.model.devices import Choice, ClaimShape, Grant

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
    claims: Sequence[ClaimShape],
    selectors: Selectors,
    *,
    budget: int,
    complete: bool = True,
) -> Allocation:
    """What each of the claims gets on a node.

    Args:
        devices: those that can be used there, in the order of the inventory.
        holdings: what others have.
        budget: states that may be looked at.
        complete: whether all pools that can be used there are; if not, nobody can have all devices of a kind (D1, D4).
    """
    table = board(devices, holdings, claims, selectors)
    search = _Search(Tally(inventory, table, holdings), table, claims, budget, complete)
    found = search.claim(0) if search.enough() else False
    grants = tuple(map(tuple, search.grants)) if found else None
    return Allocation(grants, found or search.left >= 0, budget - max(search.left, 0))


class _Search:
    """`grants` says what is given so far; the tally what that leaves."""

    def __init__(self, tally: Tally, table: Board, claims: Sequence[ClaimShape], budget: int, complete: bool) -> None:
        self._tally = tally
        self._board = table
        self._claims = claims
        self._complete = complete
        self._dead: set[object] = set()
        self.left = budget
        self.grants: list[list[Grant]] = [[] for _ in claims]

    def enough(self) -> bool:
        """Whether there are as many devices as each request asks for: what else may fail is searched."""
        return all(
            any(self._board.suiting(choice) >= (1 if choice.count is None else choice.count) for choice in choices)
            for shape in self._claims
            for choices in shape.requests
        )

    def claim(self, i: int) -> bool:
        """Gives all claims from the i-th on what they ask for."""
        if i == len(self._claims):
            return True
        before = self._tally.begin(self._claims[i].constraints)
        if self._request(i, 0):
            return True
        self._tally.claim = before
        return False

    def _request(self, i: int, r: int) -> bool:
        """Gives the i-th claim what its requests from the r-th on ask for, and all later claims theirs."""
        requests = self._claims[i].requests
        if r == len(requests):
            return self.claim(i + 1)
        for choice in requests[r]:
            room = MOST_RESULTS - len(self.grants[i])
            if choice.count is None:
                if len(self._board.meant[choice]) <= room and self._all(i, r, choice):
                    return True
            elif choice.count <= room and self._some(i, r, choice, choice.count, -1):
                return True
        return False

    def _some(self, i: int, r: int, choice: Choice, count: int, last: int) -> bool:
        """Gives `count` more devices for a choice, none before the `last` one given for it."""
        if not count:
            return self._request(i, r + 1)
        key = (i, r, choice.name, count, last, len(self.grants[i]), self._tally.key())
        if key in self._dead or not self._pay():
            return False
        for index in self._tally.candidates(choice, last):
            given = self._give(i, choice, index)
            if given is not None:
                if self._some(i, r, choice, count - 1, index):
                    return True
                self._take_back(i, given)
        if self.left >= 0:
            self._dead.add(key)
        return False

    def _all(self, i: int, r: int, choice: Choice) -> bool:
        """Gives a choice all devices that it means (D4). Of one that it cannot judge it cannot be said (D5)."""
        wanted = self._board.meant[choice]
        if not self._complete or not wanted or self._board.failures[choice] or not self._pay():
            return False
        done: list[Given] = []
        for index in wanted:
            given = self._give(i, choice, index)
            if given is None:
                break
            done.append(given)
        if len(done) == len(wanted) and self._request(i, r + 1):
            return True
        for given in reversed(done):
            self._take_back(i, given)
        return False

    def _give(self, i: int, choice: Choice, index: int) -> Given | None:
        given = self._tally.give(choice, index)
        if given is not None:
            self.grants[i].append(self._tally.grant(choice, index))
        return given

    def _take_back(self, i: int, given: Given) -> None:
        self.grants[i].pop()
        self._tally.take_back(given)

    def _pay(self) -> bool:
        """Whether one more state may be looked at."""
        self.left -= 1
        return self.left >= 0
