"""What it costs to evict a set of units: M7's order, as tuples that compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from muster.engine.preemption.units import Field
from muster.model.keys import Key
from muster.model.records import PodRecord

Cost = tuple[int, int, int, int, int, int]
"""Budget violations, highest priority, sum of (priority + 2^31), started pods, core members, pod-microseconds lost."""

BASE = 1 << 31
NOTHING: Cost = (0, -BASE, 0, 0, 0, 0)


class Parts(NamedTuple):
    """What one unit adds to a cost."""

    priority: int
    total: int
    """The sum of (priority + 2^31) of its pods."""
    started: int
    lost: int
    budgets: tuple[int, ...]
    """Places of the budgets that mean its pods, once for each pod."""
    members: tuple[tuple[Key, int], ...]
    """Its pods by group, of gangs only."""


class Costs:
    """Costs of the units of a field."""

    def __init__(self, field: Field, now: int) -> None:
        self.field = field
        running = field.snapshot.running
        assert running is not None
        self.now = now
        self._spaces = field.snapshot.neighbours.spaces
        self._budgets = running.budgets
        self.surplus = _Surplus(field)
        """By gang, how many running members it has above its minimum."""
        self._meant: dict[tuple[str, object], tuple[int, ...]] = {}
        self._of: dict[int, Parts] = {}

    def parts(self, number: int) -> Parts:
        known = self._of.get(number)
        if known is None:
            field = self.field
            pods = [field.pods[place] for place in field.pods_of[number]]
            priority = field.priority[number]
            started = [pod for pod in pods if pod.started]
            groups = Counter(Key(pod.key.namespace, pod.group) for pod in pods if pod.group is not None)
            known = self._of[number] = Parts(
                priority,
                (priority + BASE) * len(pods),
                len(started),
                sum(max(self.now - pod.started, 0) for pod in started),
                tuple(budget for pod in pods for budget in self._budgets_of(pod.key.namespace, pod.labels)),
                tuple((group, count) for group, count in groups.items() if group in field.snapshot.groups),
            )
        return known

    def _budgets_of(self, namespace: str, labels: tuple[tuple[str, str], ...]) -> tuple[int, ...]:
        if not self._budgets:
            return ()
        known = self._meant.get((namespace, labels))
        if known is None:
            mapping = dict(labels)
            known = self._meant[namespace, labels] = tuple(
                i for i, b in enumerate(self._budgets) if b.selector.selects(namespace, mapping, self._spaces)
            )
        return known

    def protected(self, number: int) -> bool:
        """Whether evicting it alone violates a budget; one pod of a unit protects all of it (P16)."""
        if not self._budgets:
            return False
        return any(count > self._budgets[b].allowed for b, count in Counter(self.parts(number).budgets).items())

    @property
    def allowed(self) -> dict[int, int]:
        """By place of a budget, how many pods it lets go."""
        return {place: max(budget.allowed, 0) for place, budget in enumerate(self._budgets)}

    @property
    def guards(self) -> bool:
        """Whether there is any budget."""
        return bool(self._budgets)

    def guarded(self, number: int) -> bool:
        """Whether any budget means a pod of it."""
        return bool(self._budgets) and bool(self.parts(number).budgets)

    def __call__(self, units: Iterable[int]) -> Cost:
        highest, total, started, lost = -BASE, 0, 0, 0
        budgets: Counter[int] = Counter()
        groups: Counter[Key] = Counter()
        for number in units:
            priority, amount, begun, seconds, meant, members = self.parts(number)
            highest = max(highest, priority)
            total += amount
            started += begun
            lost += seconds
            budgets.update(meant)
            for group, count in members:
                groups[group] += count
        violations = sum(max(count - max(self._budgets[b].allowed, 0), 0) for b, count in budgets.items())
        core = sum(max(count - self.surplus[group], 0) for group, count in groups.items())
        return violations, highest, total, started, core, lost

    def names(self, units: Iterable[int]) -> list[Key]:
        """What breaks the last ties."""
        return sorted(pod.key for pod in self.field.records(frozenset(units)))

    def dispensable(self, number: int) -> tuple[object, ...]:
        """Sorts units so that the first is the first to go.

        Members of a gang are told apart as surplus or core each by itself, though only together they are either.
        """
        places = self.field.pods_of[number]
        if len(places) == 1 and not self._budgets:
            return self._alone(self.field.priority[number], self.field.pods[places[0]])
        priority, amount, started, lost, _, members = self.parts(number)
        core = sum(max(count - self.surplus[group], 0) for group, count in members)
        first = self.field.pods[places[0]].key
        return (self.protected(number), self.guarded(number), priority, amount, started, core, lost, first)

    def _alone(self, priority: int, pod: PodRecord) -> tuple[object, ...]:
        """The same for a unit of one pod where there are no budgets."""
        began, core = pod.started, 0
        if pod.group is not None:
            group = Key(pod.key.namespace, pod.group)
            core = int(group in self.field.snapshot.groups and self.surplus[group] < 1)
        lost = max(self.now - began, 0) if began else 0
        return (False, False, priority, priority + BASE, 1 if began else 0, core, lost, pod.key)


class _Surplus(dict[Key, int]):
    """Worked out for the groups that are asked about."""

    def __init__(self, field: Field) -> None:
        super().__init__()
        self._field = field

    def __missing__(self, group: Key) -> int:
        least = self._field.snapshot.groups[group].min_count
        found: int = max(self._field.present.get(group, 0) - least, 0)
        self[group] = found
        return found
