"""A gang's plan is written down before its first bind, and the note is removed once all of it is bound (M11).

One write before the first bind, an annotation on the root group (`slots`); one after the last. Where the annotation is
refused for good, or would be too long, `nominatedNodeName` on the pods says the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from muster.api import writes
from muster.api.calls import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Request, Response
from muster.api.instant import MINUTE, SECOND, Instant
from muster.api.machine import Write
from muster.model.keys import Key
from muster.model.records import CompositeRecord, EntryKey, EntryKind, GroupRecord, PodRecord
from muster.scheduler.bindings import Binding, Step
from muster.scheduler.cache import Cache
from muster.scheduler.entries import backoff
from muster.scheduler.slots import LONGEST, PLAN, Slot, decode, encode
from muster.scheduler.trees import is_satisfied, nodes_of, tree_of

PATIENCE: Instant = MINUTE
"""So long a plan is tried to be recorded before its slots are given back."""
LINGER: Instant = SECOND
"""So long a plan stays on the group after its last pod was bound: a burst of gangs is not slowed by tidying up."""
RESOURCE = {EntryKind.POD_GROUP: "podgroups", EntryKind.COMPOSITE: "compositepodgroups"}
_FOR_NOW = frozenset({0, 409, 429})
"""Refusals that another try may change, beside those of 500 and above."""


class RecordTag(NamedTuple):
    """Tag of the writes that record a plan."""

    entry: EntryKey
    number: int


class ClearTag(NamedTuple):
    """Tag of the write that removes a recorded plan."""

    entry: EntryKey
    text: str


class Saved(Enum):
    """What became of a plan that was to be recorded."""

    DONE = "it is recorded: the pods may be bound"
    GONE = "the group does not exist any more"
    REFUSED = "refused, and will be tried again"


@dataclass(slots=True)
class Record:
    """The plan of one entry, as far as it is not carried out."""

    entry: EntryKey
    uid: str
    """Of the group."""
    bindings: dict[str, Binding] = field(default_factory=dict)
    """Those on their way, by pod uid."""
    text: str = ""
    number: int = 0
    on_pods: bool = False
    """It is written as nominations."""
    unanswered: int = 0
    attempts: int = 0
    retry_at: Instant | None = None
    refused_at: Instant | None = None
    message: str = ""

    @property
    def waiting(self) -> list[Binding]:
        """What may only be bound once the plan is recorded."""
        return [binding for binding in self.bindings.values() if binding.step is Step.RECORDING]


class Recording:
    """The plans that are recorded, or were by whoever led before."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self.records: dict[EntryKey, Record] = {}
        self.found: dict[EntryKey, str] = {}
        """What groups carry and nobody here has written."""
        self._carried: dict[EntryKey, str] = {}
        """What groups carry as far as the watch has told."""
        self._over: dict[EntryKey, None] = {}
        """Plans that are carried out and still on their groups, not yet in `_ended`."""
        self._ended: dict[EntryKey, Instant] = {}
        """When they are removed."""
        self._soonest: Instant | None = None
        """When the first of those is; may be early."""
        self._refused: set[EntryKey] = set()
        """Those of `records` with a time to be sent again."""
        self._clearing: dict[EntryKey, int] = {}
        """How often the removal was refused."""
        self._mine: dict[EntryKey, str] = {}
        """What was written last, until the watch shows that it is gone."""
        self.replanned: dict[EntryKey, int] = {}
        """How often in a row a plan did not hold any more once it was recorded."""
        self._numbers = 0

    # -- what groups carry

    def seen(self, entry: EntryKey, text: str) -> None:
        """A group as the watch shows it."""
        known = self._carried.get(entry, "")
        if text == known:
            return
        if text:
            self._carried[entry] = text
        else:
            del self._carried[entry]
        if not text or text == self._mine.get(entry):
            self.found.pop(entry, None)
        else:
            self.found[entry] = text
            self._over[entry] = None
        if not text and entry not in self.records:
            self._forget(entry)

    def dropped(self, entry: EntryKey) -> None:
        """The group is gone."""
        self._carried.pop(entry, None)
        self.found.pop(entry, None)
        self.replanned.pop(entry, None)
        if entry not in self.records:
            self._forget(entry)

    def _forget(self, entry: EntryKey) -> None:
        self._mine.pop(entry, None)
        self._ended.pop(entry, None)
        self._over.pop(entry, None)
        self._clearing.pop(entry, None)

    # -- before the first bind

    def needed(self, entry: EntryKey, fresh: Iterable[PodRecord], uncertain: Mapping[Key, int]) -> bool:
        """Whether a crash between the binds of these pods could leave a group below its minimum.

        `uncertain`: by PodGroup, its pods that are assumed and not bound yet, `fresh` ones included.
        """
        if entry.kind is EntryKind.POD or sum(uncertain.values()) < 2:
            return False
        less = {key: -number for key, number in uncertain.items()}
        if entry.kind is EntryKind.COMPOSITE:
            tree = tree_of(self._cache, entry.key)
            there = {Key(record.key.namespace, record.group or "") for record in fresh}
            concerned = (it for it in nodes_of(tree) if any(leaf.record.key in there for leaf in it.leaves()))
            return any(not is_satisfied(it, less) for it in concerned)
        group, members = self._cache.groups.get(entry.key), self._cache.members.get(entry.key)
        if group is None or members is None:
            return False
        certain = len(members.running) + len(members.succeeded) + less.get(entry.key, 0)
        return group.min_count - certain >= 2

    def begin(self, entry: EntryKey, uid: str, fresh: Sequence[Binding]) -> Iterator[Write]:
        """Records the plan of these pods, together with what is left of an earlier one."""
        record = self.records.get(entry)
        if record is None or record.uid != uid:
            waiting = record.bindings if record is not None else {}
            record = self.records[entry] = Record(entry, uid, waiting)
        self._ended.pop(entry, None)
        self._over.pop(entry, None)
        record.bindings.update((binding.record.uid, binding) for binding in fresh)
        record.text = encode((it.record, it.node) for it in record.bindings.values())
        record.attempts = 0
        yield from self.write(record)

    def adopt(self, entry: EntryKey, uid: str, text: str, fresh: Sequence[Binding]) -> None:
        """These pods are bound as somebody else has recorded it."""
        record = self.records[entry] = Record(entry, uid, text=text)
        record.bindings.update((binding.record.uid, binding) for binding in fresh)
        self._mine[entry] = text
        self.found.pop(entry, None)
        self._ended.pop(entry, None)
        self._over.pop(entry, None)

    def write(self, record: Record) -> Iterator[Write]:
        """Sends the plan, for the first time or again."""
        self._numbers += 1
        self._refused.discard(record.entry)
        record.number, record.retry_at = self._numbers, None
        record.attempts += 1
        tag = RecordTag(record.entry, record.number)
        if record.on_pods or len(record.text) > LONGEST:
            record.on_pods = True
            pods = record.waiting
            record.unanswered = len(pods)
            for binding in pods:
                yield Write(_nomination(binding), tag)
        else:
            record.unanswered = 1
            self._mine[record.entry] = record.text
            body = {"metadata": {"uid": record.uid, "annotations": {PLAN: record.text}}}
            namespace, name = record.entry.key
            yield Write(writes.patch(RESOURCE[record.entry.kind], namespace, name, body, MERGE_PATCH), tag)

    def answered(self, tag: RecordTag, response: Response, now: Instant) -> tuple[Record, Saved] | None:
        """What became of it; None: nobody waits for this answer, or not for this one alone."""
        record = self.records.get(tag.entry)
        if record is None or record.number != tag.number:
            return None
        record.unanswered -= 1
        if record.on_pods:
            # A pod that cannot be told is bound like the others: what holds its node is only advice.
            return (record, Saved.DONE) if record.unanswered <= 0 else None
        if response.ok:
            record.refused_at, record.message = None, ""
            return record, Saved.DONE
        if response.status == 404:
            return record, Saved.GONE
        record.message = said(response)
        if response.status in _FOR_NOW or response.status >= 500:
            record.refused_at = now if record.refused_at is None else record.refused_at
            record.retry_at = now + backoff(record.attempts)
        else:
            record.on_pods, record.retry_at = True, now
        self._refused.add(record.entry)
        return record, Saved.REFUSED

    def due(self) -> Instant | None:
        """When something is to be sent again or given up."""
        return min((self.records[entry].retry_at or 0 for entry in self._refused), default=None)

    def due_records(self, now: Instant) -> list[Record]:
        waiting = (it for entry, it in self.records.items() if entry in self._refused)
        return [it for it in waiting if it.retry_at is not None and it.retry_at <= now]

    def is_stuck(self, record: Record, now: Instant) -> bool:
        """Whether it was refused for so long that its slots go back."""
        return record.refused_at is not None and record.refused_at + PATIENCE <= now

    # -- after the last

    def left(self, binding: Binding) -> None:
        """A pod is bound for good, or will not be: the plan is over with its last one."""
        record = self.records.get(binding.entry)
        if record is None or record.bindings.pop(binding.record.uid, None) is None or record.bindings:
            return
        del self.records[binding.entry]
        self._refused.discard(binding.entry)
        if binding.entry in self._mine:
            self._over[binding.entry] = None

    def clear_due(self, now: Instant) -> Instant | None:
        """When the next plan is to be removed; strangers' ones go as well."""
        if self._over:
            for entry in self._over:
                if entry not in self.records:
                    self._remove_at(entry, now + LINGER)
            self._over = {}
        return self._soonest

    def _remove_at(self, entry: EntryKey, at: Instant) -> None:
        self._ended[entry] = at
        self._soonest = at if self._soonest is None else min(self._soonest, at)

    def clear(self, now: Instant) -> Iterator[Write]:
        """Removes what is over, unless the group carries something else by now."""
        for entry, at in tuple(self._ended.items()):
            text = self._carried.get(entry) or self._mine.get(entry)
            if at > now:
                continue
            del self._ended[entry]
            self.found.pop(entry, None)
            if text and entry not in self.records and self._exists(entry):
                path = "/metadata/annotations/" + PLAN.replace("/", "~1")
                body = [{"op": "test", "path": path, "value": text}, {"op": "remove", "path": path}]
                namespace, name = entry.key
                tag = ClearTag(entry, text)
                yield Write(writes.patch(RESOURCE[entry.kind], namespace, name, body, JSON_PATCH), tag)
        self._soonest = min(self._ended.values(), default=None)

    def cleared(self, tag: ClearTag, response: Response, now: Instant) -> None:
        """How a removal ended: done, not there any more, or to be tried again."""
        if response.status in _FOR_NOW or response.status >= 500:
            times = self._clearing[tag.entry] = self._clearing.get(tag.entry, 0) + 1
            if tag.entry not in self.records and self._exists(tag.entry):
                self._remove_at(tag.entry, now + backoff(times))
            return
        self._clearing.pop(tag.entry, None)

    def _exists(self, entry: EntryKey) -> bool:
        return root_group(self._cache, entry) is not None

    # -- what somebody else has left

    def left_behind(self) -> Mapping[EntryKey, Mapping[Slot, str]]:
        """The plans that are on groups and not from here."""
        return {entry: decode(text) for entry, text in self.found.items() if entry not in self.records}


def root_group(cache: Cache, entry: EntryKey) -> GroupRecord | CompositeRecord | None:
    """The group of an entry, if there is one."""
    if entry.kind is EntryKind.COMPOSITE:
        return cache.forest.composites.get(entry.key)
    return cache.groups.get(entry.key) if entry.kind is EntryKind.POD_GROUP else None


def uncertain(bindings: Iterable[Binding]) -> Counter[Key]:
    """By PodGroup, how many pods are on their way."""
    return Counter(Key(it.record.key.namespace, it.record.group) for it in bindings if it.record.group)


def said(response: Response) -> str:
    """What the server's answer says."""
    body = response.body
    message = body.get("message") if isinstance(body, Mapping) else None
    return str(message) if message else f"status {response.status}"


def _nomination(binding: Binding) -> Request:
    key = binding.record.key
    body = {"metadata": {"uid": binding.record.uid}, "status": {"nominatedNodeName": binding.node}}
    return writes.patch("pods", key.namespace, key.name, body, STRATEGIC_PATCH, subresource="status")
