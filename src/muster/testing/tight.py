"""Large gangs that fill a cluster almost to the last bit: feasible by construction, the same from the same seed.

Nodes are cut into pods, and are a little larger than what they are cut into: the slack. `tight` makes 150 pods of eight
roles for 60 nodes in ten racks, in these ways:

* `roles`: nearly equal nodes, cut by three layouts;
* `shapes`: two shapes of nodes, cut by layouts of their own;
* `lived-in`: roles thrown onto nodes of which other pods leave just that room, so that no two nodes are alike;
* `zone`: the same, for a gang that must be in one zone, which is the whole cluster;
* `tree`: the same for a hierarchy in that zone, of one gang for each role;
* `racks`: the same for a hierarchy of ten gangs of 15 pods, each of which must be in one rack.

`unlike` makes 60 to 150 pods, hardly two of them alike, for 10 to 60 nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from muster.model.records import GroupNode, PodRecord, QueueEntry
from muster.model.snapshot import Snapshot
from muster.testing import builders

SLACKS = (0, 2, 5, 10)
"""Percent of cpu, memory and accelerators that the gang leaves unused."""
NODES, RACKS, PODS, ROLES = 60, 10, 150, 8
ZONE, RACK = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"
Amount = tuple[int, int, int]
"""Cores, GiB, accelerators."""
_SHAPES: tuple[Amount, ...] = ((64, 512, 8), (96, 1024, 8), (32, 256, 4), (128, 512, 16))


@dataclass(frozen=True)
class Tight:
    """A gang that needs all of its pods, and a cluster that has room for them."""

    name: str
    slack: int
    nodes: tuple[Amount, ...]
    """Rack by rack, each of equally many."""
    pods: tuple[Amount, ...]
    gangs: tuple[tuple[int, ...], ...] = ()
    """Of a hierarchy: the pods of each gang."""
    within: str | None = None
    """The key of the domain that holds it all."""
    each_within: str | None = None
    """The key of the domain that holds each gang of a hierarchy."""

    @property
    def snapshot(self) -> Snapshot:
        return builders.snapshot(
            (
                builders.node(
                    f"n{number}",
                    cpu=cpu * 1000,
                    memory=memory * builders.GIB,
                    gpus=gpus,
                    labels={ZONE: "z", RACK: f"r{number * RACKS // len(self.nodes)}"},
                )
                for number, (cpu, memory, gpus) in enumerate(self.nodes)
            ),
            levels=(ZONE, RACK),
        )

    @property
    def entry(self) -> QueueEntry:
        if not self.gangs:
            members = [self._pod(rank, "g") for rank in range(len(self.pods))]
            return builders.entry(*members, group=builders.group("g", len(members), topology_key=self.within))
        leaves = (
            GroupNode(
                builders.group(name := f"g{number}", len(ranks), parent="c", topology_key=self.each_within),
                pending=tuple(self._pod(rank, name) for rank in ranks),
            )
            for number, ranks in enumerate(self.gangs)
        )
        root = builders.composite("c", len(self.gangs), topology_key=self.within)
        return builders.hierarchy(GroupNode(root, children=tuple(leaves)))

    def _pod(self, rank: int, group: str) -> PodRecord:
        cpu, memory, gpus = self.pods[rank]
        return builders.pod(f"p{rank}", group=group, cpu=cpu * 1000, memory=memory * builders.GIB, gpus=gpus)


def tight(seed: int) -> Tight:
    """150 pods of eight roles that fill 60 nodes in ten racks. Seeds go through all kinds and slacks in turn."""
    random = Random(seed)
    kind = tuple(KINDS)[seed % len(KINDS)]
    slack = SLACKS[seed // len(KINDS) % len(SLACKS)]
    cuts = KINDS[kind](random, slack)
    homes = [(pod, number * RACKS // NODES) for number, (_, cut) in enumerate(cuts) for pod in cut]
    random.shuffle(homes)
    pods = tuple(pod for pod, _ in homes)
    name, nodes = f"{kind}-{slack}%-{seed}", tuple(node for node, _ in cuts)
    if kind == "tree":
        roles = dict.fromkeys(pods)
        gangs = tuple(tuple(rank for rank, pod in enumerate(pods) if pod == role) for role in roles)
        return Tight(name, slack, nodes, pods, gangs, within=ZONE)
    if kind == "racks":
        gangs = tuple(tuple(rank for rank, (_, home) in enumerate(homes) if home == rack) for rack in range(RACKS))
        return Tight(name, slack, nodes, pods, tuple(random.sample(gangs, RACKS)), within=ZONE, each_within=RACK)
    return Tight(name, slack, nodes, pods, within=ZONE if kind == "zone" else None)


def unlike(seed: int) -> Tight:
    """60 to 150 pods, hardly two of them alike, on 10 to 60 nodes. Seeds go through all slacks in turn."""
    random = Random(seed)
    slack = SLACKS[seed % len(SLACKS)]
    pods = random.randint(60, 150)
    nodes = min(max(pods * 10 // random.randint(25, 50), 10), 60)
    shapes = random.sample(_SHAPES, random.randint(1, 2))
    parts = [pods // nodes + (number < pods % nodes) for number in range(nodes)]
    chosen = [random.choice(shapes) for _ in range(nodes)]
    cuts = [_cut(random, _less(random, shape, slack), part) for shape, part in zip(chosen, parts, strict=True)]
    wanted = [pod for cut in cuts for pod in cut]
    random.shuffle(wanted)
    return Tight(f"unlike-{slack}%-{seed}", slack, tuple(chosen), tuple(wanted))


Cut = tuple[Amount, list[Amount]]
"""What a node has, and the pods that it was cut into."""


def _by_layouts(random: Random, slack: int, shapes: Sequence[Amount]) -> list[Cut]:
    """Every node is cut by one of three layouts, of which each has its shape; the slack comes on top."""
    sizes = random.choice(((2, 3, 3), (1, 3, 4), (2, 2, 4)))
    layouts = [(shape, _cut(random, shape, size)) for shape, size in zip(shapes, sizes, strict=True)]
    often = [(a, b, NODES - a - b) for a in range(1, NODES) for b in range(1, NODES - a)]
    often = [some for some in often if sum(n * size for n, size in zip(some, sizes, strict=True)) == PODS]
    used = [layout for n, layout in zip(random.choice(often), layouts, strict=True) for _ in range(n)]
    random.shuffle(used)
    return [(_more(random, shape, slack), list(layout)) for shape, layout in used]


def _roles(random: Random, slack: int) -> list[Cut]:
    return _by_layouts(random, slack, [random.choice(_SHAPES)] * 3)


def _shapes(random: Random, slack: int) -> list[Cut]:
    one, other = random.sample(_SHAPES, 2)
    return _by_layouts(random, slack, random.sample((one, one, other), 3))


def _lived_in(random: Random, slack: int) -> list[Cut]:
    """Any of eight roles on any node; in a rack as many as in any other."""
    roles = [(random.randint(1, 24), random.randint(4, 160), random.choice((0, 0, 1, 1, 2, 4))) for _ in range(ROLES)]
    where: list[list[Amount]] = [[random.choice(roles)] for _ in range(NODES)]
    a_rack = NODES // RACKS
    for rank in range(PODS - NODES):
        where[rank % RACKS * a_rack + random.randrange(a_rack)].append(random.choice(roles))
    return [(_more(random, _sum(cut), slack), cut) for cut in where]


KINDS: Mapping[str, Callable[[Random, int], list[Cut]]] = {
    "roles": _roles,
    "shapes": _shapes,
    "lived-in": _lived_in,
    "zone": _lived_in,
    "tree": _lived_in,
    "racks": _lived_in,
}


def _cut(random: Random, room: Amount, parts: int) -> list[Amount]:
    """So many pods that fill the room exactly; each has at least a core and a GiB."""
    columns = (_split(random, room[0], parts, 1), _split(random, room[1], parts, 1), _split(random, room[2], parts, 0))
    return list(zip(*columns, strict=True))


def _split(random: Random, total: int, parts: int, least: int) -> Sequence[int]:
    """`total` as a sum of so many numbers, every way equally likely."""
    free = total - parts * least
    marks = sorted(random.sample(range(free + parts - 1), parts - 1))
    edges = [-1, *marks, free + parts - 1]
    return [least + high - low - 1 for low, high in pairwise(edges)]


def _less(random: Random, room: Amount, slack: int) -> Amount:
    """The room without the slack: on average exactly so much, however small the numbers."""
    cpu, memory, gpus = (amount - (amount * slack + random.randrange(100)) // 100 for amount in room)
    return cpu, memory, gpus


def _more(random: Random, used: Amount, slack: int) -> Amount:
    """The room of which so much is used that the slack is left."""
    rest = 100 - slack
    cpu, memory, gpus = ((amount * 100 + random.randrange(rest)) // rest for amount in used)
    return cpu, memory, gpus


def _sum(pods: Sequence[Amount]) -> Amount:
    cpu, memory, gpus = (sum(column) for column in zip(*pods, strict=True))
    return cpu, memory, gpus
