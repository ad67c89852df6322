"""Who depends on whom in one decision: counts by domain that follow the ledger, and the rules that judge by them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from muster.engine.extension import Ceiling, Counter, Rule, Spelled, Terms
from muster.engine.ledger import Ledger
from muster.engine.profile import Profile
from muster.model.diagnosis import Reason
from muster.model.records import PodClass
from muster.model.snapshot import Snapshot


class _Bound(NamedTuple):
    """A rule, the number of its plugin, and what its score weighs."""

    rule: Rule
    plugin: int
    weight: int


class Ties:
    """The dependent rules of a decision over one ledger; what a ledger takes back no longer counts."""

    def __init__(self, snapshot: Snapshot, profile: Profile, classes: Sequence[PodClass], ledger: Ledger) -> None:
        self._nodes: np.ndarray | None = None
        self._rules: dict[int, list[_Bound]] = {}
        self.counters: list[tuple[Counter, ...]] = []
        """By plugin."""
        self.ceilings: tuple[Ceiling, ...] = ()
        for number, (plugin, weight) in enumerate(profile.dependents):
            relations = plugin.relate(snapshot, classes)
            self.counters.append(relations.counters)
            self.ceilings += relations.ceilings
            for cls, rule in relations.rules.items():
                self._rules.setdefault(cls, []).append(_Bound(rule, number, weight))
        self._moved: dict[int, list[tuple[int, int, Counter, int]]] = {}
        for number, counters in enumerate(self.counters):
            for place, counter in enumerate(counters):
                for cls in np.flatnonzero(counter.adds).tolist():
                    self._moved.setdefault(cls, []).append((number, place, counter, int(counter.adds[cls])))
        self._counts = [[counter.counts.copy() for counter in counters] for counters in self.counters]
        self._attach(ledger)

    def _attach(self, ledger: Ledger) -> None:
        self._ledger = ledger
        if ledger.moves is None:
            ledger.moves = []
        self._seen = len(ledger.moves)
        self._passes: dict[int, tuple[int, np.ndarray]] = {}

    def __bool__(self) -> bool:
        return bool(self._rules)

    def within(self, nodes: np.ndarray, ledger: Ledger) -> Ties:
        """The same over a part of the cluster (`nodes` in the order of the whole): domains still count everywhere."""
        self._follow()
        part = object.__new__(Ties)
        part._nodes, part._rules, part.counters, part._moved = nodes, self._rules, self.counters, self._moved
        part.ceilings = self.ceilings
        part._counts = [[counts.copy() for counts in some] for some in self._counts]
        part._attach(ledger)
        return part

    # -- what depends

    def most(self, counts: Iterable[tuple[int, int]]) -> int:
        """So many of these (class, number) can be placed at most, as far as ceilings tell."""
        wanted = tuple(counts)
        found = sum(number for _, number in wanted)
        for ceiling in self.ceilings:
            left, there = ceiling.most, 0
            for taken, number in sorted((int(ceiling.amounts[cls]), number) for cls, number in wanted):
                fits = number if not taken else min(number, max(left, 0) // taken)
                left, there = left - fits * taken, there + fits
            found = min(found, there)
        return found

    def concern(self, cls: int) -> bool:
        """Whether any rule speaks of the class."""
        return cls in self._rules

    def filter(self, cls: int) -> bool:
        """Whether any rule may reject nodes for the class."""
        return any(bound.rule.filters for bound in self._rules.get(cls, ()))

    def open_up(self, classes: Iterable[int]) -> bool:
        """Whether a pod placed can open nodes to one of these classes."""
        return any(bound.rule.opens for cls in classes for bound in self._rules.get(cls, ()) if bound.rule.filters)

    def terms(self, cls: int) -> Iterator[tuple[int, Terms]]:
        """(number of the plugin, what its rule demands), as far as rules say it."""
        for rule, plugin, _ in self._rules.get(cls, ()):
            if rule.filters and isinstance(rule, Spelled):
                yield plugin, rule.terms

    def counted(self, plugin: int, place: int) -> tuple[Counter, np.ndarray]:
        """A counter of a plugin, and its present counts; both over the whole cluster."""
        self._follow()
        return self.counters[plugin][place], self._counts[plugin][place]

    # -- verdicts

    def passes(self, cls: int) -> np.ndarray:
        """bool[M]: no rule rejects the node for one more pod of the class. Not to be changed."""
        self._follow()
        known = self._passes.get(cls)
        if known is not None and known[0] == self._seen:
            return known[1]
        passes = ~self._any_rejected(cls)
        self._passes[cls] = (self._seen, passes)
        return passes

    def _any_rejected(self, cls: int) -> np.ndarray:
        found: np.ndarray | None = None
        for _, column in self._rejected(cls):
            found = column if found is None else found | column
        if found is None:
            return np.zeros(self._ledger.used.shape[1], dtype=bool)
        return found

    def _rejected(self, cls: int) -> Iterator[tuple[Reason, np.ndarray]]:
        for rule, plugin, _ in self._rules.get(cls, ()):
            for reason, column in rule.rejected(self._counts[plugin]) if rule.filters else ():
                yield reason, self._cut(column)

    def rejected(self, cls: int) -> Iterator[tuple[Reason, np.ndarray]]:
        """(reason, bool[M]) of what rejects nodes now; a node counts under the first."""
        self._follow()
        return self._rejected(cls)

    def ranked(self, cls: int, base: np.ndarray) -> np.ndarray:
        """int64[M]: the base scores with those of the rules, -1 where the base is negative or a rule rejects."""
        feasible = (base >= 0) & self.passes(cls)
        total = base
        for rule, plugin, weight in self._rules[cls]:
            if rule.scores and weight:
                total = total + weight * self._cut(rule.score(self._counts[plugin], self._whole(feasible)))
        return np.where(feasible, total, -1)

    def _cut(self, column: np.ndarray) -> np.ndarray:
        return column if self._nodes is None else column[self._nodes]

    def _whole(self, column: np.ndarray) -> np.ndarray:
        if self._nodes is None:
            return column
        whole = np.zeros(self._size(), dtype=bool)
        whole[self._nodes] = column
        return whole

    def _size(self) -> int:
        return next(len(counter.codes) for counters in self.counters for counter in counters)

    # -- counting

    def _follow(self) -> None:
        """Counts what was placed or taken back since the last time."""
        moves = self._ledger.moves
        assert moves is not None
        for cls, nodes, counts in moves[self._seen :]:
            moved = self._moved.get(cls)
            if moved is None:
                continue
            if self._nodes is not None:
                nodes = self._nodes[nodes]
            for plugin, place, counter, adds in moved:
                total = self._counts[plugin][place]
                if isinstance(nodes, np.ndarray) and nodes.ndim:
                    np.add.at(total, counter.codes[nodes], counts * counter.counted[nodes] * adds)
                elif counter.counted[nodes]:
                    total[counter.codes[nodes]] += counts * adds
                total[-1] = 0
        self._seen = len(moves)

    def state(self) -> Iterator[tuple[Counter, np.ndarray]]:
        """Every counter with its present counts; both over the whole cluster."""
        self._follow()
        for counters, counts in zip(self.counters, self._counts, strict=True):
            yield from zip(counters, counts, strict=True)
