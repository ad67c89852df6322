"""A cluster's random life: users come and go, nodes break, the scheduler dies; replayed by its seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from muster.api import writes
from muster.api.calls import STRATEGIC_PATCH, Request, Response
from muster.api.gates import FeatureGates
from muster.api.instant import MINUTE, SECOND
from muster.model.decision import Decision
from muster.scheduler.effects import Decide
from muster.scheduler.events import Decided
from muster.sim.cluster import cluster
from muster.sim.faults import CALM, ROUGH, Rates
from muster.sim.world import SCHEDULER, World
from muster.testing import invariants
from muster.testing.builders import composite_manifest, gang_manifest, node_manifest, pod_manifest, workload_ref

Json = Mapping[str, Any]
SPACE = "default"
GATE = "example.com/hold"
RACK = "rack"
MOST_STEPS = 20_000
"""Steps at one instant that no event in a cluster this small explains."""
HEALING = 70 * SECOND
"""Long enough for a refused group to give its slots back (a minute) and to be tried again."""


class Broken(AssertionError):
    """An invariant does not hold; the message has the seed, what was done so far, and what is wrong."""


@dataclass(slots=True)
class Life:
    """One random run. `live()` does `events` random things and checks the invariants now and then."""

    seed: int
    events: int = 60
    rates: Rates = ROUGH
    racks: bool = False
    """Whether nodes stand in racks, and some groups have to stay in one."""
    trees: bool = False
    """Whether there are hierarchies of groups, among racks as well."""
    resizes: bool = False
    """Whether pods run, and are resized in place, with evictions for those that have to wait."""
    gates: FeatureGates = field(default_factory=lambda: FeatureGates.of("GenericWorkload", "WorkloadWithJob"))
    history: list[str] = field(default_factory=list)
    random: Random = field(init=False)
    world: World = field(init=False)
    wrong: list[str] = field(default_factory=list)
    moved: set[str] = field(default_factory=set)
    """Nodes that were once given another rack label: groups there may be split for good."""
    busiest: int = 0
    """The most decisions that followed one thing that happened."""
    _made: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        if self.racks:
            self.gates = FeatureGates.of("GenericWorkload", "WorkloadWithJob", "TopologyAwareWorkloadScheduling")
        if self.trees:
            self.racks = True
            self.gates = FeatureGates.of(
                "GenericWorkload", "WorkloadWithJob", "TopologyAwareWorkloadScheduling", "CompositePodGroup"
            )
        if self.resizes:
            self.gates = FeatureGates.of(
                "GenericWorkload", "WorkloadWithJob", "InPlacePodVerticalScalingSchedulerPreemption"
            )
        self.world = cluster(self.gates, seed=self.seed, priority_admission=False, rates=self.rates, run=self.resizes)
        self.world.most = MOST_STEPS
        self.world.witness = self._judge
        self.world.overhear = self._overhear

    def live(self) -> None:
        """
        Raises:
            Broken: an invariant does not hold.
        """
        for _ in range(self.random.randint(2, 5)):
            self._add_node()
        try:
            for number in range(1, self.events + 1):
                self._something()
                if number % 10 == 0:
                    self._check()
        except Broken:
            raise
        except Exception as error:
            raise Broken(self._story(f"{type(error).__name__}: {error}")) from error

    # -- what happens

    def _something(self) -> None:
        actions, weights = zip(*self._actions(), strict=True)
        (action,) = self.random.choices(actions, weights)
        before = len(self.world.decisions)
        action()
        chance = self.random.random()
        if chance < 0.6:
            self.world.settle()
        elif chance < 0.8:
            self._pass_time()
        self.busiest = max(self.busiest, len(self.world.decisions) - before)

    def _actions(self) -> Sequence[tuple[Callable[[], None], int]]:
        return (
            (self._add_single, 14),
            (self._add_group, 16),
            (self._add_placed_pod, 3),
            (self._add_job, 5),
            (self._delete_job, 2),
            (self._add_member, 10),
            (self._delete_pod, 12),
            (self._end_pod, 10),
            (self._change_minimum, 8),
            (self._open_gate, 10),
            (self._delete_group, 4),
            (self._bring_group_back, 6),
            (self._add_node, 5),
            (self._delete_node, 2),
            (self._change_node, 9),
            (self._restart, 2),
            (self._pause, 3),
            (self._break_watches, 2),
            *([(self._resize, 20)] if self.resizes else ()),
            *([(self._move_node, 4)] if self.racks and not self.trees else ()),
            *([(self._add_tree, 16), (self._delete_tree, 4), (self._bring_root_back, 8)] if self.trees else ()),
        )

    def _add_single(self) -> None:
        self._create(self._pod(f"s{self._number()}", None, self.random.choice((0, 0, 10))))

    def _add_group(self) -> None:
        name, priority = f"g{self._number()}", self.random.choice((0, 0, 10))
        size = self.random.randint(1, 6)
        minimum = None if self.random.random() < 0.2 else self.random.randint(1, size + (self.random.random() < 0.2))
        objects = [gang_manifest(name, minimum, priority=priority, **self._constraint(name))]
        objects += [self._pod(f"{name}-{rank}", name, priority) for rank in range(size)]
        self.random.shuffle(objects)
        for manifest in objects:
            self._create(manifest)
            if self.random.random() < 0.2:
                self.world.settle()

    def _add_tree(self) -> None:
        """A root with two or three groups of one or two pods below it, one of them perhaps a level deeper."""
        pick, name = self.random, f"t{self._number()}"
        priority = pick.choice((0, 0, 10))
        constraint: dict[str, Any] = {"schedulingConstraints": {"topology": [{"key": RACK}]}}
        size = pick.randint(2, 3)
        rack = constraint if pick.random() < 0.3 else {}
        objects = [composite_manifest(name, pick.choice((None, 1, size, size)), priority=priority, **rack)]
        parent = name
        if pick.random() < 0.3:
            parent = f"{name}-sub"
            below: dict[str, Any] = {"parentCompositePodGroupName": name}
            objects.append(composite_manifest(parent, pick.choice((None, 1, size)), priority=priority, **below))
        for number in range(size):
            group, above = f"{name}g{number}", name if number == 0 else parent
            minimum, members = pick.choice((None, 1, 2)), pick.randint(1, 2)
            rack = constraint if pick.random() < 0.3 else {}
            link: dict[str, Any] = {"parentCompositePodGroupName": above, "workloadRef": workload_ref(name)}
            objects.append(gang_manifest(group, minimum, priority=priority, **link, **rack))
            objects += [self._pod(f"{group}-{rank}", group, priority) for rank in range(members)]
        pick.shuffle(objects)
        for manifest in objects:
            self._create(manifest)
            if pick.random() < 0.2:
                self.world.settle()

    def _delete_tree(self) -> None:
        """A composite group goes; what is below it stays."""
        if group := self._any("compositepodgroups"):
            name = group["metadata"]["name"]
            self._do("unprotect", writes.patch("compositepodgroups", SPACE, name, {"metadata": {"finalizers": None}}))
            self._do("delete", writes.delete("compositepodgroups", SPACE, name))

    def _bring_root_back(self) -> None:
        """A composite group that others name as their parent and that does not exist is made (again), as a root."""
        there = {group["metadata"]["name"] for group in self._list("compositepodgroups")}
        below = [*self._list("podgroups"), *self._list("compositepodgroups")]
        named = {group["spec"].get("parentCompositePodGroupName"): group for group in below}
        lost = sorted(name for name in named if name and name not in there)
        if lost:
            name = self.random.choice(lost)
            minimum = self.random.choice((None, 1, 2))
            self._create(composite_manifest(name, minimum, priority=named[name]["spec"].get("priority", 0)))

    def _constraint(self, group: str) -> Json:
        """With racks, every other group has to stay in one; made anew under the same name it does so again."""
        if not self.racks or int(group[1:]) % 2:
            return {}
        return {"schedulingConstraints": {"topology": [{"key": RACK}]}}

    def _add_job(self) -> None:
        """A Job whose pods are a gang, a basic group, or what its controller makes of no word on scheduling."""
        name, size = f"j{self._number()}", self.random.randint(1, 4)
        spec = {
            "parallelism": size,
            "completions": size,
            "completionMode": "Indexed",
            "backoffLimit": 20,
            "template": {"spec": {**self._pod(name, None, 0)["spec"], "restartPolicy": "Never"}},
        }
        if self.random.random() < 0.8:
            spec["scheduling"] = {"schedulingPolicy": self.random.choice(({"gang": {}}, {"basic": {}}))}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": SPACE}, "spec": spec}
        self._create(job)

    def _delete_job(self) -> None:
        if job := self._any("jobs"):
            propagation = self.random.choice(("Background", "Foreground"))
            self._do("delete", writes.delete("jobs", SPACE, job["metadata"]["name"], propagation=propagation))

    def _add_placed_pod(self) -> None:
        """A pod that names its node, where there is room for it and nothing is being decided.

        Everybody hears of it before anything else happens: else the scheduler may rightly give its room away.
        """
        node = self._any("nodes")
        if node is None or not self.world.at_rest or self.world.machine().cache.assumed:
            return
        pod = self._pod(f"d{self._number()}", None, 0)
        pod["spec"]["nodeName"] = node["metadata"]["name"]
        state = invariants.read(self.world.server, self.world.now)
        if not invariants.overcommitted(replace(state, pods=(*state.pods, pod))):
            self._create(pod)
            self.world.faults.rates = CALM
            self.world.settle()
            self.world.faults.rates = self.rates

    def _add_member(self) -> None:
        if group := self._any("podgroups"):
            name = group["metadata"]["name"]
            self._create(self._pod(f"{name}-x{self._number()}", name, group["spec"].get("priority", 0)))

    def _delete_pod(self) -> None:
        if pod := self._any("pods"):
            self._do("delete", writes.delete("pods", SPACE, pod["metadata"]["name"]))

    def _end_pod(self) -> None:
        if pod := self._any("pods", lambda pod: bool(pod["spec"].get("nodeName"))):
            phase = self.random.choice(("Succeeded", "Failed"))
            self._do(phase, writes.patch_status("pods", SPACE, pod["metadata"]["name"], {"phase": phase}))

    def _resize(self) -> None:
        """Larger or smaller, perhaps more than its node has."""
        if pod := self._any("pods", lambda pod: pod.get("status", {}).get("phase") == "Running"):
            container = pod["spec"]["containers"][0]["name"]
            size = {"requests": {"cpu": str(self.random.randint(1, 14))}}
            body = {"spec": {"containers": [{"name": container, "resources": size}]}}
            asked = writes.patch("pods", SPACE, pod["metadata"]["name"], body, STRATEGIC_PATCH, subresource="resize")
            self._do(f"resize {size}", asked)

    def _change_minimum(self) -> None:
        if group := self._any("podgroups", lambda group: "gang" in group["spec"]["schedulingPolicy"]):
            minimum = max(1, group["spec"]["schedulingPolicy"]["gang"]["minCount"] + self.random.choice((-2, -1, 1)))
            body = {"spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}}}
            self._do(f"minimum {minimum}", writes.patch("podgroups", SPACE, group["metadata"]["name"], body))

    def _open_gate(self) -> None:
        if pod := self._any("pods", lambda pod: bool(pod["spec"].get("schedulingGates"))):
            body = {"spec": {"schedulingGates": None}}
            self._do("open gate", writes.patch("pods", SPACE, pod["metadata"]["name"], body))

    def _delete_group(self) -> None:
        if group := self._any("podgroups"):
            name = group["metadata"]["name"]
            self._do("unprotect", writes.patch("podgroups", SPACE, name, {"metadata": {"finalizers": None}}))
            self._do("delete", writes.delete("podgroups", SPACE, name))

    def _bring_group_back(self) -> None:
        """A group that pods name and that does not exist is made (again)."""
        there = {group["metadata"]["name"] for group in self._list("podgroups")}
        named = {pod["spec"].get("schedulingGroup", {}).get("podGroupName"): pod for pod in self._list("pods")}
        lost = sorted(name for name in named if name and name not in there)
        if lost:
            name = self.random.choice(lost)
            minimum = self.random.choice((None, 1, 2, 3))
            constraint = self._constraint(name) if name[1:].isdecimal() else {}
            self._create(gang_manifest(name, minimum, priority=named[name]["spec"].get("priority", 0), **constraint))

    def _add_node(self) -> None:
        """Nodes of one name are alike in size, so that one that comes back does not find too many pods."""
        number = self.random.randrange(8)
        size = Random(number)
        tainted = self.random.random() < 0.15
        self._create(
            node_manifest(
                f"n{number}",
                cpu=str(size.randint(4, 12)),
                memory="64Gi",
                gpus=size.choice((0, 2, 4, 8)),
                labels={"zone": size.choice("ab"), **({RACK: f"r{number % 3}"} if self.racks and number else {})},
                taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}] if tainted else (),
            )
        )

    def _delete_node(self) -> None:
        if node := self._any("nodes"):
            self._do("delete", writes.delete("nodes", "", node["metadata"]["name"]))

    def _change_node(self) -> None:
        if node := self._any("nodes"):
            body = self.random.choice(
                (
                    {"spec": {"unschedulable": True}},
                    {"spec": {"unschedulable": None}},
                    {"spec": {"unschedulable": None, "taints": None}},
                    {"spec": {"taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]}},
                    {"metadata": {"labels": {"zone": self.random.choice("ab")}}},
                    {"metadata": {"labels": {"irrelevant": str(self._number())}}},
                )
            )
            self._do(f"change {body}", writes.patch("nodes", "", node["metadata"]["name"], body))

    def _move_node(self) -> None:
        """To another rack, or out of all of them."""
        if node := self._any("nodes"):
            self.moved.add(node["metadata"]["name"])
            body = {"metadata": {"labels": {RACK: self.random.choice(("r0", "r1", "r2", None))}}}
            self._do(f"change {body}", writes.patch("nodes", "", node["metadata"]["name"], body))

    def _restart(self) -> None:
        self.history.append("restart the scheduler")
        self.world.restart()

    def _pause(self) -> None:
        self.history.append("pause or resume the scheduler")
        if self.world.paused:
            self.world.resume()
        else:
            self.world.pause()

    def _break_watches(self) -> None:
        """The server forgets its history: watches that lag behind expire."""
        self.history.append("compact")
        self.world.server.compact()

    def _pass_time(self) -> None:
        us = self.random.choice((1, 5, 20, 90)) * SECOND
        self.history.append(f"{us // SECOND} s pass")
        self.world.advance(us)

    def _pod(self, name: str, group: str | None, priority: int) -> dict[str, Any]:
        pick = self.random
        spec: dict[str, Any] = {"priority": priority}
        if pick.random() < 0.15:
            spec["nodeSelector"] = {"zone": pick.choice("ab")}
        if pick.random() < 0.2:
            spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
        return pod_manifest(
            name,
            namespace=SPACE,
            cpu=str(pick.randint(1, 4)),
            memory="1Gi",
            gpus=pick.choice((0, 0, 1, 2)),
            group=group,
            gates=(GATE,) if pick.random() < 0.1 else (),
            ports=(8080,) if pick.random() < 0.1 else (),
            **spec,
        )

    # -- the checks

    def _overhear(self, name: str, event: object, effects: Sequence[Any]) -> None:
        if name != SCHEDULER:
            return
        if type(event) is Decided:
            self.wrong += invariants.rash(self.world.machine(), effects)
        if self.world.paused and any(type(effect) is Decide for effect in effects):
            self.wrong.append(f"a decision was asked for after {event!r} although the scheduler is paused")

    def _judge(self, asked: Decide, decision: Decision) -> None:
        self.wrong += invariants.premature(asked)
        self.wrong += invariants.unsound(asked, decision)
        self.wrong += invariants.missed(asked, decision)
        self.wrong += invariants.reckless(asked, decision)

    def _check(self) -> None:
        """Lets the world heal, then looks whether everything that must hold does."""
        self.world.faults.rates = CALM
        if self.world.paused:
            self.world.resume()
        self.world.advance(HEALING)
        self.world.quiesce()
        state = invariants.read(self.world.server, self.world.now)
        self.wrong += invariants.overcommitted(state)
        self.wrong += invariants.growing_in_vain(state)
        self.wrong += invariants.waiting_in_vain(state, topology=self.racks)
        if self.racks:
            self.wrong += invariants.scattered(state, ignored=self.moved)
        self.wrong += invariants.differs_from_rebuilt(
            self.world.machine(), self.world.makers[SCHEDULER], self.world.server, self.world.now
        )
        self.wrong += self._restlessness(state)
        if self.wrong:
            raise Broken(self._story(*dict.fromkeys(self.wrong)))
        self.world.faults.rates = self.rates

    def _restlessness(self, state: invariants.State) -> list[str]:
        """In four quiet minutes nothing is decided but one safety retry for each entry that waits (M4)."""
        before = len(self.world.decisions)
        self.world.advance(4 * MINUTE)
        waiting = sum(not pod["spec"].get("nodeName") or invariants.is_deferred(pod) for pod in state.pods)
        decided = len(self.world.decisions) - before
        return [f"{decided} decisions in four quiet minutes for {waiting} waiting pods"] if decided > waiting else []

    def _story(self, *sentences: str) -> str:
        return "\n".join((*self.history, f"seed {self.seed} is broken:", *sentences))

    # -- the user's hands

    def _number(self) -> int:
        self._made += 1
        return self._made

    def _create(self, manifest: Json) -> None:
        self.world.tick(SECOND)
        self._do("create", writes.create(manifest), name=manifest["metadata"]["name"])

    def _do(self, what: str, request: Request, name: str = "") -> None:
        response = self.world.call(request)
        self.history.append(f"{what} {request.path} {name} -> {response.status}")

    def _list(self, resource: str) -> Sequence[Json]:
        response = self.world.call(writes.list_all(resource))
        assert isinstance(response, Response) and response.ok, response
        items: Sequence[Json] = response.body["items"]
        return items

    def _any(self, resource: str, which: Callable[[Json], bool] = lambda item: True) -> Json | None:
        found = [item for item in self._list(resource) if which(item) and "deletionTimestamp" not in item["metadata"]]
        return self.random.choice(sorted(found, key=lambda item: item["metadata"]["name"])) if found else None
