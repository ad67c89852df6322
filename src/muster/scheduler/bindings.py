"""Every pod's way to its node as a table of transitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from muster.api.instant import Instant
from muster.model.records import EntryKey, NodeRecord, PodRecord


class Step(Enum):
    """Where a decided pod is on its way."""

    ASSUMED = "assumed"
    RECORDING = "recording"
    CLAIMING = "claiming"
    READY = "ready"
    BINDING = "binding"
    RETRYING = "retrying"
    BOUND = "bound"
    DONE = "done"
    DROPPED = "dropped"


class Happening(Enum):
    """What moves it on."""

    NOTED = "the plan of its gang was sent to be recorded"
    PREPARED = "what its claims need was sent, and is waited for"
    HELD = "its claims are bound, those of others of its group are waited for"
    SENT = "the binding was sent"
    ACCEPTED = "the server accepted it"
    REFUSED = "the server refused it, and may not another time"
    GONE = "pod, node or group is gone, or the pod is bound by somebody else"
    SEEN = "the watch shows the pod bound"
    EXPIRED = "refused for too long with nothing of the entry bound, or its claims were waited for too long"


TRANSITIONS: Mapping[tuple[Step, Happening], Step] = {
    (Step.ASSUMED, Happening.NOTED): Step.RECORDING,
    (Step.RECORDING, Happening.SENT): Step.BINDING,
    (Step.RECORDING, Happening.PREPARED): Step.CLAIMING,
    (Step.RECORDING, Happening.HELD): Step.READY,
    (Step.RECORDING, Happening.GONE): Step.DROPPED,
    (Step.RECORDING, Happening.SEEN): Step.DONE,
    (Step.RECORDING, Happening.EXPIRED): Step.DROPPED,
    (Step.ASSUMED, Happening.SENT): Step.BINDING,
    (Step.ASSUMED, Happening.PREPARED): Step.CLAIMING,
    (Step.ASSUMED, Happening.HELD): Step.READY,
    (Step.CLAIMING, Happening.SENT): Step.BINDING,
    (Step.CLAIMING, Happening.HELD): Step.READY,
    (Step.CLAIMING, Happening.REFUSED): Step.RETRYING,
    (Step.CLAIMING, Happening.GONE): Step.DROPPED,
    (Step.CLAIMING, Happening.SEEN): Step.DONE,
    (Step.CLAIMING, Happening.EXPIRED): Step.DROPPED,
    (Step.READY, Happening.SENT): Step.BINDING,
    (Step.READY, Happening.PREPARED): Step.CLAIMING,
    (Step.READY, Happening.GONE): Step.DROPPED,
    (Step.READY, Happening.SEEN): Step.DONE,
    (Step.READY, Happening.EXPIRED): Step.DROPPED,
    (Step.RETRYING, Happening.PREPARED): Step.CLAIMING,
    (Step.RETRYING, Happening.HELD): Step.READY,
    (Step.BINDING, Happening.ACCEPTED): Step.BOUND,
    (Step.BINDING, Happening.REFUSED): Step.RETRYING,
    (Step.BINDING, Happening.GONE): Step.DROPPED,
    (Step.BINDING, Happening.SEEN): Step.DONE,
    (Step.RETRYING, Happening.SENT): Step.BINDING,
    (Step.RETRYING, Happening.GONE): Step.DROPPED,
    (Step.RETRYING, Happening.SEEN): Step.DONE,
    (Step.RETRYING, Happening.EXPIRED): Step.DROPPED,
    (Step.BOUND, Happening.GONE): Step.DROPPED,
    (Step.BOUND, Happening.SEEN): Step.DONE,
}
"""The slot is held in every state but DONE (the pod holds it itself then) and DROPPED."""

ENDED = frozenset({Step.DONE, Step.DROPPED})
SETTLED = ENDED | {Step.BOUND}
ON_THE_WIRE = frozenset({Step.BINDING, Step.RETRYING})
"""The binding was sent, and is not known to have been accepted."""
UNTOLD = frozenset({Step.RECORDING, Step.CLAIMING, Step.READY, Step.RETRYING})
"""Nothing that binds the pod is on its way."""


class BindTag(NamedTuple):
    """Tag of a binding."""

    uid: str
    attempt: int


@dataclass(slots=True)
class Binding:
    """One pod on its way to its node."""

    record: PodRecord
    node: str
    entry: EntryKey
    quiet: bool
    """No event of its own when it is bound: the group has one, or it was written already."""
    step: Step = Step.ASSUMED
    attempts: int = 0
    retry_at: Instant = 0
    refused_at: Instant | None = None
    """When it was refused for the first time."""
    message: str = ""
    """What the server said last."""
    status: int = 0
    """With which code."""
    expires_at: Instant = 0
    """When it stops waiting for its claims."""
    ready: bool = False
    """Its claims were bound, or it has none."""
    unanswered: int = 0
    """Writes for its claims that are under way."""
    place: NodeRecord | None = None
    """The node as it was when the pod was placed there."""
    since: Instant | None = None
    """When the pod could first be scheduled."""
    tries: int = 1
    """How many decisions it took."""
    checked_at: int = -1
    """Generation of the node when the pod was last found to fit there."""
