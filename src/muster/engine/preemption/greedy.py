"""A good set of victims for alike pods in a large cluster, on arrays: step by step the most room for the least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from muster.engine.preemption.cost import BASE, Cost, Costs
from muster.engine.preemption.judges import Slots, all_places
from muster.model.keys import Key


def choose(judge: Slots, costs: Costs, units: Sequence[int], target: int) -> frozenset[int] | None:
    """The best that is found in any domain; None: not enough anywhere, or nothing was found step by step."""
    search = _Search(judge, costs, units, target)
    best: frozenset[int] | None = None
    least: tuple[Cost, list[Key]] | None = None
    for domain, bound in search.domains():
        if least is not None and bound >= least[0][2]:
            break
        for by_size in (True, False):
            filled = search.fill(domain, by_size=by_size)
            if filled is None:
                continue
            found = judge.spared(sorted(filled, key=costs.dispensable, reverse=True), target)
            key = (costs(found), costs.names(found))
            if least is None or key < least:
                best, least = found, key
            if not search.sizes_differ:
                break
    return best


MANY = 2_000
"""So many units are put in order by all of M7; of more, surplus members and names are not told apart at this step."""


class _Search:
    def __init__(self, judge: Slots, costs: Costs, units: Sequence[int], target: int) -> None:
        self._judge, self._costs, self._target = judge, costs, target
        field = judge.field
        chosen = np.array(units, dtype=np.int64)
        places = all_places(field, chosen)
        places = places[(field.node[places] >= 0) & judge.passes[field.node[places]]]
        sizes = np.bincount(field.unit, minlength=len(field))
        alone = sizes[field.unit[places]] == 1
        self.places = places
        self._singles, self._members = places[alone], places[~alone]
        self._price = np.array(field.priority, dtype=np.float64) + BASE
        self._sizes = sizes
        total = len(self._singles)
        self._size = np.zeros(total, dtype=np.float64)
        if total:
            shares = judge.usage[:, self._singles] / judge.asked
            self._size = shares.max(axis=0)
        self.sizes_differ = bool(total) and not bool((self._size == self._size[0]).all())
        self._ranked: dict[int, np.ndarray] = {}

    def _ranks(self, domain: int, places: np.ndarray) -> np.ndarray:
        """int64[s]: 0 is the first to go, all else being equal."""
        known = self._ranked.get(domain)
        if known is None:
            unit = self._judge.field.unit
            order = self._in_order(unit[places])
            known = self._ranked[domain] = np.zeros(len(places), dtype=np.int64)
            known[order] = np.arange(len(places))
        return known

    def _in_order(self, units: np.ndarray) -> list[int]:
        """Places of these units of one pod each, the first to go first.

        Of many, by what takes no look at each: priority, whether they have begun, and for how long they have run.
        """
        costs, field = self._costs, self._judge.field
        if len(units) <= MANY or costs.guards:
            return sorted(range(len(units)), key=lambda i: costs.dispensable(units.item(i)))
        started = np.array([field.pods[field.pods_of[u][0]].started for u in units.tolist()], dtype=np.int64)
        order: list[int] = np.lexsort((units, -started, started > 0, self._price[units])).tolist()
        return order

    def domains(self) -> Iterator[tuple[int, float]]:
        """Those that hold enough without all units, with a lower bound of the sum, the least first."""
        judge = self._judge
        full = judge.sums_without(self.places)
        bounds: list[tuple[float, int]] = []
        best = self._best_ratio()
        for domain in np.flatnonzero(full >= self._target).tolist():
            lacking = self._target - int(judge.sums[domain])
            bounds.append((max(lacking, 0) * best[domain], domain))
        for bound, domain in sorted(bounds):
            yield domain, bound

    def _best_ratio(self) -> np.ndarray:
        """float64[D]: no victims make a slot for less than this."""
        judge, field = self._judge, self._judge.field
        ratio = np.full(judge.domains + 1, np.inf)
        if len(self._members):
            ratio[:] = 0
            return ratio
        node = field.node[self._singles]
        order = np.lexsort((self._price[field.unit[self._singles]], node))
        node = node[order]
        price = _within(node, self._price[field.unit[self._singles[order]]])
        # With the largest first, so many pods free at most this.
        most = np.lexsort((-self._size, field.node[self._singles]))
        size = judge.usage[:, self._singles[most]]
        freed = np.stack([_within(node, row.astype(np.float64)) for row in size])
        slots = judge.slots(judge.free[:, node] + freed.astype(np.int64))
        gain = np.minimum(slots - judge.base[node], self._target)
        useful = gain > 0
        np.minimum.at(ratio, judge.domain[node[useful]], price[useful] / gain[useful])
        if judge.usage.shape[0] > 1 and self.sizes_differ:
            ratio[:] = np.where(np.isinf(ratio), 0, 0)
        return ratio

    def fill(self, domain: int, *, by_size: bool) -> set[int] | None:
        """Units whose going makes room for the target in one domain."""
        judge, field = self._judge, self._judge.field
        singles = np.flatnonzero(judge.domain[field.node[self._singles]] == domain)
        rank = self._ranks(domain, self._singles[singles])
        keys = (rank, -self._size[singles]) if by_size else (rank,)
        order = np.lexsort((*keys, field.node[self._singles[singles]]))
        rank, singles = rank[order], self._singles[singles[order]]
        members = self._members[judge.domain[field.node[self._members]] == domain]
        free = judge.free.copy()
        gone: set[int] = set()
        here = judge.domain == domain
        while True:
            base = judge.slots(free) * judge.passes
            lacking = self._target - int(base[here].sum())
            if lacking <= 0:
                return gone
            found = self._next(singles, rank, members, free, base, lacking)
            if not found:
                return None
            gone.update(found)
            places = all_places(field, list(found))
            places = places[field.node[places] >= 0]
            for row in range(len(free)):
                np.add.at(free[row], field.node[places], judge.usage[row, places])
            keep = ~np.isin(field.unit[singles], list(found))
            singles, rank = singles[keep], rank[keep]
            members = members[~np.isin(field.unit[members], list(found))]

    def _next(
        self,
        singles: np.ndarray,
        rank: np.ndarray,
        members: np.ndarray,
        free: np.ndarray,
        base: np.ndarray,
        lacking: int,
    ) -> set[int]:
        """What makes slots for the least now: alike bargains together, as far as they are needed."""
        judge, field = self._judge, self._judge.field
        best, found = np.inf, set[int]()
        if len(singles):
            node = field.node[singles]
            freed = np.stack([_within(node, row.astype(np.float64)) for row in judge.usage[:, singles]])
            gain = np.minimum(judge.slots(free[:, node] + freed.astype(np.int64)) - base[node], lacking)
            price = _within(node, self._price[field.unit[singles]])
            ratio = np.where(gain > 0, price / np.maximum(gain, 1), np.inf)
            best = float(ratio.min())
            if best < np.inf:
                found = self._take(singles, rank, node, gain, np.flatnonzero(ratio == best), lacking)
        if len(members):
            unit, ratio = self._units(members, free, base, lacking)
            if len(ratio) and float(ratio.min()) < best:
                return {int(unit[int(ratio.argmin())])}
        return found

    def _take(
        self,
        singles: np.ndarray,
        rank: np.ndarray,
        node: np.ndarray,
        gain: np.ndarray,
        equal: np.ndarray,
        lacking: int,
    ) -> set[int]:
        """Of equal bargains, each the pods of a node up to one place, those that are the first to go."""
        first = np.concatenate(([0], np.flatnonzero(np.diff(node)) + 1))
        start = first[np.searchsorted(first, equal, side="right") - 1]
        found: set[int] = set()
        used: set[int] = set()
        apart = np.searchsorted(first, np.arange(len(node)), side="right") * (int(rank.max()) + 1)
        worst = np.maximum.accumulate(rank + apart) - apart
        for i in np.argsort(worst[equal], kind="stable").tolist():
            s, e = int(start[i]), int(equal[i])
            if s in used or (found and gain[e] > lacking):
                continue
            used.add(s)
            found.update(self._judge.field.unit[singles[s : e + 1]].tolist())
            lacking -= int(gain[e])
            if lacking <= 0:
                break
        return found

    def _units(
        self, members: np.ndarray, free: np.ndarray, base: np.ndarray, lacking: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """(unit, price of a slot) of the groups that go as a whole."""
        judge, field = self._judge, self._judge.field
        nodes = len(base)
        pair, inverse = np.unique(field.unit[members] * nodes + field.node[members], return_inverse=True)
        freed = np.stack([np.bincount(inverse, weights=row, minlength=len(pair)) for row in judge.usage[:, members]])
        node = pair % nodes
        gain = (judge.slots(free[:, node] + freed.astype(np.int64)) - base[node]) * judge.passes[node]
        unit, inverse = np.unique(pair // nodes, return_inverse=True)
        gains = np.minimum(np.bincount(inverse, weights=gain, minlength=len(unit)), lacking)
        price = self._price[unit] * self._sizes[unit]
        return unit, np.where(gains > 0, price / np.maximum(gains, 1), np.inf)


def _within(node: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sums of the values so far, anew for each node; alike nodes stand together."""
    total = np.cumsum(values)
    first = np.concatenate(([0], np.flatnonzero(np.diff(node)) + 1))
    before = total[first] - values[first]
    result: np.ndarray = total - np.repeat(before, np.diff(np.append(first, len(node))))
    return result
