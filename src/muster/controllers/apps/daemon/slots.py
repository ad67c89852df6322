"""A DaemonSet's place on one node, and all of its places counted: what changes on a node costs that node."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from muster.api.instant import MINUTE, SECOND, Instant
from muster.api.object import Object
from muster.controllers.apps import pods
from muster.controllers.apps.daemon.eligible import NOWHERE, Eligible, Verdict
from muster.controllers.apps.revisions import POD_LABEL
from muster.controllers.pod_status import TERMINAL, node_of, phase

FIRST_DELAY: Instant = SECOND
LONGEST_DELAY: Instant = 15 * MINUTE
"""Between the replacements of pods that fail on the same node: doubles each time, begins anew after a calm time."""


class Counts(NamedTuple):
    """What one node adds to the sums. `unavailable`: it should have an available pod and has none; `surging`: a new pod
    is there beside the old one and not available yet."""

    desired: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0
    unavailable: int = 0
    surging: int = 0


NOTHING = Counts()


@dataclass(slots=True)
class Slot:
    """One node with the pods of one DaemonSet that are on it or meant for it, by uid."""

    node: str
    there: bool = False
    verdict: Verdict = NOWHERE
    pods: dict[str, Object] = field(default_factory=dict)
    counts: Counts = NOTHING
    creating: str = ""
    """Name of the pod that was asked for and is not seen yet."""
    delay: Instant = 0
    replaced: Instant = 0
    generation: int = 0

    def may_replace(self, now: Instant, generation: int) -> Instant:
        """From when on a pod that has failed here may be removed; the past if at once."""
        calm = now - self.replaced > 2 * LONGEST_DELAY or self.generation != generation
        if calm:
            self.delay = 0
        return self.replaced + self.delay if self.delay else now

    def replace(self, now: Instant, generation: int) -> None:
        self.delay = min(LONGEST_DELAY, self.delay * 2) or FIRST_DELAY
        self.replaced, self.generation = now, generation


@dataclass(slots=True)
class Daemons:
    """All places of one DaemonSet."""

    eligible: Eligible = field(default_factory=lambda: Eligible({}))
    template: object = None
    hash: str = ""
    """Of the revision that pods are to have."""
    generation: int | None = None
    slots: dict[str, Slot] = field(default_factory=dict)
    dirty: dict[str, None] = field(default_factory=dict)
    """Nodes to look at."""
    lacking: dict[str, None] = field(default_factory=dict)
    """Nodes that are to get a pod."""
    stale: dict[str, None] = field(default_factory=dict)
    """Nodes with an available pod of an old revision and no other."""
    spoilt: dict[str, None] = field(default_factory=dict)
    """Nodes with a pod of an old revision that is not available, and no other."""
    names: dict[str, str] = field(default_factory=dict)
    """Node by the name of a pod, those that were asked for included."""
    asked: dict[str, str] = field(default_factory=dict)
    """Node by the name of a pod that was asked for and is not seen yet."""
    sums: list[int] = field(default_factory=lambda: [0] * len(Counts._fields))
    _due: list[tuple[Instant, str]] = field(default_factory=list)

    def slot(self, node: str) -> Slot:
        found = self.slots.get(node)
        if found is None:
            found = self.slots[node] = Slot(node)
        return found

    @property
    def total(self) -> Counts:
        return Counts(*self.sums)

    def answered(self, name: str) -> None:
        """The pod that was asked for is there, or will not come."""
        slot = self.slot(self.asked.pop(name))
        slot.creating = ""
        if not any(pod.name == name for pod in slot.pods.values()):
            self.names.pop(name, None)
        self.dirty[slot.node] = None

    def count(self, slot: Slot, counts: Counts) -> None:
        """Takes what a place adds now for what it added before."""
        if counts != slot.counts:
            for i, (new, old) in enumerate(zip(counts, slot.counts, strict=True)):
                self.sums[i] += new - old
            slot.counts = counts
        if not slot.there and not slot.pods and not slot.creating:
            self.slots.pop(slot.node, None)

    def wake(self, node: str, at: Instant) -> None:
        """The node is to be looked at then."""
        heapq.heappush(self._due, (at, node))

    def next(self, now: Instant) -> Instant | None:
        """Marks what is due; when there will be more."""
        while self._due and self._due[0][0] <= now:
            self.dirty[heapq.heappop(self._due)[1]] = None
        return self._due[0][0] if self._due else None


class Sorted(NamedTuple):
    """The pods of a place: those that stay, old and new, oldest first; those that have ended."""

    old: Sequence[Object]
    new: Sequence[Object]
    ended: Sequence[Object]

    @property
    def live(self) -> list[Object]:
        return sorted((*self.old, *self.new), key=_age)


def sort_out(there: Sequence[Object], revision: str) -> Sorted:
    """Sorts the pods of a place that are not being deleted."""
    live = sorted((pod for pod in there if phase(pod) not in TERMINAL), key=_age)
    new = [pod for pod in live if (pod.meta.get("labels") or {}).get(POD_LABEL) == revision]
    ended = [pod for pod in there if phase(pod) in TERMINAL]
    return Sorted([pod for pod in live if pod not in new], new, ended)


def _age(pod: Object) -> tuple[bool, str, str]:
    return not node_of(pod), pod.meta.get("creationTimestamp") or "", pod.name


def is_available(pod: Object, min_ready_seconds: int, now: Instant) -> bool:
    at = pods.available_at(pod, min_ready_seconds)
    return at is not None and at <= now
