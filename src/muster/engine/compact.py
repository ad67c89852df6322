"""Keeps alike pods of a group together below the level it asks for (M16): few domains, in equal shares, tight ones.

Nothing here decides whether a group can be placed: where the compact way does not take everybody, nothing is placed and
the caller goes on without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from muster.engine.assignment import place_best
from muster.engine.nesting import nesting
from muster.engine.trial import Trial
from muster.model.records import PodRecord
from muster.model.topology import Domains, Placement, domains_of

_NEVER = np.iinfo(np.int64).max
_Share = tuple[int, int]
"""(domain, how many pods)"""


def levels_below(levels: Sequence[str], key: str | None) -> tuple[str, ...]:
    """The topology levels inside a domain of this key; all of them for a key that is no level."""
    return tuple(levels[levels.index(key) + 1 :]) if key in levels else tuple(levels)


class Beside(NamedTuple):
    """Running members of the group: domains that it is in already cost nothing."""

    every: np.ndarray
    """int64[N]: how many of them, by node of the whole cluster."""
    alike: np.ndarray
    """int64[N]: of them, those that ask for the same as the pods to be placed."""

    @classmethod
    def of(cls, trial: Trial, bound: Sequence[PodRecord], alike: int | None = None) -> Beside | None:
        """None if nobody runs on a node of the cluster. `alike`: the class to be placed."""
        index, requests = trial.snapshot.nodes.index, None if alike is None else trial.classes[alike].requests
        there = [(index[pod.node], pod.cls.requests == requests) for pod in bound if pod.node and pod.node in index]
        if not there:
            return None
        every, same = np.zeros((2, len(trial.snapshot.nodes)), dtype=np.int64)
        for node, is_alike in there:
            every[node] += 1
            same[node] += is_alike
        return cls(every, same)


def place_alike(trial: Trial, cls: int, count: int, levels: Sequence[str], bound: Sequence[PodRecord] = ()) -> bool:
    """Places `count` copies in as few domains of each level as can be, the widest level first; all of them or none.

    Domains where members run (`bound`) are used before others. If more than one is needed and the number divides, each
    gets the same share, if there are so many domains with room for it.
    """
    if not levels or trial.classes[cls].preferred:
        return False  # Who prefers certain nodes has said what is better than closeness.
    slots = trial.state(cls).wished
    division = _Division(trial, cls, slots, Beside.of(trial, bound, cls) if bound else None)
    division.divide(count, levels, trial.placement)
    if division.narrow is trial.placement and int(slots.sum()) < count:
        return False
    for nodes, counts in division.settled:
        trial.ledger.place_many(cls, nodes, counts)
    for placement, share in division.parts:
        _place_inside(trial, cls, share, placement)
    return True


def _place_inside(trial: Trial, cls: int, count: int, placement: Placement | None) -> None:
    if placement is None or placement is trial.placement:
        place_best(trial, cls, count)
    else:
        part = trial.part(placement)
        place_best(part, cls, count)
        trial.adopt(part)


class _Division:
    """Copies of a class, divided among domains: so many on certain nodes (`settled`), and so many in each of `parts`.

    `narrow` is the last of these.
    """

    def __init__(self, trial: Trial, cls: int, slots: np.ndarray, beside: Beside | None) -> None:
        self._trial, self._cls, self._slots, self._beside = trial, cls, slots, beside
        self.settled: list[tuple[np.ndarray, np.ndarray]] = []
        self.parts: list[tuple[Placement | None, int]] = []

    @property
    def narrow(self) -> Placement | None:
        return self.parts[-1][0]

    def divide(self, count: int, levels: Sequence[str], narrow: Placement | None) -> None:
        """Divides `count` copies among the domains of these levels in a placement."""
        trial = self._trial
        for at, key in enumerate(levels):
            domains = domains_of(trial.snapshot.nodes, key, narrow)
            if domains.trivial or not len(domains):
                continue
            inside, below = trial.inside(self._slots, narrow), levels[at + 1 :]
            shares = self._shares(domains, inside, count, below)
            if not shares:
                continue  # Some of the room is on nodes without this label.
            *others, (last, count) = shares
            for d, share in self._settle(domains, inside, others) if others else ():
                self.divide(share, below, domains[d])
            narrow = domains[last]
        self.parts.append((narrow, count))

    def _settle(self, domains: Domains, inside: np.ndarray, shares: Sequence[_Share]) -> list[_Share]:
        """Notes the shares that leave no choice: all slots of a domain, or those of its only node. Returns the rest."""
        wanted = np.zeros(len(domains) + 1, dtype=np.int64)
        for d, share in shares:
            wanted[d] = share
        room, nodes = domains.sums(inside), domains.sums((inside > 0).astype(np.int64))
        settled = (wanted[:-1] > 0) & ((wanted[:-1] == room) | (nodes == 1))
        if settled.any():
            at = np.flatnonzero(np.append(settled, False)[domains.codes] & (inside > 0))
            counts = np.minimum(inside[at], wanted[domains.codes[at]])
            self.settled.append((self._trial.inside(np.arange(len(self._trial)), domains.parent)[at], counts))
        return [(d, share) for d, share in shares if not settled[d]]

    # -- which domains, and how many in each

    def _shares(self, domains: Domains, inside: np.ndarray, count: int, below: Sequence[str]) -> list[_Share]:
        """Empty if these domains have not that much room."""
        ranking = _Ranking(self._trial, self._cls, domains, inside, below)
        sums = domains.sums(inside)
        if self._beside is None:
            return _fewest(ranking, sums, count)
        every, alike = (
            domains.sums(self._trial.inside(self._trial.cut(column), domains.parent)) for column in self._beside
        )
        if not every.any():
            return _fewest(ranking, sums, count)
        here = np.where(every > 0, sums, 0)
        left, others = count - int(here.sum()), sums - here
        if int(others.sum()) < left:
            return []
        even = _even(ranking, sums, count, (every, alike), _least(others, left))
        if even or left <= 0:
            return even or _fewest(ranking, here, count)
        return [(d, int(here[d])) for d in np.flatnonzero(here).tolist()] + _fewest(ranking, others, left)


def _fewest(ranking: _Ranking, sums: np.ndarray, count: int) -> list[_Share]:
    """One domain for `count` pods if one does, else as few as can be: in equal shares if possible, else the largest
    ones whole and the rest, which comes last, in the one that suits it best. Empty if all together do not suffice."""
    one = ranking.one(sums, count)
    if one is not None:
        return [(one, count)]
    if int(sums.sum()) < count:
        return []
    nobody = np.zeros_like(sums)
    if even := _even(ranking, sums, count, (nobody, nobody), _least(sums, count)):
        return even
    order = np.argsort(-sums, kind="stable")
    full = order[: _least(sums, count) - 1]
    left = sums.copy()
    left[full] = 0
    rest = count - int(sums[full].sum())
    last = ranking.one(left, rest)
    assert last is not None
    return [*((d, int(sums[d])) for d in full.tolist()), (last, rest)]


def _least(sums: np.ndarray, count: int) -> int:
    """How many of the domains it takes at least to hold `count`."""
    return 0 if count <= 0 else int(np.searchsorted((-np.sort(-sums)).cumsum(), count)) + 1


def _even(
    ranking: _Ranking, sums: np.ndarray, count: int, running: tuple[np.ndarray, np.ndarray], more: int
) -> list[_Share]:
    """Equal shares in those domains where members run and in `more` others; empty if that is not possible.

    `running`: all of them and the alike ones, by domain; the alike ones count in the shares.
    """
    every, alike = running
    used = np.flatnonzero(every)
    share, rest = divmod(count + int(alike.sum()), len(used) + more)
    wanted = share - alike[used]
    if rest or (wanted < 0).any() or (wanted > sums[used]).any():
        return []
    new = ranking.some(np.where(every > 0, 0, sums), share, more) if more else used[:0]
    if len(new) < more:
        return []
    shares = [*zip(used.tolist(), wanted.tolist(), strict=True), *((d, share) for d in new.tolist())]
    return [(d, number) for d, number in shares if number]


class _Ranking:
    """Which domain to take first: where the pods need the fewest domains of the levels below, then the tightest, then
    that with the fewest whole accelerator nodes to be broken, then the first."""

    def __init__(self, trial: Trial, cls: int, domains: Domains, inside: np.ndarray, below: Sequence[str]) -> None:
        self._trial, self._cls, self._domains, self._inside, self._below = trial, cls, domains, inside, below

    def one(self, sums: np.ndarray, share: int) -> int | None:
        """The domain for all of a share; None if none holds it."""
        room = np.where(sums >= share, sums, _NEVER)
        first = int(room.argmin())
        least = room[first]
        if least == _NEVER:
            return None
        if np.count_nonzero(room == least) == 1 and self._in_one(first, share):
            return first
        return int(self.some(sums, share, 1)[0])

    def some(self, sums: np.ndarray, share: int, number: int) -> np.ndarray:
        """So many domains with room for this share each; none if there are not so many."""
        fit = np.flatnonzero(sums >= share)
        if len(fit) <= number:
            return fit if len(fit) == number else fit[:0]
        keys = [sums[fit], *(self._parts(key, share)[fit] for key in reversed(self._below))]
        whole = self._whole_nodes()
        order = np.lexsort(keys if whole is None else [whole[fit], *keys])
        chosen: np.ndarray = fit[order[:number]]
        return chosen

    def _in_one(self, d: int, share: int) -> bool:
        """Whether one domain of the lowest level in it does: no other can be better then."""
        if not self._below:
            return True
        placement = self._domains[d]
        inner = domains_of(self._trial.snapshot.nodes, self._below[-1], placement)
        most = inner.sums(self._inside[placement.inside]).max(initial=0)
        return int(most) >= share

    def _parts(self, key: str, share: int) -> np.ndarray:
        return nesting(self._trial.snapshot.nodes, self._domains, key).parts(self._inside, share)

    def _whole_nodes(self) -> np.ndarray | None:
        """int64[D]: how many nodes nobody uses accelerators of; None if the class asks for none."""
        trial, cls = self._trial, self._cls
        rows = [row for row in trial.layout.accelerators if trial.ledger.amounts[cls, row]]
        if not rows:
            return None
        whole = (trial.ledger.used[rows] == 0).all(axis=0) & (trial.state(cls).slots > 0)
        return self._domains.sums(trial.inside(whole, self._domains.parent).astype(np.int64))
