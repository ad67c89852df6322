"""The devices of some nodes as some claims see them: which request they suit, and which of them are alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from muster.devices.inventory import Device, Holdings
from muster.devices.selectors import Selectors, has_capacity, tolerated
from muster.model.devices import Choice, ClaimShape, DeviceKey, Failure


class Want(NamedTuple):
    """A claim that is to be served."""

    shape: ClaimShape
    usable: frozenset[DeviceKey] | None = None
    """What can be used from all nodes of its pods; None: every device that is looked at."""
    complete: bool = True
    """Whether all pools that can be used from there are; if not, nobody can have all devices of a kind (D1, D4)."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A choice of a claim, and which devices are good for it. Device `i` is the i-th of the board."""

    choice: Choice
    suits: tuple[bool, ...]
    """Selected, and tolerated, and with capacity enough, whoever has it."""
    meant: tuple[int, ...]
    """Those that it selects and that have the capacity: what a choice that wants them all has to get."""
    failures: tuple[tuple[int, Failure], ...]
    """Devices of which an expression could not say whether it selects them."""

    @property
    def wanted(self) -> int:
        """The devices that it takes to meet it, at least one."""
        return max(1, len(self.meant)) if self.choice.count is None else self.choice.count


@dataclass(frozen=True, slots=True)
class Board:
    """Kinds are numbered by their first device."""

    devices: tuple[Device, ...]
    asks: tuple[tuple[tuple[Ask, ...], ...], ...]
    """By claim, by request: its choices."""
    kinds: tuple[tuple[int, ...], ...]
    """Devices that are alike to all these claims, ascending."""

    def enough(self, ask: Ask) -> bool:
        """Whether there are devices enough for it, if nobody had any."""
        able = [i for i, suits in enumerate(ask.suits) if suits]
        return len(able) >= ask.wanted or any(self.devices[i].record.shared for i in able)


def board(devices: Sequence[Device], holdings: Holdings, wants: Sequence[Want], selectors: Selectors) -> Board:
    """What these claims see of the devices."""
    made: dict[tuple[Choice, frozenset[DeviceKey] | None], Ask] = {}
    asks = tuple(
        tuple(tuple(_ask(made, c, want.usable, devices, selectors) for c in request) for request in want.shape.requests)
        for want in wants
    )
    bonds = sorted({constraint.attribute for want in wants for constraint in want.shape.constraints})
    different = list(made.values())
    kinds: dict[object, list[int]] = {}
    for i, device in enumerate(devices):
        looks = (
            tuple(ask.suits[i] for ask in different),
            tuple(device.record.attributes.get(name) for name in bonds),
            (device.pool, device.record.draws) if device.record.draws else (),
            device.key in holdings.taken,
            device.key if device.record.shared else None,
        )
        kinds.setdefault(looks, []).append(i)
    return Board(tuple(devices), asks, tuple(map(tuple, kinds.values())))


def _ask(
    made: dict[tuple[Choice, frozenset[DeviceKey] | None], Ask],
    choice: Choice,
    usable: frozenset[DeviceKey] | None,
    devices: Sequence[Device],
    selectors: Selectors,
) -> Ask:
    known = made.get((choice, usable))
    if known is None:
        mine = [(i, d) for i, d in enumerate(devices) if usable is None or d.key in usable]
        verdicts: Mapping[int, bool | Failure] = {i: selectors.means(choice, d) for i, d in mine}
        meant = tuple(i for i, d in mine if verdicts[i] is True and has_capacity(choice, d))
        good = {i for i in meant if tolerated(choice, devices[i])}
        failures = tuple((i, verdict) for i, verdict in verdicts.items() if isinstance(verdict, Failure))
        known = made[choice, usable] = Ask(choice, tuple(i in good for i in range(len(devices))), meant, failures)
    return known
