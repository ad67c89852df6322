"""Whether a placement exists, exactly, for up to a dozen nodes and thirty pods: an integer program, and an order.

Shares no code with engine or plugins. The program says how many of each role go to each node, which groups of a
hierarchy are satisfied and which domain each constrained group is in. Where order matters (affinity, spread) it holds
what is true of every placement that can be made in some order; `turns` then looks for that order. If there is none for
the placement that came out, others are asked for, and in the end everything is tried; what is still open then is
"unknown", never a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np

from muster.model.records import GroupNode, QueueEntry
from muster.testing import company
from muster.testing.crowd import Apart, Crowd, Domain, Even, Placement, crowd_of
from muster.testing.turns import in_some_order, most_in_turn

SECONDS = 20.0
"""What one program may take; longer is "unknown"."""
TRIES = 12
_INFINITY = float("inf")
Sum = Mapping[int, float]
"""Column -> factor."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of an entry. `possible` None: the oracle does not know."""

    possible: bool | None
    placement: Placement = field(default_factory=dict)


def solve(world: company.World, entry: QueueEntry, crowd: Crowd | None = None) -> Found:
    """Whether the entry can be placed as far as it needs to be, and one way to do it."""
    crowd = crowd or crowd_of(world, entry)
    program, where = _spelled_out(crowd)
    _groups(program, crowd, where, entry)
    random = Random(0)
    for attempt in range(TRIES):
        answer = program.solve({} if not attempt else {column: random.random() - 0.5 for column in where.values()})
        if answer is None or not len(answer):
            return Found(None if answer is None else False)
        placement = {spot: int(answer[column]) for spot, column in where.items() if answer[column]}
        if not crowd.ordered:
            return Found(True, placement)
        possible = in_some_order(crowd, placement)
        if possible:
            return Found(True, placement)
    return _by_trying(crowd, entry)


def most(world: company.World, entry: QueueEntry, nodes: frozenset[str] | None = None) -> int | None:
    """The most members of a flat group on these nodes (all); where order matters, no fewer than that. None: unknown."""
    crowd = crowd_of(world, entry)
    if nodes is not None:
        inside = frozenset(n for n, node in enumerate(crowd.nodes) if node.name in nodes)
        crowd = _narrowed(crowd, inside)
    program, where = _spelled_out(crowd)
    for r, role in enumerate(crowd.roles):
        program.at_most(_of(where, (r,), range(len(crowd.nodes))), len(role.pods))
    if entry.group is not None and entry.group.topology_key is not None:
        every = range(len(crowd.roles))
        running = [pod.node or "" for pod in entry.bound]
        _inside_one_domain(program, crowd, where, every, entry.group.topology_key, running, None)
    answer = program.solve(dict.fromkeys(where.values(), -1.0))
    return None if answer is None else sum(int(answer[column]) for column in where.values()) if len(answer) else 0


def _spelled_out(crowd: Crowd) -> tuple[Program, Where]:
    program = Program()
    where = _members(program, crowd)
    _room(program, crowd, where)
    for rule in crowd.apart:
        _apart(program, crowd, where, rule)
    _near(program, crowd, where)
    _even(program, crowd, where)
    return program, where


def _by_trying(crowd: Crowd, entry: QueueEntry) -> Found:
    """The last resort, for flat groups only: everything, domain by domain."""
    if entry.tree is not None:
        return Found(None)
    key = entry.group.topology_key if entry.group is not None else None
    places = [frozenset(range(len(crowd.nodes)))] if key is None else _places(crowd, key, entry)
    found = [most_in_turn(_narrowed(crowd, nodes)) for nodes in places]
    if any(number is not None and number >= entry.needed for number in found):
        return Found(True)
    return Found(None if None in found else False)


def _places(crowd: Crowd, key: str, entry: QueueEntry) -> list[Domain]:
    """The domains of the key that running members leave."""
    held = {pod.node for pod in entry.bound}
    found: dict[str, set[int]] = {}
    for n, node in enumerate(crowd.nodes):
        if key in node.labels:
            found.setdefault(node.labels[key], set()).add(n)
    return [frozenset(some) for some in found.values() if held <= {crowd.nodes[n].name for n in some}]


def _narrowed(crowd: Crowd, nodes: Domain) -> Crowd:
    return replace(crowd, allowed=tuple(some & nodes for some in crowd.allowed))


class Program:
    """An integer program that grows row by row."""

    def __init__(self) -> None:
        self._upper: list[int] = []
        self._rows: list[tuple[Sum, float, float]] = []

    def column(self, upper: int) -> int:
        """A whole number from 0 to `upper`."""
        self._upper.append(upper)
        return len(self._upper) - 1

    def at_most(self, total: Sum, limit: float) -> None:
        self._rows.append((total, -_INFINITY, limit))

    def at_least(self, total: Sum, limit: float) -> None:
        self._rows.append((total, limit, _INFINITY))

    def solve(self, price: Mapping[int, float]) -> np.ndarray | None:
        """int64 by column; empty: there is no solution, or nothing to be placed; None: not known."""
        import highspy

        if not self._upper:
            return np.zeros(0, dtype=np.int64)

        program = highspy.HighsLp()
        size = len(self._upper)
        program.num_col_, program.num_row_ = size, len(self._rows)
        program.col_cost_ = np.array([price.get(column, 0.0) for column in range(size)])
        program.col_lower_, program.col_upper_ = np.zeros(size), np.array(self._upper, dtype=np.float64)
        program.row_lower_ = np.array([low for _, low, _ in self._rows])
        program.row_upper_ = np.array([high for _, _, high in self._rows])
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = np.cumsum([0, *(len(total) for total, _, _ in self._rows)])
        program.a_matrix_.index_ = np.array([c for total, _, _ in self._rows for c in total], dtype=np.int32)
        program.a_matrix_.value_ = np.array([f for total, _, _ in self._rows for f in total.values()], dtype=np.float64)
        program.integrality_ = [highspy.HighsVarType.kInteger] * size

        class Quiet(highspy.Highs):
            """Does not greet: the greeting comes with the first callback, which the constructor sets up."""

            def enableCallbacks(self) -> None:
                self.silent()
                super().enableCallbacks()  # type: ignore[no-untyped-call]

        solver: Any = Quiet()  # type: ignore[no-untyped-call]
        for option, value in (("output_flag", False), ("threads", 1), ("random_seed", 1), ("time_limit", SECONDS)):
            solver.setOptionValue(option, value)
        solver.passModel(program)
        solver.run()
        status = solver.getModelStatus()
        if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
            return np.zeros(0, dtype=np.int64)
        if status != highspy.HighsModelStatus.kOptimal:
            return None
        answer: np.ndarray = np.rint(np.array(solver.getSolution().col_value)).astype(np.int64)
        return answer


Where = Mapping[tuple[int, int], int]
"""(role, node) -> column; missing: the role may not go there."""


def _members(program: Program, crowd: Crowd) -> Where:
    return {
        (r, n): program.column(len(role.pods)) for r, role in enumerate(crowd.roles) for n in sorted(crowd.allowed[r])
    }


def _of(where: Where, roles: Iterable[int], nodes: Iterable[int]) -> dict[int, float]:
    """The members of these roles on these nodes."""
    nodes = tuple(nodes)
    return {where[r, n]: 1.0 for r in roles for n in nodes if (r, n) in where}


def _groups(program: Program, crowd: Crowd, where: Where, entry: QueueEntry) -> None:
    """Minimums and domains, from the root down."""
    everywhere = range(len(crowd.nodes))
    for r, role in enumerate(crowd.roles):
        program.at_most(_of(where, (r,), everywhere), len(role.pods))
    every = range(len(crowd.roles))
    if entry.tree is not None:
        root = _group(program, crowd, where, entry.tree)
        program.at_least({root: 1}, 1)
        program.at_least(_of(where, every, everywhere), 1)
        return
    program.at_least(_of(where, every, everywhere), entry.needed)
    key = entry.group.topology_key if entry.group is not None else None
    if key is not None:
        _inside_one_domain(program, crowd, where, every, key, [pod.node or "" for pod in entry.bound], None)


def _group(program: Program, crowd: Crowd, where: Where, tree: GroupNode) -> int:
    """The column that says whether the group is satisfied; without that it has no members placed."""
    satisfied = program.column(1)
    leaves = {leaf.record.key for leaf in tree.leaves()}
    roles = [r for r, role in enumerate(crowd.roles) if role.group in leaves]
    total = _of(where, roles, range(len(crowd.nodes)))
    if tree.is_leaf:
        least = tree.record.min_count - len(tree.bound) - tree.succeeded
        if least > 0:
            program.at_least({**total, satisfied: -least}, 0)
        program.at_most({**total, satisfied: -sum(len(crowd.roles[r].pods) for r in roles)}, 0)
    else:
        children = [_group(program, crowd, where, child) for child in tree.children]
        for child in children:
            program.at_most({child: 1, satisfied: -1}, 0)
        program.at_least({**dict.fromkeys(children, 1.0), satisfied: -tree.record.min_count}, 0)
    if tree.record.topology_key is not None:
        running = [pod.node or "" for leaf in tree.leaves() for pod in leaf.bound]
        _inside_one_domain(program, crowd, where, roles, tree.record.topology_key, running, satisfied)
    return satisfied


def _inside_one_domain(
    program: Program,
    crowd: Crowd,
    where: Where,
    roles: Sequence[int],
    key: str,
    running: Sequence[str],
    satisfied: int | None,
) -> None:
    """All members on nodes of one value of the key, that of the running ones; without one, no group."""
    labels = {node.name: node.labels.get(key) for node in crowd.nodes}
    values = sorted({value for value in labels.values() if value is not None})
    held = {labels.get(name) for name in running}
    values = [value for value in values if not held or held == {value}]
    chosen = {value: program.column(1) for value in values}
    if satisfied is None:
        program.at_most(dict.fromkeys(chosen.values(), 1.0), 1)
    else:
        program.at_least({**dict.fromkeys(chosen.values(), 1.0), satisfied: -1}, 0)
        program.at_most({**dict.fromkeys(chosen.values(), 1.0), satisfied: -1}, 0)
    for n, node in enumerate(crowd.nodes):
        for r in roles:
            if (r, n) in where:
                choice = chosen.get(node.labels.get(key, ""))
                own = {} if choice is None else {choice: -float(len(crowd.roles[r].pods))}
                program.at_most({where[r, n]: 1.0, **own}, 0)


def _room(program: Program, crowd: Crowd, where: Where) -> None:
    for n, free in enumerate(crowd.free):
        asked: dict[str, dict[int, float]] = {}
        for r, role in enumerate(crowd.roles):
            if (r, n) in where:
                for name, amount in role.first.cls.requests:
                    asked.setdefault(name, {})[where[r, n]] = float(amount)
        for name, total in asked.items():
            scale = np.gcd.reduce([int(amount) for amount in total.values()])
            room = free.get(name, 0) // scale
            program.at_most({column: amount / scale for column, amount in total.items()}, max(room, 0))
            if room < 0:
                program.at_most(dict.fromkeys(total, 1.0), 0)


def _apart(program: Program, crowd: Crowd, where: Where, rule: Apart) -> None:
    for domain in rule.domains:
        if rule.one == rule.other:
            program.at_most(_of(where, (rule.one,), domain), 1)
            continue
        one, other = (_present(program, crowd, where, (r,), domain) for r in (rule.one, rule.other))
        program.at_most({one: 1, other: 1}, 1)


def _present(program: Program, crowd: Crowd, where: Where, roles: Iterable[int], domain: Iterable[int]) -> int:
    """A column that is 1 where any of the roles has a member in the domain."""
    column = program.column(1)
    domain = tuple(domain)
    for r in roles:
        for member in _of(where, (r,), domain):
            program.at_most({member: 1.0, column: -float(len(crowd.roles[r].pods))}, 0)
    return column


def _near(program: Program, crowd: Crowd, where: Where) -> None:
    """Wherever a role with affinity is, whom it means runs, or is placed without that same affinity, or it began."""
    for near in dict.fromkeys((one.mates, one.running, _spelled(one.domains)) for one in crowd.near.values()):
        same = [r for r, one in crowd.near.items() if (one.mates, one.running, _spelled(one.domains)) == near]
        rule = crowd.near[same[0]]
        settled = any(count and any(n in d for d in rule.domains) for n, count in enumerate(rule.running))
        able = [r for r in same if crowd.near[r].own]
        first = {n: program.column(1) for n in range(len(crowd.nodes))} if able and not settled else {}
        for n, column in first.items():
            program.at_least({**_of(where, able, (n,)), column: -1}, 0)
        program.at_most(dict.fromkeys(first.values(), 1.0), 1)
        others = rule.mates - set(same)
        for domains in rule.domains:
            for domain in dict.fromkeys(domains.values()):
                running = sum(rule.running[n] for n in domain)
                if running:
                    continue
                for r in same:
                    size = float(len(crowd.roles[r].pods))
                    for n in domain:
                        if (r, n) in where:
                            help_there = dict.fromkeys(_of(where, others, domain), -size)
                            begun = {first[m]: -size for m in domain if m in first}
                            program.at_most({where[r, n]: 1.0, **help_there, **begun}, 0)


def _spelled(domains: Sequence[Mapping[int, Domain]]) -> tuple[tuple[tuple[int, Domain], ...], ...]:
    return tuple(tuple(sorted(one.items(), key=lambda item: item[0])) for one in domains)


def _even(program: Program, crowd: Crowd, where: Where) -> None:
    """The last member that came into a domain was within the skew, and since then the emptiest has only grown."""
    rules: list[tuple[Even, list[int]]] = []
    for r, several in crowd.even.items():
        for one in several:
            # Equal constraints; of roles that mean themselves and of those that do not.
            known = next((roles for rule, roles in rules if rule == one), None)
            if known is None:
                rules.append((one, [r]))
            else:
                known.append(r)
    for rule, roles in rules:
        most = 1000
        fewest = program.column(most if rule.crowd and rule.enough_domains else 0)
        inside = {value: [n for n in rule.counting if rule.domain[n] == value] for value in rule.crowd}
        if rule.enough_domains:
            for value, running in rule.crowd.items():
                total = dict.fromkeys(_of(where, rule.mates, inside[value]), -1.0)
                program.at_most({**total, fewest: 1.0}, running)
        for value in dict.fromkeys(rule.domain.values()):
            nodes = [n for n, its in rule.domain.items() if its == value]
            here = _present(program, crowd, where, roles, nodes)
            running = rule.crowd.get(value, 0)
            own = _of(where, [r for r in roles if rule.own], inside.get(value, ()))
            # With nobody of these roles here (`here` = 0) the row says nothing.
            slack = running + sum(len(crowd.roles[r].pods) for r in roles) + 1
            program.at_most({**own, fewest: -1.0, here: float(slack)}, rule.skew - running + slack)
            if rule.own and not own:
                program.at_most({fewest: -1.0, here: float(slack)}, rule.skew - running - 1 + slack)
