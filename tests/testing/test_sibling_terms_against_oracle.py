"""Small hierarchies whose members look at each other, decided by the engine and by trying every order."""

from __future__ import annotations

from random import Random

import pytest

from muster.engine.decide import decide
from muster.engine.work import Work
from muster.model.diagnosis import Verdict
from muster.model.neighbours import LabelRequirement, PodDemands, PodSelector, PodTerm, SpreadConstraint
from muster.model.plan import Bind
from muster.model.records import GroupNode, NodeRecord, PodRecord, QueueEntry
from muster.plugins import default_profile
from muster.testing import builders, company
from muster.testing.trees import tree_violations

PROFILE = default_profile()
APPS = ("x", "y", "z")
KEYS = ("rack", "zone", builders.HOSTNAME)


class Instance:
    """A random cluster of three or four nodes, and a tree of two or three leaves with up to five pods."""

    def __init__(self, seed: int) -> None:
        self.pick = pick = Random(seed)
        self.nodes = [self._node(number) for number in range(pick.choice((2, 3, 3, 4)))]
        self.bound: list[PodRecord] = []
        if pick.random() < 0.3:
            running = builders.pod("other", cpu=1000, node="n0", labels={"app": pick.choice(APPS)})
            self.bound.append(running)
        self.left = 5
        leaves = [self._leaf(name) for name in ("a", "b", "c")[: pick.randint(2, 3)]]
        if pick.random() < 0.3:
            inner = builders.composite("sub", pick.choice((None, 1, 2)), topology_key=self._key())
            leaves = [GroupNode(inner, tuple(leaves[:-1])), leaves[-1]]
        root = builders.composite("root", pick.choice((1, 2, 2, len(leaves))), topology_key=self._key())
        self.entry: QueueEntry = builders.hierarchy(GroupNode(root, tuple(leaves)))
        self.snapshot = builders.snapshot(self.nodes, self.bound, pending=self.entry.pods)
        self.world = company.World(self.nodes, self.bound)

    def _key(self) -> str | None:
        return self.pick.choice((None, None, "rack", "zone"))

    def _node(self, number: int) -> NodeRecord:
        labels = {"zone": self.pick.choice("ab"), "rack": self.pick.choice("123")}
        if self.pick.random() < 0.7:
            labels["rack"] = labels["zone"] + labels["rack"]
        return builders.node(f"n{number}", cpu=self.pick.randint(1, 4) * 1000, labels=labels)

    def _leaf(self, name: str) -> GroupNode:
        count = min(self.left, self.pick.randint(1, 2))
        self.left -= count
        demands = [self._demands() for _ in range(self.pick.choice((1, 1, 2)))]
        pods = tuple(
            builders.pod(
                f"{name}-{number}",
                builders.pod_class(cpu=1000, demands=self.pick.choice(demands)),
                group=name,
                labels={"app": self.pick.choice(APPS)},
            )
            for number in range(count)
        )
        group = builders.group(name, self.pick.randint(1, max(count, 1)), parent="p", topology_key=self._key())
        return GroupNode(group, (), pods)

    def _demands(self) -> PodDemands | None:
        pick = self.pick
        meant = PodSelector((LabelRequirement("app", "In", (pick.choice(APPS),)),), ("default",))
        kind = pick.random()
        if kind < 0.45:
            return PodDemands(affinity=(PodTerm(meant, pick.choice(KEYS)),))
        if kind < 0.65:
            return PodDemands(anti_affinity=(PodTerm(meant, pick.choice(KEYS)),))
        if kind < 0.8:
            return PodDemands(spread=(SpreadConstraint(meant, pick.choice(KEYS), 1, hard=True),))
        return None

    def most(self) -> int:
        """The most that can be bound, whatever the order of placing."""
        pods = self.entry.pods
        start = (-1,) * len(pods)
        reached, waiting, best = {start}, [start], 0
        while waiting:
            state = waiting.pop()
            binds = [Bind(p.key, p.uid, self.nodes[n].name) for p, n in zip(pods, state, strict=True) if n >= 0]
            if len(binds) > best and not tree_violations(self.snapshot, self.entry, binds):
                best = len(binds)
            for after in company.steps(self.world, pods, state):
                if after not in reached:
                    reached.add(after)
                    waiting.append(after)
        return best


@pytest.mark.parametrize("part", range(2))
def test_a_hierarchy_is_placed_whenever_some_order_of_its_members_allows_it(part: int) -> None:
    possible = fewer = 0
    for seed in range(part * 30, part * 30 + 30):
        instance = Instance(seed)
        decision = decide(instance.snapshot, [instance.entry], PROFILE, now=0, budget=Work(3_000))
        binds, diagnosis = decision.plans[0].binds, decision.diagnoses[0]
        assert tree_violations(instance.snapshot, instance.entry, binds) == [], seed
        assert company.is_possible(instance.world, instance.entry, binds), seed
        most = instance.most()
        assert (diagnosis.verdict is Verdict.SCHEDULED) == bool(binds) == bool(most), seed
        assert binds or diagnosis.proven, seed
        possible += bool(most)
        fewer += len(binds) < most
    assert possible > 8
    assert fewer <= possible // 10
