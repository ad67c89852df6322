"""Groups with volumes against brute force: a placement is found whenever there is one, and it is one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.engine.decide import decide
from muster.model.records import GroupNode
from muster.model.snapshot import Snapshot
from muster.model.volumes import ONE_POD, CapacityRecord, ClassRecord, DriverRecord
from muster.plugins import default_profile
from muster.testing import builders
from storing import at, claim, in_zone, key, stored, storing, volume

PROFILE = default_profile()


@st.composite
def instances(draw: st.DrawFn):
    """A snapshot and a gang, all of whose members are needed."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 4)))]
    zones = {name: draw(st.sampled_from("ab")) for name in names}
    limits = {name: draw(st.sampled_from([None, None, 1, 2])) for name in names}
    nodes = [
        replace(
            builders.node(name, cpu=draw(st.sampled_from([1000, 2000, 4000])), labels={"zone": zones[name]}),
            drivers={"csi": limits[name]},
        )
        for name in names
    ]
    makes = draw(st.sampled_from(["", "", "csi", "tracked"]))
    topologies = draw(st.sampled_from([None, in_zone("a")])) if makes else None
    records: list = [
        ClassRecord("late", makes, late=True, topologies=topologies),
        ClassRecord("now", "csi"),
        DriverRecord("tracked", tracks_capacity=True),
    ]
    reach = st.sampled_from([None, in_zone("a"), in_zone("b"), *(at(name) for name in names)])
    for i in range(draw(st.integers(0, 4))):
        records.append(volume(f"v{i}", size=draw(st.integers(1, 3)), affinity=draw(reach)))
    if makes == "tracked":
        for i in range(draw(st.integers(0, 2))):
            topology = draw(st.sampled_from([in_zone("a"), in_zone("b"), *(at(name) for name in names)]))
            room = draw(st.integers(1, 5))
            records.append(CapacityRecord(key(f"s{i}"), "late", topology[0].requirements, room))
    count = draw(st.integers(1, 4))
    claims: dict[str, list[str]] = {}
    for i in range(count):
        mine = []
        for j in range(draw(st.integers(0, 2))):
            kind = draw(st.sampled_from(["late", "late", "late", "bound", "shared", "alone", "joint"]))
            name = f"c{i}{j}" if kind in ("late", "bound") else kind
            if name not in mine:
                mine.append(name)
                if kind == "bound":
                    records.append(claim(name, "now", volume=f"b{i}{j}"))
                    records.append(volume(f"b{i}{j}", "now", affinity=draw(reach), driver="csi", handle=name))
                elif kind == "late":
                    records.append(claim(name, size=draw(st.integers(1, 3))))
        claims[f"p{i}"] = mine
    records += [
        claim("shared", "now", volume="bs", modes=("ReadWriteMany",)),
        volume("bs", "now", driver="csi", handle="shared"),
        claim("alone", "now", volume="ba", modes=(ONE_POD,)),
        volume("ba", "now"),
        claim("joint", size=2),
    ]
    before = draw(st.sampled_from([None, *names]))
    mounts = {key("shared"): {before: 1}} if before else {}
    snapshot = stored(builders.snapshot(nodes), *records, mounts=mounts)
    members = [storing(name, *mine, cpu=1000, group="g") for name, mine in claims.items()]
    return snapshot, builders.entry(*members, group=builders.group("g", count))


def suits(snapshot: Snapshot, where: dict[str, str], members) -> bool:
    """Whether these places are all right, worked out the slow way."""
    known, records = snapshot.volumes, {record.name: record for record in snapshot.nodes.records}
    uses = {pod.key.name: [use.name for use in pod.volumes.claims] for pod in members}

    def reaches(affinity, node) -> bool:
        if affinity is None:
            return True
        return any(all(records[node].labels.get(r.key) in r.values for r in one.requirements) for one in affinity)

    late: dict[str, str] = {}
    users: dict[str, int] = {}
    handles: dict[str, set[tuple[str, str]]] = {name: set() for name in records}
    for handle, nodes in known.attached.items():
        for node in nodes:
            handles[node].add(handle)
    taken = dict.fromkeys(records, 0)
    adds: dict[str, bool] = {}
    for pod, node in where.items():
        taken[node] += 1000
        for name in uses[pod]:
            one = known.claims[key(name)]
            users[name] = users.get(name, 0) + 1
            handle = known.handle_of(key(name))
            if handle is not None and handle not in handles[node]:
                handles[node].add(handle)
                adds[node] = True
            if one.volume:
                if not reaches(known.volumes[one.volume].affinity, node):
                    return False
            elif late.setdefault(name, node) != node:
                return False
    if users.get("alone", 0) > 1:
        return False
    for name, record in records.items():
        used, limit = sum(driver == "csi" for driver, _ in handles[name]), record.drivers["csi"]
        over = limit is not None and used > limit and adds.get(name)
        if over or taken[name] > dict(record.allocatable)["cpu"]:
            return False
    return served(snapshot, sorted(late.items()), reaches)


def served(snapshot: Snapshot, late: list[tuple[str, str]], reaches) -> bool:
    """Whether there is a volume for each late claim on its node: every way of giving them is tried."""
    known = snapshot.volumes
    found, stores = known.classes["late"], tuple(known.capacities.values())
    free = [v for v in known.volumes.values() if v.class_name == "late"]
    tracked = found.provisioner == "tracked"

    def best(node: str, size: int) -> CapacityRecord | None:
        some = [s for s in stores if s.capacity >= size and reaches((builders.term(*s.topology),), node)]
        return max(some, key=lambda s: s.capacity, default=None)

    def go(i: int, given: frozenset[str], room: dict) -> bool:
        if i == len(late):
            return True
        name, node = late[i]
        size = known.claims[key(name)].size
        for v in free:
            if (
                v.name not in given
                and v.size >= size
                and reaches(v.affinity, node)
                and go(i + 1, given | {v.name}, room)
            ):
                return True
        if not found.provisioner or not reaches(found.topologies, node):
            return False
        if not tracked:
            return go(i + 1, given, room)
        store = best(node, size)
        if store is None or room[store.key] < size:
            return False
        return go(i + 1, given, {**room, store.key: room[store.key] - size})

    return go(0, frozenset(), {s.key: s.capacity for s in stores})


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(instances())
def test_a_gang_with_volumes_is_placed_whenever_it_can_be(instance):
    snapshot, entry = instance
    compare(snapshot, entry, lambda where: True)


def together(snapshot: Snapshot, where: dict[str, str], pods: Iterable[str]) -> bool:
    """Whether these pods are all in one zone."""
    zones = {record.name: record.labels["zone"] for record in snapshot.nodes.records}
    return len({zones[where[pod]] for pod in pods}) <= 1


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(instances())
def test_a_gang_with_volumes_is_placed_in_one_zone_whenever_it_can_be(instance):
    snapshot, entry = instance
    entry = replace(entry, group=replace(entry.group, topology_key="zone"))
    compare(snapshot, entry, lambda where: together(snapshot, where, where))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(instances(), st.booleans(), st.integers(0, 3))
def test_a_hierarchy_with_volumes_is_placed_whenever_it_can_be(instance, constrained, first):
    snapshot, entry = instance
    parts = [some for some in (entry.pods[:first], entry.pods[first:]) if some]
    leaves = []
    for i, some in enumerate(parts):
        group = builders.group(f"g{i}", len(some), parent="root", topology_key="zone" if constrained else None)
        leaves.append(GroupNode(group, pending=tuple(replace(pod, group=f"g{i}") for pod in some)))
    tree = GroupNode(builders.composite("root", len(leaves)), tuple(leaves))
    names = [[pod.key.name for pod in some] for some in parts]
    compare(
        snapshot,
        builders.hierarchy(tree),
        lambda where: not constrained or all(together(snapshot, where, some) for some in names),
    )


def compare(snapshot, entry, also) -> None:
    (plan,), (diagnosis,) = (decided := decide(snapshot, [entry], PROFILE, now=0)).plans, decided.diagnoses
    names, pods = snapshot.nodes.names, [pod.key.name for pod in entry.pods]
    every = (dict(zip(pods, where, strict=True)) for where in product(names, repeat=len(pods)))
    possible = any(also(where) and suits(snapshot, where, entry.pods) for where in every)
    if plan.binds:
        where = {bind.pod.name: bind.node for bind in plan.binds}
        assert len(where) == len(pods) and also(where) and suits(snapshot, where, entry.pods)
    assert bool(plan.binds) == possible, diagnosis


def test_a_thousand_members_with_a_claim_each_are_one_class():
    names = [f"n{i:02}" for i in range(50)]
    records = [ClassRecord("late", "", late=True)]
    records += [volume(f"v{i:04}", size=10, affinity=at(names[i % 50])) for i in range(1000)]
    records += [claim(f"c{i:04}", size=5) for i in range(1000)]
    snapshot = stored(builders.snapshot([builders.node(name) for name in names]), *records)
    members = [storing(f"p{i:04}", f"c{i:04}", cpu=1000, group="g") for i in range(1000)]
    (plan,) = decide(snapshot, [builders.entry(*members, group=builders.group("g", 1000))], PROFILE, now=0).plans
    assert len(plan.binds) == 1000
    assert {sum(bind.node == name for bind in plan.binds) for name in names} == {20}


def test_stores_that_are_too_small_together_are_a_proof():
    names = [f"{zone}{i:02}" for zone in "ab" for i in range(16)]
    nodes = [builders.node(name, cpu=8000, labels={"zone": name[0]}) for name in names]
    records = [ClassRecord("late", "tracked", late=True), DriverRecord("tracked", tracks_capacity=True)]
    records += [CapacityRecord(key(f"s{z}"), "late", in_zone(z)[0].requirements, 53) for z in "ab"]
    records += [claim(f"c{i:02}", size=3 + i % 3) for i in range(28)]
    snapshot = stored(builders.snapshot(nodes), *records)
    members = [storing(f"p{i:02}", f"c{i:02}", cpu=1000 + i % 2, group="g") for i in range(28)]
    decided = decide(snapshot, [builders.entry(*members, group=builders.group("g", 28))], PROFILE, now=0)
    assert not decided.plans[0].binds
    assert decided.diagnoses[0].proven
