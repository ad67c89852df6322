"""What can be evicted: pods, and groups that go as a whole (P7-P10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from muster.model.keys import Key
from muster.model.records import CompositeRecord, EntryKey, EntryKind, GroupRecord, PodRecord
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


class _Leaf:
    """A PodGroup with running pods, as a pass over them meets it."""

    __slots__ = ("counts_as", "number", "present")

    def __init__(self, counts_as: tuple[int, EntryKey | None] | None) -> None:
        self.counts_as = counts_as
        """The priority of its pods (P8), and the group with which they go."""
        self.number = -1
        """Of its unit."""
        self.present = 0


class Field:
    """Every unit of lower priority than the preemptor, as columns. Unit `u` has the pods `pods_of(u)`.

    Units are in a declared order: by the place of their first pod in the order of names.
    """

    def __init__(self, snapshot: Snapshot, priority: int) -> None:
        running = snapshot.running
        assert running is not None
        self.snapshot = snapshot
        self.ancestry = Ancestry(snapshot.groups, running.composites)
        self.freeing: list[PodRecord] = []
        """Of lower priority and terminating already: their room counts as coming free (P10)."""
        self.pods: list[PodRecord] = []
        self.priority: list[int] = []
        """By unit."""
        self.whole: list[EntryKey | None] = []
        """By unit, the group that goes as a whole."""
        self._numbers: dict[EntryKey, int] = {}
        self._leaves: dict[tuple[str, str], _Leaf] = {}
        unit, nodes = self._sort(running, priority)
        self.present = {Key(*named): leaf.present for named, leaf in self._leaves.items() if leaf.present}
        """By group, how many of its running pods are not on their way out, whatever their priority."""
        self.unit = np.array(unit, dtype=np.int64)
        """int64[P]"""
        self.node = np.array(nodes, dtype=np.int64)
        """int64[P], -1: a node that does not exist."""
        self._pods_of: list[list[int]] | None = None

    def _sort(self, running: Running, priority: int) -> tuple[list[int], list[int]]:
        """Tells `pods` from `freeing`; returns the unit and the node of each of `pods`. One pass over all that runs."""
        unit: list[int] = []
        nodes: list[int] = []
        index, leaving = self.snapshot.nodes.index, running.leaving
        for pod in running.pods:
            stays = not (pod.terminating or (leaving and pod.uid in leaving))
            own, top, leaf = pod.priority, None, None
            if pod.group is not None:
                leaf = self._leaf(pod.key.namespace, pod.group)
                own, top = leaf.counts_as or (own, None)
                leaf.present += stays
            if own >= priority:
                continue
            if not stays:
                self.freeing.append(pod)
                continue
            at = index.get(pod.node or "", -1)
            if top is None or leaf is None:
                if at < 0:
                    continue
                unit.append(self._number(own, None))
            else:
                if leaf.number < 0:
                    leaf.number = self._number(own, top)
                unit.append(leaf.number)
            self.pods.append(pod)
            nodes.append(at)
        return unit, nodes

    def _leaf(self, namespace: str, group: str) -> _Leaf:
        named = (namespace, group)
        leaf = self._leaves.get(named)
        if leaf is None:
            leaf = self._leaves[named] = _Leaf(self.ancestry.of(Key(*named)))
        return leaf

    def _number(self, priority: int, top: EntryKey | None) -> int:
        """Of a unit that is met for the first time, or again through another group of its hierarchy."""
        number = len(self.priority)
        if top is not None and top.kind is EntryKind.COMPOSITE:
            number = self._numbers.setdefault(top, number)
        if number == len(self.priority):
            self.priority.append(priority)
            self.whole.append(top)
        return number

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
