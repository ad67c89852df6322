"""Which domain a constrained group goes to: every candidate is looked at, always (M8), and scored by statement 41."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from muster.engine.compact import levels_below
from muster.engine.gang import Placed, place_group
from muster.engine.members import Members
from muster.engine.trial import Trial
from muster.model.diagnosis import Reason, Verdict
from muster.model.records import QueueEntry
from muster.model.topology import Domains, domains_of

SCALE = 10_000
"""Parts of one percent: scores are integers, 100 * SCALE is all of it."""
_BITS = 40
"""Amounts are halved until they are below 2^40, so that a hundred times SCALE of them stays an int64."""
NEAREST = 4
"""Among domains that are proven too small, so many are tried for how many members they hold."""


class Refusal(NamedTuple):
    """Why there is no domain to be tried."""

    verdict: Verdict
    reason: Reason
    names: tuple[str, ...]


class Candidates(NamedTuple):
    """The domains of the group's key, and which of them may be tried."""

    domains: Domains
    among: np.ndarray
    """int64[K]"""


def candidates(trial: Trial, entry: QueueEntry) -> Candidates | Refusal:
    """All domains; with running members only theirs (statements 35-37).

    Members on nodes that do not exist pin nothing while others do. If they are all there is, the domain is not known
    until the node is back or they are gone: any choice could split the group.
    """
    assert entry.group is not None and entry.group.topology_key is not None
    key = entry.group.topology_key
    domains = domains_of(trial.snapshot.nodes, key, trial.placement)
    pinned: dict[str, None] = {}
    for pod in entry.bound:
        record = None if pod.node is None else trial.snapshot.nodes.index.get(pod.node)
        if record is None:
            continue
        value = trial.snapshot.nodes.records[record].labels.get(key)
        if value is None:
            return Refusal(Verdict.ERROR, Reason.OUTSIDE_DOMAINS, (str(pod.key.name), str(pod.node), key))
        pinned[value] = None
    if len(pinned) > 1:
        return Refusal(Verdict.ERROR, Reason.DOMAIN_SPLIT, (*sorted(pinned)[:2], key))
    if entry.bound and not pinned:
        lost = entry.bound[0]
        return Refusal(Verdict.ERROR, Reason.DOMAIN_UNKNOWN, (lost.key.name, str(lost.node), key))
    if not len(domains):
        return Refusal(Verdict.UNSCHEDULABLE, Reason.NO_DOMAINS, (key,))
    among = [domains.place[value] for value in pinned] or range(len(domains))
    return Candidates(domains, np.fromiter(among, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Choice:
    """The best candidate, or where none suffices the one that holds most; its world, with the group placed in it."""

    part: Trial
    placed: Placed
    deficits: tuple[tuple[str, int], ...] = ()
    """By domain, for alike pods that found none: how many slots more it needs."""
    feasible: int = 0
    """In so many candidates the group fits, as far as that was worked out."""
    infeasible: int = 0
    """In so many it does not, by counting or by trying."""


def choose(trial: Trial, members: Sequence[Members], entry: QueueEntry, found: Candidates, expansions: int) -> Choice:
    """Places the group in the domain with the highest score among those that hold its minimum; not adopted yet."""
    survey = Survey(trial, members, entry, found)
    if len(members) == 1 and not trial.depends(members[0].cls):
        return _choose_alike(survey, expansions)
    return _choose_unlike(survey, expansions)


_NOBODY: Mapping[int, Choice] = {}


_Rows = slice | list[int]


class _Measure(NamedTuple):
    """The scored resources as a domain has them; there is one as long as the node columns live."""

    rows: _Rows
    """Of the ledger"""
    shift: np.ndarray
    """int64[R, 1]: amounts are halved so often."""
    there: np.ndarray
    """int64[R, D]: allocatable, shifted, at least 1"""
    weight: np.ndarray
    """int64[R, D]: 0 where a domain has nothing of a resource"""


def _measure(trial: Trial, domains: Domains) -> _Measure:
    weights, cache = trial.profile.placement.resources, trial.snapshot.nodes.cache
    named = [
        (trial.layout.row[name], weight) for name, weight in weights.items() if name in trial.layout.row and weight
    ]
    key = ("measure", domains.key, domains.parent.path if domains.parent else (), *named)
    known = cache.get(key)
    if isinstance(known, _Measure):
        return known
    rows = [row for row, _ in named]
    there = domains.sums(trial.ledger.capacity[rows])
    shift = np.array([max(int(most).bit_length() - _BITS, 0) for most in there.max(axis=1, initial=0)], dtype=np.int64)
    weight = np.where(there > 0, np.array([weight for _, weight in named], dtype=np.int64)[:, None], 0)
    consecutive = rows == list(range(rows[0], rows[-1] + 1)) if rows else False
    made = cache[key] = _Measure(
        slice(rows[0], rows[-1] + 1) if consecutive else rows,
        shift[:, None],
        np.maximum(there >> shift[:, None], 1),
        weight,
    )
    return made


class Survey:
    """What vector sums say of every candidate: how many members it holds at most, and how it would score."""

    def __init__(self, trial: Trial, members: Sequence[Members], entry: QueueEntry, found: Candidates) -> None:
        self.trial, self.members, self.entry = trial, members, entry
        self.domains, self.among = found
        assert entry.group is not None
        self.levels = levels_below(trial.snapshot.nodes.levels, entry.group.topology_key)
        self.wanted = sum(len(some) for some in members)
        self.most = self._most()
        """int64[K]: an upper bound on the members that fit; exact for alike ones."""

    def _most(self) -> np.ndarray:
        trial, among = self.trial, self.among
        if len(self.members) == 1:
            slots_of_domains = self.domains.sums(trial.state(self.members[0].cls).slots)
            alike: np.ndarray = np.minimum(slots_of_domains[among], self.wanted)
            return alike
        slots = [np.minimum(trial.state(some.cls).slots, len(some)) for some in self.members]
        sums = [self.domains.sums(column)[among] for column in slots]
        caps = np.stack([np.minimum(column, len(some)) for column, some in zip(sums, self.members, strict=True)])
        most: np.ndarray = caps.sum(axis=0)
        useful = np.logical_or.reduce([column > 0 for column in slots])
        amounts = trial.ledger.amounts[[some.cls for some in self.members]]
        for row in np.flatnonzero(amounts.any(axis=0)).tolist():
            free = np.maximum(trial.ledger.capacity[row] - trial.ledger.used[row], 0) * useful
            left = self.domains.sums(free)[among]
            fits = np.zeros_like(most)
            for c in np.argsort(amounts[:, row], kind="stable").tolist():
                asked = int(amounts[c, row])
                number = caps[c] if asked == 0 else np.minimum(caps[c], left // asked)
                left = left - number * asked
                fits += number
            most = np.minimum(most, fits)
        return most

    def scores(self, counts: np.ndarray, best: int, placed: Mapping[int, Choice] = _NOBODY) -> np.ndarray:
        """int64[K]: statement 41 with these members placed; `best` is the count that is worth 100.

        Of unlike members the requests of all are added, since it is not known which are left out, except where they are
        `placed`.
        """
        weights = self.trial.profile.placement
        there = self.entry.running
        score = weights.pod_count * ((counts + there) * (100 * SCALE) // max(best + there, 1))
        if weights.allocation:
            score = score + weights.allocation * self._allocation(counts, placed)
        return score

    def _allocation(self, counts: np.ndarray, placed: Mapping[int, Choice]) -> np.ndarray:
        """int64[K]: the share of the domain's resources that is requested once the members are placed."""
        measure = _measure(self.trial, self.domains)
        used, there, weight = self.domains.sums(self.trial.ledger.used[measure.rows]), measure.there, measure.weight
        if len(counts) < len(self.domains):
            used, there, weight = used[:, self.among], there[:, self.among], weight[:, self.among]
        share = ((used + self._asked(measure.rows, counts, placed)) >> measure.shift) * (100 * SCALE) // there
        total: np.ndarray = (share * weight).sum(axis=0) // np.maximum(weight.sum(axis=0), 1)
        return total

    def _asked(self, rows: _Rows, counts: np.ndarray, placed: Mapping[int, Choice]) -> np.ndarray:
        """int64[R, K]"""
        amounts = self.trial.ledger.amounts[[some.cls for some in self.members]][:, rows]
        if len(self.members) == 1:
            every: np.ndarray = amounts.T * counts
            return every
        asked: np.ndarray = np.repeat(([len(some) for some in self.members] @ amounts)[:, None], len(counts), axis=1)
        for k, choice in placed.items():
            asked[:, k] = choice.placed.counts @ amounts
        return asked

    def place(self, k: int, expansions: int) -> Choice:
        """Places the group in candidate `k`, in a world of its own; a kept one if no other candidate is tried."""
        placement = self.domains[int(self.among[k])]
        part = self.trial.part(placement) if len(self.members) == 1 else self.trial.within(placement)
        entry = self.entry
        placed = place_group(part, self.members, entry.needed, expansions, self.levels, entry.bound)
        return Choice(part, placed)


def _choose_alike(survey: Survey, expansions: int) -> Choice:
    """Alike pods: the sums are exact, so that only the best domain has to be tried."""
    needed, most = survey.entry.needed, survey.most
    feasible = np.flatnonzero(most >= needed)
    if not len(feasible):
        choice = survey.place(int(most.argmax()), expansions)
        values = [survey.domains.values[d] for d in survey.among.tolist()]
        deficits = tuple(zip(values, (needed - most).tolist(), strict=True))
        return Choice(choice.part, choice.placed, deficits, infeasible=len(most))
    if len(feasible) == 1:
        best = int(feasible[0])
    else:
        scores = survey.scores(most, int(most.max()))[feasible]
        best = _most_compact(survey, feasible[scores == scores.max()])
    choice = survey.place(best, expansions)
    return replace(choice, feasible=len(feasible), infeasible=len(most) - len(feasible))


def _most_compact(survey: Survey, equals: np.ndarray) -> int:
    """Of candidates with equal scores the one where the group needs the fewest domains of the next level."""
    if len(equals) == 1 or not survey.levels:
        return int(equals[0])
    trial, cls = survey.trial, survey.members[0].cls
    slots = trial.state(cls).slots

    def parts(k: int) -> int:
        placement = survey.domains[int(survey.among[k])]
        inner = domains_of(trial.snapshot.nodes, survey.levels[0], placement)
        sums = np.sort(inner.sums(trial.inside(slots, placement)))[::-1].cumsum()
        return int(np.searchsorted(sums, min(int(survey.most[k]), survey.wanted)))

    first: int = min(equals.tolist(), key=parts)
    return first


def _choose_unlike(survey: Survey, expansions: int) -> Choice:
    """Unlike pods: domains in the order of the best score they could reach, until none could do better."""
    needed, most = survey.entry.needed, survey.most
    promising = np.flatnonzero(most >= needed).tolist()
    if not promising:
        return replace(_nearest(survey, {}, 0), infeasible=len(most))
    tried: dict[int, Choice] = {}
    share, spent = max(expansions // (2 * len(promising)), 1), 0
    while (k := _next(survey, promising, tried)) is not None:
        tried[k] = survey.place(k, share)
        spent += tried[k].placed.work
    if not any(choice.placed.enough for choice in tried.values()):
        doubtful = [k for k in promising if not tried[k].placed.proven]
        for n, k in enumerate(doubtful):
            tried[k] = survey.place(k, max((expansions - spent) // (len(doubtful) - n), 1))
            spent += tried[k].placed.work
            if tried[k].placed.enough:
                break
    enough = {k: choice for k, choice in tried.items() if choice.placed.enough}
    excluded = len(most) - len(promising) + len(tried) - len(enough)
    if enough:
        choice = _with_work(enough[_best(survey, enough)], spent)
        return replace(choice, feasible=len(enough), infeasible=excluded)
    return replace(_nearest(survey, tried, spent), infeasible=excluded)


def _next(survey: Survey, promising: Sequence[int], tried: dict[int, Choice]) -> int | None:
    """The untried candidate that may score best; None if none may beat what was found."""
    untried = [k for k in promising if k not in tried]
    if not untried:
        return None
    enough = {k: choice for k, choice in tried.items() if choice.placed.enough}
    counts = survey.most.copy()
    for k, choice in enough.items():
        counts[k] = choice.placed.total
    most = max(choice.placed.total for choice in enough.values()) if enough else int(counts[untried].max())
    scores = survey.scores(counts, most, enough)
    k = max(untried, key=lambda k: (int(scores[k]), -k))
    return None if enough and int(scores[k]) <= max(int(scores[e]) for e in enough) else k


def _best(survey: Survey, enough: dict[int, Choice]) -> int:
    counts = np.zeros_like(survey.most)
    for k, choice in enough.items():
        counts[k] = choice.placed.total
    scores = survey.scores(counts, int(counts.max()), enough).tolist()
    best: int = max(enough, key=lambda k: (scores[k], -k))
    return best


def _nearest(survey: Survey, tried: dict[int, Choice], spent: int) -> Choice:
    """Where most members fit, of those tried and of the few that may hold as many."""
    proven = all(choice.placed.proven for choice in tried.values())
    best = max(tried, key=lambda k: (tried[k].placed.total, -k), default=None)
    order = sorted((k for k in range(len(survey.among)) if k not in tried), key=lambda k: (-int(survey.most[k]), k))
    for k in order[:NEAREST]:
        if best is not None and int(survey.most[k]) <= tried[best].placed.total:
            break
        tried[k] = survey.place(k, 1)
        if best is None or tried[k].placed.total > tried[best].placed.total:
            best = k
    assert best is not None
    found = tried[best]
    return Choice(found.part, Placed(found.placed.counts, False, proven, spent))


def _with_work(choice: Choice, spent: int) -> Choice:
    return Choice(choice.part, Placed(choice.placed.counts, True, True, spent))
