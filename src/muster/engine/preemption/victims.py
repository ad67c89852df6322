"""Which units go: enough, none too many, and the best of those in M7's order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from muster.engine.preemption.cost import Cost, Costs
from muster.engine.preemption.judges import Judge

FEW = 26
"""Among so many units the best set is searched for exactly."""
FEW_ASKED = 12
"""The same where every question is a whole decision; of more, an integer program is asked first."""
MANY = 300
"""Among up to so many units of alike pods' victims an integer program is asked too; of more, only to spare budgets."""
MOST_STEPS = 20_000
MOST_ASKED = 400
"""How much an exact search may spend where every question is a whole decision."""


def spare(judge: Judge, victims: Iterable[int], target: int, costs: Costs) -> frozenset[int]:
    """Takes back whoever can be, the most important first: none of what is left can be spared any more."""
    left = frozenset(victims)
    order = sorted(left, key=costs.dispensable, reverse=True)

    def go(block: Sequence[int]) -> None:
        nonlocal left
        fewer = left.difference(block)
        if judge.placed(fewer) >= target:
            left = fewer
        elif len(block) > 1:
            half = len(block) // 2
            go(block[:half])
            go(block[half:])

    if order:
        go(order)
    return left


def lowest_level(units: Sequence[int], costs: Costs, suffices: Callable[[Sequence[int]], bool]) -> Sequence[int] | None:
    """The units up to the lowest priority at which they suffice, without protected ones if that is possible."""
    free = [u for u in units if not costs.protected(u)]
    for among in (free, units) if len(free) < len(units) else (units,):
        levels = sorted({costs.field.priority[u] for u in among})
        if not levels or not suffices(among):
            continue
        low, high = 0, len(levels) - 1
        while low < high:
            middle = (low + high) // 2
            if suffices([u for u in among if costs.field.priority[u] <= levels[middle]]):
                high = middle
            else:
                low = middle + 1
        return [u for u in among if costs.field.priority[u] <= levels[low]]
    return None


class Exact:
    """Tries every set of units that could be better than the best one known, the dear ones spared first."""

    def __init__(self, judge: Judge, costs: Costs, target: int, steps: int) -> None:
        self._judge, self._costs, self._target = judge, costs, target
        self._left = steps
        self._best: frozenset[int] = frozenset()
        self._cost: Cost = costs(())

    def improve(self, units: Sequence[int], known: frozenset[int]) -> tuple[frozenset[int], bool]:
        """The best set, and whether that is proven. `known` suffices."""
        self._best, self._cost = known, self._costs(known)
        self._order = sorted(units, key=self._costs.dispensable, reverse=True)
        self._alone = [self._costs((u,)) for u in self._order]
        proven = self._go(0, frozenset())
        return self._best, proven

    def _go(self, at: int, gone: frozenset[int]) -> bool:
        """False: the steps ran out."""
        self._left -= 1
        if self._left < 0:
            return False
        cost = self._costs(gone)
        if cost > self._cost:
            return True
        if self._judge.placed(gone) >= self._target:
            better = cost < self._cost or self._costs.names(gone) < self._costs.names(self._best)
            if better:
                self._best, self._cost = gone, cost
            return True
        if cost >= self._cost or at == len(self._order):
            return True
        left = self._order[at:]
        cheapest = min(alone[2] for alone in self._alone[at:])
        if cost[:2] >= self._cost[:2] and cost[2] + cheapest > self._cost[2]:
            return True
        if self._judge.placed(gone.union(left)) < self._target:
            return True
        return self._go(at + 1, gone) and self._go(at + 1, gone | {self._order[at]})
