"""The quick way through a hierarchy: group after group, each with all its members where it scores best.

Where that takes everybody there is nothing better (M3); where it does not, `branch` searches.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from muster.engine.gang import place_group
from muster.engine.goals import Goal
from muster.engine.placement import Candidates, Refusal, Survey, choose
from muster.engine.spots import Spot, spot_since, total
from muster.engine.trial import Trial

TRIED = 8
"""So many domains of a composite group are gone into before the search has to do."""


def attempt(world: Trial, goal: Goal, expansions: int, spots: list[Spot]) -> bool:
    """Satisfies a group in this world, with as many members as come by the way; else nothing is placed.

    What it places is on the world's ledger and at the end of `spots`.
    """
    if not goal.possible:
        return False
    if goal.is_leaf:
        return _leaf(world, goal, expansions, spots)
    if goal.key is None:
        return _children(world, goal, expansions, spots)
    return _in_a_domain(world, goal, expansions, spots)


def _leaf(world: Trial, goal: Goal, expansions: int, spots: list[Spot]) -> bool:
    if not goal.members:
        return goal.done
    checkpoint = world.ledger.checkpoint()
    needed = max(goal.need, 1)
    if goal.key is None:
        placed = place_group(world, goal.members, needed, expansions, goal.levels, goal.node.bound)
    else:
        found = goal.domains(world)
        if isinstance(found, Refusal):
            return goal.done
        assert goal.entry is not None
        choice = choose(world, goal.members, goal.entry, found, expansions)
        placed = choice.placed
        if placed.enough:
            world.adopt(choice.part)
    if placed.enough:
        spots.append(spot_since(world, checkpoint, goal, placed.counts))
        return True
    world.ledger.rollback(checkpoint)
    return goal.done


def _children(world: Trial, goal: Goal, expansions: int, spots: list[Spot]) -> bool:
    checkpoint, before = world.ledger.checkpoint(), len(spots)
    spare = sum(not child.done for child in goal.children) - goal.need
    for child in goal.children:
        if not attempt(world, child, expansions, spots):
            spare -= 1
            if spare < 0:
                world.ledger.rollback(checkpoint)
                del spots[before:]
                return False
    return True


def _in_a_domain(world: Trial, goal: Goal, expansions: int, spots: list[Spot]) -> bool:
    """The domain where all its members go, the one with the highest score first; else the one that takes most."""
    if not goal.wanted:
        return goal.done
    best: tuple[int, Trial, list[Spot]] | None = None
    for part in promising(world, goal):
        mine: list[Spot] = []
        if attempt_inside(part, goal, expansions, mine):
            placed = total(mine)
            if placed == goal.wanted:
                world.adopt(part)
                spots += mine
                return True
            if best is None or placed > best[0]:
                best = (placed, part, mine)
    if best is None:
        return goal.done
    _, part, mine = best
    again = world.part(part.placement) if part.placement is not None else part
    _replay_inside(again, mine)
    world.adopt(again)
    spots += mine
    return True


def attempt_inside(part: Trial, goal: Goal, expansions: int, spots: list[Spot]) -> bool:
    """The same for the children of a composite group whose domain is this world."""
    return _children(part, goal, expansions, spots)


def _replay_inside(part: Trial, spots: list[Spot]) -> None:
    assert part.placement is not None
    for spot in spots:
        for cls, node, count in spot.where:
            part.ledger.place(cls, int(np.searchsorted(part.placement.nodes, node)), count)


def promising(world: Trial, goal: Goal, limit: int = TRIED) -> Iterator[Trial]:
    """The worlds of the domains that may hold a composite group, by statement 41 as if all that fit were placed.

    Its domain is for good. So those come first that have room for the members too that its minimums still await.
    """
    found = goal.domains(world)
    if isinstance(found, Refusal) or not goal.members:
        return
    assert goal.entry is not None
    survey = Survey(world, goal.members, goal.entry, found)
    enough = np.flatnonzero(survey.most >= max(goal.least, 1))
    if not len(enough):
        return
    scores = survey.scores(survey.most, int(survey.most.max()))[enough]
    short = _is_short(world, goal, found)[enough]
    for k in enough[np.lexsort((-scores, short))][:limit].tolist():
        yield world.part(found.domains[int(found.among[k])])


def _is_short(world: Trial, goal: Goal, found: Candidates) -> np.ndarray:
    """bool[K]: which of the domains have no room for all that is pending and awaited, if the awaited are alike."""
    if not goal.awaited:
        return np.zeros(len(found.among), dtype=bool)
    slots = sum(np.minimum(world.state(some.cls).slots, goal.wanted + goal.awaited) for some in goal.members)
    short: np.ndarray = found.domains.sums(np.asarray(slots))[found.among] < goal.wanted + goal.awaited
    return short
