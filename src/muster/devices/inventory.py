"""What devices there are: pools put together from their slices, and who has what of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from muster.model.devices import DeviceKey, DeviceRecord, DeviceTaint, Grant, PoolKey, Reach, SliceRecord, TaintRule

Counter = tuple[PoolKey, str, str]
"""A counter of a pool: (pool, counter set, counter)."""
Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Device:
    """A device that can be allocated."""

    key: DeviceKey
    record: DeviceRecord
    reach: Reach
    taints: tuple[DeviceTaint, ...]
    """Its own, and those of rules."""

    @property
    def pool(self) -> PoolKey:
        return PoolKey(self.key.driver, self.key.pool)


@dataclass(frozen=True, slots=True)
class Pool:
    """The newest generation of a pool. With a `fault` none of its devices may be used (D1)."""

    key: PoolKey
    devices: tuple[Device, ...] = ()
    counters: Mapping[Counter, int] = field(default_factory=dict)
    reaches: frozenset[Reach] = frozenset()
    """From where any of it can be used, whether it is complete or not."""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Holdings:
    """Who has what: devices that are taken, parts of shared ones, and what that takes of counters.

    Administrative access takes nothing (D8).
    """

    taken: frozenset[DeviceKey] = frozenset()
    consumed: Mapping[DeviceKey, Amounts] = field(default_factory=dict)
    """Of each shared device what is consumed of its capacities, by complete name."""
    drawn: Mapping[Counter, int] = field(default_factory=dict)


class Inventory:
    """All pools. The order of devices is that of an allocation: pools with binding conditions come last, otherwise by
    driver, pool, name of the slice, and place in it."""

    def __init__(self, slices: Iterable[SliceRecord], rules: Sequence[TaintRule] = ()) -> None:
        newest: dict[PoolKey, list[SliceRecord]] = {}
        for one in slices:
            known = newest.get(one.pool)
            if known is None or one.generation > known[0].generation:
                newest[one.pool] = [one]
            elif one.generation == known[0].generation:
                known.append(one)
        pools = [_pool(key, sorted(some, key=lambda s: s.name), rules) for key, some in newest.items()]
        pools.sort(key=lambda pool: (any(d.record.conditions for d in pool.devices), pool.key))
        self.pools: Mapping[PoolKey, Pool] = {pool.key: pool for pool in pools}
        self.devices: tuple[Device, ...] = tuple(d for pool in pools if not pool.fault for d in pool.devices)
        self.counters: Mapping[Counter, int] = {c: n for pool in pools for c, n in pool.counters.items()}
        self._index = {device.key: device for pool in pools for device in pool.devices}

    def device(self, key: DeviceKey) -> Device | None:
        """None: no slice offers it any more."""
        return self._index.get(key)

    def holdings(self, grants: Iterable[Grant], beside: Holdings | None = None) -> Holdings:
        """What these grants take, beside what is held already."""
        before = Holdings() if beside is None else beside
        taken = set(before.taken)
        consumed = {key: dict(amounts) for key, amounts in before.consumed.items()}
        drawn = dict(before.drawn)
        for grant in grants:
            if grant.admin:
                continue
            device = self._index.get(grant.device)
            first = grant.device not in taken and grant.device not in consumed
            if grant.consumed or (device is not None and device.record.shared):
                parts = consumed.setdefault(grant.device, {})
                for name, amount in grant.consumed:
                    parts[name] = parts.get(name, 0) + amount
            else:
                taken.add(grant.device)
            if first and device is not None:
                for draw in device.record.draws:
                    counter = (device.pool, draw.counters, draw.counter)
                    drawn[counter] = drawn.get(counter, 0) + draw.amount
        return Holdings(frozenset(taken), consumed, drawn)


def _pool(key: PoolKey, slices: Sequence[SliceRecord], rules: Sequence[TaintRule]) -> Pool:
    devices: list[Device] = []
    counters: dict[Counter, int] = {}
    reaches: set[Reach] = set()
    sets: set[str] = set()
    fault = ""
    if len(slices) != slices[0].slices:
        fault = f"it has {len(slices)} of {slices[0].slices} slices"
    for one in slices:
        mine = {name for name, _ in one.counters}
        if doubled := sorted(sets & mine):
            fault = fault or f'counter set "{doubled[0]}" is there twice'
        sets |= mine
        counters.update({(key, *name): amount for name, amount in one.counters.items()})
        for record in one.devices:
            device_key = DeviceKey(*key, record.name)
            reach = record.reach if record.reach is not None else one.reach
            taints = tuple(dict.fromkeys((*record.taints, *(r.taint for r in rules if r.means(device_key)))))
            devices.append(Device(device_key, record, reach, taints))
            reaches.add(reach)
    return Pool(key, tuple(devices), counters, frozenset(reaches), fault or _fault(key, devices, counters))


def _fault(key: PoolKey, devices: Sequence[Device], counters: Mapping[Counter, int]) -> str:
    seen: set[str] = set()
    for device in devices:
        if device.record.name in seen:
            return f'device "{device.record.name}" is there twice'
        seen.add(device.record.name)
        for draw in device.record.draws:
            if (key, draw.counters, draw.counter) not in counters:
                return f'device "{device.record.name}" draws on "{draw.counters}/{draw.counter}", which is not there'
    return ""
