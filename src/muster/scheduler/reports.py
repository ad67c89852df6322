"""What the scheduler tells users: conditions on pods and groups, and events. Written only when something changed.

A condition is a strategic merge patch of the status, an event is a v1 Event; a repeated event counts up. Where a group
is large, one event on the group stands for those on its pods.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from muster.api import writes
from muster.api.calls import STRATEGIC_PATCH
from muster.api.instant import MINUTE, Instant, to_time
from muster.api.machine import Write
from muster.api.object import Object
from muster.model import wording
from muster.model.diagnosis import Diagnosis, Reason, Verdict
from muster.model.keys import Key
from muster.model.records import EntryKind, GroupRecord, PodRecord, QueueEntry

POD_SCHEDULED = "PodScheduled"
INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
UNSCHEDULABLE = Verdict.UNSCHEDULABLE.value
ERROR = Verdict.ERROR.value
GATED = "SchedulingGated"
DEFAULT_NAMESPACE = "default"
"""Where events on cluster-wide objects go."""
MANY = 16
"""From so many pods on, one event on their group says that they are bound."""
MANY_FAILED = 64
"""So many pods of a group get an event when they cannot be placed; all get the condition."""
COUNT_UP: Instant = MINUTE
"""A repeated event is counted at once, and its new count is written at most so often."""


class Condition(NamedTuple):
    """A condition as far as it is compared."""

    status: str
    reason: str
    message: str


class Subject(NamedTuple):
    """What an event is about."""

    api_version: str
    kind: str
    key: Key
    uid: str


@dataclass(slots=True)
class _Told:
    """An event that was written: a repetition counts it up."""

    name: str
    message: str
    count: int
    written: Instant


class _NewEvent(NamedTuple):
    name: str
    write: Write


class EventTag(NamedTuple):
    """Tag of the patch that counts an event up: refused, the event is gone and the next one is made anew."""

    uid: str
    reason: str


def of_pod(record: PodRecord) -> Subject:
    return Subject("v1", "Pod", record.key, record.uid)


def of_group(group: GroupRecord) -> Subject:
    return Subject("scheduling.k8s.io/v1beta1", "PodGroup", group.key, group.uid)


class Reports:
    """Remembers what was said, so that it is not said again.

    Args:
        scheduler_name: the source of events.
        placements: whether messages of groups speak of placements (statement 65).
    """

    def __init__(self, scheduler_name: str, *, placements: bool) -> None:
        self._source = scheduler_name
        self._placements = placements
        self._conditions: dict[str, Condition] = {}
        self._told: dict[str, dict[str, _Told]] = {}

    # -- what is known to be written

    def seen(self, obj: Object, uid: str, kind: str) -> None:
        """Notes the condition of this type that an object carries."""
        for condition in (obj.raw.get("status") or {}).get("conditions") or ():
            if condition.get("type") == kind:
                self._conditions[uid] = Condition(
                    condition.get("status", ""), condition.get("reason", ""), condition.get("message", "")
                )
                return
        self._conditions.pop(uid, None)

    def forget(self, uid: str) -> None:
        """The object is gone, or of no interest any more."""
        self._conditions.pop(uid, None)
        self._told.pop(uid, None)

    def unknown(self, tag: EventTag) -> None:
        """The event that should have been counted up does not exist any more."""
        self._told.get(tag.uid, {}).pop(tag.reason, None)

    # -- outcomes of decisions

    def placed(self, head: QueueEntry, diagnosis: Diagnosis, bound: int, nodes: int, now: Instant) -> Iterable[Write]:
        """The plan was accepted (statement 64: True is written now, not when binding has ended)."""
        if head.group is not None:
            if not head.group.scheduled:
                yield from self._group_condition(head.group, Condition("True", "Scheduled", ""), now)
            if bound >= MANY:
                message = f"Successfully assigned {bound} pods to {nodes} nodes"
                yield from self._event(of_group(head.group), "Scheduled", message, now)
        yield from self._unplaced(head, diagnosis, now)

    def bound(self, record: PodRecord, node: str, now: Instant) -> Iterable[Write]:
        """One pod of a small group, or a single one, is bound."""
        # Said once in a pod's life, so it is not remembered: there may be a great many bound pods.
        yield self._new_event(of_pod(record), "Scheduled", f"Successfully assigned {record.key} to {node}", now).write

    def failed(self, head: QueueEntry, diagnosis: Diagnosis, now: Instant) -> Iterable[Write]:
        """Nothing of the entry was placed."""
        reason = ERROR if diagnosis.verdict is Verdict.ERROR else UNSCHEDULABLE
        if head.group is not None:
            if not head.group.scheduled:
                message = wording.group_message(diagnosis, placements=self._placements)
                yield from self._group_condition(head.group, Condition("False", reason, message), now)
            yield from self._event(of_group(head.group), "FailedScheduling", wording.verdict(diagnosis), now)
        yield from self._unplaced(head, diagnosis, now)

    def _unplaced(self, head: QueueEntry, diagnosis: Diagnosis, now: Instant) -> Iterable[Write]:
        """Condition and event of every pod that was left out (statement 62)."""
        failed = diagnosis.verdict is not Verdict.SCHEDULED
        reason = ERROR if diagnosis.verdict is Verdict.ERROR else UNSCHEDULABLE
        left = [record for record in head.pods if failed or record.key in diagnosis.pods]
        messages: dict[int, str] = {}
        for at, record in enumerate(left):
            alike = id(diagnosis.pods.get(record.key))
            if alike not in messages:
                messages[alike] = wording.pod_message(diagnosis, record.key, placements=self._placements)
            yield from self._pod_condition(record, Condition("False", reason, messages[alike]), now)
            if at < MANY_FAILED:
                yield from self._event(of_pod(record), "FailedScheduling", messages[alike], now)

    def refused(self, record: PodRecord, message: str, now: Instant) -> Iterable[Write]:
        """The API server refuses the binding of a pod."""
        text = f"binding rejected: {message}"
        yield from self._pod_condition(record, Condition("False", ERROR, text), now)
        yield from self._event(of_pod(record), "FailedScheduling", text, now)

    def nominate(self, record: PodRecord, node: str) -> Write:
        """Notes a nomination on a pod, or clears it (statements 57, 58)."""
        body = {"metadata": {"uid": record.uid}, "status": {"nominatedNodeName": node or None}}
        key = record.key
        return Write(writes.patch("pods", key.namespace, key.name, body, STRATEGIC_PATCH, subresource="status"))

    # -- entries that are held

    def held(
        self, diagnosis: Diagnosis, group: GroupRecord | None, pods: Iterable[PodRecord], now: Instant
    ) -> Iterable[Write]:
        """An entry is kept aside (M6). `pods`: its pending ones, oldest first."""
        pods = tuple(pods)
        message = wording.group_message(diagnosis)
        if diagnosis.entry.kind is EntryKind.POD_GROUP:
            if group is None:
                yield from self._event(of_pod(pods[0]), "FailedScheduling", message, now)
            else:
                if not group.scheduled:
                    yield from self._group_condition(group, Condition("False", UNSCHEDULABLE, message), now)
                yield from self._event(of_group(group), "Waiting", message, now)
        elif diagnosis.rejections[0].reason is Reason.UNSUPPORTED:
            yield from self._pod_condition(pods[0], Condition("False", UNSCHEDULABLE, message), now)
            yield from self._event(of_pod(pods[0]), "FailedScheduling", message, now)
        for record in pods:
            if record.gates:
                text = "Scheduling is blocked due to non-empty scheduling gates"
                yield from self._pod_condition(record, Condition("False", GATED, text), now)

    def malformed(self, obj: Object, message: str, now: Instant) -> Iterable[Write]:
        """An object cannot be understood and is left out of account."""
        subject = Subject(str(obj.raw.get("apiVersion", "")), obj.kind, Key(obj.namespace, obj.name), obj.uid)
        yield from self._event(subject, "FailedScheduling", f"the scheduler cannot read this object: {message}", now)

    # -- writing

    def _pod_condition(self, record: PodRecord, condition: Condition, now: Instant) -> Iterable[Write]:
        if self._is_news(record.uid, condition):
            body = self._patch(record.uid, POD_SCHEDULED, condition, record.generation, now)
            key = record.key
            yield Write(writes.patch("pods", key.namespace, key.name, body, STRATEGIC_PATCH, subresource="status"))
            self._conditions[record.uid] = condition

    def _group_condition(self, group: GroupRecord, condition: Condition, now: Instant) -> Iterable[Write]:
        known = self._conditions.get(group.uid)
        if self._is_news(group.uid, condition) and not (known and known.status == "True"):
            body = self._patch(group.uid, INITIALLY_SCHEDULED, condition, group.generation, now)
            key = group.key
            yield Write(writes.patch("podgroups", key.namespace, key.name, body, STRATEGIC_PATCH, subresource="status"))
            self._conditions[group.uid] = condition

    def _is_news(self, uid: str, condition: Condition) -> bool:
        return self._conditions.get(uid) != condition

    def _patch(
        self, uid: str, kind: str, condition: Condition, generation: int, now: Instant
    ) -> Mapping[str, Mapping[str, Any]]:
        """Only for this incarnation; the time changes only with the status."""
        entry: dict[str, Any] = {"type": kind, **condition._asdict(), "observedGeneration": generation}
        known = self._conditions.get(uid)
        if known is None or known.status != condition.status:
            entry["lastTransitionTime"] = to_time(now)
        if not generation:
            del entry["observedGeneration"]
        return {"metadata": {"uid": uid}, "status": {"conditions": [entry]}}

    def _event(self, subject: Subject, reason: str, message: str, now: Instant) -> Iterable[Write]:
        told = self._told.setdefault(subject.uid, {})
        known = told.get(reason)
        if known is not None and known.message == message:
            known.count += 1
            if now < known.written + COUNT_UP:
                return
            known.written = now
            body = {"count": known.count, "lastTimestamp": to_time(now)}
            namespace = subject.key.namespace or DEFAULT_NAMESPACE
            yield Write(writes.patch("events", namespace, known.name, body), EventTag(subject.uid, reason))
            return
        name, write = self._new_event(subject, reason, message, now)
        told[reason] = _Told(name, message, 1, now)
        yield write

    def _new_event(self, subject: Subject, reason: str, message: str, now: Instant) -> _NewEvent:
        digest = zlib.crc32(f"{subject.uid}{reason}{message}".encode())
        name = f"{subject.key.name}.{now:x}{digest:08x}"
        return _NewEvent(name, Write(writes.create(self._event_body(name, subject, reason, message, now))))

    def _event_body(self, name: str, subject: Subject, reason: str, message: str, now: Instant) -> Mapping[str, Any]:
        at = to_time(now)
        namespace = subject.key.namespace or DEFAULT_NAMESPACE
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": subject.api_version,
                "kind": subject.kind,
                "namespace": subject.key.namespace,
                "name": subject.key.name,
                "uid": subject.uid,
            },
            "reason": reason,
            "message": message,
            "type": "Normal" if reason in ("Scheduled", "Waiting") else "Warning",
            "count": 1,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "source": {"component": self._source},
            "reportingComponent": self._source,
            "reportingInstance": self._source,
        }
