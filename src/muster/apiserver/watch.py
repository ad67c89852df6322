"""A watch: a cursor in the change log of one resource, with the objects that enter and leave its selection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from muster.api.catalog import Kind
from muster.api.machine import ADDED, DELETED, MODIFIED
from muster.apiserver.log import Raw, WatchEvent
from muster.apiserver.storage import Store, restamped

__all__ = ["BOOKMARK", "Selection", "Watch", "WatchEvent"]

BOOKMARK = "BOOKMARK"
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

Selection = Callable[[Raw], bool]


class Watch:
    """Tells what changed since it was last asked. No thread, no callback: whoever opened it calls `poll`.

    Once `expired` (the changes it has not seen were forgotten) or closed it stays silent, and its reader lists again.
    """

    __slots__ = (
        "_initial",
        "_kind",
        "_log",
        "_position",
        "_selects",
        "_store",
        "ahead",
        "behind",
        "bookmarks",
        "closed",
        "expired",
        "shape",
    )

    def __init__(
        self,
        store: Store,
        kind: Kind,
        position: int,
        *,
        selects: Selection | None = None,
        initial: Iterable[WatchEvent] = (),
        bookmarks: bool = False,
    ) -> None:
        """Begins at `position` in the log; `selects` None takes every object; `initial` is told first."""
        self._store = store
        self._log = store.log(kind.resource)
        self._position = position
        self._kind = kind
        self._selects = selects
        self._initial = list(initial)
        self.bookmarks = bookmarks
        """The reader wants bookmarks (allowWatchBookmarks); they are only made on request, by `bookmark`."""
        self.ahead = False
        """Tells changes that are not settled yet, too: for readers that are begun anew when those are taken back."""
        self.behind = False
        """The last `poll` told as many changes as it may: there can be more to tell at once."""
        self.shape: Callable[[WatchEvent], Raw] | None = None
        """Makes of an event's object what the reader wants to see; None leaves it."""
        self.expired = False
        self.closed = False

    def poll(self, most: int | None = None) -> Sequence[WatchEvent]:
        """The changes since the last call, oldest first. Read only: the events are shared with other watches.

        `most`: of so many changes at most, so that a slow reader holds no more of them than it can be told at once.
        """
        if self.closed:
            return ()
        events = self._log.since(self._position, None if self.ahead else self._store.settled, most)
        if events is None:
            self.expired = self.closed = True
            return ()
        self.behind = len(events) == most
        self._position += len(events)
        if self._selects is not None and events:
            events = select(events, self._selects)
        if self._initial:
            events = self._initial + events
            self._initial = []
        return events

    def shown(self, event: WatchEvent) -> Raw:
        """The object of an event in the form that the reader asked for."""
        return event.object if self.shape is None else self.shape(event)

    def tell(self, event: WatchEvent) -> None:
        """Adds an event that the next `poll` tells first, after earlier ones added like this."""
        self._initial.append(event)

    def close(self) -> None:
        self.closed = True

    def bookmark(self, *, initial_end: bool = False) -> WatchEvent:
        """Says that all up to the present revision was told. Only true right after a `poll` that is not `behind`.

        `initial_end`: that all there is was told, which may not be settled yet: whoever opens the watch waits for it.
        """
        revision = self._store.revision if initial_end else self._store.told
        meta: dict[str, Any] = {"resourceVersion": str(revision)}
        if initial_end:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        body = {"kind": self._kind.kind, "apiVersion": self._kind.api_version, "metadata": meta}
        return WatchEvent(BOOKMARK, body, revision)


def select(events: Iterable[WatchEvent], selects: Selection) -> list[WatchEvent]:
    """What a reader of a selection sees: an object that leaves it is DELETED, one that enters it is ADDED."""
    seen = []
    for event in events:
        before = event.previous is not None and selects(event.previous)
        after = event.type != DELETED and selects(event.object)
        if before and after:
            seen.append(event)
        elif after:
            seen.append(event if event.type == ADDED else event._replace(type=ADDED))
        elif before:
            seen.append(event if event.type == DELETED else _left(event))
    return seen


def _left(event: WatchEvent) -> WatchEvent:
    assert event.type == MODIFIED and event.previous is not None
    return event._replace(type=DELETED, object=restamped(event.previous, event.revision))
