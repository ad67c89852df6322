"""Groups whose members open or close nodes to each other: an assignment, and an order in which each may be placed.

First in a few orders, each pod where it scores best; then by a packing that knows nothing of neighbours, which may also
prove that there is not enough room; then by a program that knows what neighbours demand; then depth-first over (class,
kind of node), completely within the budget. Two nodes are of one kind if they have the same room, admit the same
classes, and the domains they are in look alike all the way down; states that differ only in which of alike nodes is
used are looked at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from muster.engine.assignment import best_node
from muster.engine.dive import find
from muster.engine.holds import nominated_nodes
from muster.engine.ledger import Assignment
from muster.engine.members import Members
from muster.engine.problem import Problem, most_placeable, problem_of
from muster.engine.search import Found, Outcome
from muster.engine.symmetry import Symmetry
from muster.engine.trial import Trial
from muster.engine.whole import Part, draw

PACKING_SHARE = 4
"""One in so many expansions goes to packing the members as if they did not look at each other."""
SMALL = 64
"""So few kinds of nodes, or places in a packing, are looked at one by one."""
IMPROVING_SHARE = 8
"""A group that has its minimum spends one in so many expansions on placing more."""


class Together(NamedTuple):
    """What is on the ledger for the group now, by class. Not enough and proven: there is no placement."""

    counts: tuple[int, ...]
    proven: bool
    work: int = 0


def place_dependent(trial: Trial, members: Sequence[Members], needed: int, expansions: int) -> Together:
    """Places the group; without the minimum, the most that was found to fit together."""
    attempt = _Attempt(trial, members, needed, expansions)
    if not attempt.in_orders():
        attempt.packed()
        attempt.drawn()
        attempt.searched()
    trial.ledger.replay(attempt.kept)
    return Together(attempt.best, attempt.proven, attempt.work)


class _Attempt:
    """The best placement so far; between two steps, nothing of it is on the ledger."""

    def __init__(self, trial: Trial, members: Sequence[Members], needed: int, expansions: int) -> None:
        self._trial, self._members, self._needed, self._expansions = trial, members, needed, expansions
        self._start = trial.ledger.checkpoint()
        self._wanted = self._bound = sum(len(some) for some in members)
        self.best: tuple[int, ...] = (0,) * len(members)
        self.kept: list[Assignment] = []
        self.proven, self.work = True, 0

    @property
    def _is_open(self) -> bool:
        """Whether the minimum is neither reached nor known to be out of reach."""
        return sum(self.best) < self._needed <= self._bound

    def _offer(self, counts: tuple[int, ...]) -> None:
        """Keeps what is on the ledger if that is more, and takes it off."""
        ledger = self._trial.ledger
        if sum(counts) > sum(self.best):
            self.best, self.kept = counts, list(ledger.since(self._start))
        ledger.rollback(self._start)

    def in_orders(self) -> bool:
        """One after the other; whether that takes everybody."""
        for order, in_turn in _orders(self._trial, self._members):
            nobody = [0] * len(self._members)
            self._offer(_greedy(self._trial, self._members, order, nobody, in_turn=in_turn))
            if sum(self.best) == self._wanted:
                return True
        return False

    def packed(self) -> None:
        """By packings that know nothing of neighbours."""
        if len(self._members) < 2:
            return
        trial, members, needed = self._trial, self._members, self._needed
        problem = problem_of(trial, members)
        self._bound = most_placeable(problem)
        if not self._is_open:
            return
        share = max(self._expansions // PACKING_SHARE, 1)
        found = find(problem, needed, share)
        self.work += found.expansions
        if found.outcome is Outcome.IMPOSSIBLE:
            self._bound = needed - 1
        self._offer(_in_turn(trial, members, problem, found))
        if self._is_open and len(problem.nodes) <= SMALL:
            limited = find(_limited(trial, members, problem), needed, share)
            self.work += limited.expansions
            for packing, last_first in ((limited, False), (limited, True), (found, True)):
                if self._is_open:
                    self._offer(_in_turn(trial, members, problem, packing, last_first=last_first))

    def drawn(self) -> None:
        """By a program that knows what neighbours demand, but no order."""
        if not self._is_open:
            return
        trial, members = self._trial, self._members
        group = Part(self._needed, members=tuple((some.cls, len(some)) for some in members))
        drawn = draw(trial, group, max(self._expansions // PACKING_SHARE, 1))
        self.work += drawn.spent
        if drawn.outcome is Outcome.IMPOSSIBLE:
            self._bound = self._needed - 1
        elif drawn.outcome is Outcome.FOUND:
            done = [sum(cell.many for cell in drawn.cells if cell.i == i) for i in range(len(members))]
            self._offer(_greedy(trial, members, range(len(members)), done, in_turn=False))

    def searched(self) -> None:
        """By looking at everything, for the minimum and then, for a while, for more."""
        trial, members, needed = self._trial, self._members, self._needed
        while sum(self.best) < self._bound:
            reached = sum(self.best) >= needed
            if not reached and needed > self._bound:
                return
            target = sum(self.best) + 1 if reached else needed
            limit = (self._expansions // IMPROVING_SHARE if reached else self._expansions) - self.work
            if limit <= 0:
                self.proven = reached
                return
            descent = _Descent(trial, members, target, limit)
            outcome = descent.run()
            self.work += descent.spent
            if outcome is not Outcome.FOUND:
                self.proven = reached or outcome is Outcome.IMPOSSIBLE
                return
            self._offer(_greedy(trial, members, range(len(members)), descent.counts, in_turn=False))


def _in_turn(
    trial: Trial, members: Sequence[Members], problem: Problem, found: Found, *, last_first: bool = False
) -> tuple[int, ...]:
    """Makes a packing that knows nothing of neighbours, as far as there is an order; then whoever still fits."""
    left: dict[tuple[int, int], int] = {}
    used = [0] * len(problem.nodes)
    for kind, filling in found.fillings:
        node = int(problem.nodes[kind][used[kind]])
        used[kind] += 1
        left.update(((i, node), int(filling[i])) for i in np.flatnonzero(filling).tolist())
    ties = trial.ties
    assert ties is not None
    eager: dict[int, list[tuple[int, int]]] = {}
    for spot in sorted(left, key=lambda spot: -spot[0] if last_first else spot[0]):
        if ties.open_up([members[spot[0]].cls]):
            eager.setdefault(spot[0], []).append(spot)
    plain = [spot for spot in left if spot[0] not in eager]
    counts = [0] * len(members)

    def placed(spot: tuple[int, int]) -> bool:
        i, node = spot
        if not left[spot] or not trial.fits(members[i].cls, node):
            return False
        trial.ledger.place(members[i].cls, node)
        left[spot] -= 1
        counts[i] += 1
        return True

    # Those whom others can close out go first, class by class, one on each node at a time; then the others.
    small = len(left) <= SMALL
    while True:
        while any(sum([placed(spot) for spot in spots]) for spots in eager.values()):
            pass
        if not (any(placed(spot) for spot in plain) if small else sum([placed(spot) for spot in plain])):
            break
    return _greedy(trial, members, range(len(members)), counts, in_turn=False)


def _limited(trial: Trial, members: Sequence[Members], problem: Problem) -> Problem:
    """The same, with no more of a class on a node than may go there by themselves: a guess, and no bound."""
    ties, amounts, free = trial.ties, problem.amounts, problem.free
    assert ties is not None
    for i, some in enumerate(members):
        if not ties.open_up([some.cls]):
            continue
        alone = []
        for nodes in problem.nodes:
            start, count = trial.ledger.checkpoint(), 0
            while count < len(some) and trial.fits(some.cls, int(nodes[0])):
                trial.ledger.place(some.cls, int(nodes[0]))
                count += 1
            trial.ledger.rollback(start)
            alone.append(count or len(some))
        amounts = np.hstack((amounts, (np.arange(len(members)) == i).astype(np.int64)[:, None]))
        free = np.hstack((free, np.array(alone, dtype=np.int64)[:, None]))
    return replace(problem, amounts=amounts, free=free)


def _orders(trial: Trial, members: Sequence[Members]) -> Iterator[tuple[Sequence[int], bool]]:
    """(classes in order, whether they take turns), the most promising first."""
    every = range(len(members))
    if len(members) == 1:
        yield every, False
        return
    ties = trial.ties
    assert ties is not None

    def scarcity(i: int) -> tuple[int, int]:
        state, size = trial.state(members[i].cls), len(members[i])
        slots = np.minimum(state.slots * ties.passes(members[i].cls), size)
        return int(slots.sum()) * 100 // size, i

    scarcest = sorted(every, key=scarcity)
    free_first = sorted(every, key=lambda i: (ties.open_up([members[i].cls]), scarcity(i)))
    for order in dict.fromkeys((tuple(scarcest), tuple(free_first), tuple(every), tuple(reversed(every)))):
        yield order, False
    yield scarcest, True
    yield every, True


def _greedy(
    trial: Trial, members: Sequence[Members], order: Sequence[int], done: list[int], *, in_turn: bool
) -> tuple[int, ...]:
    """Pod after pod where it scores best, nominated ones where they are nominated to; round after round."""
    counts = list(done)
    if not any(counts):
        for i in order:
            for wish in nominated_nodes(trial, members[i].pods):
                if trial.fits(members[i].cls, wish):
                    trial.ledger.place(members[i].cls, wish)
                    counts[i] += 1
    moved = True
    while moved:
        moved = False
        for i in order:
            while counts[i] < len(members[i]) and (node := best_node(trial, members[i].cls)) is not None:
                trial.ledger.place(members[i].cls, node)
                counts[i] += 1
                moved = True
                if in_turn:
                    break
    return tuple(counts)


@dataclass(slots=True)
class _Frame:
    """A state on the way down: where the ledger was before the step to it, that step, and the steps from it."""

    start: int
    step: tuple[int, int] | None
    key: bytes
    children: list[tuple[int, int]]
    """(member class, node), or node -1: one of the class is left out. The best last."""


class _Descent:
    """Looks for a placement of `target` members. If found it is on the ledger."""

    def __init__(self, trial: Trial, members: Sequence[Members], target: int, limit: int) -> None:
        self._trial, self._members, self._limit = trial, members, limit
        self._target = target
        self._drop = sum(len(some) for some in members) - target
        self._left = [len(some) for some in members]
        self.counts = [0] * len(members)
        self.spent = 0
        ties = trial.ties
        assert ties is not None
        self._ties = ties
        self._in_any_order = not ties.open_up(some.cls for some in members)
        self._symmetry = Symmetry(trial, [some.cls for some in members])
        self._dead: set[bytes] = set()

    def run(self) -> Outcome:
        start = self._trial.ledger.checkpoint()
        stack = [self._frame(start, None)]
        while stack:
            frame = stack[-1]
            if not frame.children:
                self._dead.add(frame.key)
                stack.pop()
                self._undo(frame.start, frame.step)
                continue
            step = frame.children.pop()
            before = self._trial.ledger.checkpoint()
            self._do(step)
            if sum(self.counts) >= self._target:
                return Outcome.FOUND
            if self.spent >= self._limit:
                self._trial.ledger.rollback(start)
                return Outcome.STOPPED
            child = self._frame(before, step)
            if child.key in self._dead or not child.children:
                self._dead.add(child.key)
                self._undo(before, step)
            else:
                stack.append(child)
        return Outcome.IMPOSSIBLE

    def _do(self, step: tuple[int, int]) -> None:
        i, node = step
        self._left[i] -= 1
        if node < 0:
            self._drop -= 1
        else:
            self._trial.ledger.place(self._members[i].cls, node)
            self.counts[i] += 1

    def _undo(self, start: int, step: tuple[int, int] | None) -> None:
        if step is None:
            return
        self._trial.ledger.rollback(start)
        self._left[step[0]] += 1
        if step[1] < 0:
            self._drop += 1
        else:
            self.counts[step[0]] -= 1

    def _frame(self, start: int, step: tuple[int, int] | None) -> _Frame:
        colours = self._symmetry.colours(self._left)
        self.spent += 1 + self._symmetry.cost
        key = np.sort(colours).tobytes() + bytes(str((self._left, self._drop)), "ascii")
        if key in self._dead:
            return _Frame(start, step, key, [])
        return _Frame(start, step, key, self._children(colours))

    def _children(self, colours: np.ndarray) -> list[tuple[int, int]]:
        waiting = [i for i, left in enumerate(self._left) if left]
        slots = [self._trial.state(self._members[i].cls).slots for i in waiting]
        most = [int(np.minimum(column, self._left[i]).sum()) for i, column in zip(waiting, slots, strict=True)]
        lost = sum(max(self._left[i] - number, 0) for i, number in zip(waiting, most, strict=True))
        if lost > self._drop:
            return []
        ways = [
            (i, self._representatives(self._members[i].cls, column, colours))
            for i, column in zip(waiting, slots, strict=True)
        ]
        if self._in_any_order:
            # What closes is closed for good: whoever has the fewest ways is placed, or left out, now.
            i, nodes = min(ways, key=lambda way: (len(way[1]), way[0]))
            return [*([(i, -1)] if self._drop else []), *((i, node) for node in nodes)]
        return [(i, node) for i, nodes in sorted(ways, key=lambda way: -len(way[1])) for node in nodes]

    def _representatives(self, cls: int, slots: np.ndarray, colours: np.ndarray) -> list[int]:
        """One node of each kind that takes a pod of the class now, the best last."""
        nodes = np.flatnonzero((slots > 0) & self._ties.passes(cls))
        if not len(nodes):
            return []
        _, first = np.unique(colours[nodes], return_index=True)
        chosen = nodes[first]
        order: list[int] = chosen[np.argsort(self._trial.scores(cls)[chosen], kind="stable")].tolist()
        return order
