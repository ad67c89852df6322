"""Why one entry waits, as plain data: for `muster explain` and the queue view. It speaks of now (see `inquiry`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muster.engine.profile import Profile
from muster.model import resizing, wording
from muster.model.accounts import Account, sentence
from muster.model.diagnosis import Diagnosis, Reason, Rejection, Verdict
from muster.model.keys import Key
from muster.model.records import EntryKey, EntryKind, PodClass
from muster.scheduler.machine import Scheduler
from muster.views import shown
from muster.views.inquiry import Inquiry, inquire

Row = dict[str, Any]
MOST_ACCOUNTS = 5
"""So many of the last evictions for an entry are told."""


@dataclass(frozen=True, slots=True)
class Question:
    """Why one entry waits; `pod`: the member that was asked about."""

    entry: EntryKey
    inquiry: Inquiry
    pod: Key | None = None
    evictions: tuple[Account, ...] = ()
    """What was evicted for it."""

    def answer(self) -> Row:
        """The record as of now. Pure, and may take as long as a decision."""
        diagnosis = self.inquiry.answer()[self.entry]
        found = row(diagnosis, self.inquiry)
        if self.evictions:
            found["evictions"] = [_account(account) for account in self.evictions[-MOST_ACCOUNTS:]]
        if self.pod is not None:
            found["pod"] = {"name": self.pod.name, "sentence": _pod_sentence(diagnosis, self.pod)}
        return found


def ask(scheduler: Scheduler, profile: Profile, namespace: str, name: str, kind: str) -> Question | None:
    """The question about a `PodGroup` or `Pod`; None: it waits for nothing: unknown, bound or about to be decided.

    A member of a group is answered with its group's record, and its own sentence under `pod`. Must be called on the
    scheduler's own thread.
    """
    key = Key(namespace, name)
    entry = scheduler.cache.owner_of_group(key)
    if kind == EntryKind.COMPOSITE.value:
        entry = _root_of(scheduler, key)
    if kind == EntryKind.POD.value:
        record = scheduler.cache.pods.get(key)
        if record is None:
            return None
        entry = EntryKey(EntryKind.POD, key) if record.node is not None else scheduler.cache.owner(record)
    if entry not in scheduler.diagnoses:
        return None
    member = kind == EntryKind.POD.value and entry.kind is not EntryKind.POD
    evictions = scheduler.accounts.of(entry)
    return Question(entry, inquire(scheduler, profile, [entry]), key if member else None, evictions)


def _account(account: Account) -> Row:
    """What was evicted for an entry, and what came of it."""
    return {
        "victims": [str(victim.pod) for victim in account.victims],
        "ending": account.ending.name if account.ending else None,
        "who": list(account.who),
        "sentence": sentence(account),
    }


def _root_of(scheduler: Scheduler, key: Key) -> EntryKey:
    """The entry of the hierarchy that a composite group belongs to."""
    leaves = scheduler.cache.forest.below(key)
    return scheduler.cache.owner_of_group(leaves[0]) if leaves else EntryKey(EntryKind.COMPOSITE, key)


def why(scheduler: Scheduler, profile: Profile, namespace: str, name: str, kind: str) -> Row | None:
    """`ask` and its answer in one."""
    asked = ask(scheduler, profile, namespace, name, kind)
    return asked.answer() if asked is not None else None


def row(diagnosis: Diagnosis, inquiry: Inquiry) -> Row:
    """A diagnosis as JSON-able data, with its sentences."""
    return {
        "kind": diagnosis.entry.kind.value,
        "namespace": diagnosis.entry.key.namespace,
        "name": diagnosis.entry.key.name,
        "verdict": diagnosis.verdict.value,
        "sentence": wording.fits_now(diagnosis) if _fits(diagnosis) else resizing.verdict(diagnosis),
        "minCount": diagnosis.min_count,
        "running": diagnosis.running,
        "succeeded": diagnosis.succeeded,
        "pending": diagnosis.pending,
        "placed": diagnosis.placed,
        "reasons": [_reason(diagnosis, rejection, inquiry) for rejection in diagnosis.rejections],
        "domain": shown.nearest(diagnosis),
        "shortfall": shown.shortfall(diagnosis.shortfall),
        "lacks": shown.lacks(diagnosis),
        "remedies": [wording.remedy_phrase(remedy) for remedy in diagnosis.remedies],
        "proven": diagnosis.proven,
        "groups": [shown.group(outcome, diagnosis) for outcome in diagnosis.groups],
        "path": shown.path(diagnosis),
        "revision": diagnosis.revision,
    }


def _fits(diagnosis: Diagnosis) -> bool:
    """Whether a decision now would place something of it."""
    return diagnosis.verdict is Verdict.SCHEDULED and diagnosis.placed > 0


def _pod_sentence(diagnosis: Diagnosis, pod: Key) -> str:
    if _fits(diagnosis) and pod not in diagnosis.pods:
        return "fits now, and waits for the next attempt of its group"
    return wording.pod_message(diagnosis, pod)


def _reason(diagnosis: Diagnosis, rejection: Rejection, inquiry: Inquiry) -> Row:
    return {
        "reason": rejection.reason.name,
        "nodes": rejection.nodes,
        "detail": rejection.detail,
        "sentence": _sentence(diagnosis, rejection) + _more(diagnosis, rejection, inquiry),
    }


def _sentence(diagnosis: Diagnosis, rejection: Rejection) -> str:
    if rejection.reason is Reason.NO_NODES:
        return wording.NO_NODES
    if rejection.reason in (Reason.CLAIM, Reason.DEVICE_CLAIM):
        return wording.node_reason(rejection)
    if rejection.reason < Reason.GATED:
        return f"{rejection.nodes} {wording.node_reason(rejection)}"
    return wording.group_message(diagnosis)


def _more(diagnosis: Diagnosis, rejection: Rejection, inquiry: Inquiry) -> str:
    """What only the entry itself can tell of a reason: which pod disagrees, which label no node has."""
    head = next((head for head in inquiry.heads if head.key == diagnosis.entry), None)
    if head is None:
        return ""
    if rejection.reason is Reason.PRIORITY_MISMATCH and head.group is not None:
        odd = next((pod for pod in (*head.pods, *head.bound) if pod.priority != head.priority), None)
        return f": pod {odd.key.name} has {odd.priority}, the group {head.priority}" if odd else ""
    if rejection.reason is Reason.NODE_FEATURES:
        return f": not declared: {rejection.detail}" if rejection.detail else ""
    if rejection.reason is Reason.NODE_SELECTOR:
        unknown = dict.fromkeys(label for pod in head.pods for label in _unknown_labels(pod.cls, inquiry))
        return f": no node has the label {', '.join(unknown)}" if unknown else ""
    return ""


def _unknown_labels(cls: PodClass, inquiry: Inquiry) -> list[str]:
    """What its node selector asks for and no node has."""
    nodes = inquiry.snapshot.nodes
    return [f"{key}={value}" for key, value in cls.node_selector if value not in nodes.label(key).code]
