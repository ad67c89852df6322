"""A flat group on the ledger: the minimum together or nothing, then as many of the rest as fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from muster.engine.assignment import RowWeights, place_best, place_tight
from muster.engine.compact import place_alike
from muster.engine.dive import find
from muster.engine.holds import nominated_nodes
from muster.engine.interplay import place_dependent
from muster.engine.joint import Slice, divisions
from muster.engine.ledger import Assignment
from muster.engine.members import Members
from muster.engine.problem import Problem, most_placeable, problem_of
from muster.engine.search import Found, Outcome
from muster.engine.trial import Trial
from muster.model.records import PodRecord

IMPROVING_SHARE = 8
"""A group that has its minimum, or cannot have it, spends one in so many expansions on placing more."""


@dataclass(frozen=True, slots=True)
class Placed:
    """What is on the ledger for the group now. Without the minimum, the most that was found to fit together."""

    counts: tuple[int, ...]
    """By class, in the order of the members given."""
    enough: bool
    proven: bool
    """Not enough: no placement exists. Enough: always True."""
    work: int = 0

    @property
    def total(self) -> int:
        return sum(self.counts)


def place_group(
    trial: Trial,
    members: Sequence[Members],
    needed: int,
    expansions: int,
    levels: Sequence[str] = (),
    running: Sequence[PodRecord] = (),
) -> Placed:
    """Places the group; what is placed stays on the ledger, the caller rolls back what it does not want.

    It is kept together in few domains of the `levels`, the widest first, and in those of `running` members before
    others, where that leaves nobody out (M16).
    """
    if any(trial.depends(some.cls) for some in members):
        hopeless = trial.ties is not None and trial.ties.most((some.cls, len(some)) for some in members) < needed
        together = place_dependent(trial, members, needed, 1 if hopeless else expansions)
        enough = sum(together.counts) >= needed
        return Placed(together.counts, enough, enough or hopeless or together.proven, together.work)
    start = trial.ledger.checkpoint()
    wanted = sum(len(some) for some in members)
    nominated = to_nominated(trial, members)
    if not any(nominated) and _together(trial, members, wanted, levels, running):
        return Placed(tuple(len(some) for some in members), wanted >= needed, True)
    counts = _by_score(trial, members, nominated)
    if sum(counts) == wanted or len(members) == 1:
        # Alike members: no other choice of nodes has more slots, those that members are nominated to included.
        return Placed(counts, sum(counts) >= needed, True)
    best = _Best(trial, start, members, counts)
    trial.ledger.rollback(start)
    problem = problem_of(trial, members)
    bound = most_placeable(problem)
    if best.total < bound:
        for order, weights in _greedy_orders(trial, members):
            best.offer(_tight(trial, members, order, weights))
            trial.ledger.rollback(start)
            if best.total == bound:
                break
    proven, work = _improve(trial, members, needed, expansions, best, problem, bound)
    best.restore()
    return Placed(best.counts, best.total >= needed, proven or best.total >= needed, work)


def _together(
    trial: Trial, members: Sequence[Members], wanted: int, levels: Sequence[str], running: Sequence[PodRecord] = ()
) -> bool:
    """Places all members close to each other; if that does not work, nothing is placed."""
    if (wanted == 1 and not running) or not levels or any(trial.related(some.cls) for some in members):
        return False
    if len(members) == 1:
        return place_alike(trial, members[0].cls, wanted, levels, running)
    return any(_divided(trial, slices) for slices in divisions(trial, members, levels, running))


def _divided(trial: Trial, slices: Sequence[Slice]) -> bool:
    """Places the members of each slice in its part of this world, all or none."""
    worlds: list[Trial] = []
    for placement, members, levels in slices:
        world = trial.part(placement) if placement.kept else trial.within(placement)
        wanted = sum(len(some) for some in members)
        if (
            not _together(world, members, wanted, levels)
            and sum(_by_score(world, members, [0] * len(members))) < wanted
        ):
            return False
        worlds.append(world)
    for world in worlds:
        trial.adopt(world)
    return True


def to_nominated(trial: Trial, members: Sequence[Members]) -> list[int]:
    """Members with a nominated node go there if they still fit (P25); counts by class."""
    counts = [0] * len(members)
    for i, some in enumerate(members):
        for node in nominated_nodes(trial, some.pods):
            if trial.state(some.cls).slots[node] > 0:
                trial.ledger.place(some.cls, node)
                counts[i] += 1
    return counts


def _by_score(trial: Trial, members: Sequence[Members], counts: list[int]) -> tuple[int, ...]:
    """The scarcest class first, each pod where it scores best; beside the `counts` that are already placed."""
    for i in _scarcest_first(trial, members):
        counts[i] += place_best(trial, members[i].cls, len(members[i]) - counts[i])
    return tuple(counts)


def _tight(trial: Trial, members: Sequence[Members], order: Sequence[int], weights: RowWeights) -> tuple[int, ...]:
    """Classes in this order, each pod where the least is left over."""
    counts = [0] * len(members)
    for i in order:
        counts[i] = place_tight(trial, members[i].cls, len(members[i]), weights)
    return tuple(counts)


def _scarcest_first(trial: Trial, members: Sequence[Members]) -> list[int]:
    """Classes by how few slots they have for each member, then the larger request, then the older member."""
    if len(members) == 1:
        return [0]
    sizes = _sizes(trial, members, _row_weights(trial, members))

    def scarcity(i: int) -> tuple[int, int, int]:
        slots = np.minimum(trial.state(members[i].cls).slots, len(members[i]))
        return (int(slots.sum()) * 100 // len(members[i]), -sizes[i], i)

    return sorted(range(len(members)), key=scarcity)


def _greedy_orders(trial: Trial, members: Sequence[Members]) -> Iterator[tuple[Sequence[int], RowWeights]]:
    """(order of the classes, weights of the rows) for best-fit attempts, the most promising first."""
    weights = _row_weights(trial, members)
    sizes = _sizes(trial, members, weights)
    by_size = sorted(range(len(members)), key=lambda i: (-sizes[i], i))
    yield by_size, weights
    yield _scarcest_first(trial, members), weights
    for row in np.argsort(-weights.weight, kind="stable")[: np.count_nonzero(weights.weight)].tolist():
        asked = [int(trial.ledger.amounts[some.cls, row]) for some in members]
        yield sorted(range(len(members)), key=lambda i: (-asked[i], -sizes[i], i)), weights
    yield range(len(members)), weights


def _row_weights(trial: Trial, members: Sequence[Members]) -> RowWeights:
    """Each row as a share of the largest node, weighted by how much of the free room the group asks for, in percent."""
    demand = np.zeros(len(trial.details), dtype=np.int64)
    for some in members:
        demand += trial.ledger.amounts[some.cls] * len(some)
    free = np.maximum(trial.ledger.capacity - trial.ledger.used, 0)
    share = np.maximum(free.sum(axis=1) // 100, 1)
    return RowWeights(np.maximum(trial.ledger.capacity.max(axis=1, initial=1), 1), np.minimum(demand // share, 200))


def _sizes(trial: Trial, members: Sequence[Members], weights: RowWeights) -> list[int]:
    """How large one pod of each class is, by the weighted rows."""
    return [int(weights.total(trial.ledger.amounts[some.cls][:, None])[0]) for some in members]


def _improve(
    trial: Trial,
    members: Sequence[Members],
    needed: int,
    expansions: int,
    best: _Best,
    problem: Problem,
    bound: int,
) -> tuple[bool, int]:
    """Searches for the minimum, then for more. Returns (the minimum is reached or proven out of reach, expansions)."""
    spent, proven = 0, True
    if best.total < needed <= bound:
        found = find(problem, needed, expansions)
        spent, proven = found.expansions, found.outcome is not Outcome.STOPPED
        if found.outcome is Outcome.FOUND:
            _take(trial, members, problem, found, best)
        elif proven:
            bound = needed - 1
    if best.total < needed:
        bound = min(bound, needed - 1)
    stop = spent + expansions // IMPROVING_SHARE
    while best.total < bound and spent < stop:
        found = find(problem, best.total + 1, stop - spent)
        spent += found.expansions
        if found.outcome is not Outcome.FOUND:
            break
        _take(trial, members, problem, found, best)
    return proven, spent


def _take(trial: Trial, members: Sequence[Members], problem: Problem, found: Found, best: _Best) -> None:
    """Puts a found placement on the ledger, fills up with whoever still fits, and offers it."""
    ledger = trial.ledger
    ledger.rollback(best.start)
    counts = np.zeros(len(members), dtype=np.int64)
    used = [0] * len(problem.nodes)
    for kind, filling in found.fillings:
        node = int(problem.nodes[kind][used[kind]])
        used[kind] += 1
        for i in np.flatnonzero(filling).tolist():
            ledger.place(members[i].cls, node, int(filling[i]))
        counts += filling
    best.offer(_by_score(trial, members, counts.tolist()))


class _Best:
    """The best placement seen: most members, then the older ones."""

    def __init__(self, trial: Trial, start: int, members: Sequence[Members], counts: tuple[int, ...]) -> None:
        self._trial, self.start, self._members = trial, start, members
        self.counts = counts
        self._placements: list[Assignment] = list(trial.ledger.since(start))

    @property
    def total(self) -> int:
        return sum(self.counts)

    def offer(self, counts: tuple[int, ...]) -> None:
        """Keeps what is on the ledger now if it is better."""
        if (-sum(counts), self._ages(counts)) < (-self.total, self._ages(self.counts)):
            self.counts = counts
            self._placements = list(self._trial.ledger.since(self.start))

    def restore(self) -> None:
        """Puts it on the ledger, in place of whatever the group has there."""
        self._trial.ledger.rollback(self.start)
        self._trial.ledger.replay(self._placements)

    def _ages(self, counts: tuple[int, ...]) -> list[int]:
        """Places in the member order of those placed; the first ones of each class are."""
        return sorted(p for some, n in zip(self._members, counts, strict=True) for p in some.places[:n])
