"""Small hierarchies of groups, decided by the engine and by looking at everything."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from muster.engine.decide import decide
from muster.engine.work import Work
from muster.model.diagnosis import Verdict
from muster.model.records import GroupNode, NodeRecord, PodRecord, QueueEntry
from muster.model.snapshot import Snapshot
from muster.plugins import default_profile
from muster.testing import builders
from muster.testing.trees import most_placed, tree_violations

PROFILE = default_profile()
KEYS = (None, None, "rack", "zone", builders.HOSTNAME)


class Instance:
    """A random cluster of a few nodes in zones and racks, and a tree of at most three levels."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.nodes = [self._node(number) for number in range(self.random.randint(2, 5))]
        self.bound: list[PodRecord] = []
        self.left, self.made = self.random.randint(2, 7), 0
        self.entry: QueueEntry = builders.hierarchy(self._composite("root", 0))
        self.snapshot: Snapshot = builders.snapshot(self.nodes, self.bound)

    def _node(self, number: int) -> NodeRecord:
        pick, labels = self.random, {}
        if pick.random() < 0.9:
            labels["zone"] = pick.choice("ab")
        if pick.random() < 0.9:
            # Racks of one name may be in two zones: then these keys do not nest.
            labels["rack"] = (labels.get("zone", "") if pick.random() < 0.8 else "") + pick.choice("12")
        taints = [builders.taint("apart")] if pick.random() < 0.2 else ()
        cpu, gpus = pick.randint(1, 4) * 1000, pick.choice((0, 2, 4))
        return builders.node(f"n{number}", cpu=cpu, gpus=gpus, labels=labels, taints=taints)

    def _composite(self, name: str, depth: int) -> GroupNode:
        children = []
        for _ in range(self.random.randint(1, 3)):
            self.made += 1
            deeper = depth < 2 and self.random.random() < 0.3
            make = self._composite if deeper else self._leaf
            children.append(make(f"g{self.made}", depth + 1))
        minimum, key = self.random.choice((None, 1, 2, 2, 3)), self.random.choice((None, None, "zone", "rack"))
        return GroupNode(builders.composite(name, minimum, topology_key=key), tuple(children))

    def _leaf(self, name: str, depth: int) -> GroupNode:
        pick = self.random
        count = min(self.left, pick.randint(0, 3))
        self.left -= count
        alike = pick.random() < 0.6
        pods = tuple(self._pod(f"{name}-{number}", name, alike) for number in range(count))
        running: tuple[PodRecord, ...] = ()
        if pick.random() < 0.15:
            running = (builders.pod(f"{name}-r", cpu=1000, group=name, node=pick.choice(self.nodes).name),)
            self.bound += running
        group = builders.group(name, pick.choice((None, 1, 2, 3)), parent="p", topology_key=pick.choice(KEYS))
        return GroupNode(group, (), pods, running)

    def _pod(self, name: str, group: str, alike: bool) -> PodRecord:
        if alike:
            return builders.pod(name, cpu=1000, group=group)
        tolerations = (builders.tolerate("apart"),) if self.random.random() < 0.3 else ()
        cpu, gpus = self.random.choice((1000, 1000, 2000)), self.random.choice((0, 0, 1, 2))
        return builders.pod(name, cpu=cpu, gpus=gpus, group=group, tolerations=tolerations)


@pytest.mark.parametrize("part", range(8))
def test_a_hierarchy_is_placed_whenever_it_can_be_and_never_in_part(part: int) -> None:
    compared = fewer = 0
    for seed in range(part * 60, part * 60 + 60):
        instance = Instance(seed)
        if not instance.entry.pods or (instance.snapshot.used > instance.snapshot.nodes.alloc).any():
            continue
        decision = decide(instance.snapshot, [instance.entry], PROFILE, now=0, budget=Work(3_000))
        binds, diagnosis = decision.plans[0].binds, decision.diagnoses[0]
        assert tree_violations(instance.snapshot, instance.entry, binds) == [], seed
        if diagnosis.verdict is Verdict.ERROR:
            assert not binds, seed
            continue
        most = most_placed(instance.snapshot, instance.entry)
        assert (diagnosis.verdict is Verdict.SCHEDULED) == bool(binds), seed
        assert bool(binds) == bool(most), seed
        compared += 1
        fewer += len(binds) < most
    assert compared > 30
    assert fewer <= compared // 20


def test_the_order_of_children_makes_no_difference_to_what_is_possible() -> None:
    for seed in range(60):
        instance = Instance(seed)
        tree = instance.entry.tree
        assert tree is not None
        if not instance.entry.pods:
            continue
        turned = builders.hierarchy(replace(tree, children=tree.children[::-1]))
        one, other = (
            decide(instance.snapshot, [entry], PROFILE, now=0, budget=Work(3_000)).plans[0].binds
            for entry in (instance.entry, turned)
        )
        assert bool(one) == bool(other), seed
