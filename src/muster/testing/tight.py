"""Large gangs that fill a cluster almost to the last bit: feasible by construction, the same from the same seed.

Nodes are cut into pods, and are a little larger than what they are cut into: the slack. Three ways to do it:

* `roles`: nearly equal nodes, a few layouts, so that eight roles have many replicas;
* `lived-in`: eight roles thrown onto nodes of which other pods leave just that room, so that no two nodes are alike;
* `unlike`: every node is cut on its own, so that no two pods are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from muster.model.records import QueueEntry
from muster.model.snapshot import Snapshot
from muster.testing import builders

SLACKS = (0, 2, 5, 10)
"""Percent of cpu, memory and accelerators that the gang leaves unused."""
ROLES = 8
Amount = tuple[int, int, int]
"""Cores, GiB, accelerators."""
_SHAPES: tuple[Amount, ...] = ((64, 512, 8), (96, 1024, 8), (32, 256, 4), (128, 512, 16))


@dataclass(frozen=True)
class Tight:
    """A gang that needs all of its pods, and a cluster that has room for them; `pods` in the order of their nodes."""

    name: str
    slack: int
    nodes: tuple[Amount, ...]
    pods: tuple[Amount, ...]

    @property
    def snapshot(self) -> Snapshot:
        return builders.snapshot(
            builders.node(f"n{number}", cpu=cpu * 1000, memory=memory * builders.GIB, gpus=gpus)
            for number, (cpu, memory, gpus) in enumerate(self.nodes)
        )

    @property
    def entry(self) -> QueueEntry:
        members = (
            builders.pod(f"p{rank}", group="g", cpu=cpu * 1000, memory=memory * builders.GIB, gpus=gpus)
            for rank, (cpu, memory, gpus) in enumerate(self.pods)
        )
        return builders.entry(*members, group=builders.group("g", len(self.pods)))


def tight(seed: int) -> Tight:
    """60 to 150 pods on at most 60 nodes. Seeds go through all kinds and slacks in turn."""
    random = Random(seed)
    kind = tuple(KINDS)[seed % len(KINDS)]
    slack = SLACKS[seed // len(KINDS) % len(SLACKS)]
    pods = random.randint(60, 150)
    nodes = max(pods * 10 // random.randint(25, 50), 10)
    cuts = KINDS[kind](random, min(nodes, 60), pods, slack)
    wanted = [pod for _, cut in cuts for pod in cut]
    random.shuffle(wanted)
    return Tight(f"{kind}-{slack}%-{seed}", slack, tuple(node for node, _ in cuts), tuple(wanted))


Cut = tuple[Amount, list[Amount]]
"""What a node has, and the pods that it was cut into."""


def _roles(random: Random, nodes: int, pods: int, slack: int) -> list[Cut]:
    """Eight roles out of three layouts of one shape of node; the slack comes on top, rounded for each node."""
    shape = random.choice(_SHAPES)
    sizes = random.choice(((2, 3, 3), (1, 3, 4), (2, 2, 4)))
    layouts = [_cut(random, shape, size) for size in sizes]
    return [(_more(random, shape, slack), list(random.choice(layouts))) for _ in range(nodes)]


def _lived_in(random: Random, nodes: int, pods: int, slack: int) -> list[Cut]:
    """Any of eight roles on any node, and of each node what these take, and the slack."""
    roles = [(random.randint(1, 24), random.randint(4, 160), random.choice((0, 0, 1, 1, 2, 4))) for _ in range(ROLES)]
    where: list[list[Amount]] = [[] for _ in range(nodes)]
    for rank in range(pods):
        where[rank if rank < nodes else random.randrange(nodes)].append(random.choice(roles))
    return [(_more(random, _sum(cut), slack), cut) for cut in where]


def _unlike(random: Random, nodes: int, pods: int, slack: int) -> list[Cut]:
    """Nodes of one or two shapes, each cut anew."""
    shapes = random.sample(_SHAPES, random.randint(1, 2))
    parts = [pods // nodes + (number < pods % nodes) for number in range(nodes)]
    chosen = [random.choice(shapes) for _ in range(nodes)]
    return [(shape, _cut(random, _less(random, shape, slack), part)) for shape, part in zip(chosen, parts, strict=True)]


KINDS: Mapping[str, Callable[[Random, int, int, int], list[Cut]]] = {
    "roles": _roles,
    "lived-in": _lived_in,
    "unlike": _unlike,
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
