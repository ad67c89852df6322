"""How often what was measured: histograms with classic buckets, with kube-scheduler's bounds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence


def doubling(first: float, count: int) -> tuple[float, ...]:
    """Bounds from `first` on, each twice the one before."""
    return tuple(first * 2**n for n in range(count))


_LATENCY, _EVICTING = doubling(0.001, 15), doubling(0.001, 16)
_VICTIMS, _MANY_VICTIMS = doubling(1, 7), doubling(1, 11)

BOUNDS: Mapping[str, tuple[float, ...]] = {
    "scheduler_podgroup_scheduling_attempt_duration_seconds": _LATENCY,
    "scheduler_podgroup_scheduling_algorithm_duration_seconds": _LATENCY,
    "scheduler_pod_scheduling_sli_duration_seconds": doubling(0.01, 20),
    "scheduler_preemption_victims": _VICTIMS,
    "scheduler_workload_preemption_victims": _MANY_VICTIMS,
    "scheduler_podgroup_preemption_victims": _MANY_VICTIMS,
    "scheduler_podgroup_preemption_attempt_duration_seconds": _EVICTING,
    "scheduler_preemption_workload_disruptions": _MANY_VICTIMS,
    "scheduler_preemption_evaluation_duration_seconds": _EVICTING,
    "scheduler_preemption_execution_duration_seconds": _EVICTING,
}
"""By name, the upper bounds of the buckets; one without an end follows them."""


class Histogram:
    """What was observed under one name and one set of labels."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """A value that is a bound belongs below it."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self._counts)

    def buckets(self) -> Iterator[tuple[str, int]]:
        """(bound, how many were at most that), the last one without an end."""
        so_far = 0
        for bound, count in zip((*self._bounds, None), self._counts, strict=True):
            so_far += count
            yield ("+Inf" if bound is None else f"{bound:g}"), so_far
