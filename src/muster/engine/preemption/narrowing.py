"""Fewer units to ask about: those on the nodes that are cheapest to clear, domain by domain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from muster.engine.preemption.cost import BASE, Costs
from muster.engine.preemption.judges import Judge, Ordinary
from muster.engine.preemption.units import Field

FEW = 12
"""So many units are asked about one by one right away."""
DOMAINS = 8
"""So many domains are compared by asking."""


def narrow(field: Field, judge: Judge, costs: Costs, units: Sequence[int], target: int) -> frozenset[int]:
    """Units that suffice, of those given, which do."""
    every = frozenset(units)
    if len(every) <= FEW:
        return every
    best, best_cost = every, None
    for among in _regions(field, judge, every):
        found = _prefix(field, judge, among, target)
        if found is not None and (best_cost is None or costs(found) < best_cost):
            best, best_cost = found, costs(found)
    return best


def _regions(field: Field, judge: Judge, units: frozenset[int]) -> Iterator[frozenset[int]]:
    """The units of each domain that the whole entry would be in; all of them where it may be anywhere."""
    key = judge.topology_key if isinstance(judge, Ordinary) else None
    if key is None:
        yield units
        return
    column = field.snapshot.nodes.label(key)
    found: dict[int, set[int]] = {}
    for place, (unit, node) in enumerate(zip(field.unit.tolist(), field.node.tolist(), strict=True)):
        del place
        if unit in units and node >= 0 and column.codes[node] >= 0:
            found.setdefault(int(column.codes[node]), set()).add(unit)
    price = {u: (field.priority[u] + BASE) * len(field.pods_of[u]) for u in units}
    domains = sorted(found.values(), key=lambda some: (sum(price[u] for u in some), min(some)))
    for some in domains[:DOMAINS]:
        yield frozenset(some)
    yield units


def _prefix(field: Field, judge: Judge, units: frozenset[int], target: int) -> frozenset[int] | None:
    """The units on the fewest nodes that suffice, the nodes that are cheapest to clear first; None: all do not."""
    if judge.placed(units) < target:
        return None
    price = np.zeros(len(field.snapshot.nodes), dtype=np.float64)
    on_node: dict[int, set[int]] = {}
    for unit in units:
        for place in field.pods_of[unit]:
            node = field.node.item(place)
            if node >= 0:
                price[node] += field.priority[unit] + BASE
                on_node.setdefault(node, set()).add(unit)
    order = sorted(on_node, key=lambda node: (price[node], node))
    low, high = 1, len(order)
    while low < high:
        middle = (low + high) // 2
        some = frozenset().union(*(on_node[node] for node in order[:middle]))
        if judge.placed(some) >= target:
            high = middle
        else:
            low = middle + 1
    return frozenset().union(*(on_node[node] for node in order[:low]))
