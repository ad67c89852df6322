"""Random lives of pods that look at each other: every plan is possible in some order, and nothing waits in vain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from muster.model.decision import Decision
from muster.model.diagnosis import Reason
from muster.model.plan import Plan
from muster.model.records import Phase, PodRecord, QueueEntry
from muster.scheduler.effects import Decide
from muster.sim.faults import CALM
from muster.sim.life import HEALING, Broken, Life
from muster.sim.world import SCHEDULER
from muster.testing import company, invariants

FEW = 6
"""Of so many binds every order is tried."""


def term(app: str, key: str) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


class SociableLife(Life):
    """Pods have labels; many have a rule on others."""

    def _pod(self, name: str, group: str | None, priority: int) -> dict[str, Any]:
        pick, manifest = self.random, super()._pod(name, group, priority)
        manifest["metadata"]["labels"] = {"app": pick.choice("ab")}
        key = pick.choice(("zone", "kubernetes.io/hostname"))
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term(pick.choice("ab"), key)]}
        kind = pick.choice(("none", "none", "apart", "near", "spread"))
        if kind == "apart":
            manifest["spec"]["affinity"] = {"podAntiAffinity": required}
        elif kind == "near":
            manifest["spec"]["affinity"] = {"podAffinity": required}
        elif kind == "spread":
            when = pick.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))
            manifest["spec"]["topologySpreadConstraints"] = [
                {**term(pick.choice("ab"), key), "maxSkew": pick.choice((1, 2)), "whenUnsatisfiable": when}
            ]
        return manifest

    def _known(self) -> company.World:
        """What the scheduler knows now, assumed pods included."""
        cache, nodes = self.world.machine().cache, self.world.machine().cache.nodes
        bound = []
        for record in cache.pods.values():
            node = record.node if record.phase is Phase.BOUND else cache.assumed.get(record.uid)
            if node in nodes:
                bound.append(replace(record, node=node))
        return company.World(tuple(nodes.values()), bound, cache.neighbours.spaces)

    def _judge(self, asked: Decide, decision: Decision) -> None:
        self.wrong += invariants.premature(asked)
        self.wrong += invariants.unsound(asked, decision)
        world = self._known()
        for head, plan in zip(asked.heads, decision.plans, strict=False):
            # Room that is held for nominated pods is not known here, so that who was left out may be right.
            told = judged(world, head, plan)
            self.wrong += [it for it in told if not asked.snapshot.nominations or "was left out" not in it]
            pods = {pod.key: pod for pod in head.pods}
            world = replace(world, bound=[*world.bound, *(replace(pods[b.pod], node=b.node) for b in plan.binds)])

    def _check(self) -> None:
        self.world.faults.rates = CALM
        if self.world.paused:
            self.world.resume()
        self.world.advance(HEALING)
        self.world.quiesce()
        state = invariants.read(self.world.server, self.world.now)
        self.wrong += invariants.overcommitted(state)
        world = self._known()
        pending = [pod for pod in self.world.machine().cache.pods.values() if is_waiting_single(pod)]
        self.wrong += [f"{pod.key} waits, and could run on {node}" for pod in pending for node in open_to(world, pod)]
        self.wrong += invariants.differs_from_rebuilt(
            self.world.machine(), self.world.makers[SCHEDULER], self.world.server, self.world.now
        )
        self.wrong += self._restlessness(state)
        if self.wrong:
            raise Broken(self._story(*dict.fromkeys(self.wrong)))
        self.world.faults.rates = self.rates


def judged(world: company.World, head: QueueEntry, plan: Plan) -> list[str]:
    if plan.binds:
        sound = len(plan.binds) > FEW or company.is_possible(world, head, plan.binds)
        return [] if sound else [f"{head.key}: in no order can it be done: {plan.binds}"]
    if head.group is None:
        return [f"{head.key} was left out, and could run on {node}" for node in open_to(world, head.pods[0])]
    return []


def open_to(world: company.World, pod: PodRecord) -> list[str]:
    there = world.there
    return [node.name for node in world.nodes if company.rejection(world, there, pod, node) is Reason.NONE]


def is_waiting_single(pod: PodRecord) -> bool:
    return pod.phase is Phase.PENDING and pod.group is None and not pod.terminating and not pod.gates


def test_a_life_of_pods_that_look_at_each_other(seed: int) -> None:
    SociableLife(seed).live()
