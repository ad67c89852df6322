"""One look at the places of a DaemonSet that something has happened to: what is lacking, too much, or old."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from muster.api.instant import Instant
from muster.api.machine import Effect
from muster.api.object import Object
from muster.controllers.apps import pods
from muster.controllers.apps.amounts import count_of
from muster.controllers.apps.care import Care
from muster.controllers.apps.daemon.slots import NOTHING, Counts, Daemons, Slot, Sorted, is_available, sort_out
from muster.controllers.apps.owner import Owner
from muster.controllers.apps.revisions import POD_LABEL
from muster.controllers.pod_status import is_ready, node_of, phase

_ALWAYS = ("desiredNumberScheduled", "currentNumberScheduled", "numberMisscheduled", "numberReady")
"""Numbers that a status has also when they are 0."""


class Limits(NamedTuple):
    """How many nodes may be without an available pod, and how many may have two, while pods are updated.

    Both are None where updating is left to the user; without surge the second is 0.
    """

    unavailable: int | None
    surge: int | None

    @classmethod
    def of(cls, spec: Mapping[str, Any], desired: int) -> Limits:
        strategy = spec.get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return cls(None, None)
        rolling = strategy.get("rollingUpdate") or {}
        given, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
        most = count_of(0 if surge is None else surge, desired, round_up=True)
        return cls(count_of(1 if given is None else given, desired, round_up=True), most)


class Keeping:
    """A look at one DaemonSet at one moment. `care` writes; `daemons` is brought up to date."""

    def __init__(self, care: Care, owner: Owner, daemons: Daemons, now: Instant) -> None:
        self._care, self._owner, self._daemons, self._now = care, owner, daemons, now
        self._generation = owner.object.meta.get("generation") or 0
        self._min_ready = owner.spec.get("minReadySeconds") or 0
        rolling = (owner.spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
        self._surges = rolling.get("maxSurge") not in (None, 0, "0%")
        self._updates = Limits.of(owner.spec, 0).unavailable is not None

    def look(self) -> list[Effect]:
        """Looks at the places where something has changed, then goes on with the update."""
        daemons, effects = self._daemons, []
        daemons.next(self._now)
        while daemons.dirty:
            slot = daemons.slot(daemons.dirty.popitem()[0])
            effects += self._settle(slot)
        return effects + self._update()

    # -- one place

    def _staying(self, slot: Slot) -> list[Object]:
        return [pod for pod in slot.pods.values() if not self._care.leaving(self._owner, pod)]

    def _settle(self, slot: Slot) -> list[Effect]:
        """Removes what should not be on a node, notes what is lacking, and counts."""
        if not slot.node:
            return []  # pods that do not say where they are to be
        effects = self._release(slot)
        staying = self._staying(slot)
        if not slot.there:
            effects += self._delete([pod for pod in staying if not node_of(pod)])
        elif not slot.verdict.kept:
            effects += self._delete(staying)
        else:
            there = sort_out(staying, self._daemons.hash)
            effects += self._clear(slot, there.ended) + self._delete(self._spare(there))
        self._note(slot)
        return effects

    def _release(self, slot: Slot) -> list[Effect]:
        """Lets pods go that the selector no longer matches."""
        effects: list[Effect] = []
        for pod in slot.pods.values():
            if not self._owner.selects.matches(pod.meta.get("labels") or {}):
                references = [
                    each for each in pod.meta.get("ownerReferences") or () if each.get("uid") != self._owner.uid
                ]
                effects += self._care.patch(self._owner, pod, {"metadata": {"ownerReferences": references}})
        return effects

    def _clear(self, slot: Slot, ended: Sequence[Object]) -> list[Effect]:
        """Removes pods that have ended, those that fail again and again more and more slowly."""
        effects: list[Effect] = []
        for pod in ended:
            if phase(pod) == "Failed":
                at = slot.may_replace(self._now, self._generation)
                if at > self._now:
                    self._daemons.wake(slot.node, at)
                    continue
                slot.replace(self._now, self._generation)
                message = f"Found failed daemon pod {pod.namespace}/{pod.name} on node {slot.node}, will try to kill it"
                effects.append(self._care.says(self._owner, "FailedDaemonPod", message, self._now, warning=True))
            else:
                message = (
                    f"Found daemon pod {pod.namespace}/{pod.name} on node {slot.node} that has ended, will delete it"
                )
                effects.append(self._care.says(self._owner, "SucceededDaemonPod", message, self._now))
            effects += self._delete([pod])
        return effects

    def _spare(self, there: Sorted) -> list[Object]:
        """Pods beyond the one that a node has; beyond an old and a new one where updates surge."""
        if not self._surges:
            return there.live[1:]
        spare = [*there.old[1:], *there.new[1:]]
        if self._updates and there.old and there.new:
            old, new = there.old[0], there.new[0]
            if not is_ready(old) or is_available(new, self._min_ready, self._now):
                spare.append(old)
        return spare

    def _delete(self, doomed: Sequence[Object]) -> list[Effect]:
        effects: list[Effect] = []
        for pod in doomed:
            gone = self._care.delete(self._owner, pod)
            if gone:
                message = f"Deleted pod: {pod.name}"
                effects += [*gone, self._care.says(self._owner, "SuccessfulDelete", message, self._now)]
        return effects

    def _note(self, slot: Slot) -> None:
        """Counts a place as it is, and notes whether it lacks a pod or has an old one."""
        daemons = self._daemons
        there = sort_out(self._staying(slot), daemons.hash)
        wanted, available = slot.verdict.wanted and slot.there, False
        for pod in there.live:
            at = pods.available_at(pod, self._min_ready)
            if at is not None and at > self._now:
                daemons.wake(slot.node, at)
            available = available or (at is not None and at <= self._now)
        old_only = wanted and self._updates and bool(there.old) and not there.new and not slot.creating
        lacks = (wanted and not slot.pods) or (old_only and not available and self._surges)
        _keep(daemons.lacking, slot.node, lacks and not slot.creating)
        _keep(daemons.stale, slot.node, old_only and available)
        _keep(daemons.spoilt, slot.node, old_only and not available)
        daemons.count(slot, self._counts(slot, there, wanted=wanted, available=available))

    def _counts(self, slot: Slot, there: Sorted, *, wanted: bool, available: bool) -> Counts:
        if not slot.there:
            return NOTHING
        if not wanted:
            return Counts(misscheduled=int(bool(slot.pods)))
        first = next(iter(there.live), None) or next(iter(slot.pods.values()), None)
        fresh = first is not None and (first.meta.get("labels") or {}).get(POD_LABEL) == self._daemons.hash
        surging = there.old and not any(is_available(pod, self._min_ready, self._now) for pod in there.new)
        return Counts(
            desired=1,
            current=int(bool(slot.pods)),
            ready=int(any(is_ready(pod) for pod in there.live)),
            available=int(available),
            updated=int(fresh),
            unavailable=int(not available),
            surging=int(bool(surging and (there.new or slot.creating))),
        )

    # -- the update

    def _update(self) -> list[Effect]:
        """Replaces old pods: without surge they are deleted first, with surge a new one comes first.

        What is not available already costs nothing to replace.
        """
        daemons, total = self._daemons, self._daemons.total
        limits = Limits.of(self._owner.spec, total.desired)
        if limits.unavailable is None or limits.surge is None:
            return []
        if self._surges:
            queued = sum(node in daemons.stale for node in daemons.lacking)
            self._surge(limits.surge - total.surging - queued)
            return []
        room = max(0, limits.unavailable - total.unavailable)
        effects: list[Effect] = []
        for node in (*daemons.spoilt, *islice(daemons.stale, room)):
            slot = daemons.slot(node)
            effects += self._delete(self._staying(slot))
            self._note(slot)
        return effects

    def _surge(self, room: int) -> None:
        """Queues a new pod for so many nodes that have an old one; those whose old one is not available are queued."""
        waiting = (node for node in self._daemons.stale if node not in self._daemons.lacking)
        self._daemons.lacking.update(dict.fromkeys(islice(waiting, max(0, room))))


def _keep(group: dict[str, None], node: str, inside: bool) -> None:
    if inside:
        group[node] = None
    else:
        group.pop(node, None)


def changes(owner: Owner, total: Counts, collisions: int) -> dict[str, Any]:
    """What of a DaemonSet's status is not as it should be."""
    new: dict[str, Any] = {
        "observedGeneration": owner.object.meta.get("generation") or 0,
        "desiredNumberScheduled": total.desired,
        "currentNumberScheduled": total.current,
        "numberMisscheduled": total.misscheduled,
        "numberReady": total.ready,
        "updatedNumberScheduled": total.updated,
        "numberAvailable": total.available,
        "numberUnavailable": total.desired - total.available,
        "collisionCount": collisions,
    }
    old = owner.status
    wanted = {key: value if value or key in _ALWAYS else None for key, value in new.items()}
    return {key: value for key, value in wanted.items() if old.get(key) != value}
