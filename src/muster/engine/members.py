"""An entry's pending pods as counts of classes, and what must agree among them before any node is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muster.engine.trial import Trial
from muster.model.diagnosis import Reason
from muster.model.records import PodRecord, QueueEntry


@dataclass(frozen=True, slots=True)
class Members:
    """Pods of one class, in member order, and their places in the whole entry's order."""

    cls: int
    pods: Sequence[PodRecord]
    places: Sequence[int]

    def __len__(self) -> int:
        return len(self.pods)


def members_by_class(trial: Trial, pods: Sequence[PodRecord]) -> list[Members]:
    """The classes in the order of their first member."""
    first = pods[0].cls
    if trial.plain and all(pod.cls is first for pod in pods):
        return [Members(trial.index[first], pods, range(len(pods)))]
    alike: dict[int, list[int]] = {}
    for place, pod in enumerate(pods):
        alike.setdefault(trial.class_of(pod), []).append(place)
    return [Members(cls, [pods[place] for place in places], places) for cls, places in alike.items()]


def disagreement(entry: QueueEntry) -> tuple[Reason, tuple[str, str]] | None:
    """What keeps a group from being tried at all, with the two values that disagree (statements 31, 32, P30-P32).

    Running members count. Scheduler names must agree among the members, priorities with the group's, preemption
    policies with the group's if it has one, else among the members. In a hierarchy the root group counts (51).
    """
    group = entry.group if entry.tree is None else entry.tree.record
    if group is None:
        return None
    every = (*entry.pods, *entry.bound) if entry.bound else entry.pods
    names = dict.fromkeys(pod.scheduler_name for pod in every)
    if len(names) > 1:
        return Reason.SCHEDULER_NAME_MISMATCH, _first_two(names)
    priorities = dict.fromkeys((group.priority, *(pod.priority for pod in every)))
    if len(priorities) > 1:
        return Reason.PRIORITY_MISMATCH, _first_two(priorities)
    expected = () if group.preemption_policy is None else (group.preemption_policy,)
    policies = dict.fromkeys((*expected, *(pod.preemption_policy for pod in every)))
    if len(policies) > 1:
        return Reason.PREEMPTION_POLICY_MISMATCH, _first_two(policies)
    return None


def _first_two(values: Sequence[object] | dict[str, None] | dict[int, None]) -> tuple[str, str]:
    first, second = list(values)[:2]
    return str(first), str(second)
