"""Random lives of pods and gangs with claims for devices, judged by what the server has stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from muster.api import catalog, writes
from muster.api.calls import Request, Response
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND
from muster.api.machine import Observed
from muster.scheduler.devices import DeviceStock
from muster.sim.cluster import cluster
from muster.sim.faults import CALM, Rates
from muster.sim.world import SCHEDULER, World
from muster.testing import invariants
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest

Json = Mapping[str, Any]
GATES = FeatureGates.of("GenericWorkload", "DRAWorkloadResourceClaims")
HEALING = 90 * SECOND
ROUGH = Rates(late=0.3, conflict=0.05, refused_bind=0.05, unanswered=0.03, lost_watch=0.01, killed=0.002)
DRIVER = "gpu.example.com"
RESOURCE = "example.com/gpu"


def resource(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    """An object of resource.k8s.io."""
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def asking(count: int, **more: Any) -> dict[str, Any]:
    """The spec of a claim for so many devices."""
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count, **more}
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


@dataclass(slots=True)
class Allocations:
    """One life: nodes with devices, pods and gangs that come and go. `wrong` says what does not hold afterwards."""

    seed: int
    rates: Rates = ROUGH
    random: Random = field(init=False)
    world: World = field(init=False)
    history: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    torn: set[str] = field(default_factory=set)
    """Gangs of which somebody has deleted or ended a pod."""
    held: set[str] = field(default_factory=set)
    """Groups that had a member bound."""
    bound: int = 0
    failed: int = 0
    _made: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.world = cluster(GATES, seed=self.seed, priority_admission=False, volumes=False, apps=False)
        self.world.most = 20_000
        self.world.overhear = self._notice
        self._furnish()

    def _notice(self, name: str, event: object, effects: Sequence[Any]) -> None:
        if isinstance(event, Observed) and event.resource == "pods" and event.object.raw["spec"].get("nodeName"):
            self.held.add(_group(event.object.raw))

    def live(self, events: int = 30) -> list[str]:
        """Returns what is wrong, after a story of what happened."""
        for number in range(events):
            self.world.faults.rates = self.rates
            self._happen()
            self.world.advance(self.random.choice((0, 0, 1, 5)) * SECOND)
            if number % 10 == 9:
                self._check()
        self._check()
        self._end()
        return [*self.history, *self.wrong] if self.wrong else []

    def churn(self, gangs: int) -> list[str]:
        """Gangs come, are bound or fail, and go; in the end no device may be missing."""
        for number in range(gangs):
            self.world.faults.rates = self.rates
            fails = self.random.random() < 0.5
            name, size = f"g{number}", self.random.randint(2, 4)
            self._gang(name, size, count=9 if fails else 1)
            self.world.advance(2 * SECOND)
            if not fails and self.random.random() < 0.5:
                for rank in range(size):
                    self._finish(f"{name}-{rank}")
            for rank in range(size):
                self._delete("pods", f"{name}-{rank}")
            self._delete("podgroups", name)
            self.world.advance(2 * SECOND)
        self._end()
        return [*self.history[-40:], *self.wrong] if self.wrong else []

    # -- what happens

    def _furnish(self) -> None:
        pick = self.random
        selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
        self._create(resource("DeviceClass", "gpu", selectors=selectors, extendedResourceName=RESOURCE))
        for number in range(3):
            name, plugin = f"n{number}", {RESOURCE: "1"} if pick.random() < 0.2 else {}
            self._create(node_manifest(name, cpu=str(pick.choice((3, 8))), labels={"rack": "r1"}, more=plugin))
            shared = pick.random() < 0.2
            devices = [self._device(f"g{i}", shared=shared) for i in range(pick.randint(1, 4))]
            self._slice(name, devices, nodeName=name)
        if pick.random() < 0.5:
            here = {"key": "rack", "operator": "In", "values": ["r1"]}
            self._slice("rack", [{"name": "wide"}], nodeSelector={"nodeSelectorTerms": [{"matchExpressions": [here]}]})
        for count in (1, 2, 9):
            self._create(resource("ResourceClaimTemplate", f"t{count}", spec=asking(count)))
        self._create(resource("ResourceClaim", "common", **asking(1)))
        self.world.quiesce()

    def _device(self, name: str, *, shared: bool) -> dict[str, Any]:
        if not shared:
            return {"name": name}
        policy = {"default": "1", "validRange": {"min": "1"}}
        return {
            "name": name,
            "allowMultipleAllocations": True,
            "capacity": {"parts": {"value": "2", "requestPolicy": policy}},
        }

    def _slice(self, name: str, devices: Sequence[Json], **where: Any) -> None:
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        self._create(
            resource("ResourceSlice", f"slice-{name}", driver=DRIVER, pool=pool, devices=list(devices), **where)
        )

    def _happen(self) -> None:
        pick = self.random
        actions = (
            self._single,
            self._single,
            self._some_gang,
            self._some_gang,
            self._remove,
            self._remove,
            self._end_one,
        )
        pick.choice(actions)()

    def _single(self) -> None:
        self._made += 1
        kind, name = self.random.random(), f"p{self._made}"
        if kind < 0.4:
            self._pod(name, {"resourceClaimTemplateName": self.random.choice(("t1", "t1", "t2"))})
        elif kind < 0.7:
            self._pod(name, {"resourceClaimName": "common"})
        else:
            self._create(pod_manifest(name, more={RESOURCE: "1"}))

    def _some_gang(self) -> None:
        self._made += 1
        pick = self.random
        self._gang(f"g{self._made}", pick.randint(2, 4), count=pick.choice((1, 1, 2, 9)))

    def _gang(self, name: str, size: int, count: int) -> None:
        """Its members have a claim each, or one together that is made for the group or there already."""
        kind = self.random.random()
        entry = {"resourceClaimTemplateName": f"t{count}"} if kind < 0.8 else {"resourceClaimName": "common"}
        shares = kind > 0.4
        claims: dict[str, Any] = {"resourceClaims": [{"name": "g", **entry}]} if shares else {}
        self._create(gang_manifest(name, size, **claims))
        for rank in range(size):
            self._pod(f"{name}-{rank}", entry, group=name)

    def _pod(self, name: str, entry: Json, **more: Any) -> None:
        manifest = pod_manifest(name, resourceClaims=[{"name": "g", **entry}], **more)
        manifest["spec"]["containers"][0]["resources"]["claims"] = [{"name": "g"}]
        self._create(manifest)

    def _remove(self) -> None:
        """A pod goes, or a group with all its pods."""
        pods = self._names("pods")
        if not pods:
            return
        name = self.random.choice(pods)
        group = name.partition("-")[0] if "-" in name else ""
        if not group or self.random.random() < 0.4:
            self.torn.add(group)
            self._delete("pods", name)
            return
        for one in pods:
            if one.startswith(f"{group}-"):
                self._delete("pods", one)
        self._delete("podgroups", group)

    def _end_one(self) -> None:
        running = [pod["metadata"]["name"] for pod in self._items("pods") if pod["spec"].get("nodeName")]
        if running:
            name = self.random.choice(running)
            self.torn.add(name.partition("-")[0])
            self._finish(name)

    # -- what must hold

    def _check(self) -> None:
        world = self.world
        world.faults.rates = CALM
        world.advance(HEALING)
        world.quiesce()
        pods = {pod["metadata"]["uid"]: pod for pod in self._items("pods")}
        claims = self._items("resourceclaims")
        running = [pod for pod in pods.values() if pod["spec"].get("nodeName")]
        self.bound, self.failed = self.bound + len(running), self.failed + len(pods) - len(running)
        groups = {group["metadata"]["uid"]: group["metadata"]["name"] for group in self._items("podgroups")}
        self.wrong += _given_twice(claims)
        self.wrong += [f"a reservation is left: {one}" for one in self._idle(claims, pods, groups)]
        self.wrong += [
            f"{pod['metadata']['name']} runs without its claims" for pod in running if self._lacks(pod, claims)
        ]
        self.wrong += self._half(running)
        self.wrong += invariants.differs_from_rebuilt(world.machine(), world.makers[SCHEDULER], world.server, world.now)
        self.wrong += _on_the_way(world.machine().cache.devices)
        self.wrong = list(dict.fromkeys(self.wrong))

    def _idle(self, claims: Sequence[Json], pods: Mapping[str, Json], groups: Mapping[str, str]) -> Iterator[str]:
        """Reservations for pods that are not bound, or for groups of which no pod ever was; what was reserved for a
        group without pods when the scheduler died is let go with the group."""
        waiting = {_group(pod) for pod in pods.values()} - self.held
        for claim in claims:
            for user in claim.get("status", {}).get("reservedFor") or ():
                pod = pods.get(user["uid"])
                there = pod is not None and pod["spec"].get("nodeName") and pod["status"].get("phase") != "Succeeded"
                group = groups.get(user["uid"]) if user["resource"] == "podgroups" else None
                if not there and (group is None or group in waiting):
                    yield f"{claim['metadata']['name']} for {user['resource']} {user['name']}"

    def _lacks(self, pod: Json, claims: Sequence[Json]) -> bool:
        """Whether a pod runs that no claim is reserved for, itself or its group."""
        if not pod["spec"].get("resourceClaims") or pod["status"].get("phase") == "Succeeded":
            return False
        users = [user for claim in claims for user in claim.get("status", {}).get("reservedFor") or ()]
        return not any(user["uid"] == pod["metadata"]["uid"] or user["name"] == _group(pod) for user in users)

    def _half(self, running: Sequence[Json]) -> Iterator[str]:
        """Gangs that run with less than their minimum though nobody has touched them."""
        there = Counter(_group(pod) for pod in running)
        for group in self._items("podgroups"):
            name, minimum = group["metadata"]["name"], group["spec"]["schedulingPolicy"]["gang"]["minCount"]
            if 0 < there[name] < minimum and name not in self.torn:
                yield f"{name} runs {there[name]} of {minimum}"

    def _end(self) -> None:
        """Everybody goes: nothing is held, chosen, expected or written any more."""
        for pod in self._names("pods"):
            self._delete("pods", pod)
        for group in self._names("podgroups"):
            self._delete("podgroups", group)
        self._check()
        claims = self._items("resourceclaims")
        left = [claim["metadata"]["name"] for claim in claims if claim.get("status", {}).get("allocation")]
        self.wrong += [f"claim {name} is still allocated" for name in left]
        made = [claim["metadata"]["name"] for claim in claims if claim["metadata"]["name"] != "common"]
        self.wrong += [f"claim {name} is still there" for name in made]
        machine = self.world.machine()
        if held := machine.cache.devices.columns().held:
            self.wrong.append(f"devices are held: {sorted(held)}")
        if machine.commit.allocating.busy:
            self.wrong.append("something is still to be written")

    # -- the server

    def _items(self, plural: str) -> Sequence[Json]:
        response = self.world.call(Request("GET", catalog.named(plural).path(None)))
        items: Sequence[Json] = response.body["items"]
        return items

    def _names(self, plural: str) -> list[str]:
        return sorted(item["metadata"]["name"] for item in self._items(plural))

    def _create(self, manifest: Json) -> None:
        answer = self.world.call(writes.create(manifest))
        assert answer.ok, answer
        self._note(f"create {manifest['kind']} {manifest['metadata']['name']}", answer)

    def _delete(self, plural: str, name: str) -> None:
        self._note(f"delete {plural} {name}", self.world.call(writes.delete(plural, "default", name)))

    def _finish(self, name: str) -> None:
        self._note(
            f"{name} ends", self.world.call(writes.patch_status("pods", "default", name, {"phase": "Succeeded"}))
        )

    def _note(self, what: str, answer: Response) -> None:
        self.history.append(f"{what} -> {answer.status}")


def _group(pod: Json) -> str:
    return str((pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or "")


def _given_twice(claims: Sequence[Json]) -> Iterator[str]:
    """Devices that have more takers than they can have: one, or of a shared one as many as it has parts."""
    takers: Counter[str] = Counter()
    shared: set[str] = set()
    for claim in claims:
        allocation = claim.get("status", {}).get("allocation") or {}
        for result in (allocation.get("devices") or {}).get("results") or ():
            device = f"{result['pool']}/{result['device']}"
            takers[device] += int((result.get("consumedCapacity") or {}).get("parts", 1))
            if "shareID" in result:
                shared.add(device)
    for device, count in takers.items():
        if count > (2 if device in shared else 1):
            yield f"device {device} is given {count} times"


def _on_the_way(stock: DeviceStock) -> Iterator[str]:
    """What is kept for pods on their way, when there are none."""
    for what, there in (("chosen", stock.chosen), ("coming", stock.coming), ("made", stock.extended)):
        if there:
            yield f"still {what}: {there}"
