"""Random clusters of up to 12 nodes in zones and racks, and an entry of up to 30 pods, the same from the same seed.

An instance is made from a placement that keeps every rule: nodes get the room that it takes, and mostly no more. Then
something may be changed: a unit less here, a pod more there, the room of two nodes exchanged. So some can be placed in
a few ways only, and some in none. Kinds, in turn:

* `flat`: gangs and basic groups of up to thirty pods in up to eight roles;
* `domain`: the same with a topology constraint, often pinned by running members;
* `tree`: hierarchies to depth four, gang or basic and constrained or not at every level;
* `company`: flat groups whose members look at each other and at running pods: affinity, spread, ports;
* `company-domain`: these with a topology constraint;
* `company-tree`: hierarchies of such members.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import NamedTuple

from muster.model.neighbours import LabelRequirement, PodDemands, PodSelector, PodTerm, SpreadConstraint
from muster.model.records import GroupNode, HostPort, NodeRecord, PodClass, PodRecord, QueueEntry
from muster.model.snapshot import Snapshot
from muster.testing import builders, company

ZONE, RACK, HOST = "topology.kubernetes.io/zone", "topology.muster.dev/rack", builders.HOSTNAME
KINDS = ("flat", "domain", "tree", "company", "company-domain", "company-tree")
SPACES = {"default": {"team": "a"}, "other": {"team": "b"}}
MOST_NODES, MOST_PODS, DEEPEST = 12, 30, 4
_PLENTY = 1_000_000
_PORTS = (HostPort("TCP", 80, "0.0.0.0"), HostPort("TCP", 80, "10.0.0.1"))
_APPS = ("a", "b", "c")


@dataclass(frozen=True)
class Mixed:
    """A cluster with running pods, and an entry to be placed in it."""

    name: str
    kind: str
    world: company.World
    entry: QueueEntry
    levels: tuple[str, ...]

    @property
    def snapshot(self) -> Snapshot:
        known = {name for pod in self.entry.pods for name, _ in pod.cls.requests}
        return builders.snapshot(
            self.world.nodes,
            self.world.bound,
            known=known,
            levels=self.levels,
            pending=self.entry.pods,
            spaces=self.world.spaces,
        )


class _Look(NamedTuple):
    """Pods of one role: their class and labels."""

    cls: PodClass
    app: str


@dataclass
class _Draft:
    """What is being made."""

    random: Random
    sociable: bool
    nodes: list[NodeRecord]
    looks: list[_Look]
    size: int
    """Pods still to be made."""
    where: dict[str, str] = field(default_factory=dict)
    """Member -> node in the placement that the instance is made from."""
    there: list[tuple[PodRecord, NodeRecord]] = field(default_factory=list)
    running: list[PodRecord] = field(default_factory=list)
    made: int = 0


def mixed(seed: int, most_nodes: int = MOST_NODES, most_pods: int = MOST_PODS) -> Mixed:
    """Seeds go through all kinds in turn. At most so many nodes, and members that do not run (at least 4)."""
    random = Random(seed)
    kind = KINDS[seed % len(KINDS)]
    nodes = _nodes(random, random.randint(2, most_nodes))
    sociable = kind.startswith("company")
    largest = random.choice((2, 4, 4, 9))
    looks = [_look(random, sociable, largest) for _ in range(random.choice((1, 2, 2, 3, 4, 5, 6, 8)))]
    size = min(random.choice((random.randint(2, 8), random.randint(4, 16), random.randint(8, MOST_PODS))), most_pods)
    draft = _Draft(random, sociable, nodes, looks, size)
    _strangers(draft)
    if kind.endswith("tree"):
        entry = builders.hierarchy(_composite(draft, "root", 1, nodes))
    else:
        entry = _flat(draft, kind.endswith("domain"))
    sized = _sized(draft, entry)
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        _disturb(random, sized)
    levels = random.choice(((), (ZONE, RACK)))
    return Mixed(f"{kind}-{seed}", kind, company.World(sized, draft.running, SPACES), entry, levels)


def _nodes(random: Random, count: int) -> list[NodeRecord]:
    """Nodes without limits in up to three zones of up to three racks; a few without labels, or with odd ones."""
    zones, racks = random.randint(1, 3), random.randint(1, 3)
    shared = random.random() < 0.15
    nodes = []
    for number in range(count):
        zone, rack = f"z{random.randint(1, zones)}", f"r{random.randint(1, racks)}"
        labels = {ZONE: zone, RACK: rack if shared else f"{zone}{rack}", "disk": random.choice(("ssd", "hdd"))}
        for key in (ZONE, RACK):
            if random.random() < 0.04:
                del labels[key]
        taints = [builders.taint("dedicated", "x")] if random.random() < 0.1 else []
        nodes.append(
            builders.node(
                f"n{number:02}",
                cpu=_PLENTY,
                memory=_PLENTY,
                gpus=_PLENTY,
                pods=_PLENTY,
                labels=labels,
                taints=taints,
                unschedulable=random.random() < 0.05,
            )
        )
    return nodes


def _look(random: Random, sociable: bool, largest: int) -> _Look:
    ports = [random.choice(_PORTS)] if sociable and random.random() < 0.15 else []
    return _Look(
        builders.pod_class(
            cpu=random.randint(0, largest),
            memory=random.randint(0, largest),
            gpus=random.choice((0, 0, 1, 2, 3)),
            selector={"disk": "ssd"} if random.random() < 0.15 else {},
            tolerations=[builders.tolerate("dedicated")] if random.random() < 0.2 else [],
            ports=ports,
            demands=_demands(random) if sociable and random.random() < 0.75 else None,
        ),
        random.choice(_APPS),
    )


def _demands(random: Random) -> PodDemands:
    kind = random.choice(("apart", "apart", "near", "spread", "spread", "both"))
    terms = [PodTerm(_selector(random), random.choice((ZONE, RACK, HOST))) for _ in range(3)]
    constraints = {
        (one.topology_key, one.hard): one
        for one in (
            SpreadConstraint(
                _selector(random),
                random.choice((ZONE, RACK, HOST)),
                random.choice((1, 1, 2, 3)),
                random.random() < 0.85,
                random.choice((1, 1, 1, 2, 3)),
                random.random() < 0.7,
                random.random() < 0.3,
            )
            for _ in range(random.choice((1, 1, 2)))
        )
    }
    return PodDemands(
        affinity=tuple(terms[: random.choice((1, 1, 2))]) if kind in ("near", "both") else (),
        anti_affinity=(terms[2]._replace(topology_key=random.choice((HOST, HOST, RACK))),)
        if kind in ("apart", "both")
        else (),
        spread=tuple(constraints.values()) if kind == "spread" else (),
    )


def _selector(random: Random) -> PodSelector:
    apps = random.choice((("a",), ("b",), ("a", "b"), ("a", "b", "c"), ("c",)))
    requirements = (LabelRequirement("app", "In", apps),)
    if random.random() < 0.1:
        requirements = (LabelRequirement("app", "NotIn", apps),)
    anywhere = (LabelRequirement("team", "In", ("b",)),) if random.random() < 0.1 else None
    return PodSelector(requirements, ("default",), anywhere)


def _strangers(draft: _Draft) -> None:
    """Pods of others that run already."""
    random = draft.random
    for number in range(random.choice((0, 0, 1, 2, 3, 5))):
        look = _look(random, draft.sociable, 2)
        space = "other" if random.random() < 0.2 else "default"
        node = random.choice(draft.nodes)
        pod = builders.pod(f"b{number}", look.cls, labels={"app": look.app}, node=node.name, namespace=space)
        draft.running.append(replace(pod, terminating=random.random() < 0.1))
        draft.there.append((draft.running[-1], node))


def _flat(draft: _Draft, constrained: bool) -> QueueEntry:
    random, key = draft.random, None
    around: Sequence[NodeRecord] = draft.nodes
    if constrained:
        key = random.choice((ZONE, ZONE, RACK, RACK, HOST))
        around = _domain(random, draft.nodes, key)
    pods = tuple(_member(draft, "g", around, draft.looks) for _ in range(draft.size))
    bound = _running(draft, "g", around) if random.random() < (0.4 if constrained else 0.15) else ()
    succeeded = random.choice((0, 0, 0, 0, 1))
    every = len(pods) + len(bound) + succeeded
    minimum = random.choice((every, every, every, random.randint(1, every), None))
    group = builders.group("g", minimum, topology_key=key)
    return builders.entry(*pods, group=group, bound=bound, succeeded=succeeded)


def _domain(random: Random, nodes: Sequence[NodeRecord], key: str) -> Sequence[NodeRecord]:
    """The nodes of one domain, or those given if none has the label."""
    values = sorted({node.labels[key] for node in nodes if key in node.labels})
    if not values:
        return nodes
    value = random.choice(values)
    return [node for node in nodes if node.labels.get(key) == value]


def _member(draft: _Draft, group: str, around: Sequence[NodeRecord], looks: Sequence[_Look]) -> PodRecord:
    """A pending pod, and a node around there that lets it in, if there is one."""
    random, look = draft.random, draft.random.choice(looks)
    draft.made += 1
    pod = builders.pod(f"p{draft.made:02}", look.cls, labels={"app": look.app, "index": str(draft.made)}, group=group)
    world = company.World(draft.nodes, (), SPACES)
    nodes = random.sample(list(around), len(around))
    for node in nodes:
        if not company.rejection(world, tuple(draft.there), pod, node).value:
            draft.where[pod.key.name] = node.name
            draft.there.append((pod, node))
            return pod
    draft.where[pod.key.name] = nodes[0].name
    return pod


def _running(draft: _Draft, group: str, around: Sequence[NodeRecord]) -> tuple[PodRecord, ...]:
    """Members that run already, nearly always in the domain that the placement is in."""
    random, found = draft.random, []
    for _ in range(random.randint(1, 2)):
        draft.made += 1
        look = random.choice(draft.looks)
        node = random.choice(around if random.random() < 0.97 else draft.nodes)
        labels = {"app": look.app, "index": str(draft.made)}
        pod = builders.pod(f"r{draft.made:02}", look.cls, labels=labels, node=node.name, group=group)
        found.append(pod)
        draft.running.append(pod)
        draft.there.append((pod, node))
    return tuple(found)


def _composite(draft: _Draft, name: str, depth: int, around: Sequence[NodeRecord]) -> GroupNode:
    random = draft.random
    key = random.choice((None, None, ZONE, RACK))
    inside = _domain(random, around, key) if key is not None else around
    children: list[GroupNode] = []
    for _ in range(random.choice((1, 2, 2, 3, 4))):
        if draft.size <= 0 and children:
            break
        draft.made += 1
        child = f"{name}-{draft.made}" if name != "root" else f"g{draft.made}"
        deeper = depth + 1 < DEEPEST and random.random() < 0.4
        make = _composite if deeper else _leaf
        children.append(make(draft, child, depth + 1, inside))
    minimum = random.choice((None, len(children), len(children), random.randint(1, len(children))))
    record = builders.composite(name, minimum, topology_key=key, parent=None if depth == 1 else "p")
    return GroupNode(record, tuple(children))


def _leaf(draft: _Draft, name: str, depth: int, around: Sequence[NodeRecord]) -> GroupNode:
    random = draft.random
    key = random.choice((None, None, None, ZONE, RACK, HOST))
    inside = _domain(random, around, key) if key is not None else around
    count = min(max(draft.size, 0), random.choice((0, 1, 2, 3, 4, 6, 9)) if depth > 2 else random.randint(1, 10))
    draft.size -= count
    looks = random.sample(draft.looks, min(len(draft.looks), random.choice((1, 1, 1, 2, 3))))
    pods = tuple(_member(draft, name, inside, looks) for _ in range(count))
    bound = _running(draft, name, inside) if random.random() < 0.1 else ()
    every = max(len(pods) + len(bound), 1)
    minimum = random.choice((every, every, every, random.randint(1, every), None))
    return GroupNode(builders.group(name, minimum, parent="p", topology_key=key), (), pods, bound)


Room = dict[str, int]


def _sized(draft: _Draft, entry: QueueEntry) -> list[NodeRecord]:
    """Nodes with the room that running pods and the placement take, and sometimes a little more."""
    random, pods = draft.random, {pod.key.name: pod for pod in entry.pods}
    generous = random.random() < 0.15
    sized = []
    for node in draft.nodes:
        here = [pod.cls for pod in draft.running if pod.node == node.name]
        here += [pods[name].cls for name, at in draft.where.items() if at == node.name and name in pods]
        taken: Room = {}
        for name, amount in (item for cls in here for item in cls.requests):
            taken[name] = taken.get(name, 0) + amount
        more = {
            name: random.randint(0, 3) if generous or random.random() < 0.05 else 0
            for name in ("cpu", "memory", "gpus")
        }
        slots = taken.get("pods", 0) if random.random() < 0.15 else 110
        sized.append(
            replace(
                node,
                allocatable=builders.amounts(
                    pods=max(slots, 1),
                    cpu=taken.get("cpu", 0) + more["cpu"],
                    memory=taken.get("memory", 0) + more["memory"],
                    gpus=taken.get(builders.GPU, 0) + more["gpus"],
                ),
            )
        )
    return sized


def _disturb(random: Random, nodes: list[NodeRecord]) -> None:
    """Takes one unit from a node, or gives one node's room to another: it may still be enough, or not."""
    a, b = random.sample(range(len(nodes)), 2)
    one, other = dict(nodes[a].allocatable), dict(nodes[b].allocatable)
    name = random.choice(("cpu", "memory", builders.GPU))
    moved = min(1, one.get(name, 0))
    one[name] = one.get(name, 0) - moved
    if random.random() < 0.5:
        other[name] = other.get(name, 0) + moved
    for n, room in ((a, one), (b, other)):
        nodes[n] = replace(nodes[n], allocatable=tuple(sorted((key, amount) for key, amount in room.items() if amount)))
