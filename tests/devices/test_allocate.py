"""What a claim gets, and in which order it is wished for."""

from __future__ import annotations

from collections.abc import Sequence

from device_worlds import DRIVER, POOL, number, selectors, text

from muster.devices.allocate import Allocation, allocate
from muster.devices.columns import DeviceColumns
from muster.devices.inventory import Inventory
from muster.devices.kinds import Want
from muster.model.devices import (
    Choice,
    ClaimShape,
    Constraint,
    DeviceCapacity,
    DeviceKey,
    DeviceRecord,
    DeviceTaint,
    DeviceToleration,
    Draw,
    Failure,
    Grant,
    Offered,
    Range,
    SliceRecord,
)


def coloured(name: str, colour: str, **more: object) -> DeviceRecord:
    return DeviceRecord(name, {f"{DRIVER}/colour": text(colour), **more.pop("attributes", {})}, **more)  # type: ignore


def claim(*requests: Choice | tuple[Choice, ...], constraints: Sequence[Constraint] = ()) -> ClaimShape:
    return ClaimShape(tuple(r if isinstance(r, tuple) else (r,) for r in requests), tuple(constraints))


def given(
    devices: Sequence[DeviceRecord], *claims: ClaimShape, held: Sequence[str] = (), budget: int = 1_000, slices: int = 1
) -> Allocation:
    records = [SliceRecord("s", POOL, 1, slices, devices=tuple(devices))]
    if slices == 2:
        records.append(SliceRecord("t", POOL, 1, 2, counters={("memory", "slices"): 7}))
    inventory = Inventory(records)
    holdings = inventory.holdings(Grant("x", DeviceKey(*POOL, name)) for name in held)
    wants = [Want(shape) for shape in claims]
    return allocate(inventory, inventory.devices, holdings, wants, selectors(inventory), budget=budget)


def names(allocation: Allocation) -> list[list[str]] | None:
    if allocation.grants is None:
        assert allocation.proven
        return None
    return [[grant.device.device for grant in some] for some in allocation.grants]


RED, BLUE = coloured("r", "red"), coloured("b", "blue")
ANY = Choice("gpu", "all")


def test_devices_are_given_in_the_order_of_the_inventory() -> None:
    devices = [coloured(f"d{i}", colour) for i, colour in enumerate(("red", "blue", "red", "blue"))]
    assert names(given(devices, claim(Choice("gpu", "all", count=3)))) == [["d0", "d1", "d2"]]


def test_a_device_that_somebody_has_is_not_given_again() -> None:
    assert names(given([RED, BLUE], claim(ANY), held=["r"])) == [["b"]]
    assert names(given([RED], claim(ANY), held=["r"])) is None


def test_the_first_choice_that_can_be_met_with_the_rest_is_taken() -> None:
    wish = (Choice("gpu/red", "all", ("red",)), Choice("gpu/blue", "all", ("blue",)))
    alone = given([BLUE, RED], claim(wish))
    assert alone.grants is not None and alone.grants[0][0].request == "gpu/red"
    assert names(given([BLUE, RED], claim(wish, Choice("second", "all", ("red",))))) == [["b", "r"]]


def test_no_claim_takes_what_a_later_one_cannot_do_without() -> None:
    wish = (Choice("gpu/any", "all"), Choice("gpu/blue", "all", ("blue",)))
    assert names(given([RED, BLUE], claim(wish), claim(Choice("gpu", "all", ("red",))))) == [["b"], ["r"]]


def test_a_common_attribute_is_found_by_coming_back_to_earlier_devices() -> None:
    devices = [
        coloured("g0", "red", attributes={"x/numa": number(0)}),
        coloured("g1", "red", attributes={"x/numa": number(1)}),
        coloured("g2", "red", attributes={"x/numa": number(1)}),
        coloured("g3", "red"),
    ]
    pair = Choice("gpu", "all", count=2)
    assert names(given(devices, claim(pair, constraints=[Constraint("x/numa")]))) == [["g1", "g2"]]
    apart = [Constraint("x/numa", distinct=True)]
    assert names(given(devices, claim(pair, constraints=apart))) == [["g0", "g1"]]
    assert names(given(devices, claim(Choice("gpu", "all", count=3), constraints=apart))) is None


def test_lists_have_a_value_in_common_to_all_or_none_to_any_two() -> None:
    devices = [
        coloured(f"d{i}", "red", attributes={"x/links": text(*links)}) for i, links in enumerate(("ab", "bc", "ca"))
    ]
    three = Choice("gpu", "all", count=3)
    assert names(given(devices, claim(three, constraints=[Constraint("x/links")]))) is None
    assert names(given(devices, claim(Choice("gpu", "all", count=2), constraints=[Constraint("x/links")]))) == [
        ["d0", "d1"]
    ]


def test_mode_all_takes_every_device_or_nothing() -> None:
    everything = claim(Choice("gpu", "all", ("red",), count=None))
    devices = [coloured("r0", "red"), BLUE, coloured("r1", "red")]
    assert names(given(devices, everything)) == [["r0", "r1"]]
    assert names(given(devices, everything, held=["r1"])) is None
    assert names(given([BLUE], everything)) is None


def test_mode_all_needs_complete_pools_and_an_answer_for_every_device() -> None:
    inventory = Inventory([SliceRecord("s", POOL, 1, 1, devices=(RED, DeviceRecord("unknown")))])

    class Colour:
        reads = None

        def __call__(self, driver: str, device: DeviceRecord) -> bool | Failure:
            return f"{driver}/colour" in device.attributes or Failure("no such key: colour")

    picky = DeviceColumns(inventory.devices, Offered(classes={"all": ("colour",)}, matchers={"colour": Colour()}))
    everything = claim(Choice("gpu", "all", count=None))
    nothing = inventory.holdings(())
    assert names(allocate(inventory, inventory.devices, nothing, [Want(everything)], picky, budget=9)) is None
    assert names(allocate(inventory, inventory.devices, nothing, [Want(claim(ANY))], picky, budget=9)) == [["r"]]
    one = inventory.devices[:1]
    assert names(allocate(inventory, one, nothing, [Want(everything)], picky, budget=9)) == [["r"]]
    assert names(allocate(inventory, one, nothing, [Want(everything, complete=False)], picky, budget=9)) is None


def test_administrative_access_ignores_users_and_blocks_nobody() -> None:
    watch = Choice("watch", "all", count=None, admin=True)
    both = given([RED, BLUE], claim(watch), claim(Choice("gpu", "all")), held=["r"])
    assert names(both) == [["r", "b"], ["b"]]
    assert both.grants is not None and all(grant.admin for grant in both.grants[0])


def test_a_tainted_device_is_given_to_who_tolerates_the_taint() -> None:
    broken = coloured("r", "red", taints=(DeviceTaint("broken", "yes", "NoSchedule"),))
    noted = coloured("b", "blue", taints=(DeviceTaint("noted", "yes", "None"),))
    assert names(given([broken, noted], claim(ANY))) == [["b"]]
    tolerant = Choice("gpu", "all", tolerations=(DeviceToleration("broken", "Equal", "yes", "NoSchedule"),))
    assert names(given([broken], claim(tolerant))) == [["r"]]
    other = Choice("gpu", "all", tolerations=(DeviceToleration("broken", "Equal", "no", "NoSchedule"),))
    assert names(given([broken], claim(other))) is None


def test_partitions_stay_within_the_counters_that_they_share() -> None:
    whole = coloured("whole", "red", draws=(Draw("memory", "slices", 7),))
    halves = [coloured(f"half{i}", "blue", draws=(Draw("memory", "slices", 3),)) for i in range(3)]
    small = Choice("gpu", "all", ("blue",))
    devices = [whole, *halves]
    assert names(given(devices, claim(small), claim(small), slices=2)) == [["half0"], ["half1"]]
    assert names(given(devices, claim(small), claim(small), claim(small), slices=2)) is None
    assert names(given(devices, claim(small), claim(Choice("gpu", "all", ("red",))), slices=2)) is None
    assert names(given(devices, claim(small), claim(small), held=["half2"], slices=2)) is None


def test_a_shared_device_gives_parts_rounded_up_until_it_is_used_up() -> None:
    shared = coloured(
        "s", "red", shared=True, capacity={f"{DRIVER}/memory": DeviceCapacity(10, default=1, range=Range(2, 8, 2))}
    )
    part = Choice("gpu", "all", capacity=(("memory", 3),))
    found = given([shared], claim(part), claim(part))
    assert found.grants is not None
    assert [grant.consumed for some in found.grants for grant in some] == [((f"{DRIVER}/memory", 4),)] * 2
    assert names(given([shared], claim(part), claim(part), claim(part))) is None
    assert names(given([shared], claim(Choice("gpu", "all", capacity=(("memory", 9),))))) is None
    assert names(given([shared], claim(Choice("gpu", "all", count=10)))) == [["s"] * 10]
    assert names(given([shared], claim(Choice("gpu", "all", count=11)))) is None


def test_a_claim_is_served_from_what_its_own_nodes_can_use() -> None:
    inventory = Inventory([SliceRecord("s", POOL, 1, 1, devices=(RED, BLUE, coloured("c", "green")))])
    keys = [device.key for device in inventory.devices]
    wants = [
        Want(claim(ANY)),
        Want(claim(ANY), frozenset(keys[:1])),
        Want(claim(Choice("gpu", "all", count=None)), frozenset(keys[2:])),
    ]
    found = allocate(inventory, inventory.devices, inventory.holdings(()), wants, selectors(inventory), budget=99)
    assert names(found) == [["b"], ["r"], ["c"]]


def test_a_claim_has_at_most_32_devices() -> None:
    devices = [coloured(f"d{i:02}", "red") for i in range(40)]
    assert names(given(devices, claim(Choice("gpu", "all", count=33)))) is None
    assert names(given(devices, claim(Choice("gpu", "all", count=None)))) is None
    assert given(devices, claim(Choice("gpu", "all", count=32))).grants is not None


def test_a_search_that_ran_out_of_budget_proves_nothing() -> None:
    devices = [coloured(f"d{i}", "red", attributes={"x/numa": number(i)}) for i in range(9)]
    hopeless = claim(Choice("gpu", "all", count=4), Choice("b", "all", ("red",)), constraints=[Constraint("x/numa")])
    assert not given(devices, hopeless, budget=3).proven
    assert given(devices, hopeless, budget=1_000).proven


def test_alike_devices_are_not_tried_one_by_one() -> None:
    devices = [coloured(f"d{i:02}", "red") for i in range(30)]
    many = claim(*(Choice(f"r{i}", "all", count=3) for i in range(10)))
    too_many = claim(*(Choice(f"r{i}", "all", count=3) for i in range(10)), constraints=[Constraint("x/none")])
    assert given(devices, many).work == 30
    assert given(devices, too_many).work <= 2
