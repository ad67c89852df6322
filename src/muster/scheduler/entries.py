"""Queue entries: one single pod or one root group each, and the states they are in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from muster.api.instant import SECOND, Instant
from muster.model.diagnosis import Diagnosis
from muster.model.keys import Key
from muster.model.records import EntryKey, PodClass
from muster.scheduler.holds import Hold
from muster.scheduler.volumes import Topic

FIRST_BACKOFF: Instant = SECOND
LONGEST_BACKOFF: Instant = 10 * SECOND

Order = tuple[int, bool, Instant, Instant, Key, int]
"""How entries compare: priority (negated), broken groups first (M12), age, creation, name, kind."""


class State(Enum):
    HELD = "held"
    """Kept aside before any attempt: gate, missing members or group (`holds`)."""
    ACTIVE = "active"
    """To be decided next, in the order of `Order`."""
    DECIDING = "deciding"
    """Part of the decision under way."""
    BACKOFF = "backoff"
    """May be decided again from `ready_at` on."""
    WAITING = "waiting"
    """Undecidable until an event that can cure its diagnosis, or the safety retry (M4)."""


class News(Enum):
    """What happened to an entry's own pods or group."""

    NOTHING = 0
    LEFT = 1
    """A member left or ended: that helps only if members disagreed."""
    CURE = 2
    """Something that can let it be placed: a member more, another class."""
    URGENT = 3
    """As CURE, and a person asked for it: no backoff (a lowered minimum, statement 34)."""


class Seen(NamedTuple):
    """The age of an entry: when it was first seen pending, and the creation time of its oldest pod, for ties."""

    since: Instant
    created: Instant


@dataclass(slots=True, eq=False)
class Within:
    """What a waiting group with a topology constraint needs to know to be woken neither late nor in vain."""

    key: str
    domain: str | None
    """The only one that helps, since members run there; None: any."""
    fresh: int | None
    """So many slots are needed in a domain that is not in `deficits`; None: whatever gets better there may help."""
    deficits: dict[str, int]
    """By domain, so many slots more are needed."""
    anchors: frozenset[str]
    """The nodes of running members: where they are relabelled or go, another domain may be the group's."""


@dataclass(slots=True, eq=False)
class Entry:
    """One thing in the queue, for one incarnation of its pod or group."""

    key: EntryKey
    uid: str
    seen: Seen
    state: State = State.HELD
    attempts: int = 0
    rejected: int = 0
    """How often in a row its plan was stale when it came back."""
    ready_at: Instant = 0
    safety_at: Instant = 0
    hold: Hold | None = None
    ready_since: Instant | None = None
    """When nothing held it for the first time."""
    taken: int = 0
    """While DECIDING: so many of its pods are being decided; others have joined since."""
    diagnosis: Diagnosis | None = None
    news: News = News.NOTHING
    """What happened while it was being decided."""
    order: Order | None = None
    classes: frozenset[PodClass] = frozenset()
    """While WAITING: what it would place."""
    for_room: bool = True
    """While WAITING: whether freed room can help."""
    lacks: int = 1
    """While WAITING with one class: so many more slots are needed before another attempt can succeed."""
    within: Within | None = None
    """While WAITING: the domains that matter, for a group with a topology constraint."""
    topics: frozenset[Topic] = frozenset()
    """While WAITING: the parts of storage that the volumes of its pods depend on."""
    runner_of: PodClass | None = None
    """A single pod that was woken on behalf of all waiting ones of its class: see `waiting.Line`."""

    def held_by(self, hold: Hold | None, now: Instant) -> bool:
        """Notes what holds it, if anything does."""
        self.hold = hold
        if hold is None and self.ready_since is None:
            self.ready_since = now
        return hold is not None


def backoff(attempts: int) -> Instant:
    """1 s doubling to 10 s."""
    return min(FIRST_BACKOFF << min(max(attempts - 1, 0), 10), LONGEST_BACKOFF)


Due = tuple[Instant, Key, str, EntryKey]


def due_item(at: Instant, key: EntryKey) -> Due:
    """An item of a heap of times; a kind has no order, so its name stands before the key."""
    return at, key.key, key.kind.value, key
