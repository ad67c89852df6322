"""Which waiting entries an event can cure: entries by the classes of pods they would place (M4).

A placement that was impossible before needs a node that changed, and a first pod that fits on it now: a class is looked
at per touched node, and nothing else. A group of one class also counts the slots that it lacks.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from muster.engine.feasibility import feasible_nodes
from muster.engine.profile import Profile
from muster.model.diagnosis import Cure, Diagnosis, Reason
from muster.model.records import EntryKey, EntryKind, NodeRecord, PodClass, PodRecord
from muster.model.resources import ResourceAxis
from muster.model.snapshot import NodeColumns
from muster.scheduler.company import Changes, Company
from muster.scheduler.entries import Entry, Order, Within
from muster.scheduler.neighbours import Move
from muster.scheduler.rooms import Rooms, Touch
from muster.scheduler.volumes import Topic

_KEPT = frozenset({Cure.VOLUMES_CHANGED, Cure.DEVICES_CHANGED})
_ROOM = frozenset({Cure.ROOM_FREED, Cure.NODE_GREW, Cure.NOMINATION_DROPPED, Cure.PORT_FREED})


@dataclass(slots=True)
class Line:
    """What waits with one class of pods.

    Alike single pods stand in line: a freed slot wakes the first. One that is placed, or goes, wakes the next; one that
    fails proves that there is no room for those behind it. So a slot costs two attempts, however many wait.
    """

    groups: dict[EntryKey, Entry] = field(default_factory=dict)
    singles: dict[EntryKey, Entry] = field(default_factory=dict)
    order: list[tuple[Order, EntryKey]] = field(default_factory=list)
    """A heap of `singles`; those that have left are thrown out when they come up."""

    def first(self) -> Entry | None:
        """The single pod that is next in line."""
        while self.order:
            order, key = self.order[0]
            entry = self.singles.get(key)
            if entry is not None and entry.order == order:
                return entry
            heapq.heappop(self.order)
        return None


class _Gain(NamedTuple):
    """`slots` pods of a class fit on a node, `more` than before.

    `changed`: it did not admit the class before. `better`: some of what the class asks for has become free.
    """

    slots: int
    more: int
    changed: bool
    better: bool = True


class Waiting:
    """The entries that wait for an event."""

    def __init__(self, rooms: Rooms, profile: Profile, pods: Callable[[EntryKey], Iterable[PodRecord]]) -> None:
        """`pods`: the pending ones of an entry."""
        self._pods = pods
        self._rooms = rooms
        self._profile = profile
        self._lines: dict[PodClass, Line] = {}
        self._neighbourly: dict[EntryKey, Company] = {}
        """Entries that other pods stand in the way of or are missed by."""
        self._anchored: dict[str, dict[EntryKey, Entry]] = {}
        """Entries by the nodes of members that tie them to a domain."""
        self._by_topic: dict[Topic, dict[EntryKey, Entry]] = {}
        """Entries that a change in storage or in devices may help."""
        self._trees: dict[EntryKey, Entry] = {}
        """Hierarchies: their groups may have constraints on several levels, so any changed label may help them."""

    def add(
        self,
        entry: Entry,
        diagnosis: Diagnosis,
        classes: Iterable[PodClass],
        lacks: int,
        topics: frozenset[Topic] = frozenset(),
    ) -> None:
        """`lacks`: how many slots more a group of one class needs, else 1; a single pod comes with its `order`.

        `topics`: all that the volumes and devices of its pods depend on.
        """
        cures = diagnosis.wakes_on
        # What is said of the nearest domain need not hold in the others, nor that of one group in a hierarchy.
        many = entry.within is not None or entry.key.kind is EntryKind.COMPOSITE
        entry.for_room = many or not cures or not diagnosis.proven or bool(cures & _ROOM)
        entry.lacks = lacks
        entry.classes = frozenset(classes)
        if Cure.NEIGHBOURS_CHANGED in cures:
            kept_out = Reason.EXISTING_ANTI_AFFINITY in _reasons(diagnosis)
            self._neighbourly[entry.key] = Company(entry, kept_out, diagnosis.proven and not many)
        for node in entry.within.anchors if entry.within else ():
            self._anchored.setdefault(node, {})[entry.key] = entry
        entry.topics = topics if many or not diagnosis.proven or cures & _KEPT else frozenset()
        for topic in entry.topics:
            self._by_topic.setdefault(topic, {})[entry.key] = entry
        if entry.key.kind is EntryKind.COMPOSITE:
            self._trees[entry.key] = entry
        for cls in entry.classes:
            line = self._lines.get(cls)
            if line is None:
                line = self._lines[cls] = Line()
            if _stands_in_line(entry, cls):
                assert entry.order is not None
                line.singles[entry.key] = entry
                heapq.heappush(line.order, (entry.order, entry.key))
            else:
                line.groups[entry.key] = entry

    def remove(self, entry: Entry) -> None:
        """Nothing if it does not wait."""
        for cls in entry.classes:
            line = self._lines[cls]
            (line.singles if _stands_in_line(entry, cls) else line.groups).pop(entry.key)
            if not line.singles and not line.groups:
                del self._lines[cls]
        for node in entry.within.anchors if entry.within and entry.classes else ():
            anchored = self._anchored[node]
            del anchored[entry.key]
            if not anchored:
                del self._anchored[node]
        for topic in entry.topics:
            waiting = self._by_topic[topic]
            del waiting[entry.key]
            if not waiting:
                del self._by_topic[topic]
        entry.classes, entry.topics = frozenset(), frozenset()
        self._neighbourly.pop(entry.key, None)
        self._trees.pop(entry.key, None)

    def cured_by_neighbours(self, moved: Set[Move], spaces: Mapping[str, Mapping[str, str]]) -> Iterator[Entry]:
        """Takes out and yields what may be placeable now that these pods have come or gone; of alike pods the first.

        `spaces`: the labels of the namespaces.
        """
        changes = Changes.of(moved)
        helped = [one for one in self._neighbourly.values() if changes.may_help(one, self._pods, spaces)]
        yield from self._cured_together([one.entry for one in helped])

    def _in_other_domains(self, touched: Mapping[str, Touch]) -> list[Entry]:
        """The entries for which domains may have come, gone, or got other nodes."""
        nodes = [(touch, self._rooms.records.get(node)) for node, touch in touched.items()]
        relabelled = any(_relabelled(touch, record) for touch, record in nodes)
        retainted = any(_retainted(touch, record) for touch, record in nodes)
        return [
            one.entry
            for one in self._neighbourly.values()
            if relabelled or not one.proven or (retainted and one.counts_by_taints)
        ]

    def _cured_together(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """These groups, and of these single pods the first of each class."""
        lines: dict[PodClass, None] = {}
        for entry in entries:
            if any(_stands_in_line(entry, cls) for cls in entry.classes):
                lines.update(dict.fromkeys(entry.classes))
            else:
                self.remove(entry)
                yield entry
        for cls in lines:
            yield from self.next_of(cls)

    def cured_by_storage(self, topics: Iterable[Topic]) -> Iterator[Entry]:
        """Takes out and yields what depends on any of these."""
        for topic in topics:
            for entry in tuple(self._by_topic.get(topic, {}).values()):
                self.remove(entry)
                yield entry

    def peek(self, cls: PodClass) -> EntryKey | None:
        """The single pod of the class that is next in line."""
        line = self._lines.get(cls)
        first = None if line is None else line.first()
        return None if first is None else first.key

    def cured(self, touched: Mapping[str, Touch]) -> Iterator[Entry]:
        """Takes out and yields what may be placeable now that these nodes have got better."""
        if self._neighbourly and any(touch.changed for touch in touched.values()):
            yield from self._cured_together(self._in_other_domains(touched))
        if self._trees and any(_relabelled(touch, self._rooms.records.get(node)) for node, touch in touched.items()):
            yield from self._cured_together(tuple(self._trees.values()))
        for node, touch in touched.items():
            record = self._rooms.records.get(node)
            if touch.changed and node in self._anchored:
                yield from self._let_go(node, touch, record)
            if not self._lines or record is None:
                continue
            free = self._rooms.free(node)
            for cls, line in tuple(self._lines.items()):
                gain = self._gain(cls, line, touch, record, free)
                if gain is not None:
                    yield from self._cured_groups(cls, line, gain, touch, record)
                    if gain.better:
                        yield from self._cured_singles(cls, line, gain.slots if gain.more > 0 else 0, gain.changed)

    def _gain(self, cls: PodClass, line: Line, touch: Touch, record: NodeRecord, free: Sequence[int]) -> _Gain | None:
        """What a class has gained on a touched node; None: nothing, for any entry that waits with it."""
        rows = self._rooms.rows(cls.requests)
        slots = _slots(rows, free)
        if slots <= 0:
            if touch.changed:
                self._let_room_count(line)
            return None
        if touch.changed and not self._admits(record, cls):
            return None
        newly = touch.changed and (touch.record is None or not self._admits(touch.record, cls))
        if newly or touch.free is None or cls.host_ports or cls.stores:
            # Ports and volumes of pods that left are not in what is free.
            return _Gain(slots, slots, newly or (cls.stores and touch.changed))
        if all(_at(touch.free, row) >= free[row] for row, _ in rows):
            return _Gain(slots, 0, changed=False, better=False)
        return _Gain(slots, slots - max(_slots(rows, touch.free), 0), changed=False)

    def _let_go(self, node: str, touch: Touch, record: NodeRecord | None) -> Iterator[Entry]:
        """Groups whose member is in another domain now, or in none: its node was relabelled, has gone, or is back."""
        for entry in tuple(self._anchored[node].values()):
            assert entry.within is not None
            if record is None or _domain(entry.within, record) != _domain(entry.within, touch.record):
                self.remove(entry)
                yield entry

    def _admits(self, record: NodeRecord, cls: PodClass) -> bool:
        """Whether the filters let the class on a node like this, room or not."""
        alone = NodeColumns((record,), ResourceAxis().extended(name for name, _ in record.allocatable))
        return bool(feasible_nodes(alone, cls, self._profile).passes[0])

    def _let_room_count(self, line: Line) -> None:
        """A full node has changed: it may be the right kind now, so that room freed on it later does help."""
        for entry in (*line.groups.values(), *line.singles.values()):
            entry.for_room = True

    def next_of(self, cls: PodClass) -> Iterator[Entry]:
        """Takes out and yields the single pod of this class that is next in line, if there is one."""
        line = self._lines.get(cls)
        if line is not None:
            yield from self._cured_singles(cls, line, 1, changed=True)

    def _cured_groups(
        self, cls: PodClass, line: Line, gain: _Gain, touch: Touch, record: NodeRecord
    ) -> Iterator[Entry]:
        for entry in tuple(line.groups.values()):
            if entry.within is not None:
                if _cures_domain(entry.within, gain, touch, record):
                    self.remove(entry)
                    yield entry
            elif gain.better and (gain.changed or entry.for_room):
                entry.lacks -= gain.more if len(entry.classes) == 1 else 1
                if entry.lacks <= 0:
                    self.remove(entry)
                    yield entry

    def _cured_singles(self, cls: PodClass, line: Line, count: int, changed: bool) -> Iterator[Entry]:
        for _ in range(min(count, len(line.singles))):
            entry = line.first()
            if entry is None or not (changed or entry.for_room):
                return
            self.remove(entry)
            entry.runner_of = cls
            yield entry


def _stands_in_line(entry: Entry, cls: PodClass) -> bool:
    """Whether it is a single pod like others of its class. Those with claims are not: each has its own."""
    return entry.key.kind is EntryKind.POD and not cls.stores and not cls.devices


def _relabelled(touch: Touch, record: NodeRecord | None) -> bool:
    """Whether a node is in other domains than before: relabelled, new, gone or back."""
    if not touch.changed:
        return False
    return record is None or touch.record is None or record.labels != touch.record.labels


def _retainted(touch: Touch, record: NodeRecord | None) -> bool:
    """Whether other pods tolerate a node than before."""
    if not touch.changed or record is None or touch.record is None:
        return touch.changed
    return (record.taints, record.unschedulable) != (touch.record.taints, touch.record.unschedulable)


def _domain(within: Within, record: NodeRecord | None) -> str | None:
    return record.labels.get(within.key) if record is not None else None


def _cures_domain(within: Within, gain: _Gain, touch: Touch, record: NodeRecord) -> bool:
    """Whether a domain has what it lacked now; a node that joins one brings all its slots. Keeps count."""
    value = _domain(within, record)
    if value is None or within.domain not in (None, value):
        return False
    joined = touch.changed and _domain(within, touch.record) != value
    if not joined and not gain.better:
        return False
    if within.fresh is None:
        return True
    lacks = within.deficits.get(value, within.fresh) - (gain.slots if joined else gain.more)
    within.deficits[value] = lacks
    return lacks <= 0


def _at(free: Sequence[int], row: int) -> int:
    return free[row] if row < len(free) else 0


def _slots(rows: Iterable[tuple[int, int]], free: Sequence[int]) -> int:
    """How many pods that take `rows` fit into what is free; rows that were not known then have nothing free."""
    known = len(free)
    return min((free[row] // amount if row < known else 0) for row, amount in rows)


def _reasons(diagnosis: Diagnosis) -> set[Reason]:
    verdicts = (diagnosis.rejections, *(verdict.rejections for verdict in set(diagnosis.pods.values())))
    return {rejection.reason for rejections in verdicts for rejection in rejections}
