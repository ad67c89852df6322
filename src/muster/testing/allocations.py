"""Allocations by trying everything: slow, literal, and without anything of the allocator's in it.

A world is a list of devices that can be used on one node, who has what of them, and a table of what selectors mean.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement

from muster.model.devices import Choice, ClaimShape, DeviceKey, DeviceRecord, Grant, Values

Counters = Mapping[tuple[str, str, str, str], int]
"""(driver, pool, counter set, counter) -> how much there is."""


@dataclass(frozen=True)
class World:
    devices: Mapping[DeviceKey, DeviceRecord]
    counters: Counters
    held: Sequence[Grant]
    means: Callable[[Choice, DeviceKey], bool]
    """Whether class and selectors of a choice select a device."""


def is_right(world: World, claims: Sequence[ClaimShape], grants: Sequence[Sequence[Grant]]) -> bool:
    """Whether these grants are an allocation for these claims: every rule, read aloud."""
    return (
        len(claims) == len(grants)
        and _fits_together(world, [g for some in grants for g in some])
        and all(_serves(world, shape, some) for shape, some in zip(claims, grants, strict=True))
    )


def exists(world: World, claims: Sequence[ClaimShape], usable: Sequence[Collection[DeviceKey]] | None = None) -> bool:
    """Whether there is an allocation for all of them; `usable` says which devices each may have."""
    views = [
        world if some is None else replace(world, devices={k: d for k, d in world.devices.items() if k in some})
        for some in (usable if usable is not None else [None] * len(claims))
    ]
    return _exists(world, list(zip(views, claims, strict=True)), [])


def _exists(world: World, claims: Sequence[tuple[World, ClaimShape]], given: list[Grant]) -> bool:
    if not claims:
        return True
    view, shape = claims[0]
    for some in _ways(view, shape.requests, []):
        both = [*given, *some]
        if _serves(view, shape, some) and _fits_together(world, both) and _exists(world, claims[1:], both):
            return True
    return False


def _ways(world: World, requests: Sequence[tuple[Choice, ...]], given: list[Grant]) -> Iterator[list[Grant]]:
    """All ways to give something for each request."""
    if not requests:
        yield given
        return
    for choice in requests[0]:
        meant = [key for key in world.devices if _suits(world, choice, key)]
        if choice.count is None:
            picks: Iterator[tuple[DeviceKey, ...]] = iter([tuple(_meant(world, choice))])
        elif any(world.devices[key].shared for key in meant):
            picks = combinations_with_replacement(meant, choice.count)
        else:
            picks = combinations(meant, choice.count)
        for pick in picks:
            more = [*given, *(_grant(world, choice, key) for key in pick)]
            if _fits_together(world, more) and _once_each(world, more):
                yield from _ways(world, requests[1:], more)


def _serves(world: World, shape: ClaimShape, grants: Sequence[Grant]) -> bool:
    """Whether a claim has for each request what one of its choices asks for, within its constraints."""
    if len(grants) > 32 or not _once_each(world, grants):
        return False
    choices = {choice.name: choice for request in shape.requests for choice in request}
    if any(grant.request not in choices for grant in grants):
        return False
    for request in shape.requests:
        some = [grant for grant in grants if grant.request in {choice.name for choice in request}]
        if not some or len({grant.request for grant in some}) != 1:
            return False
        choice = choices[some[0].request]
        keys = [grant.device for grant in some]
        if any(grant != _grant(world, choice, grant.device) for grant in some):
            return False
        if not all(_suits(world, choice, key) for key in keys):
            return False
        if choice.count is None:
            if sorted(keys) != sorted(_meant(world, choice)) or not keys:
                return False
        elif len(keys) != choice.count:
            return False
    return _keeps(world, shape, grants)


def _keeps(world: World, shape: ClaimShape, grants: Sequence[Grant]) -> bool:
    """Whether the devices of a claim keep to its constraints."""
    for constraint in shape.constraints:
        covered = [
            grant
            for grant in grants
            if not constraint.requests
            or grant.request in constraint.requests
            or grant.request.partition("/")[0] in constraint.requests
        ]
        values = [world.devices[grant.device].attributes.get(constraint.attribute) for grant in covered]
        known: list[Values] = [value.said for value in values if value is not None]
        if len(known) != len(values):
            return False
        if constraint.distinct:
            if any(one & other for one, other in combinations(known, 2)):
                return False
        elif known and not frozenset.intersection(*known):
            return False
    return True


def _once_each(world: World, grants: Sequence[Grant]) -> bool:
    """A claim has a device once, but for parts of one that is shared."""
    counts: dict[DeviceKey, list[Grant]] = {}
    for grant in grants:
        counts.setdefault(grant.device, []).append(grant)
    return all(
        len(some) == 1 or (world.devices[key].shared and sum(grant.admin for grant in some) == 0)
        for key, some in counts.items()
    )


def _fits_together(world: World, grants: Sequence[Grant]) -> bool:
    """Whether nobody takes what another has: devices, parts of shared ones, counters."""
    real = [grant for grant in (*world.held, *grants) if not grant.admin]
    used: dict[tuple[str, str, str, str], int] = {}
    for key in {grant.device for grant in real}:
        device = world.devices.get(key)
        users = [grant for grant in real if grant.device == key]
        if device is None:
            continue
        if not device.shared and len(users) > 1:
            return False
        for name, capacity in device.capacity.items() if device.shared else ():
            if sum(dict(grant.consumed).get(name, 0) for grant in users) > capacity.value:
                return False
        for draw in device.draws:
            counter = (key.driver, key.pool, draw.counters, draw.counter)
            used[counter] = used.get(counter, 0) + draw.amount
    return all(amount <= world.counters.get(counter, 0) for counter, amount in used.items())


def _meant(world: World, choice: Choice) -> list[DeviceKey]:
    return [key for key in world.devices if world.means(choice, key) and _consumes(world, choice, key) is not None]


def _suits(world: World, choice: Choice, key: DeviceKey) -> bool:
    tainted = any(
        taint.effect in ("NoSchedule", "NoExecute") and not any(t.tolerates(taint) for t in choice.tolerations)
        for taint in world.devices[key].taints
    )
    return not tainted and world.means(choice, key) and _consumes(world, choice, key) is not None


def _grant(world: World, choice: Choice, key: DeviceKey) -> Grant:
    parts = _consumes(world, choice, key) or {}
    return Grant(choice.name, key, choice.admin, tuple(sorted(parts.items())))


def _consumes(world: World, choice: Choice, key: DeviceKey) -> Mapping[str, int] | None:
    """What a device gives for a choice; {} if it is not shared; None: it has not got enough."""
    device = world.devices[key]
    asked = {name if "/" in name else f"{key.driver}/{name}": amount for name, amount in choice.capacity}
    if set(asked) - set(device.capacity):
        return None
    if not device.shared:
        return {} if all(device.capacity[name].value >= amount for name, amount in asked.items()) else None
    parts: dict[str, int] = {}
    for name, capacity in device.capacity.items():
        part = asked.get(name)
        if part is None:
            part = capacity.value if capacity.default is None else capacity.default
        elif capacity.values:
            enough = [value for value in capacity.values if value >= part]
            if not enough:
                return None
            part = min(enough)
        elif capacity.range is not None:
            part = max(part, capacity.range.least)
            while capacity.range.step and (part - capacity.range.least) % capacity.range.step:
                part += 1
            if capacity.range.most is not None and part > capacity.range.most:
                return None
        if part > capacity.value:
            return None
        parts[name] = part
    return parts
