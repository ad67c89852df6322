"""Lives of pods and gangs with claims: no device given twice, no gang torn, nothing left behind."""

from __future__ import annotations

import pytest

from muster.sim.allocations import Allocations


def test_what_must_hold_of_claims_does_in_a_random_life(seed: int) -> None:
    assert Allocations(seed).live() == []


def test_such_lives_bind_pods_and_leave_some_out() -> None:
    lives = [Allocations(seed) for seed in range(5)]
    assert not any(life.live() for life in lives)
    assert sum(life.bound for life in lives) > 50
    assert sum(life.failed for life in lives) > 50


def test_after_many_gangs_no_device_is_missing() -> None:
    assert Allocations(1).churn(30) == []


@pytest.mark.soak
def test_after_a_thousand_gangs_no_device_is_missing() -> None:
    assert Allocations(2).churn(1_000) == []
