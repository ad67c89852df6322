"""Large gangs that nearly fill their cluster: the generator keeps its word, and the engine places them.

`make test` looks at a few; `make soak` at 300, within the first budget and then with fifty times as much, and prints
the figures.
"""

from collections import Counter
from statistics import median, quantiles
from time import perf_counter

import pytest

from muster.engine.decide import decide
from muster.engine.work import Work
from muster.model.decision import Decision
from muster.plugins import default_profile
from muster.testing import oracle
from muster.testing.tight import KINDS, SLACKS, tight

PROFILE = default_profile()
FIRST = Work()
FIFTYFOLD = Work(50 * FIRST.expansions)
SAMPLE = range(2 * len(KINDS) * len(SLACKS))
MANY = range(300)


def decided(instance, budget) -> Decision:
    return decide(instance.snapshot, [instance.entry], PROFILE, now=0, budget=budget)


def placed(decision) -> bool:
    return bool(decision.plans[0].binds)


@pytest.mark.parametrize("number", SAMPLE)
def test_tight_gangs_are_feasible_by_construction_and_leave_what_they_are_said_to(number):
    instance = tight(number)
    assert len(instance.nodes) <= 60 and 50 <= len(instance.pods) <= 150
    assert instance == tight(number)
    for row in range(3):
        room, asked = (sum(amount[row] for amount in some) for some in (instance.nodes, instance.pods))
        unused = 100 * (room - asked) / room
        assert unused == 0 if instance.slack == 0 else abs(unused - instance.slack) < 3, f"row {row}: {unused} %"


def test_unlike_pods_are_unlike_and_roles_are_eight():
    for number in SAMPLE:
        instance = tight(number)
        classes = len(set(instance.pods))
        assert classes > 0.9 * len(instance.pods) if "unlike" in instance.name else classes <= 8


def test_a_sample_of_tight_gangs_is_placed_within_the_first_budget():
    missed = []
    for number in SAMPLE:
        instance = tight(number)
        decision = decided(instance, FIRST)
        assert not oracle.violations(instance.snapshot, instance.entry, decision.plans[0].binds)
        if not placed(decision):
            assert not decision.diagnoses[0].proven, f"{instance.name} is said to be impossible"
            missed.append(instance.name)
    assert len(missed) <= 1, missed


@pytest.mark.soak
def test_three_hundred_tight_gangs_are_placed(capsys):
    seconds, missed, never = [], [], []
    for number in MANY:
        instance = tight(number)
        snapshot, entry = instance.snapshot, instance.entry
        began = perf_counter()
        decision = decide(snapshot, [entry], PROFILE, now=0, budget=FIRST)
        seconds.append(perf_counter() - began)
        assert placed(decision) or not decision.diagnoses[0].proven, f"{instance.name} is said to be impossible"
        if not placed(decision):
            missed.append(instance.name)
            if not placed(decided(instance, FIFTYFOLD)):
                never.append(instance.name)
    ninety_ninth = quantiles(seconds, n=100)[98]
    with capsys.disabled():
        print(f"\n{len(MANY) - len(missed)} of {len(MANY)} placed at first, {len(never)} not with fifty times the work")
        print(f"decision time: median {1e3 * median(seconds):.0f} ms, 99th percentile {1e3 * ninety_ninth:.0f} ms")
        print(f"missed at first: {', '.join(missed)}; by kind {dict(Counter(name.split('-')[0] for name in missed))}")
    # The goal is 1 in 100 missed at first and none for ever; this keeps what is reached (benchmarks/README.md).
    assert len(never) <= 1, never
    assert len(missed) <= len(MANY) // 40, missed
