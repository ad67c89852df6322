"""One resource as a server has it, kept up by lists and a watch: a state machine without I/O.

Whoever drives it does what `step` says and tells it what came of that. It never forgets what it knows because of a
failure; after a new list, only what has really changed is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from muster.api.calls import Response
from muster.api.machine import ADDED, DELETED, MODIFIED, Listed, Observed
from muster.api.object import Object
from muster.runtime.remote.retry import STREAMS, Backoff, asked_to_wait

PAGE, LARGEST = 500, 4_000
"""Objects of the first page of a list; each further one is twice as large, up to the other."""
GONE = 410
BOOKMARK, ERROR = "BOOKMARK", "ERROR"
Name = tuple[str, str]
"""Namespace and name."""
News = Listed | Observed


class List(NamedTuple):
    """Ask for a page: `limit` 0 for everything at once, from `token` on."""

    limit: int
    token: str = ""


class Follow(NamedTuple):
    """Watch from after this revision on."""

    revision: str


class Rest(NamedTuple):
    """Wait so many seconds, then tell `rested`."""

    seconds: float


Step = List | Follow | Rest


@dataclass
class Tally:
    """What happened so far, for the metrics."""

    lists: int = 0
    """Lists that were read to their end."""
    watches: int = 0
    failures: int = 0
    relists: int = 0
    """Lists that a watch made necessary: it had fallen too far behind."""
    events: int = 0


class Reflector:
    """A list in pages, then a watch from its revision; a new list whenever the watch cannot go on.

    A list is consistent: all of its pages are of one revision. Where the rest of it is not kept any more (410) it is
    asked for at once, without pages. Failures are followed by waits that grow, each of a random length.
    """

    def __init__(self, resource: str, random: Random, backoff: Backoff = STREAMS) -> None:
        self.resource = resource
        self.objects: dict[Name, Object] = {}
        """All that is known."""
        self.synced = False
        """A list was read to its end, so that `objects` is, or was, what the server has."""
        self.live = False
        """A watch is open, so that `objects` is what the server has, or will be in a moment."""
        self.step: Step = List(PAGE)
        self.tally = Tally()
        self._random, self._backoff = random, backoff
        self._pages: list[Object] = []
        self._whole = False
        """The next list is not cut into pages: one that was could not be read to its end."""
        self._after: Step = self.step
        """What follows a rest."""
        self._failures = 0
        self._in_vain = 0
        """Lists in a row after which the watch was too old at once."""
        self._quiet = False
        """Nothing came by the watch since the latest list."""

    # -- lists

    def page(self, objects: Iterable[Object], revision: str, token: str) -> list[News]:
        """A page has come, the last one where `token` is empty; what is new by it, which only the last one says."""
        assert isinstance(self.step, List)
        self._pages.extend(objects)
        self._failures = 0
        if token:
            self.step = List(min(2 * self.step.limit, LARGEST), token)
            return []
        found, self._pages, self._whole = self._pages, [], False
        self.step, self._quiet = Follow(revision), True
        self.tally.lists += 1
        if self.synced:
            return list(self._difference(found))
        self.synced = True
        self.objects = {(obj.namespace, obj.name): obj for obj in found}
        return [Listed(self.resource, tuple(self.objects.values()))]

    def list_refused(self, response: Response) -> None:
        """A page was refused, or did not come."""
        assert isinstance(self.step, List)
        if response.status == GONE and (self.step.token or not self._whole):
            self._begin_list(whole=True)
            return
        if not response.status and self.step.token:
            self._rest(response, List(PAGE, self.step.token))  # the rest of this list may still be kept
            return
        self._begin_list(whole=self._whole)
        self._rest(response, self.step)

    def begin_anew(self) -> None:
        """Lists again, whatever was going on."""
        self._begin_list(whole=False)

    # -- the watch

    def watching(self) -> None:
        """The watch was opened."""
        self.live = True
        self.tally.watches += 1

    def event(self, change: str, raw: Mapping[str, Any]) -> list[News]:
        """One line of the watch."""
        assert isinstance(self.step, Follow), "the watch is over"
        if change == ERROR:
            self._ended(raw)
            return []
        made = Object(raw)
        self._failures = self._in_vain = 0
        self._quiet = False
        if made.revision:
            self.step = Follow(made.revision)
        if change == BOOKMARK:
            return []
        self.tally.events += 1
        return list(self._changed(change, made))

    def watch_ended(self, *, failed: bool, fruitful: bool = True) -> None:
        """The stream is over. `failed`: cut, instead of ended by the server. `fruitful`: something had come by it."""
        if isinstance(self.step, Follow) and (failed or not fruitful):
            self._rest(None, self.step)

    def watch_refused(self, response: Response) -> None:
        """It was not opened."""
        assert isinstance(self.step, Follow)
        if response.status == GONE:
            self._relist()
        else:
            self._rest(response, self.step)

    def rested(self) -> None:
        assert isinstance(self.step, Rest)
        self.step = self._after

    # -- parts

    def _ended(self, status: Mapping[str, Any]) -> None:
        """The server says what is wrong with the watch: too old, or anything else, after which it is opened again."""
        if status.get("code") == GONE or status.get("reason") in ("Expired", "Gone"):
            self._relist()
        else:
            self._rest(None, self.step)

    def _relist(self) -> None:
        self.tally.relists += 1
        self._begin_list(whole=False)
        if self._quiet:
            self._failures = self._in_vain
            self._in_vain += 1
            self._rest(None, self.step)

    def _begin_list(self, *, whole: bool) -> None:
        self._pages, self._whole = [], whole
        self.step = List(0 if whole else PAGE)

    def _rest(self, response: Response | None, after: Step) -> None:
        self._failures += 1
        self.tally.failures += 1
        asked = None if response is None else asked_to_wait(response)
        wait = self._backoff.wait(self._failures, self._random)
        self.step, self._after = Rest(wait if asked is None else max(asked, wait)), after

    def _changed(self, change: str, made: Object) -> Iterator[News]:
        name = (made.namespace, made.name)
        known = self.objects.get(name)
        if change == DELETED:
            if known is not None and known.uid == made.uid:
                del self.objects[name]
                yield Observed(self.resource, DELETED, made)
            return
        if known is not None and known.uid == made.uid and known.revision == made.revision:
            return
        self.objects[name] = made
        if known is not None and known.uid != made.uid:
            yield Observed(self.resource, DELETED, known)
            known = None
        yield Observed(self.resource, ADDED if known is None else MODIFIED, made)

    def _difference(self, found: Iterable[Object]) -> Iterator[News]:
        """What a new list says that was not known: first what vanished, then what is new or another."""
        listed = {(obj.namespace, obj.name): obj for obj in found}
        for name, known in tuple(self.objects.items()):
            if name not in listed:
                del self.objects[name]
                yield Observed(self.resource, DELETED, known)
        for made in listed.values():
            yield from self._changed(MODIFIED, made)
