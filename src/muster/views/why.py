"""Why one entry waits, as plain data: for `muster explain`, the queue view and the page."""

from __future__ import annotations

from typing import Any

from muster.model import wording
from muster.model.diagnosis import Diagnosis, Reason, Rejection
from muster.model.keys import Key
from muster.model.records import EntryKey, EntryKind
from muster.scheduler.commit import owner
from muster.scheduler.machine import Scheduler

Row = dict[str, Any]


def why(scheduler: Scheduler, namespace: str, name: str, kind: str) -> Row | None:
    """The record of a `PodGroup` or `Pod`; None: it waits for nothing, being unknown, bound or about to be decided.

    A member of a group answers with its group's record, and its own sentence under `pod`.
    """
    key = Key(namespace, name)
    if kind == EntryKind.POD_GROUP.value:
        return row_of(scheduler, EntryKey(EntryKind.POD_GROUP, key))
    record = scheduler.cache.pods.get(key)
    if record is None or record.node is not None:
        return None
    entry = owner(record)
    found = row_of(scheduler, entry)
    if found is not None and entry.kind is EntryKind.POD_GROUP:
        found["pod"] = {"name": name, "sentence": wording.pod_message(scheduler.diagnoses[entry], key)}
    return found


def row_of(scheduler: Scheduler, key: EntryKey) -> Row | None:
    """The record of one entry; None if it does not wait."""
    diagnosis = scheduler.diagnoses.get(key)
    return row(diagnosis) if diagnosis is not None else None


def row(diagnosis: Diagnosis) -> Row:
    """A diagnosis as JSON-able data, with its sentences."""
    shortfall = diagnosis.shortfall
    return {
        "kind": diagnosis.entry.kind.value,
        "namespace": diagnosis.entry.key.namespace,
        "name": diagnosis.entry.key.name,
        "verdict": diagnosis.verdict.value,
        "sentence": wording.verdict(diagnosis),
        "minCount": diagnosis.min_count,
        "running": diagnosis.running,
        "succeeded": diagnosis.succeeded,
        "pending": diagnosis.pending,
        "placed": diagnosis.placed,
        "reasons": [_reason(diagnosis, rejection) for rejection in diagnosis.rejections],
        "shortfall": None
        if shortfall is None
        else {"resource": shortfall.resource, "lacking": shortfall.lacking, "where": shortfall.where},
        "remedies": [wording.remedy_phrase(remedy) for remedy in diagnosis.remedies],
        "proven": diagnosis.proven,
        "revision": diagnosis.revision,
    }


def _reason(diagnosis: Diagnosis, rejection: Rejection) -> Row:
    return {
        "reason": rejection.reason.name,
        "nodes": rejection.nodes,
        "detail": rejection.detail,
        "sentence": _sentence(diagnosis, rejection),
    }


def _sentence(diagnosis: Diagnosis, rejection: Rejection) -> str:
    if rejection.reason is Reason.NO_NODES:
        return wording.NO_NODES
    if rejection.reason < Reason.GATED:
        return f"{rejection.nodes} {wording.node_reason(rejection)}"
    return wording.group_message(diagnosis)
