"""Which of alike pods goes to which of the nodes chosen for them: consecutive ranks stand together (M16)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from muster.model.records import PodRecord
from muster.model.snapshot import NodeColumns


class _Ranked(NamedTuple):
    rank: int
    place: int
    """Among the pods to be matched; the node, of a running member."""


def match(nodes: NodeColumns, pods: Sequence[PodRecord], spots: list[int], bound: Sequence[PodRecord]) -> list[int]:
    """The node of each pod; `spots` are the nodes chosen for all of them, ascending, one for each.

    A pod goes to its nominated node if that is among them. The others go by rank, in the declared order of the nodes,
    so that every domain of the topology levels holds a run of ranks; where members run (`bound`), first beside those of
    the nearest ranks. Rank is the completion index; without one the number that ends the name, if all names differ in
    that only; else the order of the members.
    """
    if len(pods) < 2 or spots[0] == spots[-1]:
        return spots
    placed = _nominated(nodes, pods, spots)
    if not placed:
        return _by_rank(nodes, pods, spots, bound)
    left = [place for place in range(len(pods)) if place not in placed]
    if left:
        rest = sorted((Counter(spots) - Counter(placed.values())).elements())
        placed.update(zip(left, _by_rank(nodes, [pods[place] for place in left], rest, bound), strict=True))
    return [placed[place] for place in range(len(pods))]


def _nominated(nodes: NodeColumns, pods: Sequence[PodRecord], spots: list[int]) -> dict[int, int]:
    """Place -> node of those whose nominated node is among the spots."""
    wishes = [(place, pod.nominated_node) for place, pod in enumerate(pods) if pod.nominated_node is not None]
    free = Counter(spots) if wishes else Counter[int]()
    placed: dict[int, int] = {}
    for place, name in wishes:
        node = nodes.index.get(name)
        if node is not None and free[node] > 0:
            free[node] -= 1
            placed[place] = node
    return placed


def _by_rank(nodes: NodeColumns, pods: Sequence[PodRecord], spots: list[int], bound: Sequence[PodRecord]) -> list[int]:
    if all(pod.rank is not None for pod in pods):
        ranks = [pod.rank or 0 for pod in pods]
        running = [(pod.rank, pod.node) for pod in bound]
    elif (stem := _stem(pods)) is not None:
        ranks = [int(pod.key.name[len(stem) :]) for pod in pods]
        running = [(_ordinal(pod.key.name, stem), pod.node) for pod in bound]
    else:
        return spots
    there = sorted(
        _Ranked(rank, node)
        for rank, name in running
        if rank is not None and name is not None and (node := nodes.index.get(name)) is not None
    )
    placed = [-1] * len(pods)
    if not there:
        for place, node in zip(sorted(range(len(pods)), key=ranks.__getitem__), spots, strict=True):
            placed[place] = node
        return placed
    for ranked, node in _arranged(nodes, sorted(map(_Ranked, ranks, range(len(pods)))), spots, there, 0):
        placed[ranked.place] = node
    return placed


def _stem(pods: Sequence[PodRecord]) -> str | None:
    """What all names have before the number that ends them; None if it is not the same, or one has no number."""
    stem = pods[0].key.name.rstrip("0123456789")
    return stem if all(_ordinal(pod.key.name, stem) is not None for pod in pods) else None


def _ordinal(name: str, stem: str) -> int | None:
    number = name[len(stem) :]
    return int(number) if name.startswith(stem) and number.isdecimal() and len(number) < _LONG else None


_LONG = 10
"""Longer numbers are no ranks."""


def _arranged(
    nodes: NodeColumns, order: Sequence[_Ranked], spots: Sequence[int], there: Sequence[_Ranked], depth: int
) -> Iterable[tuple[_Ranked, int]]:
    """Pods by rank onto spots, both ascending, with running members by rank; from this topology level downwards."""
    if not there or depth == len(nodes.levels):
        yield from zip(order, spots, strict=True)
        return
    column = nodes.label(nodes.levels[depth]).codes
    parts = [list(some) for _, some in groupby(spots, key=column.__getitem__)]
    codes = [column[part[0]] for part in parts]
    running = [[member for member in there if column[member.place] == code] for code in codes]
    shares = _shares(order, [len(part) for part in parts], [[member.rank for member in some] for some in running])
    for part, mine, beside in zip(parts, shares, running, strict=True):
        yield from _arranged(nodes, mine, part, beside, depth + 1)


def _shares(order: Sequence[_Ranked], sizes: Sequence[int], ranks: Sequence[list[int]]) -> list[list[_Ranked]]:
    """By domain as many pods as it has spots: runs that begin beside a running rank, the nearest first, then the rest.

    `sizes` and `ranks`, those of running members there in ascending order, are by domain.
    """
    shares: list[list[_Ranked]] = [[] for _ in sizes]
    taken = [False] * len(order)
    for _, at, d, step in sorted(_beginnings(order, ranks)):
        while 0 <= at < len(order) and not taken[at] and len(shares[d]) < sizes[d]:
            shares[d].append(order[at])
            taken[at] = True
            follows = 0 <= at + step < len(order) and abs(order[at + step].rank - order[at].rank) == 1
            at = at + step if follows else -1
    rest = (pod for pod, gone in zip(order, taken, strict=True) if not gone)
    for share, size in zip(shares, sizes, strict=True):
        share += [next(rest) for _ in range(size - len(share))]
        share.sort()
    return shares


def _beginnings(order: Sequence[_Ranked], ranks: Sequence[list[int]]) -> Iterator[tuple[int, int, int, int]]:
    """(how far from a running rank, place in the order, domain, direction away from it)."""
    for d, running in enumerate(ranks):
        for at, (rank, _) in enumerate(order) if running else ():
            above = bisect_left(running, rank)
            below = rank - running[above - 1] if above else None
            over = running[above] - rank if above < len(running) else None
            if below is not None and (over is None or below <= over):
                yield below, at, d, 1
            elif over is not None:
                yield over, at, d, -1
