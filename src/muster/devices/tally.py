"""What is left of the devices of a node while an allocation is tried out: given, and taken back in reverse order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from muster.devices.inventory import Counter, Holdings, Inventory
from muster.devices.kinds import Ask, Board
from muster.devices.selectors import consumed
from muster.model.devices import Choice, Constraint, Grant, Values

Bond = tuple[Values, ...]
"""What the devices under a constraint say so far: the values in common to them, or the values of each."""


class Claim(NamedTuple):
    """The claim that is being served: its constraints, what they bind to, and the devices that it has."""

    constraints: Sequence[Constraint]
    bonds: tuple[Bond, ...]
    mine: frozenset[int] = frozenset()
    watched: frozenset[int] = frozenset()
    """Those of them to which it has administrative access: it cannot have a part of them too."""


class Given(NamedTuple):
    """One device that was given, and what it was like before."""

    choice: Choice
    device: int
    before: Claim
    taken: bool
    parts: Mapping[str, int]
    drawn: bool


class Tally:
    """Devices are named by their place on the board."""

    def __init__(self, inventory: Inventory, board: Board, holdings: Holdings) -> None:
        self._board = board
        self._limits = inventory.counters
        self._taken = [device.key in holdings.taken for device in board.devices]
        self._consumed = [dict(holdings.consumed.get(device.key, ())) for device in board.devices]
        self._users = [int(device.key in holdings.consumed) for device in board.devices]
        self._drawn: dict[Counter, int] = dict(holdings.drawn)
        self.claim = Claim((), ())

    def begin(self, constraints: Sequence[Constraint]) -> Claim:
        """From now on another claim is served; returns the one before."""
        before, self.claim = self.claim, Claim(constraints, ((),) * len(constraints))
        return before

    def key(self) -> object:
        """Equal where the same can still be given: devices of one kind count, whichever they are."""
        mine, taken = self.claim.mine, self._taken
        kinds = tuple(tuple(sorted((taken[i], i in mine) for i in some)) for some in self._board.kinds)
        shared = tuple(
            (i, users, tuple(sorted(self._consumed[i].items())))
            for i, users in enumerate(self._users)
            if users and self._board.devices[i].record.shared
        )
        return kinds, shared, self.claim.bonds, tuple(sorted(self.claim.watched))

    def candidates(self, ask: Ask, last: int) -> Iterator[int]:
        """The first free device of each kind that suits, not before the last one given, ascending."""
        suits, choice = ask.suits, ask.choice
        heads: list[int] = []
        for some in self._board.kinds:
            if suits[some[0]]:
                free = (i for i in some if (choice.admin or not self._taken[i]) and not self._has_already(choice, i))
                heads += [i for i in (next(free, None),) if i is not None]
        return iter(sorted(i for i in heads if i > last or (i == last and self._board.devices[i].record.shared)))

    def give(self, ask: Ask, index: int) -> Given | None:
        """Gives a device for a choice; None, and nothing has changed: it cannot be given."""
        device, claim, choice = self._board.devices[index], self.claim, ask.choice
        shared = device.record.shared
        if not ask.suits[index] or self._has_already(choice, index):
            return None
        bonds = self._bound(choice, index)
        if bonds is None:
            return None
        taken = drawn = False
        parts: Mapping[str, int] = {}
        if not choice.admin:
            if not shared and self._taken[index]:
                return None
            parts = (consumed(choice, device) or {}) if shared else {}
            if not self._has_left(index, parts):
                return None
            drawn = not self._users[index]
            if drawn and not self._draw(index):
                return None
            taken = not shared
            self._taken[index] |= taken
            self._users[index] += 1
            for name, amount in parts.items():
                self._consumed[index][name] = self._consumed[index].get(name, 0) + amount
        watched = claim.watched | {index} if choice.admin else claim.watched
        self.claim = Claim(claim.constraints, bonds, claim.mine | {index}, watched)
        return Given(choice, index, claim, taken, parts, drawn)

    def take_back(self, given: Given) -> None:
        """Undoes the last `give` that is not undone yet."""
        self.claim = given.before
        if given.choice.admin:
            return
        index = given.device
        self._users[index] -= 1
        if given.taken:
            self._taken[index] = False
        for name, amount in given.parts.items():
            self._consumed[index][name] -= amount
            if not self._consumed[index][name]:
                del self._consumed[index][name]
        if given.drawn:
            for counter, amount in self._draws(index):
                self._drawn[counter] -= amount

    def grant(self, choice: Choice, index: int) -> Grant:
        """What the claim is told of a device that it was given."""
        device = self._board.devices[index]
        parts = (consumed(choice, device) or {}) if device.record.shared else {}
        return Grant(choice.name, device.key, choice.admin, tuple(sorted(parts.items())))

    def _has_already(self, choice: Choice, index: int) -> bool:
        """Whether the claim has the device, and not only a part that leaves room for another."""
        parts = self._board.devices[index].record.shared and not choice.admin and index not in self.claim.watched
        return index in self.claim.mine and not parts

    def _bound(self, choice: Choice, index: int) -> tuple[Bond, ...] | None:
        """What the constraints of the claim bind to with this device as well; None: they do not allow it (D6)."""
        bonds: list[Bond] = []
        for constraint, bond in zip(self.claim.constraints, self.claim.bonds, strict=True):
            if constraint.covers(choice):
                attribute = self._board.devices[index].record.attributes.get(constraint.attribute)
                if attribute is None:
                    return None
                value = attribute.said
                if constraint.distinct:
                    if any(value & other for other in bond):
                        return None
                    bond = tuple(sorted((*bond, value), key=repr))
                else:
                    common = value & bond[0] if bond else value
                    if not common:
                        return None
                    bond = (common,)
            bonds.append(bond)
        return tuple(bonds)

    def _has_left(self, index: int, parts: Mapping[str, int]) -> bool:
        capacity, consumed_now = self._board.devices[index].record.capacity, self._consumed[index]
        return all(consumed_now.get(name, 0) + amount <= capacity[name].value for name, amount in parts.items())

    def _draws(self, index: int) -> Iterator[tuple[Counter, int]]:
        device = self._board.devices[index]
        for draw in device.record.draws:
            yield (device.pool, draw.counters, draw.counter), draw.amount

    def _draw(self, index: int) -> bool:
        """Takes what the device draws from its counters, or nothing."""
        draws = list(self._draws(index))
        if any(self._drawn.get(counter, 0) + amount > self._limits.get(counter, 0) for counter, amount in draws):
            return False
        for counter, amount in draws:
            self._drawn[counter] = self._drawn.get(counter, 0) + amount
        return True
