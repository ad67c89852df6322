"""A search that its budget ended is no reason to evict, unless a longer one ends likewise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from muster.engine import work
from muster.engine.decide import decide
from muster.engine.work import DEFAULT_EXPANSIONS, Work
from muster.model.diagnosis import Diagnosis
from muster.model.eviction_words import UNSURE
from muster.model.running import Running
from muster.model.wording import verdict
from muster.plugins import default_profile
from muster.testing import builders

PROFILE = default_profile()
CAPACITY = 100
LITTLE = Work(1)
Packing = tuple[list[int], list[int]]
"""What the victim on each node takes, and what each member of a gang asks for."""


def packing(random: Random) -> Packing:
    """Members cut from what the victims leave free, and in every second case a little larger: then it does not fit."""
    victims, members = [], []
    for _ in range(random.randint(3, 5)):
        victims.append(random.randint(5, 30))
        left = CAPACITY - victims[-1]
        while left > 8:
            members.append(min(left, random.randint(8, 45)))
            left -= members[-1]
    members[0] += random.choice((0, random.randint(1, 6)))
    return victims, members


def fits(free: Sequence[int], members: Sequence[int]) -> bool:
    """By trying every way."""
    order = sorted(members, reverse=True)
    seen: set[tuple[int, tuple[int, ...]]] = set()

    def go(at: int, left: tuple[int, ...]) -> bool:
        if at == len(order):
            return True
        if (at, left) in seen:
            return False
        seen.add((at, left))
        able = [i for i, room in enumerate(left) if room >= order[at]]
        return any(go(at + 1, tuple(sorted((*left[:i], left[i] - order[at], *left[i + 1 :])))) for i in able)

    return go(0, tuple(sorted(free)))


def decided(packing: Packing, budget: Work) -> Diagnosis:
    victims, members = packing
    nodes = [builders.node(f"n{i}", cpu=CAPACITY) for i in range(len(victims))]
    running = tuple(builders.pod(f"v{i}", node=f"n{i}", cpu=cpu, priority=1) for i, cpu in enumerate(victims))
    group = builders.group("g", len(members), priority=100)
    pods = [builders.pod(f"m{i}", group="g", cpu=cpu, priority=100) for i, cpu in enumerate(members)]
    snapshot = replace(builders.snapshot(nodes, running, groups=[group], pending=pods), running=Running(running))
    entry = replace(builders.entry(*pods, group=group), may_preempt=True)
    return decide(snapshot, [entry], PROFILE, now=0, budget=budget).diagnoses[0]


def evicted(diagnosis: Diagnosis) -> set[str]:
    return {victim.pod.name for victim in diagnosis.preemption.victims} if diagnosis.preemption else set()


def room(victims: Sequence[int], gone: set[str]) -> list[int]:
    return [CAPACITY if f"v{i}" in gone else CAPACITY - cpu for i, cpu in enumerate(victims)]


def test_nobody_is_evicted_for_a_gang_that_fits_though_its_first_search_was_cut_short() -> None:
    random, seen = Random(3), set[bool]()
    for _ in range(40):
        victims, members = packing(random)
        gone = evicted(decided((victims, members), LITTLE))
        seen.add(bool(gone))
        assert not (gone and fits(room(victims, set()), members))
        assert not gone or fits(room(victims, gone), members)
    assert seen == {True, False}


def test_a_gang_whose_longer_search_is_cut_short_too_evicts_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "DEFAULT_EXPANSIONS", 1)
    random, unsure = Random(3), 0
    for _ in range(40):
        victims, members = packing(random)
        diagnosis = decided((victims, members), LITTLE)
        gone = evicted(diagnosis)
        assert not gone or fits(room(victims, gone), members)
        assert (UNSURE in verdict(diagnosis)) == (bool(gone) and not diagnosis.proven)
        unsure += UNSURE in verdict(diagnosis)
    assert unsure


def test_a_search_that_had_much_to_spend_is_not_repeated() -> None:
    assert Work().before_evicting(0) == Work(4 * DEFAULT_EXPANSIONS)
    assert Work().before_evicting(2) is None
    assert LITTLE.before_evicting(4) == Work(DEFAULT_EXPANSIONS)
