"""Hypothesis strategies for clusters small enough that `oracle` can look at everything.

Needs the development dependency `hypothesis`; nothing else in `muster.testing` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

try:
    from hypothesis import strategies as st
except ImportError as missing:
    raise ImportError("muster.testing.strategies needs hypothesis: pip install hypothesis") from missing

from muster.model.records import (
    GroupRecord,
    HostPort,
    NodeRecord,
    PodClass,
    PodRecord,
    QueueEntry,
    Term,
)
from muster.model.snapshot import Snapshot
from muster.testing import builders

T = TypeVar("T")

ZONE, TIER = "topology.kubernetes.io/zone", "example.com/tier"
SCARCE = "example.com/licence"
"""A resource that few nodes have and that the axis of a snapshot may not know at all."""

_TAINTS = (
    builders.taint("dedicated", "training"),
    builders.taint("dedicated", "serving", "NoExecute"),
    builders.taint("spot", "", "PreferNoSchedule"),
    builders.taint("rank", "5"),
)
_TOLERATIONS = (
    builders.tolerate(),
    builders.tolerate("dedicated"),
    builders.tolerate("dedicated", "training", "NoSchedule"),
    builders.tolerate("dedicated", "serving", "NoSchedule"),
    builders.tolerate("node.kubernetes.io/unschedulable", effect="NoSchedule"),
    builders.tolerate("rank", "4")._replace(operator="Gt"),
)
_PORTS = (
    HostPort("TCP", 80, "0.0.0.0"),
    HostPort("TCP", 80, "10.0.0.1"),
    HostPort("TCP", 80, "10.0.0.2"),
    HostPort("UDP", 80, "0.0.0.0"),
    HostPort("TCP", 81, "0.0.0.0"),
)


@dataclass(frozen=True)
class Instance:
    """One question for `decide`: a cluster, and entries in queue order."""

    nodes: tuple[NodeRecord, ...]
    bound: tuple[PodRecord, ...]
    nominated: tuple[tuple[PodRecord, str], ...]
    heads: tuple[QueueEntry, ...]

    @property
    def snapshot(self) -> Snapshot:
        wanted = {name for pod in self.pods for name, _ in pod.cls.requests if name != SCARCE}
        return builders.snapshot(
            self.nodes,
            self.bound,
            nominations=[builders.nomination(pod, node) for pod, node in self.nominated],
            groups=[head.group for head in self.heads if head.group],
            known=wanted,
        )

    @property
    def pods(self) -> tuple[PodRecord, ...]:
        return tuple(pod for head in self.heads for pod in head.pods)

    def renamed(self, names: Sequence[str]) -> Instance:
        """The same cluster with the nodes' names dealt out anew: `names` is a permutation of them."""
        new = dict(zip((node.name for node in self.nodes), names, strict=True))
        return Instance(
            nodes=tuple(
                replace(node, name=new[node.name], labels={**node.labels, builders.HOSTNAME: new[node.name]})
                for node in self.nodes
            ),
            bound=tuple(replace(pod, node=new[pod.node or ""]) for pod in self.bound),
            nominated=tuple((pod, new[node]) for pod, node in self.nominated),
            heads=tuple(
                replace(head, bound=tuple(replace(pod, node=new[pod.node or ""]) for pod in head.bound))
                for head in self.heads
            ),
        )


def rarely(strategy: st.SearchStrategy[T], otherwise: T) -> st.SearchStrategy[T]:
    """One draw in six is of the strategy."""
    return st.integers(0, 5).flatmap(lambda roll: strategy if roll == 5 else st.just(otherwise))


def amounts(most: int = 4) -> st.SearchStrategy[int]:
    """Small amounts; zero is common, so that resources are often not asked for."""
    return st.one_of(st.just(0), st.integers(1, most))


@st.composite
def node_records(draw: st.DrawFn, name: str) -> NodeRecord:
    labels = {ZONE: draw(st.sampled_from(("a", "b", ""))), TIER: draw(st.sampled_from(("1", "2", "gold", "")))}
    return builders.node(
        name,
        cpu=draw(st.integers(1, 8)) * 1000,
        memory=draw(st.integers(2, 8)),
        gpus=draw(st.sampled_from((8, 4, 4, 3, 2, 0))),
        pods=draw(st.sampled_from((110, 110, 4, 3, 2))),
        more={SCARCE: draw(st.sampled_from((0, 0, 0, 1, 2)))},
        labels={key: value for key, value in labels.items() if value},
        taints=draw(rarely(st.lists(st.sampled_from(_TAINTS), min_size=1, max_size=2, unique=True), ())),
        unschedulable=draw(rarely(st.just(True), False)),
    )


def terms() -> st.SearchStrategy[Term]:
    """Node affinity terms: labels, numbers, node names, and the empty term that matches nothing."""
    requirement = st.sampled_from(
        (
            (ZONE, "In", ("a",)),
            (ZONE, "NotIn", ("a", "c")),
            (ZONE, "Exists", ()),
            (TIER, "DoesNotExist", ()),
            (TIER, "Gt", ("1",)),
            (TIER, "Lt", ("2",)),
            (None, "In", ("n1",)),
            (None, "NotIn", ("n2",)),
        )
    )
    return st.lists(requirement, max_size=2).map(lambda some: builders.term(*some))


@st.composite
def pod_classes(draw: st.DrawFn, by_name: bool = True) -> PodClass:
    """A class of pods. `by_name` False: none that speaks of a node by its name."""
    required = draw(rarely(st.lists(terms(), max_size=2), None))
    if required is not None and not by_name:
        required = [term for term in required if all(r.key is not None for r in term.requirements)]
    return builders.pod_class(
        cpu=draw(amounts(3)) * 1000,
        memory=draw(amounts(2)),
        gpus=draw(amounts(3)),
        more={SCARCE: draw(rarely(st.just(1), 0))},
        selector=draw(rarely(st.sampled_from(({ZONE: "a"}, {ZONE: "b", TIER: "1"})), {})),
        required=required,
        tolerations=draw(st.lists(st.sampled_from(_TOLERATIONS), max_size=2, unique=True)),
        ports=draw(rarely(st.lists(st.sampled_from(_PORTS), min_size=1, max_size=2, unique=True), ())),
    )


@st.composite
def instances(draw: st.DrawFn, *, nodes: int = 6, pods: int = 8, heads: int = 3, by_name: bool = True) -> Instance:
    """A cluster of at most so many nodes, and entries with at most so many pending pods together."""
    names = [f"n{number}" for number in range(1, draw(st.sampled_from(range(nodes + 1))) + 1)]
    cluster = tuple(draw(node_records(name)) for name in names)
    classes = draw(st.lists(pod_classes(by_name), min_size=1, max_size=4))
    bound = tuple(
        builders.pod(f"b{number}", draw(st.sampled_from(classes)), node=draw(st.sampled_from(names)))
        for number in range(draw(st.integers(0, 4)) if names else 0)
    )
    entries, left = [], pods
    for number in range(draw(st.integers(1, heads))):
        size = draw(st.sampled_from(range(1, left + 1))) if left else 0
        if size:
            entries.append(draw(_entry(f"e{number}", size, classes, names)))
        left -= size
    members = tuple(pod for head in entries for pod in head.bound)
    return Instance(cluster, (*bound, *members), draw(_nominated(classes, names, entries)), tuple(entries))


@st.composite
def _entry(draw: st.DrawFn, name: str, size: int, classes: Sequence[PodClass], nodes: Sequence[str]) -> QueueEntry:
    """A single pod, a basic group or a gang whose minimum its members can reach."""
    priority = draw(st.sampled_from((0, 0, 10)))
    if size == 1 and draw(st.booleans()):
        return builders.entry(builders.pod(name, draw(st.sampled_from(classes)), priority=priority))
    odd = draw(st.sampled_from((False,) * 15 + (True,)))
    some = draw(st.lists(st.sampled_from(classes), min_size=1, max_size=3))
    members = tuple(
        builders.pod(
            f"{name}-{rank}",
            draw(st.sampled_from(some)),
            group=name,
            priority=priority + (odd and rank == 0),
        )
        for rank in range(size)
    )
    running = tuple(
        builders.pod(f"{name}-run{rank}", draw(st.sampled_from(some)), group=name, priority=priority, node=nodes[rank])
        for rank in range(draw(st.sampled_from((0, 0, 1, 2))) if len(nodes) > 1 else 0)
    )
    succeeded = draw(st.sampled_from((0, 0, 0, 1)))
    return builders.entry(
        *members,
        group=draw(_group(name, size + len(running) + succeeded, priority)),
        bound=running,
        succeeded=succeeded,
    )


@st.composite
def _group(draw: st.DrawFn, name: str, members: int, priority: int) -> GroupRecord:
    """Often a gang that needs all of its members."""
    minimum = draw(st.one_of(st.just(members), st.integers(1, members), st.none()))
    return builders.group(name, minimum, priority=priority)


@st.composite
def _nominated(
    draw: st.DrawFn, classes: Sequence[PodClass], nodes: Sequence[str], entries: Sequence[QueueEntry]
) -> tuple[tuple[PodRecord, str], ...]:
    """A few nominations: of pods that are not asked about, and of pending members."""
    if not nodes:
        return ()
    strangers = tuple(
        builders.pod(f"x{number}", draw(st.sampled_from(classes)), priority=draw(st.sampled_from((-5, 0, 10, 20))))
        for number in range(draw(rarely(st.integers(1, 2), 0)))
    )
    own = tuple(pod for head in entries for pod in head.pods if draw(st.integers(0, 15)) == 15)
    return tuple((pod, draw(st.sampled_from(nodes))) for pod in (*strangers, *own))


@st.composite
def puzzles(draw: st.DrawFn, *, nodes: int = 4, pieces: int = 3) -> Instance:
    """One gang that fills a cluster to the last bit: every node was cut into pods, and all of them are needed.

    There is at least one placement, and few: a greedy search that takes the wrong turn does not find it. Sometimes a
    pod too many makes it impossible, for no reason that a bound on sums must see.
    """
    cuts = draw(st.lists(st.lists(_pieces(), min_size=1, max_size=pieces), min_size=2, max_size=nodes))
    cluster = tuple(
        builders.node(
            f"n{number}",
            cpu=sum(cpu for cpu, _, _ in cut) * 1000,
            memory=sum(memory for _, memory, _ in cut),
            gpus=sum(gpus for _, _, gpus in cut),
        )
        for number, cut in enumerate(cuts, 1)
    )
    wanted = [piece for cut in cuts for piece in cut]
    wanted += draw(rarely(st.just([(1, 0, 0)]), []))
    members = tuple(
        builders.pod(f"p{rank}", group="g", cpu=cpu * 1000, memory=memory, gpus=gpus)
        for rank, (cpu, memory, gpus) in enumerate(draw(st.permutations(wanted)))
    )
    return Instance(cluster, (), (), (builders.entry(*members, group=builders.group("g", len(members))),))


def _pieces() -> st.SearchStrategy[tuple[int, int, int]]:
    """cpu (cores), memory, accelerators of one pod."""
    return st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 4))
