"""Which waiting entries an event can cure: entries by the classes of pods they would place (M4).

A placement that was impossible before needs a node that changed, and a first pod that fits on it now: a class is looked
at per touched node, and nothing else. A group of one class also counts the slots that it lacks.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from muster.model.diagnosis import Cure, Diagnosis
from muster.model.records import EntryKey, EntryKind, PodClass
from muster.scheduler.entries import Entry, Order
from muster.scheduler.rooms import Rooms, Touch

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


class Waiting:
    """The entries that wait for an event."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._lines: dict[PodClass, Line] = {}
        self._no_room: set[Entry] = set()
        """Those that freed room cannot help, since every node turned them away for what it is."""

    def add(self, entry: Entry, diagnosis: Diagnosis, classes: Iterable[PodClass], lacks: int) -> None:
        """`lacks`: how many slots more a group of one class needs, else 1; a single pod comes with its `order`."""
        cures = diagnosis.wakes_on
        entry.for_room = not cures or not diagnosis.proven or bool(cures & _ROOM)
        if not entry.for_room:
            self._no_room.add(entry)
        entry.lacks = lacks
        entry.classes = frozenset(classes)
        for cls in entry.classes:
            line = self._lines.get(cls)
            if line is None:
                line = self._lines[cls] = Line()
            if entry.key.kind is EntryKind.POD:
                assert entry.order is not None
                line.singles[entry.key] = entry
                heapq.heappush(line.order, (entry.order, entry.key))
            else:
                line.groups[entry.key] = entry

    def remove(self, entry: Entry) -> None:
        """Nothing if it does not wait."""
        for cls in entry.classes:
            line = self._lines[cls]
            (line.singles if entry.key.kind is EntryKind.POD else line.groups).pop(entry.key)
            if not line.singles and not line.groups:
                del self._lines[cls]
        entry.classes = frozenset()
        self._no_room.discard(entry)

    def cured(self, touched: Mapping[str, Touch]) -> Iterator[Entry]:
        """Takes out and yields what may be placeable now that these nodes have got better."""
        for node, touch in touched.items():
            if not self._lines or node not in self._rooms.records:
                continue
            if touch.static:
                self._let_room_count()
            free = self._rooms.free(node)
            for cls, line in tuple(self._lines.items()):
                rows = self._rooms.rows(cls.requests)
                after = _slots(rows, free)
                if after > 0:
                    before = None if cls.host_ports or touch.before is None else max(_slots(rows, touch.before), 0)
                    more = after if before is None else after - before
                    yield from self._cured_groups(line, more, static=touch.static)
                    yield from self._cured_singles(cls, line, after if more > 0 else 0, static=touch.static)

    def _let_room_count(self) -> None:
        """A node has changed: it may be the right kind now, and full, so that room freed on it later does help."""
        for entry in self._no_room:
            entry.for_room = True
        self._no_room.clear()

    def next_of(self, cls: PodClass) -> Iterator[Entry]:
        """Takes out and yields the single pod of this class that is next in line, if there is one."""
        line = self._lines.get(cls)
        if line is not None:
            yield from self._cured_singles(cls, line, 1, static=True)

    def _cured_groups(self, line: Line, more: int, *, static: bool) -> Iterator[Entry]:
        """`more`: how many more pods of the class fit on the node than before."""
        for entry in tuple(line.groups.values()):
            if static or entry.for_room:
                entry.lacks -= more if len(entry.classes) == 1 else 1
                if entry.lacks <= 0:
                    self.remove(entry)
                    yield entry

    def _cured_singles(self, cls: PodClass, line: Line, count: int, *, static: bool) -> Iterator[Entry]:
        for _ in range(min(count, len(line.singles))):
            entry = line.first()
            if entry is None or not (static or entry.for_room):
                return
            self.remove(entry)
            entry.runner_of = cls
            yield entry


def _slots(rows: Iterable[tuple[int, int]], free: Sequence[int]) -> int:
    """How many pods that take `rows` fit into what is free; rows that were not known then have nothing free."""
    known = len(free)
    return min((free[row] // amount if row < known else 0) for row, amount in rows)
