"""A group or hierarchy whose members look at each other, as one integer program: children, domains and nodes at once.

The program holds what is true of every placement that can be made in some order. If it has no solution, nothing can be
placed. If it has one, an order is looked for; if there is none, for another solution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from muster.engine.demands import Demands, closed
from muster.engine.program import Program
from muster.engine.search import Outcome
from muster.engine.trial import Trial

LARGEST = 200
"""So many columns for members at most; more nodes are taken together where they are alike, or left to the search."""
TRIES = 12
"""So many solutions are looked at."""
FEW = 64
"""With more cells only the quick way to an order is tried."""
STATES = 400
"""So many states on the way to one."""


@dataclass(frozen=True, eq=False)
class Part:
    """One group. `need`: members, or children, that it needs; 0: it has all that it needs, but may have more."""

    need: int
    children: tuple[Part, ...] = ()
    members: tuple[tuple[int, int], ...] = ()
    """(class, how many there are), of a leaf."""
    domains: Sequence[np.ndarray] | None = None
    """The nodes of each domain that it may be in; None: it needs none."""

    def all(self) -> Iterator[Part]:
        """It and everything below, itself first."""
        yield self
        for child in self.children:
            yield from child.all()


class Cell(NamedTuple):
    """`many` members of a leaf, of its `i`-th class, on a node."""

    leaf: Part
    i: int
    node: int
    many: int

    @property
    def cls(self) -> int:
        return self.leaf.members[self.i][0]


class Drawn(NamedTuple):
    """What came of it. If found, the cells are on the ledger."""

    outcome: Outcome
    spent: int
    cells: Sequence[Cell] = ()
    domains: Mapping[Part, int] = MappingProxyType({})
    """The domain of each satisfied group with a constraint."""
    satisfied: frozenset[Part] = frozenset()


def draw(trial: Trial, root: Part, limit: int) -> Drawn:
    """Looks for a placement of the root's need; about `limit` expansions may be spent."""
    plan = _Plan(trial, root)
    if plan.size > LARGEST:
        return _only_a_bound(trial, root, limit)
    if not plan.size:
        return Drawn(Outcome.IMPOSSIBLE, 0)
    plan.write()
    random, spent, doubtful = np.random.default_rng(0), 0, False
    for _ in range(TRIES):
        prices = plan.prices(random) if doubtful else None
        answer = plan.program.solve(limit - spent, prices)
        spent += answer.spent
        if answer.impossible:
            return Drawn(Outcome.IMPOSSIBLE, spent)
        if answer.often is None:
            break
        drawn = plan.read(answer.often, spent)
        ordered = in_some_order(trial, drawn.cells)
        if ordered:
            return drawn
        if ordered is None:
            doubtful = True
        else:
            plan.exclude(answer.often)
        if spent >= limit:
            break
    return Drawn(Outcome.STOPPED, spent)


def _only_a_bound(trial: Trial, root: Part, limit: int) -> Drawn:
    """With alike nodes as one: that may prove that there is no placement, and finds none."""
    plan = _Plan(trial, root, clumped=True)
    if plan.size > LARGEST:
        return Drawn(Outcome.STOPPED, 0)
    plan.write()
    answer = plan.program.solve(limit)
    return Drawn(Outcome.IMPOSSIBLE if answer.impossible else Outcome.STOPPED, answer.spent)


class _Plan:
    """The program of one question. `clumped`: alike nodes of the same domains are one with the room of all."""

    def __init__(self, trial: Trial, root: Part, *, clumped: bool = False) -> None:
        self._trial, self._root = trial, root
        self.program = Program()
        self._leaves = [part for part in root.all() if part.members]
        classes = {cls for leaf in self._leaves for cls, _ in leaf.members}
        self._open = {cls: np.where(closed(trial, cls), 0, trial.state(cls).slots) for cls in classes}
        self._rows = np.flatnonzero(trial.ledger.amounts[sorted(classes)].any(axis=0))
        free = trial.ledger.capacity[self._rows] - trial.ledger.used[self._rows]
        for clump in self._clumps(free) if clumped else ():
            first = int(clump[0])
            free[:, first] = np.maximum(free[:, clump], 0).sum(axis=1)
            for column in self._open.values():
                column[first] = column[clump].sum()
                column[clump[1:]] = 0
        self._room_of = free
        self.size = sum(int(np.count_nonzero(self._open[cls])) for leaf in self._leaves for cls, _ in leaf.members)
        self._cells: list[tuple[Part, int, int, int]] = []
        """(leaf, place of the class in it, node, column)"""
        self._satisfied: dict[Part, int] = {}
        self._domain: dict[Part, range] = {}

    def write(self) -> None:
        for leaf in self._leaves:
            for i, (cls, size) in enumerate(leaf.members):
                slots = np.minimum(self._open[cls], size)
                nodes = np.flatnonzero(slots).tolist()
                columns = self.program.columns(slots[nodes].tolist())
                self._cells += [(leaf, i, node, column) for node, column in zip(nodes, columns, strict=True)]
                if nodes:
                    self.program.at_most(dict.fromkeys(columns, 1), size)
        self._room()
        spots: dict[int, list[tuple[int, int]]] = {}
        for leaf, i, node, column in self._cells:
            spots.setdefault(leaf.members[i][0], []).append((node, column))
        if self._trial.ties is not None:
            Demands(self._trial, self.program, spots).write()
        self._group(self._root)
        self.program.at_least({self._satisfied[self._root]: 1}, 1)
        self.program.at_least({column: 1 for *_, column in self._cells}, 1)

    def _clumps(self, free: np.ndarray) -> Iterator[np.ndarray]:
        """Nodes with the same room that admit the same classes and are in the same domains."""
        trial, ties = self._trial, self._trial.ties
        table = [*free, *self._open.values()]
        for counter, _ in ties.state() if ties is not None else ():
            table += [trial.cut(counter.codes), trial.cut(counter.counted)]
        for part in self._root.all():
            within = np.full(len(trial), -1)
            for d, nodes in enumerate(part.domains or ()):
                within[nodes] = d
            table.append(within)
        _, kind = np.unique(np.array(table, dtype=np.int64), axis=1, return_inverse=True)
        order = np.argsort(kind.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(kind.ravel()))
        return (nodes for nodes in np.split(order, ends[:-1]) if len(nodes) > 1)

    def _room(self) -> None:
        ledger, on = self._trial.ledger, dict[int, list[tuple[int, int]]]()
        for leaf, i, node, column in self._cells:
            on.setdefault(node, []).append((leaf.members[i][0], column))
        for node, members in on.items():
            for at, row in enumerate(self._rows.tolist()):
                total = {column: int(ledger.amounts[cls, row]) for cls, column in members if ledger.amounts[cls, row]}
                if total:
                    self.program.at_most(total, int(self._room_of[at, node]))

    def _group(self, part: Part) -> list[tuple[int, int]]:
        """Writes a group and all below it; (node, column) of all its members."""
        satisfied = self._satisfied[part] = self.program.column()
        cells = [(node, column) for leaf, _, node, column in self._cells if leaf is part]
        for child in part.children:
            cells += self._group(child)
            self.program.at_most({self._satisfied[child]: 1, satisfied: -1}, 0)
        if part.children:
            asked = {self._satisfied[child]: 1 for child in part.children if child.need}
            self.program.at_least({**asked, satisfied: -part.need}, 0)
        else:
            self.program.at_least({**{column: 1 for _, column in cells}, satisfied: -part.need}, 0)
            for _, column in cells:
                self.program.at_most({column: 1, satisfied: -self.program.upper[column]}, 0)
        if part.domains is not None:
            self._in_one_domain(part, part.domains, cells)
        return cells

    def _in_one_domain(self, part: Part, domains: Sequence[np.ndarray], cells: Sequence[tuple[int, int]]) -> None:
        chosen = self._domain[part] = self.program.columns([1] * len(domains))
        satisfied = {self._satisfied[part]: -1}
        self.program.at_most({**dict.fromkeys(chosen, 1), **satisfied}, 0)
        if cells:
            self.program.at_least({**dict.fromkeys(chosen, 1), **satisfied}, 0)
        domain_of = {node: chosen[d] for d, nodes in enumerate(domains) for node in nodes.tolist()}
        for node, column in cells:
            own = {domain_of[node]: -self.program.upper[column]} if node in domain_of else {}
            self.program.at_most({column: 1, **own}, 0)

    # -- solutions

    def prices(self, random: np.random.Generator) -> list[float]:
        """Any, for members only: to come by another solution."""
        prices = np.zeros(len(self.program.upper))
        prices[[column for *_, column in self._cells]] = random.integers(-8, 9, len(self._cells))
        found: list[float] = prices.tolist()
        return found

    def exclude(self, often: np.ndarray) -> None:
        """No solution with just these members on these nodes from now on: somewhere there is one fewer, or one more."""
        program, differ = self.program, []
        for *_, column in self._cells:
            there, most = int(often[column]), program.upper[column]
            if there:
                fewer = program.column()
                program.at_most({column: 1, fewer: most - there + 1}, most)
                differ.append(fewer)
            if there < most:
                more = program.column()
                program.at_least({column: 1, more: -there - 1}, 0)
                differ.append(more)
        program.at_least(dict.fromkeys(differ, 1), 1)

    def read(self, often: np.ndarray, spent: int) -> Drawn:
        cells = [Cell(leaf, i, node, int(often[column])) for leaf, i, node, column in self._cells if often[column]]
        chosen = {p: d for p, columns in self._domain.items() for d, column in enumerate(columns) if often[column]}
        satisfied = frozenset(part for part, column in self._satisfied.items() if often[column])
        return Drawn(Outcome.FOUND, spent, cells, chosen, satisfied)


def in_some_order(trial: Trial, cells: Sequence[Cell]) -> bool | None:
    """Places all of this if there is an order in which each may go where it is to go; else nothing.

    Those whom others can close out, or who want others, go as soon as they can; of the others, one of those that let
    most of these go, in the domains with the fewest pods. `STATES` are looked at; None: it would take more.
    """
    start = trial.ledger.checkpoint()
    if _in_turn(trial, cells):
        return True
    trial.ledger.rollback(start)
    found = _Order(trial, cells).run() if len(cells) <= FEW else None
    if not found:
        trial.ledger.rollback(start)
    return found


def _in_turn(trial: Trial, cells: Sequence[Cell]) -> bool:
    """The quick way: one of each cell at a time, whoever can; the calm ones when nobody else can."""
    left = [cell.many for cell in cells]
    ties = trial.ties
    keen = [at for at, cell in enumerate(cells) if ties is not None and ties.open_up([cell.cls])]
    calm = sorted(set(range(len(cells))).difference(keen))

    def placed(at: int) -> bool:
        cls, node = cells[at].cls, cells[at].node
        if not left[at] or not trial.fits(cls, node):
            return False
        trial.ledger.place(cls, node)
        left[at] -= 1
        return True

    while any(left):
        if any(left[at] for at in keen):
            if not sum([placed(at) for at in keen]) and not any(placed(at) for at in calm):
                return False
        elif not sum([placed(at) for at in calm]):
            return False
    return True


class _Order:
    """Depth-first over what is left of each cell; every state is looked at once."""

    def __init__(self, trial: Trial, cells: Sequence[Cell]) -> None:
        self._trial, self._cells = trial, cells
        self._left = [cell.many for cell in cells]
        ties = trial.ties
        self._eager = [ties is not None and bool(ties.open_up([cell.cls])) for cell in cells]

    def run(self) -> bool | None:
        ledger, left = self._trial.ledger, self._left
        seen: set[tuple[int, ...]] = set()
        stack = [iter(self._steps())]
        taken: list[tuple[int, int]] = []
        while any(left):
            at = next(stack[-1], None)
            if at is None:
                stack.pop()
                if not taken:
                    return None if len(seen) >= STATES else False
                at, before = taken.pop()
                ledger.rollback(before)
                left[at] += 1
                continue
            left[at] -= 1
            if tuple(left) in seen or len(seen) >= STATES:
                left[at] += 1
                continue
            seen.add(tuple(left))
            taken.append((at, ledger.checkpoint()))
            ledger.place(self._cells[at].cls, self._cells[at].node)
            stack.append(iter(self._steps()))
        return True

    def _able(self, eager: bool) -> list[int]:
        fits = self._trial.fits
        return [
            at
            for at, cell in enumerate(self._cells)
            if self._left[at] and self._eager[at] is eager and fits(cell.cls, cell.node)
        ]

    def _steps(self) -> list[int]:
        """Cells of which one can be placed now, the most promising first."""
        return [*sorted(self._able(True), key=self._crowd), *self._calm()]

    def _calm(self) -> list[int]:
        ledger, found = self._trial.ledger, []
        for at in self._able(False):
            before = ledger.checkpoint()
            ledger.place(self._cells[at].cls, self._cells[at].node)
            found.append((-len(self._able(True)), self._crowd(at), at))
            ledger.rollback(before)
        return [at for *_, at in sorted(found)]

    def _crowd(self, at: int) -> int:
        """How many pods are counted in the domains of a cell's node."""
        ties = self._trial.ties
        if ties is None:
            return 0
        node = self._cells[at].node
        return sum(int(counts[self._trial.cut(one.codes)[node]]) for one, counts in ties.state() if one.adds.any())
