"""What evictions were for and what came of them: each ends with a binding or with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from muster.model.diagnosis import Victim
from muster.model.records import EntryKey


class Ending(Enum):
    """Why an account is closed."""

    BOUND = "the preemptor was bound"
    RESIZED = "the preemptor was resized"
    GONE = "the preemptor went away"
    CHANGED = "the preemptor is not what it was"
    NODE_LOST = "a node went away or changed"
    ROOM_TAKEN = "others took the room"
    REFUSED = "the server refused to evict"
    UNBOUND = "the server refused to bind"
    ELSEWHERE = "something else in the cluster changed"


@dataclass(frozen=True, slots=True)
class Account:
    """Pods that were evicted together for one entry."""

    preemptor: EntryKey
    uid: str
    at: int
    """Microseconds since 1970, as `ended_at`."""
    victims: tuple[Victim, ...]
    """Empty: they were evicted before this scheduler started, for nominations that it found."""
    ending: Ending | None = None
    """None: their room is still being waited for."""
    ended_at: int = 0
    who: tuple[str, ...] = ()
    """The nodes that were lost, or the pods that took the room, or were not deleted."""
    resize: bool = False
    """The preemptor is bound, and wants to grow where it is."""


NAMED = 3
"""So many victims, nodes or pods are named."""


def sentence(account: Account) -> str:
    """In English: who was evicted for it, and what came of that. A part of `wording`."""
    names = [f"{victim.pod} on {victim.node}" for victim in account.victims]
    meant = "to be " if account.ending is Ending.REFUSED else ""
    evicted = f"{_listed(names)} {'was' if len(names) == 1 else 'were'} {meant}evicted for it" if names else _EARLIER
    return f"{evicted}; {_outcome(account)}"


_EARLIER = "room was made for it before this scheduler started"


def _outcome(account: Account) -> str:
    if account.ending is None:
        return "it is to grow into that room" if account.resize else "it is to be placed in that room"
    done = "resized" if account.resize else "bound"
    if account.ending in (Ending.BOUND, Ending.RESIZED):
        return f"it was {done}"
    if account.ending is Ending.GONE:
        return f"it went away before it was {done}"
    return f"it was not {done}: {_reason(account)}"


def _reason(account: Account) -> str:
    who = _listed(account.who)
    match account.ending:
        case Ending.CHANGED:
            return "it asks for something else by now" if account.resize else "its members or their number changed"
        case Ending.NODE_LOST:
            return f"gone or changed since: node {who}"
        case Ending.ROOM_TAKEN:
            return f"the room was taken by {who}"
        case Ending.REFUSED:
            return f"the server refused to evict {who or 'them'}"
        case Ending.UNBOUND:
            return "the server refused to bind it, so that it evicts nobody for a while"
    return "the cluster changed elsewhere"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
