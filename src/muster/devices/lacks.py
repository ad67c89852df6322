"""What a claim lacks on the node that comes nearest to serving it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from muster.devices.inventory import Device, Holdings
from muster.devices.kinds import Ask, Board, Want, board
from muster.devices.selectors import Selectors
from muster.model.devices import Constraint, DeviceLack


def lack_of(devices: Sequence[Device], holdings: Holdings, want: Want, selectors: Selectors) -> DeviceLack | None:
    """The first thing that keeps these devices from serving a claim by itself; None: no request alone, and no
    constraint over the devices that are free, does.

    Of a request with several choices the last one speaks: it is what the user would make do with.
    """
    table = board(devices, holdings, [want], selectors)
    for choices in table.asks[0]:
        lacks = [_short(table, ask, holdings) for ask in choices]
        if all(lack is not None for lack in lacks):
            return lacks[-1]
    for constraint in want.shape.constraints:
        found = None if constraint.distinct else _unlike(table, constraint, holdings)
        if found is not None:
            return found
    return None


def _short(table: Board, ask: Ask, holdings: Holdings) -> DeviceLack | None:
    """What one request lacks, whatever the others take."""
    if ask.failures and ask.choice.count is None:
        index, failure = ask.failures[0]
        return _lack(ask, 0, failed=str(table.devices[index].key), why=str(failure))
    free = _free(table, ask, holdings)
    if any(table.devices[i].record.shared for i in free) or len(free) >= ask.wanted:
        return None
    tainted = [i for i in ask.meant if not ask.suits[i]]
    taken = len(ask.meant) - len(tainted) - len(free)
    lack = _lack(ask, len(free), taken=taken, tainted=len(tainted))
    if ask.failures and not ask.meant:
        index, failure = ask.failures[0]
        return lack._replace(failed=str(table.devices[index].key), why=str(failure))
    return lack


def _unlike(table: Board, constraint: Constraint, holdings: Holdings) -> DeviceLack | None:
    """What is lacking of devices with one value in common, where there are enough with different ones."""
    asks = [choices[0] for choices in table.asks[0] if len(choices) == 1 and constraint.covers(choices[0].choice)]
    needed = sum(ask.wanted for ask in asks)
    values: Counter[object] = Counter()
    for i in {i for ask in asks for i in _free(table, ask, holdings)}:
        attribute = table.devices[i].record.attributes.get(constraint.attribute)
        if attribute is not None:
            values.update(value for _, value in attribute.said)
    best = min(values, key=lambda value: (-values[value], str(value)), default=None)
    if not asks or (best is not None and values[best] >= needed):
        return None
    found = values[best] if best is not None else 0
    return _lack(asks[0], found, needed=needed, attribute=constraint.attribute, value="" if best is None else str(best))


def _free(table: Board, ask: Ask, holdings: Holdings) -> list[int]:
    return [
        i
        for i, suits in enumerate(ask.suits)
        if suits and (ask.choice.admin or table.devices[i].key not in holdings.taken)
    ]


def _lack(ask: Ask, found: int, *, needed: int | None = None, **more: str | int) -> DeviceLack:
    wanted = ask.wanted if needed is None else needed
    return DeviceLack(ask.choice.name, ask.choice.device_class, wanted, found, **more)  # type: ignore[arg-type]
