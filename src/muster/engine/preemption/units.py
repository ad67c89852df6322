"""What can be evicted: pods, and groups that go as a whole (P7-P10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from muster.model.keys import Key
from muster.model.records import CompositeRecord, EntryKey, EntryKind, GroupRecord, PodRecord
from muster.model.roster import Columns
from muster.model.running import Running
from muster.model.snapshot import Snapshot


class Ancestry:
    """For each PodGroup the priority of its root and the topmost group above it that goes as a whole."""

    def __init__(self, groups: Mapping[Key, GroupRecord], composites: Mapping[Key, CompositeRecord]) -> None:
        self._groups, self._composites = groups, composites
        self._known: dict[Key, tuple[int, EntryKey | None]] = {}

    def of(self, group: Key) -> tuple[int, EntryKey | None] | None:
        """None: there is no such group, and its pods stand for themselves."""
        known = self._known.get(group)
        if known is None:
            record = self._groups.get(group)
            if record is None:
                return None
            if record.parent is None:
                return record.priority, EntryKey(EntryKind.POD_GROUP, group) if record.disruption_all else None
            known = self._known[group] = self._climb(record)
        return known

    def _climb(self, leaf: GroupRecord) -> tuple[int, EntryKey | None]:
        unit = EntryKey(EntryKind.POD_GROUP, leaf.key) if leaf.disruption_all else None
        priority = leaf.priority
        for above in self.above(leaf):
            priority = above.priority
            if above.disruption_all:
                unit = EntryKey(EntryKind.COMPOSITE, above.key)
        return priority, unit

    def above(self, leaf: GroupRecord) -> list[CompositeRecord]:
        """The composite groups above it, nearest first; a cycle ends where it closes."""
        found: list[CompositeRecord] = []
        parent = leaf.parent
        while parent is not None:
            record = self._composites.get(Key(leaf.key.namespace, parent))
            if record is None or record in found:
                break
            found.append(record)
            parent = record.parent
        return found


class Field:
    """Every unit of lower priority than the preemptor, as columns. Unit `u` has the pods `pods_of(u)`.

    Units stand in the order of their first pods among all that runs.
    """

    def __init__(self, snapshot: Snapshot, priority: int) -> None:
        running = snapshot.running
        assert running is not None
        self.snapshot = snapshot
        self.ancestry = Ancestry(snapshot.groups, running.composites)
        self._pods_of: list[list[int]] | None = None
        there, known = running.pods, running.columns
        stays = _staying(running, known)
        count = np.bincount(known.group[stays] + 1, minlength=len(known.groups) + 1)[1:]
        self.present = dict(zip(known.groups, count.tolist(), strict=True))
        """By group, how many of its running pods are not on their way out, whatever their priority."""
        own, top, tops = self._counted_as(known)
        lower = own < priority
        self.freeing: list[PodRecord] = [there[i] for i in np.flatnonzero(lower & ~stays).tolist()]
        """Of lower priority and terminating already: their room counts as coming free (P10)."""
        index = snapshot.nodes.index
        node = np.array([index.get(name, -1) for name in known.nodes], dtype=np.int64)[known.node]
        may_go = lower & stays & ((node >= 0) | (top >= 0)) & ~_spared(running, top)
        here = np.flatnonzero(may_go)
        self.pods: list[PodRecord] = list(map(there.__getitem__, here.tolist()))
        self.node = node[here]
        """int64[P], -1: a node that does not exist."""
        self.unit, first = _numbered(top[here], len(tops))
        """int64[P]"""
        self.priority: list[int] = own[here[first]].tolist()
        """By unit."""
        self.whole: list[EntryKey | None] = list(map([*tops, None].__getitem__, top[here[first]].tolist()))
        """By unit, the group that goes as a whole."""
        self._usage, self._usages = known.usage[here], known.usages

    def _counted_as(self, known: Columns) -> tuple[np.ndarray, np.ndarray, list[EntryKey]]:
        """By pod its priority (P8) and the place of the group that it goes with, -1: none; and these groups."""
        counts, priority, goes_with = [], [], []
        tops: list[EntryKey] = []
        trees: dict[EntryKey, int] = {}
        for group in known.groups:
            counts_as = self.ancestry.of(group)
            level, top = counts_as or (0, None)
            counts.append(counts_as is not None)
            priority.append(level)
            place = -1
            if top is not None:
                place = len(tops) if top.key is group else trees.setdefault(top, len(tops))
                if place == len(tops):
                    tops.append(top)
            goes_with.append(place)
        own = np.where(np.array([*counts, False])[known.group], np.array([*priority, 0])[known.group], known.priority)
        return own, np.array([*goes_with, -1], dtype=np.int64)[known.group], tops

    def usage(self, names: Sequence[str]) -> np.ndarray:
        """int64[r, P]: what each pod takes of these resources."""
        amounts = [dict(usage) for usage in self._usages]
        table = np.array([[there.get(name, 0) for there in amounts] for name in names], dtype=np.int64)
        return table.reshape(len(names), len(amounts))[:, self._usage]

    def __len__(self) -> int:
        return len(self.priority)

    @property
    def pods_of(self) -> list[list[int]]:
        """By unit, places of its pods."""
        if self._pods_of is None:
            places = np.argsort(self.unit, kind="stable").tolist()
            ends = np.cumsum(np.bincount(self.unit, minlength=len(self.priority))).tolist()
            self._pods_of = [places[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        return self._pods_of

    def records(self, units: Sequence[int] | frozenset[int]) -> list[PodRecord]:
        """The pods of these units."""
        return [self.pods[place] for number in sorted(units) for place in self.pods_of[number]]

    def groups(self, units: Sequence[int] | frozenset[int]) -> list[EntryKey]:
        """The groups that go with these units: each that is evicted as a whole, and those below it."""
        found: dict[EntryKey, None] = {}
        for number in sorted(units):
            top = self.whole[number]
            if top is None:
                continue
            found[top] = None
            for place in self.pods_of[number]:
                pod = self.pods[place]
                leaf = self.snapshot.groups[Key(pod.key.namespace, pod.group or "")]
                below = [EntryKey(EntryKind.POD_GROUP, leaf.key)]
                for above in self.ancestry.above(leaf):
                    if below[-1] == top:
                        break
                    below.append(EntryKey(EntryKind.COMPOSITE, above.key))
                found.update(dict.fromkeys(below))
        return list(found)


def _staying(running: Running, known: Columns) -> np.ndarray:
    """bool[R]: those that are not on their way out."""
    stays: np.ndarray = ~known.going
    if running.leaving:
        stays &= np.array([pod.uid not in running.leaving for pod in running.pods], dtype=bool)
    return stays


def _spared(running: Running, top: np.ndarray) -> np.ndarray:
    """bool[R]: those that cannot be deleted, and all that go with one of them (`top`: the group, -1: none)."""
    if not running.spared:
        return np.zeros(len(running.pods), dtype=bool)
    alone = np.array([pod.uid in running.spared for pod in running.pods], dtype=bool)
    groups = top[alone & (top >= 0)]
    return alone | np.isin(top, groups)


def _numbered(top: np.ndarray, tops: int) -> tuple[np.ndarray, np.ndarray]:
    """int64[P], the number of each one's unit, in the order of their first pods; and int64[U], where these are.

    `top`: the group that each goes with, -1: it goes alone.
    """
    here = np.arange(len(top))
    of_group = np.zeros(tops + 1, dtype=np.int64)
    of_group[top[::-1]] = here[::-1]
    leader = np.where(top >= 0, of_group[top], here)
    leads = leader == here
    return (np.cumsum(leads) - 1)[leader], np.flatnonzero(leads)
