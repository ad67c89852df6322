"""In which order a placement can be made, if in any: each member has to pass with the earlier ones in place.

Shares no code with engine or plugins. Alike members on one node take turns as one, so a state is how many of each
(role, node) are there; every state is looked at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from muster.testing.crowd import Crowd, Near, Placement, passes

STATES = 20_000


def in_some_order(crowd: Crowd, wanted: Placement, states: int = STATES) -> bool | None:
    """Whether this placement can be made; None: more states than these would have to be looked at."""
    spots = sorted(wanted)
    left = [wanted[spot] for spot in spots]
    there: Placement = {}
    seen = {tuple(left)}
    stack = [_ready(crowd, there, spots, left)]
    taken: list[int] = []
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
            if taken:
                spot = spots[taken[-1]]
                left[taken.pop()] += 1
                there[spot] -= 1
            continue
        left[step] -= 1
        if tuple(left) in seen:
            left[step] += 1
            continue
        if len(seen) >= states:
            return None
        seen.add(tuple(left))
        there[spots[step]] = there.get(spots[step], 0) + 1
        taken.append(step)
        if not any(left):
            return True
        stack.append(_ready(crowd, dict(there), spots, list(left)))
    return not spots


def _ready(crowd: Crowd, there: Placement, spots: list[tuple[int, int]], left: list[int]) -> Iterator[int]:
    """Who can be placed now, the emptiest domains first; one alone if placing it can close nothing to anybody."""
    able = [i for i, count in enumerate(left) if count and passes(crowd, there, *spots[i])]
    waiting = {spots[i] for i, count in enumerate(left) if count}
    harmless = next((i for i in able if _is_harmless(crowd, there, waiting, spots[i])), None)
    if harmless is not None:
        return iter((harmless,))
    return iter(sorted(able, key=lambda i: (_crowd_at(crowd, there, spots[i][1]), i)))


def _is_harmless(crowd: Crowd, there: Placement, waiting: set[tuple[int, int]], spot: tuple[int, int]) -> bool:
    """Whether no spread has it counted where somebody waits, and no affinity waits for its very first pod."""
    r, n = spot
    for q, m in waiting:
        for even in crowd.even.get(q, ()):
            if r in even.mates and n in even.counting and even.domain[n] == even.domain.get(m):
                return False
        near = crowd.near.get(q)
        if near is not None and near.own and r in near.mates and not _has_begun(near, there):
            return False
    return True


def _has_begun(near: Near, there: Placement) -> bool:
    """Whether somebody is meant already; those on nodes without any of the labels do not count."""
    meant = {n for n, count in enumerate(near.running) if count}
    meant |= {n for (r, n), count in there.items() if count and r in near.mates}
    return any(n in domains for n in meant for domains in near.domains)


def _crowd_at(crowd: Crowd, there: Placement, n: int) -> int:
    """How full the domains of a node are, of those whom some spread counts; the fullest."""
    most = 0
    for even in (one for several in crowd.even.values() for one in several if n in one.domain):
        value = even.domain[n]
        number = even.crowd.get(value, 0)
        number += sum(c for (r, m), c in there.items() if r in even.mates and even.domain.get(m) == value)
        most = max(most, number)
    return most


def most_in_turn(crowd: Crowd, states: int = STATES) -> int | None:
    """The most members that can be placed, trying everything; groups are not looked at. None: too many states."""
    size, best = [len(role.pods) for role in crowd.roles], 0
    seen: set[frozenset[tuple[tuple[int, int], int]]] = {frozenset()}
    waiting: list[Placement] = [{}]
    while waiting:
        there = waiting.pop()
        best = max(best, sum(there.values()))
        for r, role_size in enumerate(size):
            if sum(count for (other, _), count in there.items() if other == r) == role_size:
                continue
            for n in range(len(crowd.nodes)):
                if passes(crowd, there, r, n):
                    after = {**there, (r, n): there.get((r, n), 0) + 1}
                    name = frozenset(after.items())
                    if name not in seen:
                        if len(seen) >= states:
                            return None
                        seen.add(name)
                        waiting.append(after)
    return best
