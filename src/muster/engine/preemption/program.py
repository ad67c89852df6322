"""The best victims for unlike pods, by integer programs: one for each part of the cost, the dearest part first.

Which units go, and how many pods of each class are then on each node, are asked at once. Only amounts can be told so,
and one level of domains; what comes out is checked by whoever asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from muster.engine.members import members_by_class
from muster.engine.placement import Refusal, candidates
from muster.engine.preemption.cost import BASE, Costs
from muster.engine.preemption.judges import is_of_amounts, trial_of
from muster.engine.preemption.units import Field
from muster.engine.profile import Profile
from muster.engine.program import MOST, Program
from muster.engine.trial import Trial
from muster.model.records import QueueEntry
from muster.model.snapshot import Snapshot

COLUMNS = 6_000
"""Larger programs are made smaller: the nodes that are dear to clear are left out."""
LIMIT = 500
"""Expansions for each of the programs."""
LEVELS = 24
"""So many priorities are told apart."""
NAMED = 60
"""Among so many pods names decide between what is equal otherwise."""
AT_ONCE = 15
Total = dict[int, int]


class Told(NamedTuple):
    """Units that make room, and whether none better do."""

    units: frozenset[int]
    best: bool


def best_victims(
    field: Field, base: Snapshot, costs: Costs, profile: Profile, entry: QueueEntry, target: int
) -> Told | None:
    """Units that make room for so many pods, by amounts; None: it cannot be told so, or was not found."""
    if entry.tree is not None:
        return None
    trial, _ = trial_of(base, profile, entry)
    members = members_by_class(trial, entry.pods)
    if not all(is_of_amounts(trial, some.cls) for some in members):
        return None
    domains: list[np.ndarray] | None = None
    if entry.group is not None and entry.group.topology_key is not None:
        found = candidates(trial, entry)
        if isinstance(found, Refusal):
            return None
        domains = [found.domains[d].nodes for d in found.among.tolist()]
    program = _Victims(field, trial, costs, {some.cls: len(some) for some in members}, domains)
    return program.solve(target)


class _Victims:
    """One question, put as programs that grow by what the earlier ones found."""

    def __init__(
        self,
        field: Field,
        trial: Trial,
        costs: Costs,
        wanted: Mapping[int, int],
        domains: Sequence[np.ndarray] | None,
    ) -> None:
        self._field, self._trial, self._costs = field, trial, costs
        self._wanted, self._program = wanted, Program()
        self._passes = {cls: trial.feasible(cls).passes for cls in wanted}
        nodes = np.logical_or.reduce(list(self._passes.values()))
        if domains is not None:
            inside = np.zeros(len(nodes), dtype=bool)
            inside[np.concatenate(domains)] = True
            nodes &= inside
        nodes, self._whole = self._cheapest(nodes)
        self._nodes = np.flatnonzero(nodes)
        here = nodes[field.node] & (field.node >= 0)
        units = np.unique(field.unit[here]).tolist()
        self._goes = dict(zip(units, self._program.columns([1] * len(units)), strict=True))
        self._where: dict[tuple[int, int], int] = {}
        for cls, count in wanted.items():
            able = self._nodes[self._passes[cls][self._nodes]].tolist()
            columns = self._program.columns([count] * len(able))
            self._where.update(zip(((cls, node) for node in able), columns, strict=True))
            self._program.at_most(dict.fromkeys(columns, 1), count)
        self._room(np.flatnonzero(here))
        if domains is not None:
            self._one_domain(domains)

    def _cheapest(self, nodes: np.ndarray) -> tuple[np.ndarray, bool]:
        """So many nodes as the program may have, and whether that is all of them."""
        field = self._field
        inside = np.where((field.node >= 0) & nodes[field.node], field.node, -1)
        here = inside >= 0
        each = np.bincount(inside[here], minlength=len(nodes)) + len(self._wanted)
        if int(each[nodes].sum()) <= COLUMNS:
            return nodes, True
        priority = np.array(field.priority, dtype=np.float64)
        price = np.bincount(inside[here], weights=priority[field.unit[here]] + BASE, minlength=len(nodes))
        order = np.argsort(price, kind="stable")
        order = order[nodes[order]]
        kept = order[np.cumsum(each[order]) <= COLUMNS]
        chosen = np.zeros(len(nodes), dtype=bool)
        chosen[kept] = True
        return chosen, False

    def _room(self, places: np.ndarray) -> None:
        ledger, field = self._trial.ledger, self._field
        rows = sorted({row for cls in self._wanted for row in np.flatnonzero(ledger.amounts[cls]).tolist()})
        names = {row: name for name, row in self._trial.layout.row.items()}
        usage = field.usage([names[row] for row in rows])
        by_node: dict[int, list[int]] = {}
        for place in places.tolist():
            by_node.setdefault(field.node.item(place), []).append(place)
        for node in self._nodes.tolist():
            columns = {cls: self._where[cls, node] for cls in self._wanted if (cls, node) in self._where}
            for i, row in enumerate(rows):
                asked = {column: int(ledger.amounts[cls][row]) for cls, column in columns.items()}
                asked = {column: amount for column, amount in asked.items() if amount}
                freed: Counter[int] = Counter()
                for place in by_node.get(node, ()):
                    if usage[i, place]:
                        freed[self._goes[field.unit.item(place)]] += int(usage[i, place])
                free = int(ledger.capacity[row, node] - ledger.used[row, node])
                if asked:
                    self._fits(asked, freed, free)

    def _fits(self, asked: Total, freed: Mapping[int, int], free: int) -> None:
        """Pods take no more than is free and comes free; where that is less than nothing, only if there are any."""
        most = max(*asked.values(), *freed.values(), abs(free), 1)
        scale = -(-most // (MOST - 1))
        total = {column: -(-amount // scale) for column, amount in asked.items()}
        total.update((column, -(amount // scale)) for column, amount in freed.items() if amount >= scale)
        if free < 0:
            opened = self._program.column()
            for column in asked:
                self._program.at_most({column: 1, opened: -self._program.upper[column]}, 0)
            total[opened], free = -(free // scale), 0
        self._program.at_most(total, free // scale)

    def _one_domain(self, domains: Sequence[np.ndarray]) -> None:
        chosen = self._program.columns([1] * len(domains))
        self._program.at_most(dict.fromkeys(chosen, 1), 1)
        every = sum(self._wanted.values())
        for column, nodes in zip(chosen, domains, strict=True):
            there = set(nodes.tolist())
            inside = {spot: 1 for (_, node), spot in self._where.items() if node in there}
            if inside:
                self._program.at_most({**inside, column: -every}, 0)

    def solve(self, target: int) -> Told | None:
        self._program.at_least(dict.fromkeys(self._where.values(), 1), target)
        found: np.ndarray | None = None
        best = self._whole
        for price in self._prices():
            if not price:
                continue
            prices = np.zeros(len(self._program.upper))
            prices[list(price)] = list(price.values())
            answer = self._program.cheapest(LIMIT, prices.tolist())
            if answer.often is None:
                break
            found, best = answer.often, best and answer.cheapest
            if not answer.cheapest:
                break
            self._program.at_most(price, int(sum(factor * int(found[c]) for c, factor in price.items())))
        else:
            return None if found is None else Told(self._read(found), best)
        return None if found is None else Told(self._read(found), best=False)

    def _read(self, often: np.ndarray) -> frozenset[int]:
        return frozenset(unit for unit, column in self._goes.items() if often[column])

    def _prices(self) -> Iterable[Total]:
        """The parts of the cost (M7), each as what is to be the least."""
        field, goes = self._field, self._goes
        parts = {unit: self._costs.parts(unit) for unit in goes}
        if self._costs.guards:
            yield self._beyond(((goes[u], b) for u in goes for b in parts[u].budgets), self._costs.allowed)
        yield self._levels()
        yield {column: len(field.pods_of[unit]) for unit, column in goes.items()}
        lowest = min((field.priority[u] for u in goes), default=0)
        yield {
            c: (field.priority[u] - lowest) * len(field.pods_of[u])
            for u, c in goes.items()
            if field.priority[u] > lowest
        }
        yield {column: parts[unit].started for unit, column in goes.items() if parts[unit].started}
        members = ((goes[u], group) for u in goes for group, count in parts[u].members for _ in range(count))
        yield self._beyond(members, self._costs.surplus)
        scale = max(max((parts[u].lost for u in goes), default=0) // (MOST - 1), 1)
        yield {column: parts[unit].lost // scale for unit, column in goes.items() if parts[unit].lost >= scale}
        yield from self._names()

    def _names(self) -> Iterator[Total]:
        """As many as are evicted, those whose names come first: a few names at a time, each worth all after it."""
        field = self._field
        pods = [(field.pods[place].key, column) for unit, column in self._goes.items() for place in field.pods_of[unit]]
        columns = [column for _, column in sorted(pods)]
        for start in range(0, len(columns) if len(columns) <= NAMED else 0, AT_ONCE):
            some = columns[start : start + AT_ONCE]
            found: Counter[int] = Counter()
            for rank, column in enumerate(some):
                found[column] -= 1 << (len(some) - 1 - rank)
            yield dict(found)

    def _beyond(self, terms: Iterable[tuple[int, Hashable]], free: Mapping[Any, int]) -> Total:
        """Columns that count by how much each sum is larger than what is free of it."""
        totals: dict[Hashable, Counter[int]] = {}
        for column, what in terms:
            totals.setdefault(what, Counter())[column] += 1
        found: Total = {}
        for what, total in totals.items():
            if (over := total.total() - free[what]) > 0:
                column = self._program.column(over)
                self._program.at_most({**total, column: -1}, free[what])
                found[column] = 1
        return found

    def _levels(self) -> Total:
        """A column for each priority: whether anybody of it, or above, goes."""
        field = self._field
        known = sorted({field.priority[u] for u in self._goes})
        if len(known) > LEVELS:
            known = known[:: -(-len(known) // LEVELS)]
        found: Total = {}
        for level in known[1:]:
            above = {column: 1 for unit, column in self._goes.items() if field.priority[unit] >= level}
            column = self._program.column()
            self._program.at_most({**above, column: -len(above)}, 0)
            found[column] = 1
        return found
