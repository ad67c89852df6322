"""Random small worlds of devices and claims, from a seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from muster.devices.columns import DeviceColumns
from muster.devices.inventory import Inventory
from muster.model.devices import (
    Attribute,
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
    PoolKey,
    Range,
    SliceRecord,
)
from muster.testing.allocations import World

DRIVER = "gpu.example.com"
POOL = PoolKey(DRIVER, "n1")
COLOURS = ("red", "blue", "green")


def text(*values: str) -> Attribute:
    """An attribute of this string, or of a list of them."""
    return Attribute("string", values, len(values) > 1)


def number(value: int) -> Attribute:
    return Attribute("int", (value,))


@dataclass(frozen=True)
class Colour:
    """Stands for the expression that a device is of a colour."""

    colour: str
    reads: frozenset[str] | None = frozenset({"colour"})

    def __call__(self, driver: str, device: DeviceRecord) -> bool | Failure:
        return device.attributes[f"{driver}/colour"] == text(self.colour)


@dataclass(frozen=True)
class Any:
    reads: frozenset[str] | None = frozenset()

    def __call__(self, driver: str, device: DeviceRecord) -> bool | Failure:
        return True


MATCHERS: Mapping[str, Colour | Any] = {"any": Any(), **{colour: Colour(colour) for colour in COLOURS}}


def selectors(inventory: Inventory) -> DeviceColumns:
    return DeviceColumns(inventory.devices, Offered(classes={"all": ("any",)}, matchers=MATCHERS))


@dataclass(frozen=True)
class Small:
    """One node's devices, who has what, and claims."""

    slices: tuple[SliceRecord, ...]
    held: tuple[Grant, ...]
    claims: tuple[ClaimShape, ...]

    @property
    def inventory(self) -> Inventory:
        return Inventory(self.slices)

    @property
    def world(self) -> World:
        """The same for the oracle."""
        devices = {DeviceKey(*s.pool, d.name): d for s in self.slices for d in s.devices}
        counters = {(*s.pool, *name): amount for s in self.slices for name, amount in s.counters.items()}

        def means(choice: Choice, key: DeviceKey) -> bool:
            mine = devices[key].attributes[f"{DRIVER}/colour"]
            return all(one == "any" or mine == text(one) for one in choice.selectors)

        return World(devices, counters, self.held, means)


def small(seed: int) -> Small:
    """Up to 10 devices, 6 requests in up to 3 claims; constraints, counters, parts, taints, lists, admin access."""
    rng = random.Random(seed)
    features = {name for name in ("draws", "parts", "taints", "lists", "admin", "all", "bonds") if rng.random() < 0.4}
    devices = tuple(_device(rng, f"d{i}", features) for i in range(rng.randint(2, 10)))
    slices = [SliceRecord("s", POOL, 1, 2 if "draws" in features else 1, devices=devices)]
    if "draws" in features:
        counters = {("memory", "m"): rng.randint(2, 8), ("memory", "n"): rng.randint(1, 6)}
        slices.append(SliceRecord("t", POOL, 1, 2, counters=counters))
    held = tuple(
        Grant("x", DeviceKey(*POOL, d.name)) for d in devices if not d.shared and not d.draws and rng.random() < 0.15
    )
    left = rng.randint(1, 5) if rng.random() < 0.7 else 6
    claims: list[ClaimShape] = []
    while left and len(claims) < 3:
        n = rng.randint(1, left)
        left -= n
        claims.append(_claim(rng, n, features))
    return Small(tuple(slices), held, tuple(claims))


def _device(rng: random.Random, name: str, features: set[str]) -> DeviceRecord:
    attributes = {f"{DRIVER}/colour": text(rng.choice(COLOURS[: rng.randint(1, 3)]))}
    if rng.random() < 0.8:
        attributes["x/numa"] = number(rng.randint(0, 2))
    if "lists" in features:
        attributes["x/links"] = text(*rng.sample("abcd", rng.randint(1, 2)))
    draws: tuple[Draw, ...] = ()
    if "draws" in features and rng.random() < 0.6:
        draws = tuple(Draw("memory", counter, rng.randint(1, 3)) for counter in rng.sample("mn", rng.randint(1, 2)))
    shared = "parts" in features and rng.random() < 0.5
    capacity: dict[str, DeviceCapacity] = {}
    if rng.random() < 0.5 or shared:
        size = rng.randint(1, 4)
        capacity[f"{DRIVER}/memory"] = DeviceCapacity(size)
        if shared:
            ways = (
                DeviceCapacity(size),
                DeviceCapacity(size, default=1),
                DeviceCapacity(size, default=1, values=(1, size)),
                DeviceCapacity(size, default=2, range=Range(1, size, 2 if size > 2 else None)),
            )
            capacity[f"{DRIVER}/memory"] = rng.choice(ways)
    taints = ()
    if "taints" in features and rng.random() < 0.3:
        taints = (DeviceTaint("broken", "yes", rng.choice(("NoSchedule", "NoExecute", "None"))),)
    return DeviceRecord(name, attributes, capacity, draws, taints, shared)


def _claim(rng: random.Random, requests: int, features: set[str]) -> ClaimShape:
    found: list[tuple[Choice, ...]] = []
    for r in range(requests):
        if rng.random() < 0.25:
            found.append(tuple(_choice(rng, f"r{r}/c{i}", features) for i in range(rng.randint(2, 3))))
        else:
            found.append((_choice(rng, f"r{r}", features),))
    constraints: list[Constraint] = []
    if "bonds" in features:
        for _ in range(rng.randint(1, 2)):
            some = tuple(f"r{r}" for r in range(requests) if rng.random() < 0.6)
            attribute = rng.choice(("x/numa", "x/links" if "lists" in features else "x/numa", f"{DRIVER}/colour"))
            constraints.append(Constraint(attribute, rng.random() < 0.3, some))
    return ClaimShape(tuple(found), tuple(constraints))


def _choice(rng: random.Random, name: str, features: set[str]) -> Choice:
    selector = (rng.choice(COLOURS),) if rng.random() < 0.35 else ()
    count: int | None = rng.choice((1, 1, 1, 1, 1, 2))
    if "all" in features and rng.random() < 0.3:
        count = None
    admin = "admin" in features and "/" not in name and rng.random() < 0.4
    tolerations = (DeviceToleration("broken", "Exists"),) if rng.random() < 0.4 else ()
    capacity = (("memory", rng.randint(1, 4)),) if rng.random() < 0.3 else ()
    return Choice(name, "all", selector, count, admin, tolerations, capacity)
