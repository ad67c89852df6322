"""The pods of one Job, counted as they change."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from muster.api.object import Object
from muster.controllers.membership import Membership
from muster.controllers.pod_status import deleted, is_ready, phase

TRACKING = "batch.kubernetes.io/job-tracking"
"""Finalizer of a pod that the Job's status has not yet counted."""
INDEX = "batch.kubernetes.io/job-completion-index"
"""Annotation and label with a pod's completion index."""


class Stage(Enum):
    ACTIVE = "active"
    ENDING = "ending"
    """Deleted, not yet gone."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Member(NamedTuple):
    """One pod of a Job. `rank`: its completion index; `tracked`: whether the status has still to count it."""

    pod: Object
    uid: str
    name: str
    rank: int | None
    stage: Stage
    ready: bool
    tracked: bool

    @classmethod
    def of(cls, pod: Object) -> Member:
        stage = _stage(pod)
        tracked = TRACKING in (pod.meta.get("finalizers") or ())
        ready = stage is Stage.ACTIVE and is_ready(pod)
        return cls(pod, pod.uid, pod.name, _index(pod), stage, ready, tracked)


def _stage(pod: Object) -> Stage:
    current = phase(pod)
    if current == "Succeeded":
        return Stage.SUCCEEDED
    if current == "Failed":
        return Stage.FAILED
    return Stage.ENDING if deleted(pod) else Stage.ACTIVE


def _index(pod: Object) -> int | None:
    text = (pod.meta.get("annotations") or {}).get(INDEX, "")
    return int(text) if text.isdecimal() else None


class Tally:
    """All pods of a Job by uid, with what a sync asks for kept up to date: O(1) per change."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.names: dict[str, str] = {}
        self.active: dict[str, Member] = {}
        self.uncounted: dict[str, Member] = {}
        """Ended or ending, and still tracked."""
        self.at_index: Membership[int, str] = Membership()
        """Active pods by completion index."""
        self.ready = 0
        self.ending = 0

    def __len__(self) -> int:
        return len(self.members)

    def put(self, member: Member) -> None:
        uid = member.uid
        known = self.members.get(uid)
        if known is not None and known[3:] == member[3:]:  # nothing that is counted has changed
            self.members[uid] = member
            if uid in self.active:
                self.active[uid] = member
            if uid in self.uncounted:
                self.uncounted[uid] = member
            return
        self.drop(uid)
        self.members[uid] = member
        self.names[member.name] = member.uid
        self.ready += member.ready
        if member.stage is Stage.ACTIVE:
            self.active[member.uid] = member
            if member.rank is not None:
                self.at_index.add(member.rank, member.uid)
        else:
            self.ending += member.stage is Stage.ENDING
            if member.tracked:
                self.uncounted[member.uid] = member

    def drop(self, uid: str) -> None:
        member = self.members.pop(uid, None)
        if member is None:
            return
        if self.names.get(member.name) == uid:
            del self.names[member.name]
        self.ready -= member.ready
        self.active.pop(uid, None)
        self.uncounted.pop(uid, None)
        self.ending -= member.stage is Stage.ENDING
        if member.stage is Stage.ACTIVE and member.rank is not None:
            self.at_index.discard(member.rank, uid)

    def ending_indexes(self) -> Iterator[int]:
        return (m.rank for m in self.members.values() if m.stage is Stage.ENDING and m.rank is not None)
