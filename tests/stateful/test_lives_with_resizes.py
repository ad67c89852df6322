"""Random lives of small clusters whose pods are resized all the time: what is allocated never exceeds what there is."""

from __future__ import annotations

from random import Random
from typing import Any

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.api.instant import MINUTE, SECOND
from muster.api.quantity import milli
from muster.controllers.resizing import PENDING
from muster.sim.cluster import cluster
from muster.sim.faults import CALM, ROUGH
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest

Json = dict[str, Any]
GATES = ("InPlacePodVerticalScalingSchedulerPreemption", "GenericWorkload")
EVENTS = 40


class Life:
    """Nodes of 4 CPUs; pods of up to 4 that grow, shrink, come and go, some of them in groups."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = cluster(FeatureGates.of(*GATES), seed=seed, priority_admission=False, rates=ROUGH, run=True)
        self.evicted: dict[str, str] = {}
        self._made = 0
        for number in range(self.random.randint(1, 3)):
            self._do(writes.create(node_manifest(f"n{number}", cpu="4")))

    def live(self) -> None:
        for _ in range(EVENTS):
            (action,) = self.random.choices(
                (self._add, self._add_group, self._resize, self._delete, self._restart, self._change_node),
                (6, 1, 12, 3, 1, 1),
            )
            action()
            self.world.advance(self.random.choice((0, SECOND // 3, SECOND, 5 * SECOND)))
            self.check()
        self.world.faults.rates = CALM
        self.world.advance(8 * MINUTE)
        self.check()
        self.check_at_rest()

    # -- what happens

    def _do(self, request: Any) -> None:
        self.world.call(request)

    def _add(self, group: str | None = None, priority: int | None = None) -> None:
        self._made += 1
        least = self.random.choice((0, 5, 5, 9)) if priority is None else priority
        policy = {"preemptionPolicy": "Never"} if self.random.random() < 0.1 else {}
        cpu = str(self.random.randint(1, 3))
        self._do(writes.create(pod_manifest(f"p{self._made}", cpu=cpu, group=group, priority=least, **policy)))

    def _add_group(self) -> None:
        name, priority = f"g{self._made}", self.random.choice((0, 5))
        mode = {"disruptionMode": {"all": {}}} if self.random.random() < 0.5 else {}
        self._do(writes.create(gang_manifest(name, 2, priority=priority, **mode)))
        for _ in range(2):
            self._add(name, priority)

    def _resize(self) -> None:
        running = [pod for pod in self.pods() if pod["spec"].get("nodeName")]
        if running:
            pod = self.random.choice(running)
            size = {"requests": {"cpu": str(self.random.randint(1, 5))}}
            body = {"spec": {"containers": [{"name": "main", "resources": size}]}}
            name = pod["metadata"]["name"]
            kind = "application/strategic-merge-patch+json"
            self._do(writes.patch("pods", "default", name, body, kind, subresource="resize"))

    def _delete(self) -> None:
        if pods := self.pods():
            self._do(writes.delete("pods", "default", self.random.choice(pods)["metadata"]["name"]))

    def _restart(self) -> None:
        name = self.random.choice(("scheduler", "hollow"))
        if name == "hollow":  # What it has set aside is known to it alone until it has been written.
            self.world.quiesce()
        self.world.restart(name)

    def _change_node(self) -> None:
        owners = self.random.choice(({"disableResizePreemption": ["example.com/a"]}, None))
        self._do(writes.patch("nodes", "", "n0", {"spec": {"podPreemptionPolicy": owners}}))

    # -- what must hold

    def pods(self) -> list[Json]:
        found: list[Json] = self.world.call(writes.list_all("pods", "default")).body["items"]
        return found

    def check(self) -> None:
        """What kubelets have set aside for pods that have started is never more than there is."""
        for node in self.world.call(writes.list_all("nodes")).body["items"]:
            name = node["metadata"]["name"]
            started = [pod for pod in self.pods() if pod["spec"].get("nodeName") == name and _phase(pod) == "Running"]
            assert sum(map(allocated, started)) <= 4000, (name, [pod["metadata"]["name"] for pod in started])

    def check_at_rest(self) -> None:
        """No resize waits that would fit, is in progress, or is said to be; whoever waits for one is told why."""
        diagnoses = {key.key.name for key in self.world.machine().diagnoses}
        for pod in self.pods():
            if _phase(pod) != "Running":
                continue
            name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
            told = {c["type"]: c.get("reason") for c in pod["status"]["conditions"] if c["type"].startswith("PodRes")}
            wants = milli(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            here = [each for each in self.pods() if each["spec"].get("nodeName") == node and not _ended(each)]
            others = sum(allocated(each) for each in here if each["metadata"]["name"] != name)
            if wants == allocated(pod):
                assert told == {}, name
                assert pod["status"]["containerStatuses"][0]["resources"] == pod["spec"]["containers"][0]["resources"]
            elif wants > 4000:
                assert told == {PENDING: "Infeasible"}, name
            else:
                assert told == {PENDING: "Deferred"} and others + wants > 4000, name
                assert name in diagnoses, name


def _phase(pod: Json) -> str:
    return str((pod.get("status") or {}).get("phase"))


def _ended(pod: Json) -> bool:
    return _phase(pod) in ("Succeeded", "Failed")


def allocated(pod: Json) -> int:
    """In thousandths of a core."""
    for told in pod["status"].get("containerStatuses") or ():
        if "allocatedResources" in told:
            return milli(told["allocatedResources"]["cpu"])
    return milli(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def test_nothing_is_overcommitted_and_no_resize_waits_that_would_fit(seed: int) -> None:
    Life(seed).live()
