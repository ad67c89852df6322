"""Groups with device claims against brute force: a placement is found whenever there is one, and it is one."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import pytest

from muster.devices.inventory import Inventory
from muster.engine.decide import decide
from muster.model import wording
from muster.model.devices import (
    Allotment,
    Attribute,
    Choice,
    ClaimShape,
    Constraint,
    DeviceClaim,
    DeviceKey,
    DeviceLack,
    DeviceRecord,
    Devices,
    DeviceUse,
    Draw,
    Failure,
    Grant,
    Offered,
    PoolKey,
    Reach,
    SliceRecord,
)
from muster.model.diagnosis import Reason
from muster.model.keys import Key
from muster.model.records import PodRecord, QueueEntry
from muster.model.snapshot import Snapshot
from muster.model.terms import Requirement, Term
from muster.plugins import default_profile
from muster.testing import builders
from muster.testing.allocations import World, exists

PROFILE = default_profile()
DRIVER = "gpu.example.com"
COLOURS = ("red", "blue")


@dataclass(frozen=True)
class Colour:
    """Stands for the expression that a device is of a colour; "" is any."""

    colour: str
    reads: frozenset[str] | None = frozenset({"colour"})

    def __call__(self, driver: str, device: DeviceRecord) -> bool | Failure:
        return not self.colour or device.attributes[f"{driver}/colour"].values == (self.colour,)


MATCHERS = {colour: Colour(colour) for colour in ("", *COLOURS)}


def device(name: str, colour: str = "red", numa: int = 0) -> DeviceRecord:
    attributes = {f"{DRIVER}/colour": Attribute("string", (colour,)), "x/numa": Attribute("int", (numa,))}
    return DeviceRecord(name, attributes)


def pool(name: str, reach: Reach, *devices: DeviceRecord) -> SliceRecord:
    return SliceRecord(name, PoolKey(DRIVER, name), 1, 1, reach, devices)


def zone(name: str) -> Reach:
    return Reach(terms=(Term((Requirement("zone", "In", (name,)),)),))


def ask(count: int | None = 1, colour: str = "", *, alike: bool = False) -> ClaimShape:
    choice = Choice("gpu", "all", (colour,) if colour else (), count)
    return ClaimShape(((choice,),), (Constraint("x/numa"),) if alike else ())


def claimed(
    nodes: Sequence[object], slices: Sequence[SliceRecord], claims: Mapping[str, DeviceClaim | ClaimShape]
) -> Snapshot:
    """A snapshot with these devices and claims."""
    records = {}
    for name, one in claims.items():
        key = Key("default", name)
        records[key] = DeviceClaim(key, f"uid-{name}", one) if isinstance(one, ClaimShape) else one
    offered = Offered({one.name: one for one in slices}, classes={"all": ("",)}, matchers=MATCHERS)
    known = Devices(1, offered, records)
    return replace(builders.snapshot(nodes), devices=known)  # type: ignore[arg-type]


def using(name: str, *claims: str, group: str | None = None, cpu: int = 1000) -> PodRecord:
    made = builders.pod(name, group=group, cpu=cpu, devices=bool(claims))
    return replace(made, devices=tuple(DeviceUse(claim, claim) for claim in claims))


def gang(*members: PodRecord) -> QueueEntry:
    return builders.entry(*members, group=builders.group("g", len(members)))


def bound(snapshot: Snapshot, *entries: QueueEntry) -> dict[str, str]:
    """Pod -> node, of all that is bound."""
    decision = decide(snapshot, entries, PROFILE, now=0)
    return {bind.pod.name: bind.node for plan in decision.plans for bind in plan.binds}


def reasons(snapshot: Snapshot, entry: QueueEntry) -> set[tuple[Reason, str]]:
    (diagnosis,) = decide(snapshot, [entry], PROFILE, now=0).diagnoses
    return {(one.reason, one.detail) for verdict in diagnosis.pods.values() for one in verdict.rejections}


# -- a few by hand


def test_a_pod_goes_where_its_devices_are() -> None:
    nodes = builders.nodes("n", 3)
    snapshot = claimed(nodes, [pool("a", Reach("n2"), device("g0"), device("g1"))], {"c": ask(2)})
    assert bound(snapshot, builders.entry(using("p", "c"))) == {"p": "n2"}


def test_two_devices_on_each_of_two_nodes_do_not_make_three() -> None:
    slices = [pool(n, Reach(n), device("g0"), device("g1")) for n in ("n1", "n2")]
    snapshot = claimed(builders.nodes("n", 2), slices, {"c": ask(3)})
    entry = builders.entry(using("p", "c"))
    assert bound(snapshot, entry) == {}
    assert reasons(snapshot, entry) == {(Reason.NO_DEVICES, "")}


def lack(snapshot: Snapshot, entry: QueueEntry) -> DeviceLack | None:
    (diagnosis,) = decide(snapshot, [entry], PROFILE, now=0).diagnoses
    return diagnosis.shortfall.devices if diagnosis.shortfall is not None else None


def test_what_is_lacking_is_told_of_the_nearest_node() -> None:
    slices = [
        pool("n1", Reach("n1"), *(device(f"g{i}", numa=i) for i in range(4))),
        pool("n2", Reach("n2"), *(device(f"g{i}", numa=7 * (i < 3)) for i in range(4))),
    ]
    snapshot = claimed(builders.nodes("n", 2), slices, {"c": ask(4, alike=True), "d": ask(5)})
    alike = lack(snapshot, builders.entry(using("p", "c")))
    assert alike == DeviceLack("gpu", "all", 4, 3, attribute="x/numa", value="7", node="n2")
    assert wording.device_lack(alike) == (
        'request "gpu" needs 4 devices of class "all" with the same x/numa; best: n2 has 3, with 7'
    )
    many = lack(snapshot, builders.entry(using("p", "d")))
    assert many == DeviceLack("gpu", "all", 5, 4, node="n1")


def test_room_that_is_lacking_everywhere_is_told_before_devices() -> None:
    snapshot = claimed(builders.nodes("n", 1), [], {"c": ask()})
    (diagnosis,) = decide(snapshot, [builders.entry(using("p", "c", cpu=10**6))], PROFILE, now=0).diagnoses
    assert diagnosis.shortfall is not None
    assert diagnosis.shortfall.resource == "cpu"


def test_devices_of_other_claims_are_taken() -> None:
    taken = DeviceClaim(
        Key("default", "d"), "d", ask(), allotment=Allotment((Grant("gpu", DeviceKey(DRIVER, "a", "g0")),), Reach("n1"))
    )
    snapshot = claimed(builders.nodes("n", 1), [pool("a", Reach("n1"), device("g0"))], {"c": ask(), "d": taken})
    assert bound(snapshot, builders.entry(using("p", "c"))) == {}
    assert bound(snapshot, builders.entry(using("p", "d"))) == {"p": "n1"}


def test_a_claim_that_is_allocated_pins_its_pods() -> None:
    has = DeviceClaim(Key("default", "c"), "c", ask(), allotment=Allotment((), zone("b")))
    nodes = [builders.node("n1", labels={"zone": "a"}), builders.node("n2", labels={"zone": "b"})]
    snapshot = claimed(nodes, [], {"c": has})
    assert bound(snapshot, builders.entry(using("p", "c"))) == {"p": "n2"}
    full = builders.entry(using("q", "c", cpu=10**6))
    assert (Reason.DEVICE_AWAY, "") in reasons(snapshot, full)


def test_a_claim_that_is_missing_is_told() -> None:
    snapshot = claimed(builders.nodes("n", 1), [], {})
    assert reasons(snapshot, builders.entry(using("p", "c"))) == {(Reason.DEVICE_CLAIM, "missing/c")}


def test_a_gang_that_shares_a_claim_is_placed_where_all_of_it_fits() -> None:
    nodes = [builders.node(f"n{i}", cpu=cpu) for i, cpu in enumerate((1000, 2000, 3000, 2000))]
    slices = [pool(n.name, Reach(n.name), device("g0")) for n in nodes]
    snapshot = claimed(nodes, slices, {"c": ask()})
    members = [using(f"p{i}", "c", group="g") for i in range(3)]
    assert bound(snapshot, gang(*members)) == {f"p{i}": "n2" for i in range(3)}


def test_pods_that_share_a_device_of_several_nodes_spread_over_these() -> None:
    nodes = [builders.node(f"n{i}", cpu=1000, labels={"zone": "ab"[i % 2]}) for i in range(4)]
    snapshot = claimed(nodes, [pool("fabric", zone("b"), device("f0"))], {"c": ask()})
    members = [using(f"p{i}", "c", group="g") for i in range(2)]
    assert sorted(bound(snapshot, gang(*members)).values()) == ["n1", "n3"]


def test_devices_for_unlike_members_are_found_together() -> None:
    """The one that takes any device must leave the red one to the other."""
    slices = [pool("a", Reach("n1"), device("g0", "red"), device("g1", "blue"))]
    snapshot = claimed(builders.nodes("n", 1), slices, {"any": ask(), "red": ask(1, "red")})
    members = [using("p0", "any", group="g"), using("p1", "red", group="g")]
    assert bound(snapshot, gang(*members)) == {"p0": "n1", "p1": "n1"}


def test_devices_of_several_nodes_that_draw_on_one_counter_tie_these_together() -> None:
    key = PoolKey(DRIVER, "p")
    devices = tuple(
        replace(device(f"g{i}"), draws=(Draw("memory", "slices", 1),), reach=Reach(f"n{i}")) for i in (1, 2)
    )

    def room(slices: int) -> Snapshot:
        counters = SliceRecord("b", key, 1, 2, counters={("memory", "slices"): slices})
        offered = [SliceRecord("a", key, 1, 2, devices=devices), counters]
        return claimed(builders.nodes("n", 2), offered, {"c0": ask(), "c1": ask()})

    both = gang(using("p0", "c0", group="g"), using("p1", "c1", group="g"))
    assert bound(room(1), both) == {}
    assert sorted(bound(room(2), both).values()) == ["n1", "n2"]


# -- against brute force


def instance(seed: int) -> tuple[Snapshot, QueueEntry]:
    """Up to 4 nodes in 2 zones, up to 9 devices, some for several nodes; a gang of up to 4 with claims of its own and
    shared ones."""
    rng = random.Random(seed)
    wide, shared, unlike = rng.random() < 0.3, rng.random() < 0.3, rng.random() < 0.6
    nodes = [
        builders.node(f"n{i}", cpu=rng.choice((1000, 2000, 3000)), labels={"zone": rng.choice("ab")})
        for i in range(rng.randint(1, 4))
    ]

    def some(n: int) -> list[DeviceRecord]:
        return [device(f"g{i}", rng.choice(COLOURS), rng.randint(0, 1)) for i in range(n)]

    slices = [pool(f"s-{n.name}", Reach(n.name), *some(rng.randint(1, 3))) for n in nodes if rng.random() < 0.7]
    if wide:
        slices.append(pool("fabric", rng.choice((zone("a"), zone("b"), Reach())), *some(rng.randint(1, 2))))
    shapes = [
        ask(rng.choice((1, 1, 2, None)), rng.choice(("", *COLOURS)), alike=rng.random() < 0.3)
        for _ in range(3 if unlike else 1)
    ]
    claims: dict[str, DeviceClaim | ClaimShape] = {"joint": rng.choice(shapes)}
    members = []
    for i in range(rng.randint(1, 4)):
        mine = [f"c{i}"] if not shared or rng.random() < 0.5 else []
        claims[f"c{i}"] = rng.choice(shapes)
        members.append(using(f"p{i}", *mine, *(["joint"] if shared else []), group="g"))
    return claimed(nodes, slices, claims), gang(*members)


def suits(snapshot: Snapshot, entry: QueueEntry, where: Mapping[str, str]) -> bool:
    """Whether nodes have the cpu, and devices can be allocated for all claims of pods that are placed so."""
    cpu: dict[str, int] = {}
    for pod in entry.pods:
        cpu[where[pod.key.name]] = cpu.get(where[pod.key.name], 0) + dict(pod.cls.requests)["cpu"]
    records = {record.name: record for record in snapshot.nodes.records}
    if any(dict(records[node].allocatable)["cpu"] < amount for node, amount in cpu.items()):
        return False
    known = snapshot.devices
    inventory = Inventory(known.offered.slices.values())
    reached: dict[str, set[DeviceKey]] = {}
    for name, record in records.items():
        for one in inventory.devices:
            terms = one.reach.terms
            in_zone = terms is not None and record.labels["zone"] == terms[0].requirements[0].values[0]
            if one.reach.node == name or in_zone or one.reach.everywhere:
                reached.setdefault(name, set()).add(one.key)
    users: dict[Key, list[str]] = {}
    for pod in entry.pods:
        for use in pod.devices:
            users.setdefault(Key("default", use.claim), []).append(where[pod.key.name])
    shapes = [known.claims[key].shape for key in users]
    usable = [set.intersection(*(reached.get(node, set()) for node in some)) for some in users.values()]

    def means(choice: Choice, key: DeviceKey) -> bool:
        found = inventory.device(key)
        assert found is not None
        return all(found.record.attributes[f"{DRIVER}/colour"].values == (one,) for one in choice.selectors)

    world = World({one.key: one.record for one in inventory.devices}, {}, (), means)
    return exists(world, shapes, usable)


def check(seed: int) -> bool:
    snapshot, entry = instance(seed)
    names = [pod.key.name for pod in entry.pods]
    every = (dict(zip(names, some, strict=True)) for some in product(snapshot.nodes.names, repeat=len(names)))
    possible = any(suits(snapshot, entry, where) for where in every)
    where = bound(snapshot, entry)
    assert bool(where) == possible, f"seed {seed}"
    assert not where or (set(where) == set(names) and suits(snapshot, entry, where)), f"seed {seed}: {where}"
    return possible


@pytest.mark.parametrize("part", range(6))
def test_a_gang_gets_its_devices_whenever_it_can(part: int) -> None:
    outcomes = [check(seed) for seed in range(part, 180, 6)]
    assert any(outcomes)
    assert not all(outcomes)


@pytest.mark.soak
def test_a_gang_gets_its_devices_whenever_it_can_at_length() -> None:
    outcomes = [check(seed) for seed in range(1_000, 4_000)]
    print(f"{sum(outcomes)} of {len(outcomes)} can be placed")
    assert any(outcomes)
