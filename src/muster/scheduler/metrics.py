"""What the scheduler counts, as data: kube-scheduler's names where they mean the same (P34-P38).

Durations are those of the machine's clock, from when a decision was asked for until it came back. Names of KEP-5710
that differ from the code's are served as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from muster.api.instant import SECOND, Instant
from muster.model.diagnosis import Diagnosis, Preemption, PreemptionOutcome, Reason, Verdict
from muster.model.plan import Plan
from muster.model.records import EntryKind, QueueEntry
from muster.scheduler.bindings import Binding
from muster.scheduler.entries import Entry, State
from muster.scheduler.histograms import BOUNDS, Histogram
from muster.scheduler.preempting import NOUN, Round

Labels = tuple[tuple[str, str], ...]
QUEUES = {
    State.ACTIVE: "active",
    State.DECIDING: "active",
    State.BACKOFF: "backoff",
    State.WAITING: "unschedulable",
    State.HELD: "gated",
}
EVERY = tuple(dict.fromkeys(QUEUES.values()))
INCOMPLETE, PENDING = "incomplete", "pending"
MANY_ATTEMPTS = 15
"""So many and more share one label."""
RESULTS = {
    PreemptionOutcome.FOUND: "success",
    PreemptionOutcome.NO_VICTIMS: "no_victims",
    PreemptionOutcome.NEVER: "not_eligible",
    PreemptionOutcome.ONGOING: "ongoing",
    PreemptionOutcome.AWAITED: "ongoing",
}


class Sample(NamedTuple):
    """One number of a family; `kind` is counter, gauge or histogram."""

    name: str
    labels: Labels
    value: float
    kind: str


COUNTERS = (
    "scheduler_schedule_attempts_total",
    "scheduler_podgroup_schedule_attempts_total",
    "scheduler_generated_placements_total",
    "scheduler_placement_evaluations_total",
    "scheduler_preemption_attempts_total",
    "scheduler_workload_preemption_attempts_total",
    "scheduler_podgroup_preemption_attempts_total",
    "scheduler_podgroup_preemption_reprieved_total",
    "scheduler_preemption_pdb_violations_total",
)


class Metrics:
    """Sums that only grow, from decision to decision, and what is pending now."""

    def __init__(self, profile: str) -> None:
        self._profile = profile
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._observed: dict[tuple[str, Labels], Histogram] = {}
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
            self._group_decided(diagnosis, result, took)
        if diagnosis.preemption is not None:
            self.looked_for_victims(head.key.kind, diagnosis.preemption, took)

    def _group_decided(self, diagnosis: Diagnosis, result: str, took: Instant) -> None:
        labels = {"result": result, "profile": self._profile}
        self._count("podgroup_schedule_attempts_total", 1, **labels)
        self._observe("podgroup_scheduling_attempt_duration_seconds", took / SECOND, **labels)
        self._observe("podgroup_scheduling_algorithm_duration_seconds", took / SECOND)
        self._count("generated_placements_total", diagnosis.placements, profile=self._profile)
        for came, number in (("feasible", diagnosis.feasible), ("infeasible", diagnosis.infeasible)):
            self._count("placement_evaluations_total", number, result=came, profile=self._profile)

    def looked_for_victims(self, kind: EntryKind, tried: Preemption, took: Instant) -> None:
        """A decision, `took` long, looked at what evicting would help."""
        result, preemptor = RESULTS[tried.outcome], NOUN[kind]
        self._count("preemption_attempts_total", 1)
        self._observe("preemption_evaluation_duration_seconds", took / SECOND, preemptor=preemptor, result=result)
        if kind is not EntryKind.POD:
            self._count("workload_preemption_attempts_total", 1, result=result)
            self._count("podgroup_preemption_attempts_total", 1, result=result)
            self._observe("podgroup_preemption_attempt_duration_seconds", took / SECOND)
        if tried.outcome is not PreemptionOutcome.FOUND:
            return
        self._observe("preemption_victims", len(tried.victims))
        if kind is not EntryKind.POD:
            self._observe("workload_preemption_victims", len(tried.victims))
            self._observe("podgroup_preemption_victims", len(tried.victims))
            self._count("podgroup_preemption_reprieved_total", tried.candidates - len(tried.victims))
        disrupted = len({victim.unit or victim.pod for victim in tried.victims})
        self._observe("preemption_workload_disruptions", disrupted, preemptor=preemptor)
        self._count("preemption_pdb_violations_total", tried.violations, preemptor=preemptor)

    def evicted(self, asked: Round, now: Instant) -> None:
        """All that was asked for at a time is answered."""
        labels = {"preemptor": NOUN[asked.kind], "result": "error" if asked.failed else "success"}
        self._observe("preemption_execution_duration_seconds", (now - asked.since) / SECOND, **labels)

    def bound(self, bindings: Iterable[Binding], now: Instant) -> None:
        """These pods have their nodes for certain."""
        for binding in bindings:
            if binding.since is not None:
                tries = f"{MANY_ATTEMPTS}+" if binding.tries >= MANY_ATTEMPTS else str(binding.tries)
                took = max(0, now - binding.since) / SECOND
                self._observe("pod_scheduling_sli_duration_seconds", took, attempts=tries)

    def _count(self, name: str, amount: int, **labels: str) -> None:
        if amount:
            self._counts[f"scheduler_{name}", tuple(labels.items())] += amount

    def _observe(self, name: str, value: float, **labels: str) -> None:
        family = f"scheduler_{name}", tuple(labels.items())
        known = self._observed.get(family)
        if known is None:
            known = self._observed[family] = Histogram(BOUNDS[family[0]])
        known.observe(value)

    def samples(self, entries: Iterable[tuple[Entry, int]]) -> Iterator[Sample]:
        """Everything counted so far, family by family; and of the entries, each with its pending pods, how many wait
        where.
        """
        for name in COUNTERS:
            for family in sorted(known for known in self._counts if known[0] == name):
                yield Sample(name, family[1], self._counts[family], "counter")
        for name in BOUNDS:
            for family in sorted(known for known in self._observed if known[0] == name):
                yield from _spread(name, family[1], self._observed[family])
        yield from _waiting(entries)


def _spread(name: str, labels: Labels, observed: Histogram) -> Iterator[Sample]:
    for bound, count in observed.buckets():
        yield Sample(f"{name}_bucket", (*labels, ("le", bound)), count, "histogram")
    yield Sample(f"{name}_sum", labels, observed.sum, "histogram")
    yield Sample(f"{name}_count", labels, observed.count, "histogram")


def _waiting(entries: Iterable[tuple[Entry, int]]) -> Iterator[Sample]:
    groups: Counter[tuple[str, str]] = Counter()
    pods: Counter[str] = Counter()
    for entry, pending in entries:
        groups[NOUN[entry.key.kind], QUEUES[entry.state]] += 1
        joined = max(0, pending - entry.taken) if entry.state is State.DECIDING else 0
        pods[PENDING] += joined
        pods[INCOMPLETE if _is_incomplete(entry) else QUEUES[entry.state]] += pending - joined
    for noun in NOUN.values():
        for queue in EVERY:
            labels = (("type", noun), ("queue", queue))
            yield Sample("scheduler_pending_entities", labels, groups[noun, queue], "gauge")
    for queue in (*EVERY, INCOMPLETE, PENDING):
        yield Sample("scheduler_pending_pods", (("queue", queue),), pods[queue], "gauge")


def _is_incomplete(entry: Entry) -> bool:
    """Whether nothing but members or groups that do not exist yet keeps it from being tried."""
    if entry.state is not State.HELD or entry.hold is None:
        return False
    return all(rejection.reason is not Reason.GATED for rejection in entry.hold.reasons)


def exposed(samples: Iterable[Sample]) -> str:
    """The text format of Prometheus."""
    lines: list[str] = []
    said = ""
    for sample in samples:
        family = sample.name
        if sample.kind == "histogram":
            family = family.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")
        if family != said:
            lines.append(f"# TYPE {family} {sample.kind}")
            said = family
        labels = ",".join(f'{name}="{value}"' for name, value in sample.labels)
        lines.append(f"{sample.name}{'{' + labels + '}' if labels else ''} {sample.value:g}")
    return "\n".join(lines) + "\n"
