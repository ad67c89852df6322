"""Keeps a group together below the level it asks for: few domains, tight ones, whole nodes left whole (M16).

Nothing here decides whether a group can be placed: where the compact way does not take everybody, nothing is placed and
the caller goes on without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from muster.engine.assignment import place_best
from muster.engine.members import Members
from muster.engine.trial import Trial
from muster.model.topology import Domains, Placement, domains_of

_NEVER = np.iinfo(np.int64).max
_TRIES = 2
"""So many domains of a level are tried for unlike pods, the tightest first."""


def levels_below(levels: Sequence[str], key: str | None) -> tuple[str, ...]:
    """The topology levels inside a domain of this key; all of them for a key that is no level."""
    return tuple(levels[levels.index(key) + 1 :]) if key in levels else tuple(levels)


def place_alike(trial: Trial, cls: int, count: int, levels: Sequence[str]) -> bool:
    """Places `count` copies in as few domains of each level as can be, the widest level first; all of them or none."""
    if not levels or trial.classes[cls].preferred:
        return False  # Who prefers certain nodes has said what is better than closeness.
    slots = trial.state(cls).wished
    narrow, left = trial.placement, count
    whole: list[np.ndarray] = []
    for key in levels:
        domains = domains_of(trial.snapshot.nodes, key, narrow)
        if domains.trivial or not len(domains):
            continue
        inside = trial.inside(slots, narrow)
        sums = domains.sums(inside)
        last = _tightest(trial, cls, domains, sums, left)
        if last is None:
            if int(sums.sum()) < left:
                continue  # Some of the room is on nodes without this label.
            full, rest = _largest(sums, left)
            taken = np.flatnonzero(np.isin(domains.codes, full) & (inside > 0))
            whole.append(taken if narrow is None else trial.inside(np.arange(len(trial)), narrow)[taken])
            left, sums[full] = rest, 0
            last = _tightest(trial, cls, domains, sums, left)
            assert last is not None
        narrow = domains[last]
    if narrow is trial.placement and int(slots.sum()) < count:
        return False
    for nodes in whole:
        trial.ledger.place_many(cls, nodes, slots[nodes])
    _place_inside(trial, cls, left, narrow)
    return True


def _place_inside(trial: Trial, cls: int, count: int, placement: Placement | None) -> None:
    if placement is None or placement is trial.placement:
        place_best(trial, cls, count)
    else:
        part = trial.part(placement)
        place_best(part, cls, count)
        trial.adopt(part)


def _largest(sums: np.ndarray, count: int) -> tuple[np.ndarray, int]:
    """(the largest domains, so many that one more holds the rest of `count`; the rest)."""
    order = np.argsort(-sums, kind="stable")
    full = order[: int(np.searchsorted(sums[order].cumsum(), count))]
    return full, count - int(sums[full].sum())


def _tightest(trial: Trial, cls: int, domains: Domains, sums: np.ndarray, count: int) -> int | None:
    """The domain with the least room that still holds `count`; None if none does.

    Of equal ones the one that has the fewest whole accelerator nodes to be broken, then the first.
    """
    room = np.where(sums >= count, sums, _NEVER)
    best = int(room.argmin())
    if room[best] == _NEVER:
        return None
    rows = [row for row in trial.layout.accelerators if trial.ledger.amounts[cls, row]]
    alike = np.flatnonzero(room == room[best]) if rows else room[:1]
    if len(alike) == 1:
        return best
    whole = (trial.ledger.used[rows] == 0).all(axis=0) & (trial.state(cls).slots > 0)
    counts = domains.sums(trial.inside(whole, domains.parent).astype(np.int64))[alike]
    return int(alike[int(counts.argmin())])


def placements_for(trial: Trial, members: Sequence[Members], levels: Sequence[str]) -> Iterator[Placement]:
    """Parts of this world where unlike pods may all fit together by their sums, the smallest and tightest first."""
    if levels and not any(trial.classes[some.cls].preferred for some in members):
        yield from _narrower(trial, _Room.of(trial, members), levels, trial.placement)


class _Room(NamedTuple):
    """What unlike members ask for, and what there is, node by node."""

    sizes: np.ndarray
    """int64[C, 1]: members of each class"""
    slots: np.ndarray
    """int64[C, N]: of them, how many fit on a node"""
    asked: np.ndarray
    """int64[R, 1]: by all members, of each row that any asks for"""
    free: np.ndarray
    """int64[R, N]: on nodes that a member can use"""

    @classmethod
    def of(cls, trial: Trial, members: Sequence[Members]) -> _Room:
        ledger = trial.ledger
        sizes = np.array([len(some) for some in members], dtype=np.int64)
        slots = np.stack([np.minimum(trial.state(some.cls).slots, len(some)) for some in members])
        asked = sizes @ ledger.amounts[[some.cls for some in members]]
        rows = np.flatnonzero(asked)
        free = np.maximum(ledger.capacity[rows] - ledger.used[rows], 0) * slots.any(axis=0)
        return cls(sizes[:, None], slots, asked[rows, None], free)


def _narrower(trial: Trial, room: _Room, levels: Sequence[str], narrow: Placement | None) -> Iterator[Placement]:
    domains = domains_of(trial.snapshot.nodes, levels[0], narrow)
    if not len(domains):
        return
    sums = domains.sums(trial.inside(room.slots, narrow))
    enough = (domains.sums(trial.inside(room.free, narrow)) >= room.asked).all(axis=0)
    shares = (sums * 1000 // room.sizes).sum(axis=0)
    fits = np.flatnonzero((sums >= room.sizes).all(axis=0) & enough)
    for d in fits[np.argsort(shares[fits], kind="stable")][:_TRIES].tolist():
        if len(levels) > 1:
            yield from _narrower(trial, room, levels[1:], domains[d])
        yield domains[d]
    if not len(fits):
        order = np.argsort(-shares, kind="stable")
        together = (sums[:, order].cumsum(axis=1) >= room.sizes).all(axis=0)
        if together.any():
            yield _joined(domains, order[: int(together.argmax()) + 1])


def _joined(domains: Domains, some: np.ndarray) -> Placement:
    """The nodes of several domains together."""
    inside = np.flatnonzero(np.isin(domains.codes, some))
    nodes = inside if domains.parent is None else domains.parent.nodes[inside]
    values = ",".join(sorted(domains.values[d] for d in some.tolist()))
    return Placement(domains.key, values, domains.parent, inside, nodes, kept=False)
