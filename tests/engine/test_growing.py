"""Who has to go for resizes: random nodes against trying every set of victims, with a kubelet written anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from random import Random

import pytest

from muster.engine.decide import decide
from muster.model.diagnosis import Preemption, PreemptionOutcome
from muster.model.keys import Key
from muster.model.plan import Evict
from muster.model.records import EntryKey, EntryKind, Growth, PodRecord, QueueEntry
from muster.model.resizing import ResizeDiagnosis
from muster.plugins import default_profile
from muster.testing import builders
from muster.testing.evictions import NOW, Instance, price, units

PROFILE = default_profile()


def amounts(cpu: int, memory: int) -> tuple[tuple[str, int], ...]:
    return tuple(sorted({"cpu": cpu, "memory": memory, "pods": 1}.items()))


@dataclass
class Street:
    """A random node with pods, a second one, and the resize that is to be decided."""

    random: Random

    def pod(self, number: int, node: str, group: str | None = None, priority: int = 0) -> PodRecord:
        pick = self.random
        has = (pick.randint(1, 4), pick.randint(0, 2))
        wants = has
        growth = None
        if pick.random() < 0.35:
            wants = (has[0] + pick.randint(0, 4), has[1] + pick.randint(0, 2))
            growth = Growth(pick.randint(0, 2), pick.randint(1, 3))
        priority = priority if group else pick.choice((0, 1, 5, 5, 9))
        cls = builders.pod_class(cpu=wants[0], memory=wants[1])
        usage, allocated = amounts(*wants), amounts(*has)
        cls = replace(cls, requests=tuple((n, a) for n, a in usage if a))
        return replace(
            builders.pod(f"p{number}", cls, priority=priority, node=node, group=group),
            usage=cls.requests,
            allocated=None if usage == allocated else tuple((n, a) for n, a in allocated if a),
            growth=growth,
            started=pick.choice((0, 100, 200)),
            preemption_policy=pick.choice(("PreemptLowerPriority",) * 6 + ("Never",)),
        )

    def instance(self) -> Instance | None:
        pick = self.random
        together = builders.group("w", 1, priority=pick.choice((0, 3)), disruption_all=True)
        pods = [self.pod(n, "n1") for n in range(pick.randint(2, 7))]
        if pick.random() < 0.4:
            pods += [self.pod(n, pick.choice(("n1", "n2")), "w", together.priority) for n in (20, 21, 22)]
        pods += [self.pod(30, "n2")]
        growing = [pod for pod in pods if pod.growth and pod.node == "n1"]
        if not growing:
            return None
        held = [dict(pod.allocated or pod.usage) for pod in pods if pod.node == "n1"]
        cpu = sum(each["cpu"] for each in held) + pick.randint(0, 2)
        memory = sum(each.get("memory", 0) for each in held) + pick.randint(0, 2)
        node = builders.node("n1")
        node = replace(node, allocatable=(("cpu", cpu), ("memory", max(memory, 1)), ("pods", 20)))
        there = (node, replace(builders.node("n2"), allocatable=(("cpu", 99), ("memory", 99), ("pods", 20))))
        pod = pick.choice(growing)
        key = EntryKey(EntryKind.POD, pod.key)
        entry = QueueEntry(key, pod.uid, pod.priority, 0, 0, (pod,), may_preempt=True, resize=True)
        return Instance(there, tuple(pods), (together,), (), entry)


def granted(instance: Instance, gone: frozenset[Key]) -> bool:
    """Whether the kubelet of n1 lets the pod grow once these are gone: it tries one resize after the other."""
    pod = instance.entry.pods[0]
    here = [each for each in instance.pods if each.node == "n1" and each.key not in gone]
    sizes = {each.key: dict(each.allocated or each.usage) for each in here}

    def turn(each: PodRecord) -> tuple[object, ...]:
        wants, has = dict(each.usage), dict(each.allocated or each.usage)
        assert each.growth is not None
        grows = any(wants[name] > has.get(name, 0) for name in wants)
        return (grows, -each.priority, each.growth.rank, each.growth.since, each.key)

    for each in sorted((each for each in here if each.growth), key=turn):
        tried = {**sizes, each.key: dict(each.usage)}
        fits = all(
            sum(size.get(name, 0) for size in tried.values()) <= dict(instance.nodes[0].allocatable).get(name, 0)
            for name in dict(each.usage)
        )
        sizes = tried if fits else sizes
        if each.key == pod.key:
            return fits
    raise AssertionError("the pod itself is gone")


def cheapest(instance: Instance) -> tuple[PodRecord, ...] | None:
    """The best of all sets of units that let it grow."""
    mine = instance.entry.pods[0]
    could, _ = units(instance)
    useful = [u for u in could if all(pod.key != mine.key for pod in u) and any(pod.node == "n1" for pod in u)]
    found = []
    for count in range(len(useful) + 1):
        for some in combinations(useful, count):
            victims = tuple(pod for unit in some for pod in unit)
            if granted(instance, frozenset(pod.key for pod in victims)):
                found.append(victims)
    return min(found, key=lambda victims: price(instance, victims)) if found else None


def decided(instance: Instance) -> tuple[frozenset[Key], Preemption | None]:
    decision = decide(instance.snapshot(), (instance.entry,), PROFILE, now=NOW)
    (plan,), (diagnosis,) = decision.plans, decision.diagnoses
    assert isinstance(diagnosis, ResizeDiagnosis)
    assert all(isinstance(step, Evict) for step in plan.steps)
    return frozenset(step.pod for step in plan.steps), diagnosis.preemption


@pytest.mark.parametrize("block", range(6))
def test_the_victims_are_the_best_that_let_it_grow_and_there_are_none_if_nothing_does(block: int) -> None:
    evicted = helpless = 0
    for seed in range(block * 500, block * 500 + 500):
        instance = Street(Random(seed)).instance()
        if instance is None:
            continue
        victims, preemption = decided(instance)
        best = cheapest(instance)
        if victims:
            evicted += 1
            assert best is not None and preemption is not None, seed
            assert granted(instance, victims), seed
            records = [pod for pod in instance.pods if pod.key in victims]
            assert preemption.best and price(instance, records) == price(instance, best), seed
        elif granted(instance, frozenset()) or instance.entry.pods[0].preemption_policy == "Never":
            assert preemption is None or preemption.outcome is PreemptionOutcome.NEVER, seed
        else:
            helpless += 1
            assert best is None, seed
    assert evicted > 30 and helpless > 30
