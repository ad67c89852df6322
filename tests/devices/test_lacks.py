"""What is said of a claim that a node cannot serve."""

from __future__ import annotations

from collections.abc import Sequence

from device_worlds import DRIVER, POOL, number, selectors, text

from muster.devices.inventory import Inventory
from muster.devices.kinds import Want
from muster.devices.lacks import lack_of
from muster.model.devices import (
    Choice,
    ClaimShape,
    Constraint,
    DeviceKey,
    DeviceLack,
    DeviceRecord,
    DeviceTaint,
    Failure,
    Grant,
    SliceRecord,
)


def devices(*numas: int, colour: str = "red", taints: tuple[DeviceTaint, ...] = ()) -> list[DeviceRecord]:
    said = [{f"{DRIVER}/colour": text(colour), "x/numa": number(numa)} for numa in numas]
    return [DeviceRecord(f"{colour}{i}", attributes, taints=taints) for i, attributes in enumerate(said)]


def lack(some: Sequence[DeviceRecord], shape: ClaimShape, held: Sequence[str] = ()) -> DeviceLack | None:
    inventory = Inventory([SliceRecord("s", POOL, 1, 1, devices=tuple(some))])
    holdings = inventory.holdings(Grant("x", DeviceKey(*POOL, name)) for name in held)
    return lack_of(inventory.devices, holdings, Want(shape), selectors(inventory))


def claim(*requests: tuple[Choice, ...], constraints: Sequence[Constraint] = ()) -> ClaimShape:
    return ClaimShape(requests, tuple(constraints))


def test_too_few_devices_are_counted_with_those_that_others_have_and_those_that_are_tainted() -> None:
    broken = DeviceTaint("broken", "yes", "NoSchedule")
    some = [*devices(0, 0, 0), DeviceRecord("spare", {f"{DRIVER}/colour": text("red")}, taints=(broken,))]
    found = lack(some, claim((Choice("gpu", "all", ("red",), 4),)), held=["red0"])
    assert found == DeviceLack("gpu", "all", 4, 2, taken=1, tainted=1)


def test_devices_that_must_agree_are_counted_by_the_value_that_most_have() -> None:
    shape = claim((Choice("gpu", "all", count=4),), constraints=[Constraint("x/numa")])
    assert lack(devices(0, 1, 1, 1, 0), shape) == DeviceLack("gpu", "all", 4, 3, attribute="x/numa", value="1")
    assert lack(devices(1, 1, 1, 1, 0), shape) is None


def test_of_a_list_of_choices_the_last_one_speaks() -> None:
    shape = claim((Choice("gpu/red", "all", ("red",), 2), Choice("gpu/blue", "all", ("blue",), 1)))
    assert lack(devices(0), shape) == DeviceLack("gpu/blue", "all", 1, 0)


def test_a_request_that_can_be_met_says_nothing() -> None:
    assert lack(devices(0, 0), claim((Choice("gpu", "all", count=2),))) is None


def test_a_device_that_an_expression_failed_on_is_named() -> None:
    odd = DeviceRecord("odd", {f"{DRIVER}/colour": text("red")})
    inventory = Inventory([SliceRecord("s", POOL, 1, 1, devices=(odd,))])

    class Picky:
        def means(self, choice: Choice, device: object) -> object:
            return Failure("no such key: model")

    found = lack_of(inventory.devices, inventory.holdings(()), Want(claim((Choice("gpu", "all"),))), Picky())  # type: ignore[arg-type]
    assert found == DeviceLack("gpu", "all", 1, 0, failed=f"{DRIVER}/n1/odd", why="no such key: model")
