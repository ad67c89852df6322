"""The pods that hold room, as columns that are kept up to date pod by pod: nobody reads thousands of records anew."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import compress
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from muster.model.keys import Key
from muster.model.records import Amounts, PodRecord

NOBODY = -1
Named = TypeVar("Named", bound=Hashable)


class Columns(NamedTuple):
    """Some pods, column by column. What many share is named once; a column has its places there."""

    priority: np.ndarray
    """int64[R]: the pods' own."""
    group: np.ndarray
    """int64[R], NOBODY: in no group."""
    groups: tuple[Key, ...]
    node: np.ndarray
    """int64[R]"""
    nodes: tuple[str, ...]
    usage: np.ndarray
    """int64[R]"""
    usages: tuple[Amounts, ...]
    going: np.ndarray
    """bool[R]: terminating."""


class _Names(Generic[Named]):
    """Things by the order in which they were met first."""

    def __init__(self) -> None:
        self._place: dict[Named, int] = {}

    def place(self, name: Named) -> int:
        return self._place.setdefault(name, len(self._place))

    def __len__(self) -> int:
        return len(self._place)

    def all(self) -> tuple[Named, ...]:
        return tuple(self._place)


PRIORITY, GROUP, NODE, USAGE, GOING = range(5)
"""Rows of the table."""
SPARE = 1_024


class Roster:
    """Bound pods in the order in which they came."""

    def __init__(self, pods: Iterable[PodRecord] = ()) -> None:
        self._start(pods)

    def _start(self, pods: Iterable[PodRecord]) -> None:
        self._records: list[PodRecord | None] = []
        self._row: dict[str, int] = {}
        self._table = np.zeros((5, SPARE), dtype=np.int64)
        self._groups, self._nodes, self._usages = _Names[Key](), _Names[str](), _Names[Amounts]()
        for pod in pods:
            self.put(pod)

    def put(self, pod: PodRecord) -> None:
        """A pod comes, or is another by now."""
        row = self._row.setdefault(pod.uid, len(self._records))
        if row == len(self._records):
            self._records.append(None)
            if row == self._table.shape[1]:
                self._table = np.concatenate([self._table, np.zeros_like(self._table)], axis=1)
        self._records[row] = pod
        group = NOBODY if pod.group is None else self._groups.place(Key(pod.key.namespace, pod.group))
        node, usage = self._nodes.place(pod.node or ""), self._usages.place(pod.usage)
        self._table[:, row] = (pod.priority, group, node, usage, pod.terminating)

    def drop(self, uid: str) -> None:
        """A pod goes; nothing if it is not there."""
        row = self._row.pop(uid, None)
        if row is not None:
            self._records[row] = None

    def seen(self) -> tuple[tuple[PodRecord, ...], Columns]:
        """All of them; nothing in it changes afterwards."""
        self._tidy()
        here = [record is not None for record in self._records]
        table = self._table[:, : len(here)][:, here]
        pods: list[PodRecord] = list(compress(self._records, here))  # type: ignore[arg-type]
        columns = Columns(
            table[PRIORITY],
            table[GROUP],
            self._groups.all(),
            table[NODE],
            self._nodes.all(),
            table[USAGE],
            self._usages.all(),
            table[GOING] > 0,
        )
        return tuple(pods), columns

    def _tidy(self) -> None:
        """Begins anew once much of what is kept is about pods that are gone."""
        most = 2 * len(self._row) + SPARE
        if max(len(self._records), len(self._groups), len(self._nodes), len(self._usages)) > most:
            self._start([record for record in self._records if record is not None])
