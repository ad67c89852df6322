"""The best victims for alike pods, however many there are, where those on a node are alike as well: by sorting.

On a node the cheapest pods go first. So many of them make the next slots, at a price; where each further step on a node
costs as much as the one before or more, and all steps make the same number of slots, the cheapest steps of all nodes of
a domain are the best there is. Prices are compared by all of M7; names decide step by step where prices are equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from muster.engine.preemption.cost import BASE, Costs
from muster.engine.preemption.judges import Slots
from muster.engine.preemption.units import Field
from muster.model.keys import Key
from muster.model.records import PodRecord

NAMED = 2_000
"""Of more pods than that, not the names decide but the order in which they were learned of."""
Price = Sequence[np.ndarray]
"""int64[S] each: the parts of a price, the dearest part first."""


class _Steps(NamedTuple):
    """What may be bought, node by node, on a node in the order in which it has to be."""

    start: np.ndarray
    """int64[S]: its first pod,"""
    end: np.ndarray
    """int64[S]: and its last."""
    node: np.ndarray
    """int64[S]"""
    gain: int
    """Slots of each."""
    price: Price
    last: np.ndarray
    """int64[S]: the highest rank by name of its pods."""


def cheapest(judge: Slots, costs: Costs, chosen: np.ndarray, target: int) -> frozenset[int] | None:
    """Units out of the chosen ones (bool[U]) than which none cost less; None: it cannot be told so."""
    field = judge.field
    if costs.guards:
        return None
    places = np.flatnonzero(chosen[field.unit] & (field.node >= 0))
    places = places[judge.passes[field.node[places]] & (judge.usage[:, places] > 0).any(axis=0)]
    if not len(places) or int(np.bincount(field.unit)[field.unit[places]].max()) > 1:
        return None
    pods = [field.pods[place] for place in places.tolist()]
    core = _core(field, costs, pods)
    if core is None:
        return None
    started = np.array([pod.started for pod in pods], dtype=np.int64)
    priority = np.array(field.priority, dtype=np.int64)[field.unit[places]]
    lost = np.where(started > 0, np.maximum(costs.now - started, 0), 0)
    rank = _ranks(field, places)
    order = np.lexsort((rank, lost, core, started > 0, priority, field.node[places]))
    places, rank = places[order], rank[order]
    price = [column[order] for column in (priority + BASE, (started > 0).astype(np.int64), core, lost)]
    steps = _steps(judge, places, price, rank)
    if steps is None:
        return None
    taken = _bought(judge, steps, rank, target)
    return None if taken is None else frozenset(field.unit[places[taken]].tolist())


def _ranks(field: Field, places: np.ndarray) -> np.ndarray:
    """int64[p]: where each stands by name."""
    if len(places) > NAMED:
        return places
    found = np.empty(len(places), dtype=np.int64)
    found[sorted(range(len(places)), key=lambda i: field.pods[places[i]].key)] = np.arange(len(places))
    return found


def _core(field: Field, costs: Costs, pods: Sequence[PodRecord]) -> np.ndarray | None:
    """int64[p]: whether each is one too many of its gang to go; None: that depends on who else goes."""
    core = np.zeros(len(pods), dtype=np.int64)
    members = [(i, key) for i, pod in enumerate(pods) if pod.group and (key := Key(pod.key.namespace, pod.group))]
    for key, count in Counter(key for _, key in members if key in field.snapshot.groups).items():
        if 0 < costs.surplus[key] < count:
            return None
    for i, key in members:
        core[i] = key in field.snapshot.groups and not costs.surplus[key]
    return core


def _steps(judge: Slots, places: np.ndarray, price: Price, rank: np.ndarray) -> _Steps | None:
    """`places` stand node by node, the cheapest first."""
    node, usage = judge.field.node[places], judge.usage[:, places]
    first = np.flatnonzero(np.diff(node, prepend=-1))
    size = np.diff(np.append(first, len(node)))
    if bool((usage != np.repeat(usage[:, first], size, axis=1)).any()):
        return None
    gone = np.arange(len(node)) - np.repeat(first, size) + 1
    slots = np.maximum(((judge.free[:, node] + usage * gone) // judge.asked).min(axis=0), 0)
    before = np.append(0, slots[:-1])
    before[first] = judge.base[node[first]]
    is_end = slots > before
    at = np.flatnonzero(is_end)
    if not len(at):
        return None
    step = np.cumsum(is_end) - is_end
    inside = step < len(at)
    inside[inside] = node[at[step[inside]]] == node[inside]
    gain = (slots - before)[at]
    if bool((gain != gain[0]).any()):
        return None
    starts = np.searchsorted(step[inside], np.arange(len(at)))
    sums = [np.add.reduceat(column[inside], starts) for column in price]
    if _falls(sums, np.diff(node[at]) == 0):
        return None
    kept = np.flatnonzero(inside)
    last = np.maximum.reduceat(rank[inside], starts)
    return _Steps(kept[starts], at, node[at], int(gain[0]), sums, last)


def _falls(price: Price, beside: np.ndarray) -> bool:
    """Whether any step costs less than the one before it on its node (`beside`, bool[S - 1])."""
    less, same = np.zeros(len(beside), dtype=bool), beside.copy()
    for column in price:
        change = np.diff(column)
        less |= same & (change < 0)
        same &= change == 0
    return bool(less.any())


def _bought(judge: Slots, steps: _Steps, rank: np.ndarray, target: int) -> np.ndarray | None:
    """int64[v]: the pods of the cheapest steps of the domain where they cost the least; None: not enough anywhere."""
    domain = judge.domain[steps.node]
    order = np.lexsort((steps.last, *reversed(steps.price), domain))
    domain = domain[order]
    best: tuple[tuple[int, ...], np.ndarray] | None = None
    for d in np.unique(domain[domain < judge.domains]).tolist():
        number = -(-(target - int(judge.sums[d])) // steps.gain)
        start, end = np.searchsorted(domain, (d, d + 1)).tolist()
        if not 0 < number <= end - start:
            continue
        some = order[start : start + number]
        price = tuple(int(column[some].sum()) for column in steps.price)
        if best is None or price < best[0]:
            best = price, some
        elif price == best[0] and len(rank) <= NAMED:
            best = min(best, (price, some), key=lambda it: np.sort(rank[_pods(steps, it[1])]).tolist())
    return None if best is None else _pods(steps, best[1])


def _pods(steps: _Steps, some: np.ndarray) -> np.ndarray:
    """int64[v]"""
    return np.concatenate([np.arange(steps.start[s], steps.end[s] + 1) for s in some.tolist()])
