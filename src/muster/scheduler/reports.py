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
from muster.api.calls import STRATEGIC_PATCH, Response
from muster.api.instant import MINUTE, Instant, to_time
from muster.api.machine import Write
from muster.api.object import Object
from muster.model import wording
from muster.model.diagnosis import Diagnosis, Reason, Verdict
from muster.model.keys import Key
from muster.model.records import CompositeRecord, EntryKind, GroupNode, GroupRecord, Phase, PodRecord, QueueEntry
from muster.scheduler.cache import Cache
from muster.scheduler.entries import backoff
from muster.scheduler.trees import nodes_of

POD_SCHEDULED = "PodScheduled"
INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
COMPOSITE_SCHEDULED = "CompositePodGroupInitiallyScheduled"
UNSCHEDULABLE = Verdict.UNSCHEDULABLE.value
ERROR = Verdict.ERROR.value
GATED = "SchedulingGated"
DEFAULT_NAMESPACE = "default"
"""Where events on cluster-wide objects go."""
MANY = 16
"""From so many pods on, one event on their group says that they are bound."""
MANY_FAILED = 64
"""So many pods of a group get an event when they cannot be placed; all get the condition."""
LONGEST_NAME = 253
_ROOTLESS = (Reason.CYCLE, Reason.PARENT_MISSING)
COUNT_UP: Instant = MINUTE
"""A repeated event is counted at once, and its new count is written at most so often."""


class Condition(NamedTuple):
    """A condition as far as it is compared."""

    status: str
    reason: str
    message: str
    generation: int
    """observedGeneration; 0: none."""


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


class ConditionTag(NamedTuple):
    """Tag of a condition's patch: refused, it is sent again."""

    uid: str
    number: int


@dataclass(slots=True)
class _Sent:
    """A condition that was sent and not accepted yet."""

    resource: str
    key: Key
    body: Mapping[str, Any]
    number: int
    attempts: int = 1
    again_at: Instant | None = None


class EventTag(NamedTuple):
    """Tag of the patch that counts an event up: refused, the event is gone and the next one is made anew."""

    uid: str
    reason: str


def of_pod(record: PodRecord) -> Subject:
    return Subject("v1", "Pod", record.key, record.uid)


def of_group(group: GroupRecord | CompositeRecord) -> Subject:
    if isinstance(group, CompositeRecord):
        return Subject("scheduling.k8s.io/v1alpha3", "CompositePodGroup", group.key, group.uid)
    return Subject("scheduling.k8s.io/v1beta1", "PodGroup", group.key, group.uid)


class Reports:
    """Remembers what was said, so that it is not said again.

    Args:
        cache: says which pods still wait when an outcome is reported.
        scheduler_name: the source of events.
        placements: whether messages of groups speak of placements (statement 65).
    """

    def __init__(self, cache: Cache, scheduler_name: str, *, placements: bool) -> None:
        self._cache = cache
        self._source = scheduler_name
        self._placements = placements
        self._conditions: dict[str, Condition] = {}
        self._sent: dict[str, _Sent] = {}
        self._repeats: set[str] = set()
        """Those of `_sent` that were refused."""
        self._number = 0
        self._told: dict[str, dict[str, _Told]] = {}

    # -- what is known to be written

    def seen(self, obj: Object, uid: str, kind: str) -> None:
        """Notes the condition of this type that an object carries."""
        for condition in (obj.raw.get("status") or {}).get("conditions") or ():
            if condition.get("type") == kind:
                get = condition.get
                seen = (get("status", ""), get("reason", ""), get("message", ""), get("observedGeneration", 0))
                if uid not in self._sent:
                    self._conditions[uid] = Condition(*seen)
                return
        if uid not in self._sent:
            self._conditions.pop(uid, None)

    def forget(self, uid: str) -> None:
        """The object is gone, or of no interest any more."""
        self._conditions.pop(uid, None)
        self._told.pop(uid, None)
        self._sent.pop(uid, None)
        self._repeats.discard(uid)

    def answered(self, tag: ConditionTag, response: Response, now: Instant) -> None:
        """How a condition's patch ended: accepted, or to be sent again after a pause unless the object is gone."""
        sent = self._sent.get(tag.uid)
        if sent is None or sent.number != tag.number:
            return
        if response.ok or response.status == 404:
            del self._sent[tag.uid]
            self._repeats.discard(tag.uid)
        else:
            sent.again_at = now + backoff(sent.attempts)
            self._repeats.add(tag.uid)

    def repeat_due(self) -> Instant | None:
        """When the next refused condition is sent again."""
        return min((self._sent[uid].again_at or 0 for uid in self._repeats), default=None)

    def repeat(self, now: Instant) -> Iterable[Write]:
        """Sends again what was refused long enough ago."""
        for uid in sorted(self._repeats):
            sent = self._sent[uid]
            if sent.again_at is not None and sent.again_at <= now:
                self._repeats.discard(uid)
                sent.again_at = None
                sent.attempts += 1
                yield self._write(uid, sent)

    def _write(self, uid: str, sent: _Sent) -> Write:
        key = sent.key
        request = writes.patch(sent.resource, key.namespace, key.name, sent.body, STRATEGIC_PATCH, subresource="status")
        return Write(request, ConditionTag(uid, sent.number))

    def unknown(self, tag: EventTag) -> None:
        """The event that should have been counted up does not exist any more."""
        self._told.get(tag.uid, {}).pop(tag.reason, None)

    # -- outcomes of decisions

    def placed(self, head: QueueEntry, diagnosis: Diagnosis, bound: int, nodes: int, now: Instant) -> Iterable[Write]:
        """The plan was accepted (statement 64: True is written now, not when binding has ended)."""
        if head.group is not None:
            yield from self.scheduled(head.group, now)
            if bound >= MANY:
                message = f"Successfully assigned {bound} pods to {nodes} nodes"
                yield from self._event(of_group(head.group), "Scheduled", message, now)
        if head.tree is not None:
            yield from self._tree(head.tree, diagnosis, now)
            if bound >= MANY:
                message = f"Successfully assigned {bound} pods to {nodes} nodes"
                yield from self._event(of_group(head.tree.record), "Scheduled", message, now)
        yield from self._unplaced(head, diagnosis, now)

    def _tree(self, tree: GroupNode, diagnosis: Diagnosis, now: Instant) -> Iterable[Write]:
        """The condition of every group of a hierarchy (63, M18)."""
        outcomes = {(outcome.kind is EntryKind.POD_GROUP, outcome.key): outcome for outcome in diagnosis.groups}
        for node in nodes_of(tree):
            outcome = outcomes.get((node.is_leaf, node.record.key))
            whole = not diagnosis.groups and diagnosis.verdict is Verdict.SCHEDULED
            if whole or (outcome is not None and outcome.satisfied and not outcome.blocker):
                yield from self.scheduled(node.record, now)
                continue
            reason = ERROR if diagnosis.verdict is Verdict.ERROR else UNSCHEDULABLE
            message = wording.group_message(diagnosis)
            if outcome is not None:
                message = wording.outcome_message(diagnosis, outcome)
            condition = Condition("False", reason, message, node.record.generation)
            yield from self._group_condition(node.record, condition, now)

    def scheduled(self, group: GroupRecord | CompositeRecord, now: Instant) -> Iterable[Write]:
        """The group has its minimum, decided now or found running."""
        return self._group_condition(group, Condition("True", "Scheduled", "", group.generation), now)

    def bound(self, record: PodRecord, node: str, now: Instant) -> Iterable[Write]:
        """One pod of a small group, or a single one, is bound."""
        # Said once in a pod's life, so it is not remembered: there may be a great many bound pods.
        yield self._new_event(of_pod(record), "Scheduled", f"Successfully assigned {record.key} to {node}", now).write

    def failed(self, head: QueueEntry, diagnosis: Diagnosis, now: Instant) -> Iterable[Write]:
        """Nothing of the entry was placed."""
        reason = ERROR if diagnosis.verdict is Verdict.ERROR else UNSCHEDULABLE
        if head.group is not None:
            message = wording.group_message(diagnosis, placements=self._placements)
            condition = Condition("False", reason, message, head.group.generation)
            yield from self._group_condition(head.group, condition, now)
            yield from self._event(of_group(head.group), "FailedScheduling", wording.verdict(diagnosis), now)
        if head.tree is not None:
            yield from self._tree(head.tree, diagnosis, now)
            yield from self._event(of_group(head.tree.record), "FailedScheduling", wording.verdict(diagnosis), now)
        yield from self._unplaced(head, diagnosis, now)

    def _unplaced(self, head: QueueEntry, diagnosis: Diagnosis, now: Instant) -> Iterable[Write]:
        """Condition and event of every pod that was left out (statement 62)."""
        failed = diagnosis.verdict is not Verdict.SCHEDULED
        reason = ERROR if diagnosis.verdict is Verdict.ERROR else UNSCHEDULABLE
        left = [r for r in head.pods if (failed or r.key in diagnosis.pods) and self._still_waits(r)]
        messages: dict[int, str] = {}
        for at, record in enumerate(left):
            alike = id(diagnosis.pods.get(record.key))
            if alike not in messages:
                messages[alike] = wording.pod_message(diagnosis, record.key, placements=self._placements)
            yield from self._pod_condition(record, reason, messages[alike], now)
            if at < MANY_FAILED:
                yield from self._event(of_pod(record), "FailedScheduling", messages[alike], now)

    def _still_waits(self, record: PodRecord) -> bool:
        """Whether the pod is what it was when the decision was asked for: it may be gone, made anew or bound by now."""
        known = self._cache.pods.get(record.key)
        return known is record or (
            known is not None and known.uid == record.uid and known.phase is Phase.PENDING and not known.terminating
        )

    def refused(self, record: PodRecord, message: str, now: Instant) -> Iterable[Write]:
        """The API server refuses the binding of a pod."""
        text = f"binding rejected: {message}"
        yield from self._pod_condition(record, ERROR, text, now)
        yield from self._event(of_pod(record), "FailedScheduling", text, now)

    def unrecorded(self, group: GroupRecord | CompositeRecord, message: str, now: Instant) -> Iterable[Write]:
        """The plan of a group could not be written down before its first bind (M11)."""
        yield from self._event(of_group(group), "FailedScheduling", f"recording the plan was refused: {message}", now)

    def finished(self, group: GroupRecord | CompositeRecord, bound: int, nodes: int, now: Instant) -> Iterable[Write]:
        """What an earlier scheduler had decided and recorded is carried out (M11)."""
        message = f"Finishing the recorded plan: {bound} pods to {nodes} nodes"
        yield from self._event(of_group(group), "Scheduled", message, now)

    def claims_failed(self, record: PodRecord, message: str, now: Instant) -> Iterable[Write]:
        """The claims of a pod, or of others of its group, were not bound on the nodes that were chosen."""
        known = self._cache.pods.get(record.key)
        if known is not None and known.uid == record.uid and self._still_waits(known):
            yield from self._pod_condition(known, ERROR, message, now)
            yield from self._event(of_pod(known), "FailedScheduling", message, now)

    def preempted(self, record: PodRecord, note: str, now: Instant) -> Iterable[Write]:
        """A pod was evicted (P22)."""
        yield self._new_event(of_pod(record), "Preempted", note, now).write

    def wasted(self, subject: Subject, message: str, now: Instant) -> Iterable[Write]:
        """Pods were evicted for an entry, and it was not bound there."""
        yield self._new_event(subject, "PreemptionLost", message, now).write

    def nominate(self, record: PodRecord, node: str) -> Write:
        """Notes a nomination on a pod, or clears it (statements 57, 58)."""
        body = {"metadata": {"uid": record.uid}, "status": {"nominatedNodeName": node or None}}
        key = record.key
        return Write(writes.patch("pods", key.namespace, key.name, body, STRATEGIC_PATCH, subresource="status"))

    # -- entries that are held

    def held(
        self,
        diagnosis: Diagnosis,
        group: GroupRecord | CompositeRecord | None,
        pods: Iterable[PodRecord],
        now: Instant,
        below: Iterable[GroupRecord | CompositeRecord] = (),
    ) -> Iterable[Write]:
        """An entry is kept aside (M6). `pods`: its pending ones; `below`: groups of a hierarchy that are told as well.

        The pods of a hierarchy that is wrong are told too; with the rules of v1.38 also those without a root (55).
        """
        pods = tuple(pods)
        message = wording.group_message(diagnosis)
        wrong = diagnosis.verdict is Verdict.ERROR
        reason = ERROR if wrong else UNSCHEDULABLE
        if diagnosis.entry.kind is not EntryKind.POD:
            if group is None:
                oldest = min(pods, key=lambda record: (record.created, record.key))
                yield from self._event(of_pod(oldest), "FailedScheduling", message, now)
            else:
                condition = Condition("False", reason, message, group.generation)
                yield from self._group_condition(group, condition, now)
                yield from self._event(of_group(group), "FailedScheduling" if wrong else "Waiting", message, now)
                for leaf in below:
                    yield from self._group_condition(leaf, condition._replace(generation=leaf.generation), now)
        rootless = self._cache.forest.checked and diagnosis.rejections[0].reason in _ROOTLESS
        for record in pods:
            if wrong or rootless:
                yield from self._pod_condition(record, reason, message, now)
            elif record.gates:
                text = "Scheduling is blocked due to non-empty scheduling gates"
                yield from self._pod_condition(record, GATED, text, now)

    def malformed(self, obj: Object, message: str, now: Instant) -> Iterable[Write]:
        """An object cannot be understood and is left out of account."""
        subject = Subject(str(obj.raw.get("apiVersion", "")), obj.kind, Key(obj.namespace, obj.name), obj.uid)
        yield from self._event(subject, "FailedScheduling", f"the scheduler cannot read this object: {message}", now)

    # -- writing

    def _pod_condition(self, record: PodRecord, reason: str, message: str, now: Instant) -> Iterable[Write]:
        condition = Condition("False", reason, message, record.generation)
        if self._conditions.get(record.uid) != condition:
            yield self._send("pods", record.key, record.uid, POD_SCHEDULED, condition, now)

    def _group_condition(
        self, group: GroupRecord | CompositeRecord, condition: Condition, now: Instant
    ) -> Iterable[Write]:
        """Once True it stays True (statement 64); an attempt that fails then only says that it saw the generation."""
        known = self._conditions.get(group.uid)
        if known is not None and known.status == "True" and condition.status != "True":
            condition = known._replace(generation=condition.generation)
        if known != condition:
            composite = isinstance(group, CompositeRecord)
            resource, kind = (
                ("compositepodgroups", COMPOSITE_SCHEDULED) if composite else ("podgroups", INITIALLY_SCHEDULED)
            )
            yield self._send(resource, group.key, group.uid, kind, condition, now)

    def _send(self, resource: str, key: Key, uid: str, kind: str, condition: Condition, now: Instant) -> Write:
        """Only for this incarnation; the time changes only with the status."""
        entry: dict[str, Any] = {
            "type": kind,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
        }
        if condition.generation:
            entry["observedGeneration"] = condition.generation
        known = self._conditions.get(uid)
        if known is None or known.status != condition.status:
            entry["lastTransitionTime"] = to_time(now)
        self._conditions[uid] = condition
        self._number += 1
        body = {"metadata": {"uid": uid}, "status": {"conditions": [entry]}}
        sent = self._sent[uid] = _Sent(resource, key, body, self._number)
        self._repeats.discard(uid)
        return self._write(uid, sent)

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
        suffix = f".{now:x}{digest:08x}"
        name = subject.key.name[: LONGEST_NAME - len(suffix)].rstrip("-.") + suffix
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
            "type": "Normal" if reason in ("Scheduled", "Waiting", "Preempted") else "Warning",
            "count": 1,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "source": {"component": self._source},
            "reportingComponent": self._source,
            "reportingInstance": self._source,
        }
