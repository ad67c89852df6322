"""Pools from slices, and who has what."""

from __future__ import annotations

from dataclasses import replace

from muster.devices.inventory import Inventory
from muster.model.devices import (
    DeviceKey,
    DeviceRecord,
    DeviceTaint,
    Draw,
    Grant,
    PoolKey,
    Reach,
    SliceRecord,
    TaintRule,
)

POOL = PoolKey("gpu.example.com", "n1")
ONE = SliceRecord("a", POOL, 1, 1, Reach("n1"), (DeviceRecord("g0"), DeviceRecord("g1")))


def names(inventory: Inventory) -> list[str]:
    return [device.key.device for device in inventory.devices]


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    newer = replace(ONE, name="b", generation=2, devices=(DeviceRecord("new"),))
    assert names(Inventory([newer, ONE])) == names(Inventory([ONE, newer])) == ["new"]


def test_a_pool_with_a_slice_missing_is_not_used_and_says_why() -> None:
    inventory = Inventory([replace(ONE, slices=2)])
    assert names(inventory) == []
    assert inventory.pools[POOL].fault == "it has 1 of 2 slices"
    assert inventory.pools[POOL].reaches == {Reach("n1")}


def test_a_pool_with_a_device_twice_is_not_used() -> None:
    inventory = Inventory([replace(ONE, slices=2), replace(ONE, name="b", slices=2)])
    assert inventory.pools[POOL].fault == 'device "g0" is there twice'


def test_a_pool_whose_devices_draw_on_counters_that_are_not_there_is_not_used() -> None:
    partition = DeviceRecord("part", draws=(Draw("memory", "slices", 1),))
    inventory = Inventory([replace(ONE, devices=(partition,))])
    assert inventory.pools[POOL].fault == 'device "part" draws on "memory/slices", which is not there'


def test_a_device_has_the_reach_of_its_slice_unless_it_has_its_own() -> None:
    own = DeviceRecord("own", reach=Reach("n2"))
    inventory = Inventory([replace(ONE, devices=(DeviceRecord("plain"), own))])
    assert [device.reach for device in inventory.devices] == [Reach("n1"), Reach("n2")]


def test_devices_come_by_pool_then_slice_then_place_and_those_with_conditions_last() -> None:
    later = SliceRecord(
        "a", PoolKey("gpu.example.com", "a0"), 1, 1, devices=(DeviceRecord("w", conditions=("Ready",)),)
    )
    second = replace(ONE, name="b", slices=2, devices=(DeviceRecord("b0"),))
    assert names(Inventory([later, second, replace(ONE, slices=2)])) == ["g0", "g1", "b0", "w"]


def test_a_rule_taints_the_devices_that_it_means_and_no_others() -> None:
    broken = DeviceTaint("broken", "yes", "NoExecute")
    inventory = Inventory([ONE], [TaintRule(broken, device="g1"), TaintRule(broken, driver="nic.example.com")])
    assert [device.taints for device in inventory.devices] == [(), (broken,)]


def test_administrative_access_holds_nothing_and_a_device_draws_once_however_many_share_it() -> None:
    shared = DeviceRecord("s", shared=True, draws=(Draw("memory", "slices", 3),))
    counters = replace(ONE, name="b", slices=2, devices=(), counters={("memory", "slices"): 4})
    inventory = Inventory([replace(ONE, slices=2, devices=(*ONE.devices, shared)), counters])
    grants = [
        Grant("x", DeviceKey(*POOL, "g0")),
        Grant("y", DeviceKey(*POOL, "g1"), admin=True),
        Grant("z", DeviceKey(*POOL, "s"), consumed=(("gpu.example.com/memory", 2),)),
        Grant("z", DeviceKey(*POOL, "s"), consumed=(("gpu.example.com/memory", 1),)),
    ]
    holdings = inventory.holdings(grants)
    assert holdings.taken == {DeviceKey(*POOL, "g0")}
    assert holdings.consumed == {DeviceKey(*POOL, "s"): {"gpu.example.com/memory": 3}}
    assert holdings.drawn == {(POOL, "memory", "slices"): 3}
    assert inventory.holdings(grants[3:], inventory.holdings(grants[:3])) == holdings
