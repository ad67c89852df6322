"""What would be decided now of what waits: a question that carries all it needs, so that any thread may answer it.

The diagnosis of the last attempt speaks of its own moment. Whoever asks why something waits means now: so the entry is
decided once more, against the present snapshot, and nothing comes of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from muster.engine.decide import decide
from muster.engine.profile import Profile
from muster.model.diagnosis import Diagnosis, Reason, Verdict
from muster.model.records import EntryKey, QueueEntry
from muster.model.snapshot import Snapshot
from muster.scheduler.machine import Scheduler

MOST = 200
"""So many entries are decided anew, first those at the head of the queue; the others are shown as last decided."""
_NOT_OURS_TO_DECIDE = frozenset({Reason.BINDING_REFUSED, Reason.DECISION_FAILED, Reason.INVALID_HIERARCHY})


@dataclass(frozen=True, slots=True)
class Inquiry:
    """Waiting entries in queue order, as they were last decided, and what it takes to decide them now."""

    known: Mapping[EntryKey, Diagnosis]
    heads: tuple[QueueEntry, ...]
    snapshot: Snapshot
    profile: Profile

    def answer(self) -> dict[EntryKey, Diagnosis]:
        """The diagnoses as of now, in the same order. Pure; costs as much as a decision on these heads.

        An entry that would be placed now has verdict Scheduled: it waits for its next attempt. What evicting came to
        stays as it was found: nobody is evicted by a question.
        """
        decision = decide(self.snapshot, self.heads, self.profile, now=0)
        return {
            **self.known,
            **{found.entry: _as_tried(found, self.known[found.entry]) for found in decision.diagnoses},
        }


def _as_tried(found: Diagnosis, known: Diagnosis) -> Diagnosis:
    if found.verdict is not Verdict.UNSCHEDULABLE or known.preemption is None:
        return found
    return replace(found, preemption=known.preemption)


def inquire(scheduler: Scheduler, profile: Profile, keys: Iterable[EntryKey] | None = None) -> Inquiry:
    """Asks about these entries (None: all that wait). Those that are held, or whose binding was refused, stay as known.

    Must be called on the scheduler's own thread. Keys that do not wait are left out.
    """
    waiting = scheduler.diagnoses
    wanted = waiting if keys is None else [key for key in keys if key in waiting]
    known = {key: waiting[key] for key in scheduler.queue.in_order(wanted)}
    decidable = [key for key, diagnosis in known.items() if _decidable(diagnosis)][:MOST]
    entries = scheduler.queue.entries
    heads = tuple(scheduler.queue.head(entries[key]) for key in decidable if key in entries)
    return Inquiry(known, heads, scheduler.cache.snapshot(), profile)


def _decidable(diagnosis: Diagnosis) -> bool:
    if diagnosis.verdict is Verdict.WAITING:
        return False
    return not any(rejection.reason in _NOT_OURS_TO_DECIDE for rejection in diagnosis.rejections)
