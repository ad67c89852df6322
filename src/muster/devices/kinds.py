"""The devices of a node as some claims see them: which choice they suit, and which of them are alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.devices.inventory import Device, Holdings
from muster.devices.selectors import Failure, Selectors, has_capacity, tolerated
from muster.model.devices import Choice, ClaimShape


@dataclass(frozen=True, slots=True)
class Board:
    """Device `i` is the i-th of the node. Kinds are numbered by their first device."""

    devices: tuple[Device, ...]
    suits: Mapping[Choice, tuple[bool, ...]]
    """By choice: selected, and tolerated, and with capacity enough, whoever has it."""
    meant: Mapping[Choice, tuple[int, ...]]
    """By choice that wants them all: the devices that it selects and that have the capacity."""
    failures: Mapping[Choice, tuple[tuple[int, Failure], ...]]
    """By choice: devices of which an expression could not say whether it selects them."""
    kinds: tuple[tuple[int, ...], ...]
    """Devices that are alike to all these claims, ascending."""
    kind: tuple[int, ...]
    """By device: its kind."""

    def suiting(self, choice: Choice) -> int:
        """How many devices there are for a choice, if nobody had any."""
        suits = self.suits[choice]
        if any(self.devices[i].record.shared for i, fits in enumerate(suits) if fits):
            return choice.count or 1
        return sum(suits)


def board(devices: Sequence[Device], holdings: Holdings, claims: Sequence[ClaimShape], selectors: Selectors) -> Board:
    """What these claims see of the devices."""
    choices = list(dict.fromkeys(c for shape in claims for request in shape.requests for c in request))
    attributes = sorted({bond.attribute for shape in claims for bond in shape.constraints})
    suits: dict[Choice, tuple[bool, ...]] = {}
    meant: dict[Choice, tuple[int, ...]] = {}
    failures: dict[Choice, tuple[tuple[int, Failure], ...]] = {}
    for choice in choices:
        verdicts = [selectors.means(choice, device) for device in devices]
        able = [v is True and has_capacity(choice, d) for v, d in zip(verdicts, devices, strict=True)]
        suits[choice] = tuple(a and tolerated(choice, d) for a, d in zip(able, devices, strict=True))
        failures[choice] = tuple((i, v) for i, v in enumerate(verdicts) if isinstance(v, Failure))
        if choice.count is None:
            meant[choice] = tuple(i for i, a in enumerate(able) if a)
    found: dict[object, list[int]] = {}
    for i, device in enumerate(devices):
        looks = (
            tuple(suits[choice][i] for choice in choices),
            tuple(device.record.attributes.get(name) for name in attributes),
            (device.pool, device.record.draws) if device.record.draws else (),
            device.key in holdings.taken,
            device.key if device.record.shared else None,
        )
        found.setdefault(looks, []).append(i)
    kinds = tuple(map(tuple, found.values()))
    kind = {i: k for k, some in enumerate(kinds) for i in some}
    return Board(tuple(devices), suits, meant, failures, kinds, tuple(kind[i] for i in range(len(devices))))
