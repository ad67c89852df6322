"""What the scheduler counts, as data: kube-scheduler's names where they mean the same (P34-P38).

A histogram is kept as its sum and its count. Durations are those of the machine's clock, from when a decision was asked
for until it came back. Names of KEP-5710 that differ from the code's are served as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from muster.api.instant import SECOND, Instant
from muster.model.diagnosis import Diagnosis, Preemption, PreemptionOutcome, Verdict
from muster.model.plan import Plan
from muster.model.records import EntryKind, QueueEntry
from muster.scheduler.entries import Entry, State

Labels = tuple[tuple[str, str], ...]
NOUN = {EntryKind.POD: "pod", EntryKind.POD_GROUP: "podgroup", EntryKind.COMPOSITE: "compositepodgroup"}
QUEUES = {
    State.ACTIVE: "active",
    State.DECIDING: "active",
    State.BACKOFF: "backoff",
    State.WAITING: "unschedulable",
    State.HELD: "gated",
}
EVERY = tuple(dict.fromkeys(QUEUES.values()))
RESULTS = {
    PreemptionOutcome.FOUND: "success",
    PreemptionOutcome.NO_VICTIMS: "no_victims",
    PreemptionOutcome.NEVER: "not_eligible",
    PreemptionOutcome.ONGOING: "ongoing",
    PreemptionOutcome.AWAITED: "ongoing",
}


class Sample(NamedTuple):
    """One number of a family; `kind` is counter, gauge or summary."""

    name: str
    labels: Labels
    value: float
    kind: str


KINDS: Mapping[str, str] = {
    "scheduler_schedule_attempts_total": "counter",
    "scheduler_podgroup_schedule_attempts_total": "counter",
    "scheduler_podgroup_scheduling_attempt_duration_seconds": "summary",
    "scheduler_generated_placements_total": "counter",
    "scheduler_preemption_attempts_total": "counter",
    "scheduler_preemption_victims": "summary",
    "scheduler_workload_preemption_attempts_total": "counter",
    "scheduler_workload_preemption_victims": "summary",
    "scheduler_podgroup_preemption_attempts_total": "counter",
    "scheduler_podgroup_preemption_victims": "summary",
    "scheduler_preemption_workload_disruptions": "summary",
    "scheduler_preemption_pdb_violations_total": "counter",
}


class Metrics:
    """Sums that only grow, from decision to decision, and what is pending now."""

    def __init__(self, profile: str) -> None:
        self._profile = profile
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._sums: dict[tuple[str, Labels], float] = {}
        self._of_pods = {
            result: ("scheduler_schedule_attempts_total", (("result", result), ("profile", profile)))
            for result in ("scheduled", "unschedulable", "error")
        }

    def decided(self, head: QueueEntry, plan: Plan, diagnosis: Diagnosis, took: Instant) -> None:
        """One entry was decided, and the plan is carried out."""
        bound, waits = len(plan.binds), bool(plan.steps) and not plan.binds
        error = diagnosis.verdict is Verdict.ERROR
        result = "scheduled" if bound else "error" if error else "waiting_on_preemption" if waits else "unschedulable"
        failed = "error" if error else "unschedulable"
        if bound:
            self._counts[self._of_pods["scheduled"]] += bound
        if bound < len(head.pods):
            self._counts[self._of_pods[failed]] += len(head.pods) - bound
        if head.key.kind is not EntryKind.POD:
            labels = {"result": result, "profile": self._profile}
            self._count("podgroup_schedule_attempts_total", 1, **labels)
            self._observe("podgroup_scheduling_attempt_duration_seconds", took / SECOND, **labels)
            self._count("generated_placements_total", diagnosis.placements)
        if diagnosis.preemption is not None:
            self._preempted(head.key.kind, diagnosis.preemption)

    def _preempted(self, kind: EntryKind, tried: Preemption) -> None:
        result, preemptor = RESULTS[tried.outcome], NOUN[kind]
        found = tried.outcome is PreemptionOutcome.FOUND
        self._count("preemption_attempts_total", 1)
        if kind is not EntryKind.POD:
            self._count("workload_preemption_attempts_total", 1, result=result)
            self._count("podgroup_preemption_attempts_total", 1, result=result)
        if not found:
            return
        self._observe("preemption_victims", len(tried.victims))
        if kind is not EntryKind.POD:
            self._observe("workload_preemption_victims", len(tried.victims))
            self._observe("podgroup_preemption_victims", len(tried.victims))
        disrupted = len({victim.unit or victim.pod for victim in tried.victims})
        self._observe("preemption_workload_disruptions", disrupted, preemptor=preemptor)
        self._count("preemption_pdb_violations_total", tried.violations, preemptor=preemptor)

    def _count(self, name: str, amount: int, **labels: str) -> None:
        if amount:
            self._counts[f"scheduler_{name}", tuple(labels.items())] += amount

    def _observe(self, name: str, value: float, **labels: str) -> None:
        family = f"scheduler_{name}", tuple(labels.items())
        self._sums[family] = self._sums.get(family, 0.0) + value
        self._counts[family] += 1

    def samples(self, entries: Iterable[tuple[Entry, int]]) -> Iterator[Sample]:
        """Everything counted so far, family by family; and of the entries, each with its pending pods, how many wait
        where.
        """
        for name, kind in KINDS.items():
            for family in sorted(known for known in self._counts if known[0] == name):
                if kind == "summary":
                    yield Sample(f"{name}_sum", family[1], self._sums[family], kind)
                    yield Sample(f"{name}_count", family[1], self._counts[family], kind)
                else:
                    yield Sample(name, family[1], self._counts[family], kind)
        groups: Counter[tuple[str, str]] = Counter()
        pods: Counter[str] = Counter()
        for entry, pending in entries:
            groups[NOUN[entry.key.kind], QUEUES[entry.state]] += 1
            pods[QUEUES[entry.state]] += pending
        for noun in NOUN.values():
            for queue in EVERY:
                labels = (("type", noun), ("queue", queue))
                yield Sample("scheduler_pending_entities", labels, groups[noun, queue], "gauge")
        for queue in EVERY:
            yield Sample("scheduler_pending_pods", (("queue", queue),), pods[queue], "gauge")


def exposed(samples: Iterable[Sample]) -> str:
    """The text format of Prometheus."""
    lines: list[str] = []
    said = ""
    for sample in samples:
        family = sample.name
        if sample.kind == "summary":
            family = family.removesuffix("_sum").removesuffix("_count")
        if family != said:
            lines.append(f"# TYPE {family} {sample.kind}")
            said = family
        labels = ",".join(f'{name}="{value}"' for name, value in sample.labels)
        lines.append(f"{sample.name}{'{' + labels + '}' if labels else ''} {sample.value:g}")
    return "\n".join(lines) + "\n"
