"""Where the pods run that the demands of others are about, counted by node as pods come and go.

Only what somebody asks for is counted: a selection from the first pending pod that asks on, by one look at every pod
there is, and then change by change; a term of a running pod as long as such a pod runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from enum import Enum
from typing import NamedTuple, TypeVar

import numpy as np

from muster.model.neighbours import (
    NOBODY,
    Holding,
    Labels,
    Neighbours,
    PodDemands,
    Selection,
    SelectionIndex,
)
from muster.model.snapshot import NodeColumns

K = TypeVar("K", Selection, Holding)

MOST_SELECTIONS = 2_048
"""Beyond it, those that no pending pod asks for any more are forgotten."""
_MOST_KNOWN = 50_000


class Tenant(NamedTuple):
    """A pod on a node, as its neighbours see it."""

    node: str
    namespace: str
    labels: Labels
    leaving: bool
    demands: PodDemands | None


class Way(Enum):
    """How a count has changed."""

    MORE = "more"
    FEWER = "fewer"
    LEAVING = "leaving"
    """As many, but one of them terminates."""
    ANY = "any"
    """Who is meant at all may have changed: a namespace has other labels."""


class Move(NamedTuple):
    """A selection or term of which other pods are counted now."""

    what: Selection | Holding
    way: Way


class Tally:
    """Pods by node, and the same as a column that is brought up to date where it changed."""

    __slots__ = ("_changed", "_column", "_columns", "by_node")

    def __init__(self) -> None:
        self.by_node: dict[str, int] = {}
        self._changed: set[str] = set()
        self._columns: NodeColumns | None = None
        self._column = np.zeros(0, dtype=np.int64)

    def add(self, node: str, count: int) -> None:
        total = self.by_node.get(node, 0) + count
        if total:
            self.by_node[node] = total
        else:
            self.by_node.pop(node, None)
        self._changed.add(node)

    def column(self, columns: NodeColumns) -> np.ndarray:
        """int64[N], read only."""
        if self._columns is not columns:
            self._column, self._changed, self._columns = (
                np.zeros(len(columns), dtype=np.int64),
                set(self.by_node),
                columns,
            )
        elif not self._changed:
            return self._column
        else:
            self._column = self._column.copy()
        index = columns.index
        known = [node for node in self._changed if node in index]
        self._column[[index[node] for node in known]] = [self.by_node.get(node, 0) for node in known]
        self._column.flags.writeable = False
        self._changed = set()
        return self._column


class _Seen(NamedTuple):
    """What a pod counts for."""

    meant: tuple[Selection, ...] = ()
    held: tuple[Holding, ...] = ()


_NOTHING = _Seen()


class Neighbourhood:
    """The counts, and which of them have changed since somebody last looked."""

    def __init__(self) -> None:
        self.version = 0
        self._moved: set[Move] = set()
        self.spaces: dict[str, Mapping[str, str]] = {}
        self._asked: set[PodDemands] = set()
        self._matching: dict[Selection, Tally] = {}
        self._leaving: dict[Selection, Tally] = {}
        self._holding: dict[Holding, Tally] = {}
        self._index = SelectionIndex()
        self._known: dict[tuple[str, Labels], tuple[Selection, ...]] = {}
        self._most = MOST_SELECTIONS

    @property
    def crowded(self) -> bool:
        """Whether it is time to `keep` only what is still asked for."""
        return len(self._matching) > self._most

    def keep(self, asked: Iterable[PodDemands]) -> None:
        """Forgets every selection but those of these demands."""
        self._asked = set(asked)
        wanted = {selection for demands in self._asked for selection in demands.selections()}
        for tallies in (self._matching, self._leaving):
            for selection in tallies.keys() - wanted:
                del tallies[selection]
        self._index, self._known = SelectionIndex(self._matching), {}
        self._most = max(MOST_SELECTIONS, 2 * len(self._matching))

    @property
    def counts_anything(self) -> bool:
        return bool(self._matching or self._holding)

    def ask(self, demands: PodDemands, tenants: Iterable[Tenant]) -> None:
        """A pending pod has these demands: from now on what they are about is counted. `tenants`: every pod there."""
        if demands in self._asked:
            return
        self._asked.add(demands)
        new = [selection for selection in dict.fromkeys(demands.selections()) if selection not in self._matching]
        if new:
            self._count(new, tenants)

    def _count(self, selections: Iterable[Selection], tenants: Iterable[Tenant]) -> None:
        index = SelectionIndex()
        for selection in selections:
            self._matching[selection], self._leaving[selection] = Tally(), Tally()
            index.add(selection)
            self._index.add(selection)
        self._known.clear()
        known: dict[tuple[str, Labels], tuple[Selection, ...]] = {}
        for tenant in tenants:
            who = tenant.namespace, tenant.labels
            meant = known.get(who)
            if meant is None:
                meant = known[who] = index.meant(*who, self.spaces)
            for selection in meant:
                self._add(selection, tenant, 1)
        self.version += 1

    def _add(self, selection: Selection, tenant: Tenant, count: int) -> None:
        self._matching[selection].add(tenant.node, count)
        if tenant.leaving:
            self._leaving[selection].add(tenant.node, count)

    def move(self, before: Tenant | None, after: Tenant | None) -> None:
        """A pod comes, goes, or is no longer what it was."""
        if before == after:
            return
        was, now = self._seen(before), self._seen(after)
        stays = before is not None and after is not None and before.node == after.node
        if before is not None:
            self._count_one(before, was, -1, now if stays else _NOTHING)
        if after is not None:
            self._count_one(after, now, 1, was if stays else _NOTHING)
            if before is not None and stays and after.leaving and not before.leaving:
                for selection in set(was.meant).intersection(now.meant):
                    self._moved.add(Move(selection, Way.LEAVING))

    def _count_one(self, tenant: Tenant, seen: _Seen, count: int, same: _Seen) -> None:
        """Counts a pod in (1) or out (-1); what is in `same` too counts the same number on the node afterwards."""
        way = Way.MORE if count > 0 else Way.FEWER
        for selection in seen.meant:
            self._add(selection, tenant, count)
            self._changed(selection, way, selection in same.meant)
        for holding in seen.held:
            self._hold(holding, tenant.node, count)
            self._changed(holding, way, holding in same.held)

    def _seen(self, tenant: Tenant | None) -> _Seen:
        if tenant is None:
            return _NOTHING
        return _Seen(self._meant(tenant), tuple(tenant.demands.holdings()) if tenant.demands else ())

    def _changed(self, what: Selection | Holding, way: Way, same: bool) -> None:
        self.version += 1
        if not same:
            self._moved.add(Move(what, way))

    def take_moved(self) -> Set[Move]:
        """What is counted otherwise than when this was asked last."""
        moved, self._moved = self._moved, set()
        return moved

    def _meant(self, tenant: Tenant) -> tuple[Selection, ...]:
        if not self._matching:
            return ()
        who = tenant.namespace, tenant.labels
        meant = self._known.get(who)
        if meant is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            meant = self._known[who] = self._index.meant(*who, self.spaces)
        return meant

    def _hold(self, holding: Holding, node: str, count: int) -> None:
        tally = self._holding.get(holding)
        if tally is None:
            tally = self._holding[holding] = Tally()
        tally.add(node, count)
        if not tally.by_node:
            del self._holding[holding]

    def put_space(self, name: str, labels: Mapping[str, str] | None, tenants: Iterable[Tenant]) -> None:
        """The labels of a namespace, None once it is gone."""
        if self.spaces.get(name) == labels:
            return
        spaces = {space: known for space, known in self.spaces.items() if space != name}
        self.spaces = spaces if labels is None else {**spaces, name: dict(labels)}
        selections, self._index = tuple(self._matching), SelectionIndex()
        if selections:
            self._count(selections, tenants)
        self.version += 1
        self._moved.update(Move(selection, Way.ANY) for selection in selections)
        self._moved.update(Move(holding, Way.ANY) for holding in self._holding)

    def columns(self, nodes: NodeColumns) -> Neighbours:
        """All counts for these node columns."""
        if not self.counts_anything:
            return NOBODY if not self.version else Neighbours(self.version, spaces=self.spaces)
        return Neighbours(
            self.version,
            _columns(self._matching, nodes),
            _columns(self._leaving, nodes),
            _columns(self._holding, nodes),
            self.spaces,
        )

    def counts(self) -> Iterator[tuple[object, Mapping[str, int]]]:
        """What is counted, by node, for comparing with another's."""
        for tallies in (self._matching, self._leaving, self._holding):
            yield from ((key, tally.by_node) for key, tally in tallies.items())


def _columns(tallies: Mapping[K, Tally], nodes: NodeColumns) -> dict[K, np.ndarray]:
    return {key: tally.column(nodes) for key, tally in tallies.items()}
