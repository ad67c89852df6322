"""What the best victims of a larger cluster cost, exactly: a row of integer programs, one for each part of the cost.

For single pods and flat groups. Shares nothing with the engine; for tiny clusters `evictions.best` tries everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from muster.model.records import PodClass, PodRecord
from muster.testing.evictions import NOW, Instance, Unit, most, priority_of, units
from muster.testing.oracle import admits, domains
from muster.testing.solver import Program, Sum

Cost = tuple[int, int, int, int, int, int]
"""M7: budget violations, highest priority, sum of (priority + 2^31), started, core members, time lost."""


def cheapest(instance: Instance) -> Cost | None:
    """None: nothing helps, nobody has to go, or the solver does not know."""
    every, going = units(instance)
    if instance.entry.tree is not None or not every or most(instance, going):
        return None
    model = _Model(instance, every, going)
    able = model.most()
    if able < instance.entry.needed:
        return None
    model.program.at_least(dict.fromkeys(model.where.values(), 1.0), able)
    return model.cost()


class _Model:
    """Which units go, and how many pods of each class are then on each node."""

    def __init__(self, instance: Instance, every: Sequence[Unit], going: Iterable[PodRecord]) -> None:
        self.instance, self.every, self.program = instance, every, Program()
        self.goes = [self.program.column(1) for _ in every]
        self.nodes = {node.name: node for node in instance.nodes}
        self.wanted: Counter[PodClass] = Counter(pod.cls for pod in instance.entry.pods)
        self.where = {
            (cls, name): self.program.column(count)
            for cls, count in self.wanted.items()
            for name, node in self.nodes.items()
            if admits(node, cls)
        }
        for cls, count in self.wanted.items():
            self.program.at_most({c: 1.0 for (some, _), c in self.where.items() if some is cls}, count)
        self._room({pod.uid for pod in going})
        self._one_domain()

    def _room(self, going: set[str]) -> None:
        there = [pod for pod in self.instance.pods if pod.uid not in going]
        for name, node in self.nodes.items():
            for resource, capacity in node.allocatable:
                total: dict[int, float] = {}
                for (cls, at), column in self.where.items():
                    if at == name and (asked := dict(cls.requests).get(resource, 0)):
                        total[column] = asked
                if not total:
                    continue
                for column, unit in zip(self.goes, self.every, strict=True):
                    if freed := sum(dict(pod.usage).get(resource, 0) for pod in unit if pod.node == name):
                        total[column] = -freed
                used = sum(dict(pod.usage).get(resource, 0) for pod in there if pod.node == name)
                self.program.at_most(total, capacity - used)

    def _one_domain(self) -> None:
        found = domains(self.instance.snapshot(), self.instance.entry)
        if self.instance.entry.group is None or self.instance.entry.group.topology_key is None:
            return
        chosen = {value: self.program.column(1) for value in found}
        self.program.at_most(dict.fromkeys(chosen.values(), 1.0), 1)
        of_node = {name: chosen[value] for value, names in found.items() for name in names}
        for (_, name), column in self.where.items():
            if name in of_node:
                self.program.at_most({column: 1.0, of_node[name]: -float(len(self.instance.entry.pods))}, 0)
            else:
                self.program.at_most({column: 1.0}, 0)

    def most(self) -> int:
        """How many pods can be placed if everybody may go; 0 if that is not known."""
        answer = self.program.solve(dict.fromkeys(self.where.values(), -1.0))
        return 0 if answer is None or not len(answer) else int(sum(answer[c] for c in self.where.values()))

    def cost(self) -> Cost | None:
        pods = [(column, pod) for column, unit in zip(self.goes, self.every, strict=True) for pod in unit]
        broken = self._least(dict.fromkeys(self._violations(), 1.0))
        highest = self._highest()
        if broken is None or highest is None:
            return None
        rest: list[int] = []
        weights: list[Sum] = [
            _added((column, 1) for column, _ in pods),
            _added((column, priority_of(self.instance, pod)) for column, pod in pods),
            _added((column, pod.started > 0) for column, pod in pods),
            dict.fromkeys(self._core(), 1.0),
            _added((column, NOW - pod.started if pod.started else 0) for column, pod in pods),
        ]
        for weight in weights:
            least = self._least(weight)
            if least is None:
                return None
            rest.append(least)
        count, priorities, started, core, lost = rest
        return broken, highest, priorities + count * 2**31, started, core, lost

    def _least(self, price: Sum) -> int | None:
        """The least of a sum, which it has from now on; None: not known."""
        if not price:
            return 0
        answer = self.program.solve(price)
        if answer is None or not len(answer):
            return None
        least = round(float(sum(factor * answer[column] for column, factor in price.items())))
        self.program.at_most(price, least)
        return least

    def _highest(self) -> int | None:
        """The lowest priority such that nobody above it has to go; nobody does from now on."""
        priorities = [priority_of(self.instance, unit[0]) for unit in self.every]
        for level in sorted(set(priorities)):
            above = {c: 1.0 for c, own in zip(self.goes, priorities, strict=True) if own > level}
            if not above:
                return level
            answer = self.program.solve(above)
            if answer is None:
                return None
            if not sum(answer[column] for column in above):
                self.program.at_most(above, 0)
                return level
        return None

    def _violations(self) -> list[int]:
        """A column for each budget: by how many pods it is overrun."""
        found: list[int] = []
        for budget in self.instance.budgets:
            meant = _added(
                (column, budget.selector.selects(pod.key.namespace, dict(pod.labels), {}))
                for column, unit in zip(self.goes, self.every, strict=True)
                for pod in unit
            )
            found.append(self._beyond(meant, budget.allowed))
        return found

    def _core(self) -> list[int]:
        """A column for each group: how many of its members go beyond its surplus."""
        found: list[int] = []
        for group in self.instance.groups:
            mine = [pod for pod in self.instance.pods if pod.group == group.key.name and not pod.terminating]
            members = _added(
                (column, pod.group == group.key.name)
                for column, unit in zip(self.goes, self.every, strict=True)
                for pod in unit
            )
            found.append(self._beyond(members, max(len(mine) - group.min_count, 0)))
        return found

    def _beyond(self, total: Mapping[int, float], free: int) -> int:
        column = self.program.column(len(self.instance.pods))
        self.program.at_most({**total, column: -1.0}, free)
        return column


def _added(terms: Iterable[tuple[int, float]]) -> dict[int, float]:
    found: dict[int, float] = {}
    for column, factor in terms:
        if factor:
            found[column] = found.get(column, 0.0) + factor
    return found
