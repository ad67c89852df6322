"""Short lives in which the scheduler dies: seeded, small, and judged by what the server has stored, not by a cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from muster.api import writes
from muster.api.calls import Request, Response
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND, Instant
from muster.api.machine import Listed
from muster.scheduler.slots import PLAN, text_of
from muster.scheduler.watching import PODS
from muster.sim.cluster import cluster
from muster.sim.faults import CALM, Rates
from muster.sim.world import HOLLOW, SCHEDULER, World
from muster.testing import invariants
from muster.testing.builders import composite_manifest, gang_manifest, node_manifest, pod_manifest, workload_ref

Json = Mapping[str, Any]
SPACE = "default"
HEALING = 75 * SECOND
ROUGH = Rates(late=0.3, latest=3 * SECOND, conflict=0.03, refused_bind=0.05, unanswered=0.05, lost_watch=0.01)
GATES = FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")


@dataclass(slots=True)
class Ledger:
    """An API server that keeps account of bindings and deletions of pods."""

    server: Any
    bound: Counter[str] = field(default_factory=Counter)
    """Accepted bindings by pod uid."""
    names: set[str] = field(default_factory=set)
    """Pods that were ever bound."""
    evicted: Counter[str] = field(default_factory=Counter)
    """Deletions by pod uid."""
    twice: list[str] = field(default_factory=list)
    begun: int = 0
    """Plans written down, and bindings, since this was set to 0."""
    robbed: set[str] = field(default_factory=set)
    """Groups of which a pod was evicted."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.server, name)

    @property
    def revision(self) -> int:
        return int(self.server.revision)

    def handle(self, request: Request, now: Instant) -> Any:
        body = request.body if request.method == "DELETE" and "/pods/" in request.path else None
        asked = body if isinstance(body, Mapping) and body.get("gracePeriodSeconds") != 0 else {}
        uid = (asked.get("preconditions") or {}).get("uid")
        if uid is not None:
            found = self.server.handle(Request("GET", request.path), now)
            if found.ok and found.body["metadata"]["uid"] == uid:
                self.evicted[uid] += 1
                self.robbed.add((found.body["spec"].get("schedulingGroup") or {}).get("podGroupName", ""))
                if "deletionTimestamp" in found.body["metadata"]:
                    self.twice.append(found.body["metadata"]["name"])
        answer = self.server.handle(request, now)
        self.begun += (request.method == "PATCH" and PLAN in str(request.body)) or request.path.endswith("/binding")
        if request.path.endswith("/binding") and isinstance(answer, Response) and answer.ok:
            self.bound[request.body["metadata"]["uid"]] += 1
            self.names.add(request.body["metadata"]["name"])
        return answer


@dataclass(slots=True)
class Crash:
    """One life: some nodes, pods that run, gangs that come; the scheduler is killed once, twice or more often.

    `wrong` says what does not hold afterwards.
    """

    seed: int
    random: Random = field(init=False)
    world: World = field(init=False)
    ledger: Ledger = field(init=False)
    history: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    kills: int = 0
    closed: bool = False
    """A node was closed while a gang may have been on its way there: it may have to stay torn."""
    finished: int = 0
    """How many recorded plans a new scheduler found with something bound of them."""

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.world = cluster(GATES, seed=self.seed, priority_admission=False, volumes=False, apps=False, only=(HOLLOW,))
        self.ledger = Ledger(self.world.server)
        self.world.server = self.ledger  # type: ignore[assignment]
        self.world.overhear = self._half_bound

    @property
    def tight(self) -> bool:
        """Every third life is of one gang, where a slot that is given away cannot be made up for."""
        return self.seed % 3 == 0

    def live(self) -> list[str]:
        """Returns what is wrong, after a story of what happened."""
        pick = self.random
        if self.tight:
            return self._live_tightly()
        for number in range(pick.randint(2, 3)):
            self._create(node_manifest(f"n{number}", gpus=pick.choice((2, 3)), labels={"rack": f"r{number % 2}"}))
        for number in range(pick.choice((0, 0, 2))):
            self._create(pod_manifest(f"low{number}", gpus=1, priority=-1))
        self.world.quiesce()
        for round_number in range(pick.randint(1, 2)):
            self.world.faults.rates = pick.choice((CALM, ROUGH))
            for number in range(pick.randint(1, 2)):
                self._arrive(f"g{round_number}{number}")
            self._kill_on_the_way()
            self._heal()
        return [*self.history, *self.wrong] if self.wrong else []

    def _live_tightly(self) -> list[str]:
        """One gang that fills the cluster, and somebody more important who takes whatever is left free for a moment."""
        size = self.random.randint(3, 6)
        self._create(node_manifest("n0", gpus=size // 2))
        self._create(node_manifest("n1", gpus=size - size // 2))
        self.world.quiesce()
        self.world.faults.rates = self.random.choice((CALM, ROUGH))
        self._create(gang_manifest("g", size))
        self._members("g", size, 0)
        self._kill_on_the_way()
        self._heal()
        return [*self.history, *self.wrong] if self.wrong else []

    def _arrive(self, name: str) -> None:
        pick, priority = self.random, self.random.choice((0, 0, 5, 10))
        kind = pick.random()
        rack: Any = {"schedulingConstraints": {"topology": [{"key": "rack"}]}} if pick.random() < 0.2 else {}
        if kind < 0.1:
            self._create(pod_manifest(name, gpus=1, priority=priority))
        elif kind < 0.8:
            size = pick.randint(3, 6)
            self._create(gang_manifest(name, pick.choice((2, size, size, size)), priority=priority, **rack))
            self._members(name, size, priority)
        else:
            self._create(composite_manifest(name, 2, priority=priority, **rack))
            for group in (f"{name}a", f"{name}b"):
                link: Any = {"parentCompositePodGroupName": name, "workloadRef": workload_ref(name)}
                self._create(gang_manifest(group, pick.randint(1, 2), priority=priority, **link))
                self._members(group, 2, priority)

    def _members(self, group: str, size: int, priority: int) -> None:
        for rank in range(size):
            self._create(pod_manifest(f"{group}-{rank}", group=group, gpus=1, priority=priority))

    def _kill_on_the_way(self) -> None:
        """Steps through the next seconds, and kills the scheduler after some of the steps, once or several times."""
        pick = self.random
        for _ in range(pick.choice((1, 1, 1, 2, 2, 3))):
            if pick.random() < 0.7:
                self._until_begun()
            for _ in range(pick.randint(0, 8)):
                self.world.step(3 * SECOND)
            self.kills += 1
            self.history.append("the scheduler is killed")
            self._disturb()
            stands_by = pick.random() < 0.3
            if stands_by:
                self.world.pause()
            self.world.restart()
            if stands_by:
                for _ in range(pick.randint(0, 30)):
                    self.world.step(SECOND)
                self.world.resume()

    def _until_begun(self) -> None:
        """Goes on until a plan is written down, or a pod bound."""
        self.ledger.begun = 0
        for _ in range(400):
            if self.ledger.begun or not self.world.step(3 * SECOND):
                break

    def _half_bound(self, name: str, event: object, effects: Sequence[Any]) -> None:
        """Counts plans that are recorded and partly carried out when a new scheduler has seen everything."""
        if name != SCHEDULER or not isinstance(event, Listed) or event.resource != PODS:
            return
        state = invariants.read(self.world.server, self.world.now)
        running = Counter((pod["spec"].get("schedulingGroup") or {}).get("podGroupName") for pod in _bound(state))
        for group in state.groups:
            minimum = (group["spec"]["schedulingPolicy"].get("gang") or {}).get("minCount", 1)
            self.finished += bool(text_of(group)) and 0 < running[group["metadata"]["name"]] < minimum

    def _disturb(self) -> None:
        """Somebody more important comes while nobody is there; sometimes a node is closed."""
        pick = self.random
        if pick.random() < 0.1 and not self.tight:
            self.closed = True
            self.history.append("n0 is closed")
            self.world.call(writes.patch("nodes", "", "n0", {"spec": {"unschedulable": True}}))
        if pick.random() < 0.5:
            policy = "Never" if self.tight else pick.choice(("Never", "Never", "PreemptLowerPriority"))
            vip = pod_manifest(f"vip{self.kills}", gpus=pick.choice((1, 2)), priority=100, preemptionPolicy=policy)
            self._create(vip)

    def _heal(self) -> None:
        world = self.world
        world.faults.rates = CALM
        world.advance(HEALING)
        world.quiesce()
        state = invariants.read(world.server, world.now)
        self.wrong += invariants.overcommitted(state)
        self.wrong += invariants.waiting_in_vain(state, topology=True)
        self.wrong += [f"pod {uid} was bound {times} times" for uid, times in self.ledger.bound.items() if times > 1]
        self.wrong += [f"{name} was evicted although it was being deleted" for name in self.ledger.twice]
        self.wrong += self._torn(state)
        self.wrong += self._left_over(state)
        self.wrong += invariants.differs_from_rebuilt(world.machine(), world.makers[SCHEDULER], world.server, world.now)

    def _torn(self, state: invariants.State) -> list[str]:
        """Gangs with fewer members than their minimum that were not preempted: nothing but the crash explains it."""
        wrong, robbed = [], self.ledger.robbed
        running = Counter((pod["spec"].get("schedulingGroup") or {}).get("podGroupName") for pod in _bound(state))
        there = Counter((pod["spec"].get("schedulingGroup") or {}).get("podGroupName") for pod in state.pods)
        for group in state.groups:
            name, minimum = group["metadata"]["name"], group["spec"]["schedulingPolicy"]["gang"]["minCount"]
            if 0 < running[name] < minimum <= there[name] and name not in robbed and not self.closed:
                wrong.append(f"{name} runs {running[name]} of {minimum}")
        satisfied = Counter(
            group["spec"].get("parentCompositePodGroupName")
            for group in state.groups
            if running[group["metadata"]["name"]] >= group["spec"]["schedulingPolicy"]["gang"]["minCount"]
        )
        for tree in state.composites:
            name = tree["metadata"]["name"]
            below = [g for g in state.groups if g["spec"].get("parentCompositePodGroupName") == name]
            minimums = {it["metadata"]["name"]: it["spec"]["schedulingPolicy"]["gang"]["minCount"] for it in below}
            alive = sum(there[group] >= minimum for group, minimum in minimums.items())
            spared = robbed.isdisjoint(it["metadata"]["name"] for it in below)
            if 0 < satisfied[name] < 2 <= alive and spared and not self.closed:
                wrong.append(f"of {name} runs one group of 2")
        return wrong

    def _left_over(self, state: invariants.State) -> list[str]:
        """Plans are removed once they are carried out or of no use."""
        return [f"{it['metadata']['name']} carries a plan" for it in (*state.groups, *state.composites) if text_of(it)]

    def _create(self, manifest: Json) -> None:
        answer = self.world.call(writes.create(manifest))
        assert answer.ok, answer
        self.history.append(f"create {manifest['kind']} {manifest['metadata']['name']}")


def _bound(state: invariants.State) -> list[Json]:
    return [pod for pod in state.pods if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]]
