"""Keeps unlike pods of a group together below the level it asks for (M16): the parts of the cluster to be tried.

Sums only say where they may all fit; whoever tries a division goes on to the next where that fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from muster.engine.compact import Beside
from muster.engine.members import Members
from muster.engine.trial import Trial
from muster.model.records import PodRecord
from muster.model.topology import Domains, Placement, domains_of

_TRIES = 2
"""So many domains of a level are tried, the tightest first."""


class Slice(NamedTuple):
    """Members for one part of the cluster, and the topology levels below it."""

    placement: Placement
    members: Sequence[Members]
    levels: Sequence[str]


def divisions(
    trial: Trial, members: Sequence[Members], levels: Sequence[str], bound: Sequence[PodRecord] = ()
) -> Iterator[Sequence[Slice]]:
    """Parts of this world where unlike pods may all fit by their sums, the smallest and tightest first.

    Where more than one domain is needed: first equal shares of every class whose number divides, then all anywhere in
    these domains together.
    """
    if levels and not any(trial.classes[some.cls].preferred for some in members):
        beside = Beside.of(trial, bound) if bound else None
        yield from _narrower(trial, _Room.of(trial, members, beside), members, levels, trial.placement)


class _Room(NamedTuple):
    """What unlike members ask for, and what there is, node by node."""

    sizes: np.ndarray
    """int64[C, 1]: members of each class"""
    slots: np.ndarray
    """int64[C, N]: of them, how many fit on a node"""
    asked: np.ndarray
    """int64[R, C]: by all members of a class, of each row that any asks for"""
    free: np.ndarray
    """int64[R, N]: on nodes that a member can use"""
    running: np.ndarray
    """int64[N]: members that run there"""

    @classmethod
    def of(cls, trial: Trial, members: Sequence[Members], beside: Beside | None) -> _Room:
        ledger = trial.ledger
        sizes = np.array([len(some) for some in members], dtype=np.int64)[:, None]
        slots = np.stack([np.minimum(trial.state(some.cls).slots, len(some)) for some in members])
        asked = (sizes * ledger.amounts[[some.cls for some in members]]).T
        rows = np.flatnonzero(asked.any(axis=1))
        free = np.maximum(ledger.capacity[rows] - ledger.used[rows], 0) * slots.any(axis=0)
        running = np.zeros(len(trial), dtype=np.int64) if beside is None else trial.cut(beside.every)
        return cls(sizes, slots, asked[rows], free, running)


def _narrower(
    trial: Trial, room: _Room, members: Sequence[Members], levels: Sequence[str], narrow: Placement | None
) -> Iterator[Sequence[Slice]]:
    domains = domains_of(trial.snapshot.nodes, levels[0], narrow)
    if not len(domains):
        return
    sums, free = domains.sums(trial.inside(room.slots, narrow)), domains.sums(trial.inside(room.free, narrow))
    shares = (sums * 1000 // room.sizes).sum(axis=0)
    fits = np.flatnonzero((sums >= room.sizes).all(axis=0) & (free >= room.asked.sum(axis=1)[:, None]).all(axis=0))
    new = domains.sums(trial.inside(room.running, narrow)) == 0
    for d in fits[np.lexsort((shares[fits], new[fits]))][:_TRIES].tolist():
        if len(levels) > 1:
            yield from _narrower(trial, room, members, levels[1:], domains[d])
        yield (Slice(domains[d], members, ()),)
    if not len(fits):
        order = np.lexsort((-shares, new))
        together = (sums[:, order].cumsum(axis=1) >= room.sizes).all(axis=0)
        if together.any():
            number = int(together.argmax()) + 1
            even = _even(members, room, sums, free, shares, new, number)
            if len(even):
                yield _slices(members, domains, even, levels[1:])
            yield (Slice(_joined(domains, order[:number]), members, ()),)


def _even(
    members: Sequence[Members],
    room: _Room,
    sums: np.ndarray,
    free: np.ndarray,
    shares: np.ndarray,
    new: np.ndarray,
    number: int,
) -> np.ndarray:
    """So many domains with room for an equal share of every class, in their order; none if no class divides."""
    if not any(len(some) % number == 0 for some in members):
        return shares[:0]
    each = -(-room.sizes // number)
    asked = (room.asked // room.sizes.T * each.T).sum(axis=1)[:, None]
    fits = np.flatnonzero((sums >= each).all(axis=0) & (free >= asked).all(axis=0))
    chosen: np.ndarray = np.sort(fits[np.lexsort((shares[fits], new[fits]))][:number])
    return chosen if len(chosen) == number else chosen[:0]


def _slices(members: Sequence[Members], domains: Domains, chosen: np.ndarray, levels: Sequence[str]) -> Sequence[Slice]:
    """Members in their order, class by class, in shares that differ by one at most."""
    parts: list[list[Members]] = [[] for _ in chosen]
    for some in members:
        each, more = divmod(len(some), len(chosen))
        start = 0
        for n, part in enumerate(parts):
            end = start + each + (n < more)
            if end > start:
                part.append(Members(some.cls, some.pods[start:end], some.places[start:end]))
            start = end
    return [Slice(domains[d], part, levels) for d, part in zip(chosen.tolist(), parts, strict=True) if part]


def _joined(domains: Domains, some: np.ndarray) -> Placement:
    """The nodes of several domains together."""
    inside = np.flatnonzero(np.isin(domains.codes, some))
    nodes = inside if domains.parent is None else domains.parent.nodes[inside]
    values = ",".join(sorted(domains.values[d] for d in some.tolist()))
    return Placement(domains.key, values, domains.parent, inside, nodes, kept=False)
