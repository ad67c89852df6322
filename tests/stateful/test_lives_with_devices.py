"""Lives of pods and gangs with claims: no device given twice, no gang torn, nothing left behind."""

from __future__ import annotations

import pytest

from muster.sim.allocations import Allocations

FEW = 10
NUMBERS = [*range(FEW), *(pytest.param(number, marks=pytest.mark.soak) for number in range(FEW, 1_000))]


@pytest.mark.parametrize("number", NUMBERS)
def test_what_must_hold_of_claims_does_in_a_random_life(number: int) -> None:
    life = Allocations(number)
    assert life.live() == []
    assert life.bound + life.failed > FEW


def test_such_lives_bind_pods_and_leave_some_out() -> None:
    lives = [Allocations(number) for number in range(2)]
    assert not any(life.live() for life in lives)
    assert sum(life.bound for life in lives) > 20
    assert sum(life.failed for life in lives) > 20


def test_after_many_gangs_no_device_is_missing() -> None:
    assert Allocations(1).churn(30) == []


@pytest.mark.soak
def test_after_a_thousand_gangs_no_device_is_missing() -> None:
    assert Allocations(2).churn(1_000) == []
