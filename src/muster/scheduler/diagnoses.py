"""Diagnoses that no decision made: of entries that are held, of refused bindings, of decisions that failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from muster.model.diagnosis import Diagnosis, Reason, Rejection, Verdict
from muster.model.records import EntryKey, QueueEntry
from muster.scheduler import holds
from muster.scheduler.bindings import Step
from muster.scheduler.commit import Commit
from muster.scheduler.entries import State
from muster.scheduler.queue import Queue
from muster.scheduler.resizes import Resizes

_TOLD = frozenset({State.WAITING, State.BACKOFF})


class Diagnoses(Mapping[EntryKey, Diagnosis]):
    """The diagnosis of every entry that waits. Those of held entries are made when they are asked for."""

    def __init__(self, queue: Queue, commit: Commit, resizes: Resizes) -> None:
        self._queue = queue
        self._commit = commit
        self._resizes = resizes

    def __getitem__(self, key: EntryKey) -> Diagnosis:
        entry = self._queue.entries.get(key) or self._resizes.entries.get(key)
        if entry is not None and entry.hold is not None and entry.state is State.HELD:
            return holds.diagnose(self._queue.cache, key, entry.uid, entry.hold)
        if entry is not None and entry.diagnosis is not None and entry.state in _TOLD:
            return entry.diagnosis
        refused = self._commit.refused().get(key)
        if entry is not None or not (refused or key in self._claiming()):
            raise KeyError(key)
        revision = self._queue.cache.rooms.revision
        if not refused:
            return self._awaiting(key, revision)
        first = refused[0]
        bound = self._commit.bound(key)
        return binding_refused(key, first.record.uid, revision, first.message, pods=len(refused), bound=bound)

    def __iter__(self) -> Iterator[EntryKey]:
        for key, entry in chain(self._queue.entries.items(), self._resizes.entries.items()):
            if entry.state is State.HELD or (entry.state in _TOLD and entry.diagnosis is not None):
                yield key
        for key in {**self._commit.refused(), **self._claiming()}:
            if key not in self._queue.entries:
                yield key

    def _claiming(self) -> Mapping[EntryKey, None]:
        return {binding.entry: None for binding in self._commit.claiming.values()}

    def _awaiting(self, key: EntryKey, revision: int) -> Diagnosis:
        """Placed, and waiting for volumes or devices."""
        awaited = [binding for binding in self._commit.claiming.values() if binding.entry == key]
        first = min(awaited, key=lambda binding: (binding.step is Step.READY, binding.record.key))
        volumes = sorted(self._commit.prebind.unbound(first.record))
        devices = sorted(self._commit.allocating.unready(first.record))
        what = f"persistentvolumeclaim/{volumes[0].name}" if volumes else "persistentvolumeclaim/"
        if devices and not volumes:
            what = f"resourceclaim/{devices[0].name}"
        rejection = Rejection(Reason.CLAIMS_AWAITED, 0, f"{what}/{first.node}")
        uid = first.record.uid
        return Diagnosis(key, uid, Verdict.WAITING, revision, pending=len(awaited), rejections=(rejection,))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def binding_refused(key: EntryKey, uid: str, revision: int, message: str, *, pods: int, bound: int) -> Diagnosis:
    """Placed, and the API server refuses to bind it, or these of its pods."""
    rejections = (Rejection(Reason.BINDING_REFUSED, 0, message),)
    return Diagnosis(key, uid, Verdict.ERROR, revision, running=bound, pending=pods, rejections=rejections)


def decision_failed(head: QueueEntry, revision: int, error: str) -> Diagnosis:
    """`decide` raised."""
    return Diagnosis(
        head.key,
        head.uid,
        Verdict.ERROR,
        revision,
        min_count=head.group.min_count if head.group else head.tree.record.min_count if head.tree else 1,
        running=head.running,
        succeeded=head.succeeded,
        pending=len(head.pods),
        rejections=(Rejection(Reason.DECISION_FAILED, 0, error),),
    )
