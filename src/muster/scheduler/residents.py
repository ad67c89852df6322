"""What preemption needs to know of the pods that hold room: their priorities, who left, what protects them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from muster.api.instant import Instant
from muster.model.keys import Key
from muster.model.neighbours import PodSelector
from muster.model.records import CompositeRecord, GroupRecord, Phase, PodRecord
from muster.model.roster import Roster
from muster.model.running import DisruptionBudget, Running
from muster.scheduler.families import selector_requirements

BUDGETS = "poddisruptionbudgets"


class Residents:
    """A fold over the pods that have a node and have not ended, assumed ones included."""

    def __init__(self) -> None:
        self.leaving: set[str] = set()
        """Uids of pods whose eviction was asked for and is not seen yet."""
        self.spared: dict[str, Instant] = {}
        """Uids of pods that the server refuses to delete, and when that is tried again."""
        self._mirrors: set[str] = set()
        self.budgets: dict[Key, DisruptionBudget] = {}
        self._roster = Roster()
        self._left: list[PodRecord] = []
        self._regrouped = self._nodes_changed = False
        self._priorities: Counter[int] = Counter()
        self._groups: Counter[int] = Counter()

    # -- the fold

    def move(self, was: PodRecord | None, now: PodRecord | None, node: str | None = None) -> None:
        """A pod takes room, gives it back, or is another by now. `node`: where it is assumed to be."""
        if was is not None:
            self._priorities[was.priority] -= 1
            if not self._priorities[was.priority]:
                del self._priorities[was.priority]
            if now is None:
                self._roster.drop(was.uid)
                self._left.append(was)
                self._mirrors.discard(was.uid)
                self.leaving.discard(was.uid)
        if now is not None:
            if now.mirror:
                self._mirrors.add(now.uid)
            self._roster.put(now if node is None else _at(now, node))
            self._priorities[now.priority] += 1
            if now.terminating:
                self.leaving.discard(now.uid)

    def group(self, was: GroupRecord | CompositeRecord | None, now: GroupRecord | CompositeRecord | None) -> None:
        """A group comes, goes or changes: the priority of its pods may be another."""
        if was is not None:
            self._groups[was.priority] -= 1
            if not self._groups[was.priority]:
                del self._groups[was.priority]
        if now is not None:
            self._groups[now.priority] += 1
        if was is None or now is None or _matters(was) != _matters(now):
            self._regrouped = True

    def node_changed(self) -> None:
        """A node came, went, or is no longer what it was."""
        self._nodes_changed = True

    # -- reading

    @property
    def lowest(self) -> int | None:
        """No pod that holds room counts with a lower priority than this; None: there is none."""
        if not self._priorities:
            return None
        return min(*self._priorities, *self._groups, max(self._priorities))

    def take_left(self) -> list[PodRecord]:
        """Pods that gave their room back since the last call."""
        left, self._left = self._left, []
        return left

    def take_nodes_changed(self) -> bool:
        """Whether any node has changed since the last call."""
        changed, self._nodes_changed = self._nodes_changed, False
        return changed

    def take_regrouped(self) -> bool:
        """Whether a group has changed in what counts for its pods since the last call."""
        regrouped, self._regrouped = self._regrouped, False
        return regrouped

    def running(self, composites: Mapping[Key, CompositeRecord]) -> Running:
        """All of them; nothing in it changes afterwards."""
        budgets = tuple(self.budgets[key] for key in sorted(self.budgets))
        pods, columns = self._roster.seen()
        spared = frozenset((*self.spared, *self._mirrors))
        return Running(pods, frozenset(self.leaving), dict(composites), budgets, columns, spared)


def _at(pod: PodRecord, node: str) -> PodRecord:
    return replace(pod, phase=Phase.BOUND, node=node, usage=pod.cls.requests)


def _matters(group: GroupRecord | CompositeRecord) -> tuple[object, ...]:
    return group.uid, group.priority, group.parent, group.disruption_all


def budget_of(raw: Mapping[str, Any]) -> DisruptionBudget:
    """A PodDisruptionBudget as far as it counts.

    Raises:
        TypeError, KeyError, AttributeError: it is malformed.
    """
    meta, spec = raw["metadata"], raw["spec"]
    selector = spec.get("selector")
    requirements = None if selector is None else selector_requirements(selector)
    allowed = (raw.get("status") or {}).get("disruptionsAllowed") or 0
    key = Key(meta["namespace"], meta["name"])
    return DisruptionBudget(key, PodSelector(requirements, (key.namespace,)), int(allowed))
