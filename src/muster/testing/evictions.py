"""Whom to evict, found by trying sets of victims in the order of their cost: exact and slow, for tiny clusters.

Shares nothing with the engine: what fits is asked of `oracle`, on a cluster built anew without the victims.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from muster.model.keys import Key
from muster.model.neighbours import LabelRequirement, PodSelector
from muster.model.records import CompositeRecord, GroupNode, GroupRecord, NodeRecord, PodClass, PodRecord, QueueEntry
from muster.model.running import DisruptionBudget, Running
from muster.model.snapshot import Snapshot
from muster.testing import builders, oracle, trees

NOW = 10_000
RACK = "rack"
GROUPS = ("w", "x", "y", "z")
Unit = tuple[PodRecord, ...]
Price = tuple[int, int, int, int, int, int, tuple[Key, ...]]


@dataclass(frozen=True, slots=True)
class Instance:
    """A cluster and an entry that may evict."""

    nodes: tuple[NodeRecord, ...]
    pods: tuple[PodRecord, ...]
    groups: tuple[GroupRecord, ...]
    budgets: tuple[DisruptionBudget, ...]
    entry: QueueEntry
    composites: tuple[CompositeRecord, ...] = ()

    def snapshot(self, without: Iterable[PodRecord] = ()) -> Snapshot:
        gone = {pod.uid for pod in without}
        there = tuple(pod for pod in self.pods if pod.uid not in gone)
        made = builders.snapshot(self.nodes, there, groups=self.groups, pending=self.entry.pods)
        return replace(made, running=self._running(there))

    def _running(self, pods: tuple[PodRecord, ...]) -> Running:
        return Running(pods, composites={group.key: group for group in self.composites}, budgets=self.budgets)

    def above(self, pod: PodRecord) -> list[GroupRecord | CompositeRecord]:
        """The groups that a pod is in, its own one first."""
        found: list[GroupRecord | CompositeRecord] = [group for group in self.groups if group.key.name == pod.group]
        while found and found[-1].parent is not None:
            found += [group for group in self.composites if group.key.name == found[-1].parent]
        return found


@dataclass(frozen=True, slots=True)
class Best:
    """The most pods that can be placed, and the cheapest victims for that."""

    placed: int
    victims: frozenset[Key]
    price: Price


def units(instance: Instance) -> tuple[list[Unit], list[PodRecord]]:
    """What could be evicted, and what is going anyway (P7, P8, P10)."""
    whole: dict[Key, list[PodRecord]] = {}
    single: list[Unit] = []
    going: list[PodRecord] = []
    for pod in instance.pods:
        together = [group.key for group in instance.above(pod) if group.disruption_all]
        if priority_of(instance, pod) >= instance.entry.priority:
            continue
        if pod.terminating:
            going.append(pod)
        elif together:
            whole.setdefault(together[-1], []).append(pod)
        else:
            single.append((pod,))
    return [*single, *(tuple(some) for some in whole.values())], going


def priority_of(instance: Instance, pod: PodRecord) -> int:
    groups = instance.above(pod)
    return groups[-1].priority if groups else pod.priority


def price(instance: Instance, victims: Sequence[PodRecord]) -> Price:
    """M7, from the budgets on."""
    broken = 0
    for budget in instance.budgets:
        meant = sum(budget.selector.selects(pod.key.namespace, dict(pod.labels), {}) for pod in victims)
        broken += max(meant - budget.allowed, 0)
    priorities = [priority_of(instance, pod) for pod in victims]
    core = 0
    for group in instance.groups:
        mine = sum(pod.group == group.key.name for pod in victims)
        running = sum(pod.group == group.key.name and not pod.terminating for pod in instance.pods)
        core += max(mine - max(running - group.min_count, 0), 0)
    return (
        broken,
        max(priorities, default=-(2**31)),
        sum(priority + 2**31 for priority in priorities),
        sum(pod.started > 0 for pod in victims),
        core,
        sum(NOW - pod.started for pod in victims if pod.started),
        tuple(sorted(pod.key for pod in victims)),
    )


def most(instance: Instance, gone: Iterable[PodRecord]) -> int:
    """How many pods of the entry can be placed without these; 0 if the minimum cannot."""
    snapshot = instance.snapshot(gone)
    if instance.entry.tree is not None:
        return trees.most_placed(snapshot, instance.entry)
    answer = oracle.can_place(snapshot, instance.entry)
    return answer.most if answer.feasible else 0


def best(instance: Instance, most_tries: int = 40_000) -> Best | None:
    """None: nothing helps. Where the minimum fits once those are gone that terminate already, it is waited for (P3).

    Raises:
        OverflowError: more sets would have to be tried than that.
    """
    every, going = units(instance)
    now = most(instance, going)
    if now:
        return Best(now, frozenset(), price(instance, ()))
    able = most(instance, [*going, *(pod for unit in every for pod in unit)])
    if not able:
        return None
    known: dict[frozenset[str], bool] = {}
    heap: list[tuple[Price, tuple[int, ...]]] = [(price(instance, ()), ())]
    for _ in range(most_tries):
        cost, chosen = heapq.heappop(heap)
        victims = [pod for number in chosen for pod in every[number]]
        uids = frozenset(pod.uid for pod in victims)
        if uids not in known:
            known[uids] = most(instance, [*going, *victims]) >= able
        if known[uids]:
            return Best(able, frozenset(pod.key for pod in victims), cost)
        for number in range(chosen[-1] + 1 if chosen else 0, len(every)):
            more = (*chosen, number)
            heapq.heappush(heap, (price(instance, [*victims, *every[number]]), more))
    raise OverflowError(f"{most_tries} sets of victims were not enough")


def redundant(instance: Instance, victims: Iterable[Key], placed: int) -> list[str]:
    """Victims that could be put back without fewer pods being placed, one sentence each."""
    gone = set(victims)
    every, going = units(instance)
    chosen = [unit for unit in every if unit[0].key in gone]
    wrong: list[str] = []
    for unit in chosen:
        others = [pod for other in chosen if other is not unit for pod in other]
        if most(instance, [*going, *others]) >= placed:
            wrong.append(f"{unit[0].key} need not go")
    return wrong


def instances(seed: int, *, nodes: int = 8, pods: int = 24) -> Iterator[Instance]:
    """Random instances of full clusters, without end; the same ones for a seed."""
    random = Random(seed)
    while True:
        yield _instance(random, random.randint(1, nodes), random.randint(1, pods))


def larger(seed: int, *, nodes: int, pods: int, members: int, kinds: int = 2) -> Iterator[Instance]:
    """The same with so many nodes, running pods as far as they fit, none of them on its way out, and a gang of so many
    pods of these kinds.
    """
    random = Random(seed)
    while True:
        looks = [builders.pod_class(gpus=gpus, cpu=random.choice((0, 1_000, 2_000))) for gpus in range(1, kinds + 1)]
        entry = _gang(random, members, random.choice((15, 25, 40)), looks)
        made = _instance(random, nodes, pods)
        yield replace(made, pods=tuple(replace(pod, terminating=False) for pod in made.pods), entry=entry)


def alike(seed: int, *, nodes: int, members: int) -> Iterator[Instance]:
    """Full clusters of single pods, on each node of one size, and a gang of so many alike pods, in a rack or not."""
    random = Random(seed)
    while True:
        size = random.choice((1, 2, 3, 4))
        entry = _gang(random, members, 40, [builders.pod_class(gpus=random.choice((1, 2, 4)))])
        there: list[PodRecord] = []
        for number in range(nodes):
            gpus = random.choice((size, random.choice((1, 2, 4))))
            for slot in range(8 // gpus - int(random.random() < 0.03)):
                priority, started = random.choice((0, 10, 20)), random.choice((0, random.randint(1, NOW)))
                made = builders.pod(f"p{number}-{slot}", node=f"n{number}", gpus=gpus, priority=priority)
                there.append(replace(made, started=started))
        racks = max(2, nodes // 20)
        fleet = tuple(builders.node(f"n{i}", gpus=8, labels={RACK: f"r{i % racks}"}) for i in range(nodes))
        yield Instance(fleet, tuple(there), (), (), entry)


def _instance(random: Random, size: int, count: int) -> Instance:
    nodes = tuple(
        builders.node(
            f"n{i}",
            gpus=random.choice((1, 2, 4, 6)),
            cpu=random.choice((4_000, 8_000)),
            labels={RACK: random.choice("ab")},
        )
        for i in range(size)
    )
    composites = tuple(_tree_of(random)) if random.random() < 0.4 else ()
    groups = tuple(
        builders.group(
            name,
            random.randint(1, 3),
            priority=random.choice((10, 20, 30)),
            disruption_all=random.random() < 0.5,
            parent=random.choice((None, *(group.key.name for group in composites))),
        )
        for name in GROUPS
    )
    running: list[PodRecord] = []
    free = {node.name: dict(node.allocatable) for node in nodes}
    for number in range(2 * count):
        made = _running(random, f"v{number}", groups, [node.name for node in nodes])
        room = free[made.node or ""]
        if len(running) < count and all(room.get(name, 0) >= amount for name, amount in made.usage):
            running.append(made)
            for name, amount in made.usage:
                room[name] -= amount
    budgets = tuple(
        DisruptionBudget(Key("default", f"b{app}"), _covering(app), random.randint(0, 1))
        for app in random.sample("pqr", random.randint(0, 2))
    )
    return Instance(nodes, tuple(running), groups, budgets, _entry(random), composites)


def _tree_of(random: Random) -> Iterator[CompositeRecord]:
    """A hierarchy that runs; its groups may go one by one, or from some level on together."""
    for name, parent in (("root", None), ("inner", "root")):
        priority, together = random.choice((10, 20, 30)), random.random() < 0.4
        yield builders.composite(name, 1, priority=priority, disruption_all=together, parent=parent)


def _running(random: Random, name: str, groups: Sequence[GroupRecord], nodes: Sequence[str]) -> PodRecord:
    group = random.choice(groups) if random.random() < 0.4 else None
    made = builders.pod(
        name,
        node=random.choice(nodes),
        group=group.key.name if group else None,
        priority=group.priority if group else random.choice((10, 20, 30)),
        gpus=random.choice((1, 1, 2)),
        cpu=random.choice((0, 1_000, 2_000)),
        labels={"app": random.choice("pqrs")},
    )
    begun = random.choice((0, random.randint(1, 5) * 1_000))
    return replace(made, started=begun, terminating=random.random() < 0.05)


def _covering(app: str) -> PodSelector:
    return PodSelector((LabelRequirement("app", "In", (app,)),), ("default",))


def _entry(random: Random) -> QueueEntry:
    priority = random.choice((15, 25, 40))
    big = builders.pod_class(gpus=random.choice((1, 2)), cpu=random.choice((0, 1_000)))
    small = builders.pod_class(gpus=1, cpu=random.choice((0, 2_000)))
    if random.random() < 0.3:
        return replace(builders.entry(builders.pod("p1", big, priority=priority)), may_preempt=True)
    if random.random() < 0.25:
        return replace(builders.hierarchy(_tree(random, big, small, priority)), may_preempt=True)
    return _gang(random, random.randint(1, 4), priority, (big, small) if random.random() < 0.4 else (big,))


def _gang(random: Random, count: int, priority: int, kinds: Sequence[PodClass]) -> QueueEntry:
    key = RACK if random.random() < 0.4 else None
    group = builders.group("pre", random.randint(1, count), priority=priority, topology_key=key)
    members = [builders.pod(f"p{i}", random.choice(kinds), group="pre", priority=priority) for i in range(count)]
    return replace(builders.entry(*members, group=group), may_preempt=True)


def _tree(random: Random, big: PodClass, small: PodClass, priority: int) -> GroupNode:
    """A hierarchy of two groups that needs one of them or both, perhaps in one rack."""
    leaves: list[GroupNode] = []
    for name in ("left", "right"):
        count, cls = random.randint(1, 2), random.choice((big, small))
        group = builders.group(name, random.randint(1, count), priority=priority, parent="pre")
        members = tuple(builders.pod(f"{name}{i}", cls, group=name, priority=priority) for i in range(count))
        leaves.append(GroupNode(group, pending=members))
    key = RACK if random.random() < 0.4 else None
    root = builders.composite("pre", random.randint(1, 2), priority=priority, topology_key=key)
    return GroupNode(root, tuple(leaves))
