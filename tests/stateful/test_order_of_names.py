"""What is placed does not depend on names, nor on the order in which objects arrive (statement 12, M1)."""

from __future__ import annotations

from random import Random
from typing import Any

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND
from muster.sim.cluster import cluster
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest

GATES = FeatureGates.of("GenericWorkload")
Manifest = dict[str, Any]


def scene(seed: int) -> tuple[list[Manifest], list[Manifest], list[Manifest]]:
    """Nodes, pods that already run on them, and a waiting gang of up to two roles; names are `n0`, `f0`, `p0` …"""
    random = Random(seed)
    nodes, fillers = [], []
    for number in range(random.randint(2, 5)):
        cores = random.randint(2, 8)
        nodes.append(node_manifest(f"n{number}", cpu=str(cores), gpus=random.choice((0, 2, 4)), memory="64Gi"))
        taken = random.randint(0, cores // 2)
        if taken:
            fillers.append(pod_manifest(f"f{number}", cpu=str(taken), nodeName=f"n{number}", priority=0))
    roles = [
        (random.randint(1, 4), random.choice((0, 1, 2)), random.randint(1, 4)) for _ in range(random.randint(1, 2))
    ]
    members = [
        pod_manifest(f"p{role}-{rank}", cpu=str(cpu), gpus=gpus, group="g", priority=0)
        for role, (cpu, gpus, count) in enumerate(roles)
        for rank in range(count)
    ]
    minimum = random.randint(max(1, len(members) - 1), len(members))
    return nodes, fillers, [gang_manifest("g", minimum, priority=0), *members]


def renamed(manifests: list[Manifest], random: Random, field: str, names: dict[str, str]) -> list[Manifest]:
    """The same objects with their names dealt out anew; `names` remembers how."""
    old = [manifest["metadata"]["name"] for manifest in manifests]
    names.update(zip(old, random.sample(old, len(old)), strict=True))
    changed = []
    for manifest in manifests:
        meta = {**manifest["metadata"], "name": names[manifest["metadata"]["name"]]}
        spec = dict(manifest["spec"])
        if field in spec:
            spec[field] = names[spec[field]]
        changed.append({**manifest, "metadata": meta, "spec": spec})
    return changed


def bound_members(objects: list[Manifest]) -> int:
    """How many members of the gang are bound once everything is there and the scheduler has been let go."""
    world = cluster(GATES, priority_admission=False)
    world.pause()
    for manifest in objects:
        world.tick(SECOND)
        assert world.call(writes.create(manifest)).ok
    world.resume()
    world.quiesce()
    pods = world.call(writes.list_all("pods")).body["items"]
    return sum("schedulingGroup" in pod["spec"] and bool(pod["spec"].get("nodeName")) for pod in pods)


def test_names_and_arrival_decide_nothing(seed: int) -> None:
    nodes, fillers, gang = scene(seed)
    first = bound_members([*nodes, *fillers, *gang])
    random = Random(seed)
    for _ in range(2):
        names: dict[str, str] = {}
        new_nodes = renamed(nodes, random, "", names)
        new_fillers = renamed(fillers, random, "nodeName", names)
        group, *members = gang
        arriving = [*renamed(members, random, "", {}), group]
        random.shuffle(arriving)
        random.shuffle(new_nodes)
        assert bound_members([*new_nodes, *new_fillers, *arriving]) == first
