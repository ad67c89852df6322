"""How many pods each version of a Deployment should have next. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from muster.controllers.apps.amounts import count_of
from muster.controllers.apps.deployments.versions import DESIRED, MOST, Version

Sizes = dict[str, int]
"""Uid of a ReplicaSet -> its next size; those that stay as they are are left out."""
ROLLING = "RollingUpdate"


class Limits(NamedTuple):
    """`wanted` pods; at most `surge` more and `missing` fewer while versions change."""

    wanted: int
    surge: int
    missing: int
    rolling: bool

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Limits:
        """Percentages of the surge are rounded up, those of what may be missing down; never are both 0."""
        wanted, strategy = spec.get("replicas") or 0, spec.get("strategy") or {}
        if (strategy.get("type") or ROLLING) != ROLLING:
            return cls(wanted, 0, 0, rolling=False)
        rolling = strategy.get("rollingUpdate") or {}
        surge = count_of(rolling.get("maxSurge", "25%"), wanted, round_up=True)
        missing = count_of(rolling.get("maxUnavailable", "25%"), wanted, round_up=False)
        if not surge and not missing:
            missing = 1
        return cls(wanted, surge, min(missing, wanted), rolling=True)

    @property
    def most(self) -> int:
        return self.wanted + self.surge

    @property
    def least(self) -> int:
        return self.wanted - self.missing


def was_scaled(limits: Limits, versions: Sequence[Version]) -> bool:
    """Whether the Deployment has another size than the one for which its pods were last divided."""
    desired = (each.number(DESIRED) for each in versions if each.size)
    return any(number is not None and number != limits.wanted for number in desired)


# --- a new size --------------------------------------------------------------------------------------------------


def scaled(limits: Limits, new: Version | None, old: Sequence[Version], status_replicas: int) -> Sizes:
    """Divides a new size among the versions: all to the only one, or to each in proportion to what it has."""
    everyone = [*old, new] if new is not None else list(old)
    active = [each for each in everyone if each.size]
    if len(active) <= 1:
        only = active[0] if active else new or (old[-1] if old else None)
        return _changed({only.uid: limits.wanted}, everyone) if only is not None else {}
    if new is not None and _has_all(limits, new):
        return _changed({each.uid: 0 for each in old}, everyone)
    return _changed(_in_proportion(limits, active, status_replicas), everyone) if limits.rolling else {}


def _has_all(limits: Limits, new: Version) -> bool:
    return new.size == new.available == new.number(DESIRED) == limits.wanted


def _in_proportion(limits: Limits, active: Sequence[Version], status_replicas: int) -> Sizes:
    allowed = limits.most if limits.wanted else 0
    more = allowed - sum(each.size for each in active)
    ranked = sorted(active, key=lambda each: each.age, reverse=more > 0)
    ranked.sort(key=lambda each: -each.size)
    sizes, given = {}, 0
    for each in ranked:
        share = _share(limits, each, status_replicas)
        left = more - given
        step = min(share, left) if more > 0 else max(share, left) if more < 0 else 0
        sizes[each.uid] = each.size + step
        given += step
    for each in ranked:  # what rounding has left over
        step = max(more - given, -sizes[each.uid])
        sizes[each.uid] += step
        given += step
    return sizes


def _share(limits: Limits, version: Version, status_replicas: int) -> int:
    """By how much this version grows (or shrinks, if negative) to have the part of the new size that it had."""
    if not limits.wanted:
        return -version.size
    before = version.number(MOST) or status_replicas or limits.most
    product = version.size * limits.most
    return (2 * product + before) // (2 * before) - version.size


# --- a new version -----------------------------------------------------------------------------------------------


def rolling(limits: Limits, new: Version, old: Sequence[Version]) -> Sizes:
    """The next step of a rolling update: up as far as the surge allows, else old ones down as far as is available.

    None while a version's numbers are not yet those of its present size: neither limit would be sure to hold.
    """
    everyone = [*old, new]
    if not all(each.settled for each in everyone):
        return {}
    up = _changed({new.uid: _grown(limits, new, everyone)}, everyone)
    return up or _changed(_shrunk(limits, new, old), everyone)


def first_size(limits: Limits, old: Sequence[Version]) -> int:
    """The size that a new version begins with."""
    if not limits.rolling:
        return limits.wanted
    if not all(each.settled for each in old):
        return 0
    return max(0, min(limits.wanted, limits.most - sum(each.there for each in old)))


def _grown(limits: Limits, new: Version, everyone: Sequence[Version]) -> int:
    if new.size >= limits.wanted:
        return limits.wanted
    room = limits.most - sum(each.there for each in everyone)
    return new.size + max(0, min(room, limits.wanted - new.size))


def _shrunk(limits: Limits, new: Version, old: Sequence[Version]) -> Sizes:
    """Old versions, oldest first: pods that are not available anyway, then those that new ones make up for."""
    sizes = {each.uid: each.size for each in old}
    spare = sum(sizes.values()) + new.size - limits.least - (new.size - new.kept_available)
    for each in old:
        step = max(0, min(spare, each.size - each.kept_available))
        sizes[each.uid] -= step
        spare -= step
    available = sum(min(each.available, sizes[each.uid]) for each in old) + new.kept_available
    spare = min(spare, available - limits.least)
    for each in old:
        step = max(0, min(spare, sizes[each.uid]))
        sizes[each.uid] -= step
        spare -= step
    return sizes


def recreating(limits: Limits, new: Version | None, old: Sequence[Version]) -> Sizes:
    """All old ones away; the new one when nothing of them is left."""
    everyone = [*old, new] if new is not None else list(old)
    down = _changed({each.uid: 0 for each in old}, everyone)
    if down or new is None or not all(each.is_empty() for each in old):
        return down
    return _changed({new.uid: limits.wanted}, everyone)


def _changed(sizes: Sizes, versions: Sequence[Version]) -> Sizes:
    there = {each.uid: each.size for each in versions}
    return {uid: size for uid, size in sizes.items() if there[uid] != size}
