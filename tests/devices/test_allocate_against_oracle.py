"""Allocation against trying everything: the same worlds, the same answer."""

from __future__ import annotations

import pytest
from device_worlds import Small, selectors, small

from muster.devices.allocate import Allocation, allocate
from muster.devices.kinds import Want
from muster.testing.allocations import exists, is_right

BUDGET = 200_000


def allocated(one: Small) -> Allocation:
    inventory = one.inventory
    holdings = inventory.holdings(one.held)
    wants = [Want(shape) for shape in one.claims]
    return allocate(inventory, inventory.devices, holdings, wants, selectors(inventory), budget=BUDGET)


def check(seed: int) -> bool:
    one = small(seed)
    found = allocated(one)
    assert found.proven, f"seed {seed}: {found.work} states were not enough"
    possible = exists(one.world, one.claims)
    assert (found.grants is not None) == possible, f"seed {seed}"
    assert found.grants is None or is_right(one.world, one.claims, found.grants), f"seed {seed}: {found.grants}"
    return possible


@pytest.mark.parametrize("part", range(8))
def test_devices_are_found_exactly_where_trying_everything_finds_them(part: int) -> None:
    outcomes = [check(seed) for seed in range(part, 400, 8)]
    assert any(outcomes)
    assert not all(outcomes)


@pytest.mark.soak
def test_devices_are_found_exactly_where_trying_everything_finds_them_at_length() -> None:
    outcomes = [check(seed) for seed in range(1_000, 5_000)]
    print(f"{sum(outcomes)} of {len(outcomes)} can be allocated")
    assert any(outcomes)
    assert not all(outcomes)
