"""Which nodes volumes can be reached from, and what there is of them for claims that have none yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from muster.model.matching import any_term, holds
from muster.model.snapshot import NodeColumns
from muster.model.terms import Requirement, Term
from muster.model.volumes import ClaimKind, VolumeRecord, Volumes

PLENTY = 1 << 40
"""Of what is not limited; sums of it over all nodes stay far from the largest integer."""
_BOUNDLESS = 1 << 62
"""Bytes of a store that does not say how many it has."""


def reach(nodes: NodeColumns, affinity: tuple[Term, ...] | None) -> np.ndarray:
    """bool[N]: nodes from which a volume with this node affinity can be reached; kept with the node columns."""
    if affinity is None:
        return np.ones(len(nodes), dtype=bool)
    key = ("reach", affinity)
    known = nodes.cache.get(key)
    if isinstance(known, np.ndarray):
        return known
    made = nodes.cache[key] = any_term(nodes, affinity)
    return made


def _lies_in(nodes: NodeColumns, topology: tuple[Requirement, ...] | None) -> np.ndarray:
    """bool[N]: nodes that a capacity speaks of."""
    if topology is None:
        return np.zeros(len(nodes), dtype=bool)
    inside = np.ones(len(nodes), dtype=bool)
    for requirement in topology:
        inside &= holds(nodes, requirement)
    return inside


class Lot(NamedTuple):
    """So many free volumes that suit the same kinds of claims and are reached from the same nodes."""

    kinds: np.ndarray
    """bool[K]"""
    nodes: np.ndarray
    """bool[N]"""
    volumes: tuple[VolumeRecord, ...]
    """The smallest first."""


class Supply:
    """What there is of one class for these kinds of claims, the largest first. Read only.

    A claim takes a free volume, or one is made for it: out of nothing, or out of a store of limited room.
    """

    def __init__(self, nodes: NodeColumns, known: Volumes, name: str, kinds: Iterable[ClaimKind]) -> None:
        self.kinds: tuple[ClaimKind, ...] = tuple(sorted(set(kinds), key=lambda kind: (-kind.size, kind)))
        self.place: Mapping[ClaimKind, int] = {kind: k for k, kind in enumerate(self.kinds)}
        self.lots: tuple[Lot, ...] = tuple(_lots(nodes, known.free.get(name, ()), self.kinds))
        self.suits = np.array([lot.kinds for lot in self.lots], dtype=bool).reshape(len(self.lots), len(self.kinds))
        """bool[L, K]"""
        self.reached = np.array([lot.nodes for lot in self.lots], dtype=bool).reshape(len(self.lots), len(nodes))
        """bool[L, N]"""
        found = known.classes.get(name)
        size, count = len(nodes), len(self.kinds)
        self.allowed = np.zeros(size, dtype=bool)
        """bool[N]: nodes for which the class lets volumes be made."""
        if found is not None and found.provisioner:
            self.allowed = reach(nodes, found.topologies)
        driver = known.drivers.get(found.provisioner) if found is not None else None
        self.tracked = driver is not None and driver.tracks_capacity
        self.made = np.repeat(self.allowed[None], count, axis=0) if not self.tracked else np.zeros((count, size), bool)
        """bool[K, N]: one is made out of nothing."""
        self.store = np.full((count, size), -1, dtype=np.int64)
        """int64[K, N]: the store out of which it is made, -1 where there is none."""
        self.room = np.zeros(0, dtype=np.int64)
        """int64[S]: bytes."""
        if self.tracked:
            self._stock(nodes, known, name)

    def _stock(self, nodes: NodeColumns, known: Volumes, name: str) -> None:
        """Of several stores that a node can use, the one with the most room counts."""
        some = sorted((c for c in known.capacities.values() if c.class_name == name), key=lambda c: c.key)
        limits = [c.capacity if c.largest is None else c.largest for c in some]
        self.room = np.array([_BOUNDLESS if c.capacity is None else c.capacity for c in some], dtype=np.int64)
        for s in sorted(range(len(some)), key=lambda s: (int(self.room[s]), -s)):
            inside = self.allowed & _lies_in(nodes, some[s].topology)
            for k, kind in enumerate(self.kinds):
                limit = limits[s]
                if limit is not None and limit >= kind.size:
                    self.store[k, inside] = s

    @property
    def boundless(self) -> bool:
        """Whether any claim of these kinds gets a volume on any node, whatever others take."""
        return bool(self.made.all())


def _lots(nodes: NodeColumns, free: Sequence[VolumeRecord], kinds: Sequence[ClaimKind]) -> Iterable[Lot]:
    found: dict[tuple[bytes, object], list[VolumeRecord]] = {}
    for volume in free:
        suits = bytes(kind.suits(volume) for kind in kinds)
        if any(suits):
            found.setdefault((suits, volume.affinity), []).append(volume)
    for (suits, _), some in found.items():
        inside = reach(nodes, some[0].affinity)
        if inside.any():
            yield Lot(np.frombuffer(suits, dtype=np.uint8).astype(bool), inside, tuple(some))


class Want(NamedTuple):
    """`number` claims of a kind, on nodes that all see the same volumes; `node` is one of them."""

    kind: int
    node: int
    number: int


def is_enough(supply: Supply, wants: Sequence[Want]) -> bool:
    """Whether all these claims can have a volume at once."""
    return shared_out(supply, wants) is not None


def shared_out(supply: Supply, wants: Sequence[Want], *, spare: bool = False) -> list[dict[int, int]] | None:
    """For each want, how many of its claims are given volumes of which lot; for the others one is made. None: short.

    Whoever has no other way is served first, then the larger ones, so that the least has to be made (which claims can
    be served together is a matroid, so taking them greedily is best). `spare`: then also who could do without.
    """
    order = sorted(range(len(wants)), key=lambda i: _urgency(supply, wants[i]))
    left = [len(lot.volumes) for lot in supply.lots]
    given: list[dict[int, int]] = [{} for _ in wants]
    suited = _suited(supply, wants)
    room = supply.room.copy()
    for i in order:
        kind, node, _ = wants[i]
        boundless = bool(supply.made[kind, node])
        if boundless and not spare:
            continue
        missing = _serve(suited, given, left, i, wants[i].number)
        if boundless or not missing:
            continue
        store = int(supply.store[kind, node])
        if store < 0:
            return None
        room[store] -= missing * supply.kinds[kind].size
        if room[store] < 0:
            return None
    return given


def _urgency(supply: Supply, want: Want) -> tuple[int, int]:
    if supply.made[want.kind, want.node]:
        return (2, want.kind)
    return (1 if supply.store[want.kind, want.node] >= 0 else 0, want.kind)


def _serve(suited: Sequence[Sequence[int]], given: list[dict[int, int]], left: list[int], i: int, missing: int) -> int:
    """Gives volumes to one want, along alternating paths where others can take something else; how many it lacks."""
    while missing:
        path = _path(suited, given, left, i)
        if path is None:
            return missing
        wants_on, lots = path
        most = min(missing, left[lots[-1]])
        for w, lot in zip(wants_on[1:], lots[:-1], strict=True):
            most = min(most, given[w][lot])
        for step, (w, lot) in enumerate(zip(wants_on, lots, strict=True)):
            given[w][lot] = given[w].get(lot, 0) + most
            if step + 1 < len(wants_on):
                other = given[wants_on[step + 1]]
                other[lot] -= most
                if not other[lot]:
                    del other[lot]
        left[lots[-1]] -= most
        missing -= most
    return 0


def _suited(supply: Supply, wants: Sequence[Want]) -> list[list[int]]:
    """For each want the lots that it may be given of, small volumes first."""
    if not supply.lots:
        return [[] for _ in wants]
    order = sorted(range(len(supply.lots)), key=lambda i: (supply.lots[i].volumes[0].size, i))
    kinds, nodes = supply.suits[order], supply.reached[order]
    return [[order[i] for i in np.flatnonzero(kinds[:, w.kind] & nodes[:, w.node]).tolist()] for w in wants]


def _path(
    suited: Sequence[Sequence[int]], given: Sequence[Mapping[int, int]], left: Sequence[int], start: int
) -> tuple[list[int], list[int]] | None:
    """Wants and lots in turn, from the want to a lot with something left: each want takes of its lot, and the next one
    on the way gives up as much of it. None: there is no way.
    """
    came: dict[int, tuple[int, int] | None] = {start: None}
    row = [start]
    for want in row:
        for lot in suited[want]:
            if left[lot]:
                wants, lots = [want], [lot]
                while (step := came[wants[0]]) is not None:
                    wants.insert(0, step[0])
                    lots.insert(0, step[1])
                return wants, lots
            for other, has in enumerate(given):
                if has.get(lot) and other not in came:
                    came[other] = (want, lot)
                    row.append(other)
    return None
