"""Lives of StatefulSets and DaemonSets: whatever users, nodes and pods do, they come to what they should be, and what
must hold at every moment is checked at every moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from controller_world import Cluster, node
from test_daemon_sets import DEAD, GPU, daemon_set, machine
from test_daemon_sets import template as daemon_template
from test_stateful_sets import CLAIM, stateful_set
from test_stateful_sets import template as stateful_template

from muster.api import writes
from muster.api.instant import MILLISECOND
from muster.api.machine import Write
from muster.sim.faults import CALM, Rates

ROUGH = Rates(lost_watch=0.01, late=0.3, latest=500 * MILLISECOND, conflict=0.08, unanswered=0.03)
PATHS = "/api/v1/namespaces/default/pods"
QUICK = {"start_delay": 300 * MILLISECOND, "stop_delay": 500 * MILLISECOND}
AROUND = ("collector", "nodes", "hollow", "binder")
LIVES = pytest.mark.parametrize(
    "life", [pytest.param(life, marks=[pytest.mark.soak] if life >= 7 else []) for life in range(100)]
)
Json = dict[str, Any]


def ready(pod: Json | None) -> bool:
    if pod is None or "deletionTimestamp" in pod["metadata"] or pod["status"].get("phase") != "Running":
        return False
    conditions = pod["status"].get("conditions") or ()
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def alive(pod: Json) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") not in ("Succeeded", "Failed")


def version(pod: Json) -> int:
    return int(pod["spec"]["containers"][0]["image"].rpartition(":")[2])


class Order:
    """Hears every write of the StatefulSet controller, and checks it against what is there when it is sent."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.created = self.deleted = 0
        cluster.world.overhear = self._hear

    def _hear(self, name: str, event: object, effects: Sequence[Any]) -> None:
        if name != "statefulsets":
            return
        for effect in effects:
            request = effect.request if isinstance(effect, Write) else None
            if request is not None and request.path.startswith(PATHS) and request.method in ("POST", "DELETE"):
                self._check(request.method, request)

    def _check(self, method: str, request: Any) -> None:
        spec = self._cluster.get("statefulsets", "web")["spec"]
        there = {int(each["metadata"]["name"].rpartition("-")[2]): each for each in self._cluster.all("pods")}
        start = (spec.get("ordinals") or {}).get("start", 0)
        wanted = range(start, start + spec["replicas"])
        if method == "POST":
            ordinal = int(request.body["metadata"]["name"].rpartition("-")[2])
            self.created += 1
            assert ordinal in wanted and ordinal not in there
            assert all(ready(there.get(each)) for each in range(start, ordinal)), "made before its predecessors"
            return
        ordinal = int(request.path.rpartition("-")[2])
        self.deleted += 1
        if ordinal not in wanted:
            assert ordinal == max(each for each in there if each not in wanted), "deleted before its successors"
            assert all(ready(there.get(each)) for each in wanted), "scaled down while pods are not ready"
        elif alive(there[ordinal]):
            assert version(there[ordinal]) != version(spec["template"]), "a good pod was deleted"
            assert all(ready(there.get(each)) for each in wanted), "updated while pods are not ready"


def disturb(cluster: Cluster, random: Random, name: str, spec: Json) -> None:
    """One thing that users do to a StatefulSet, or that happens to a pod."""
    what = random.random()
    pods = [each for each in cluster.all("pods") if alive(each)]
    if pods and what < 0.2:
        cluster.world.call(writes.delete("pods", "default", random.choice(pods)["metadata"]["name"]))
    elif pods and what < 0.35:
        victim = random.choice(pods)["metadata"]["name"]
        phase = random.choice(("Failed", "Succeeded"))
        cluster.world.call(writes.patch_status("pods", "default", victim, {"phase": phase}))
    elif what < 0.45:
        cluster.world.restart(name)
    elif what < 0.6:
        spec["template"] = stateful_template(f"registry.example/web:{random.randint(1, 3)}")
    elif what < 0.8:
        spec["replicas"] = random.randint(0, 6)
    elif what < 0.9:
        spec["updateStrategy"] = {"rollingUpdate": {"partition": random.choice((0, 0, 2, 9))}}
    elif what < 0.95:
        spec["ordinals"] = {"start": random.choice((0, 0, 2))}
    cluster.patch("statefulsets", "web", {"spec": spec})


def is_complete(cluster: Cluster, spec: Json) -> None:
    """The set is as its spec says, and so is what its status says."""
    start, replicas = spec.get("ordinals", {}).get("start", 0), spec["replicas"]
    pods = {int(each["metadata"]["name"].rpartition("-")[2]): each for each in cluster.all("pods")}
    assert sorted(pods) == list(range(start, start + replicas))
    assert all(map(ready, pods.values()))
    partition = spec.get("updateStrategy", {}).get("rollingUpdate", {}).get("partition", 0)
    image = int(spec["template"]["spec"]["containers"][0]["image"].rpartition(":")[2])
    updated = [ordinal for ordinal, pod in pods.items() if version(pod) == image]
    assert set(range(start + partition, start + replicas)) <= set(updated)
    status = cluster.status("statefulsets", "web")
    assert [status[f"{each}"] for each in ("replicas", "readyReplicas", "availableReplicas")] == [replicas] * 3
    assert status["updatedReplicas"] == len(updated)
    if partition == 0:
        assert status["currentRevision"] == status["updateRevision"] and status["currentReplicas"] == replicas
    generation = cluster.get("statefulsets", "web")["metadata"]["generation"]
    assert status["observedGeneration"] == generation


@LIVES
def test_an_ordered_set_keeps_its_order_at_every_step_whatever_happens(life):
    random = Random(life)
    cluster = Cluster("statefulsets", *AROUND, seed=life, **QUICK)
    order = Order(cluster)
    spec: Json = {"replicas": random.randint(1, 5), "template": stateful_template()}
    cluster.create(node(), stateful_set(**spec, minReadySeconds=random.choice((0, 0, 1))))
    for _ in range(40):
        disturb(cluster, random, "statefulsets", spec)
        cluster.advance(random.choice((0.05, 0.4, 3)))
    cluster.advance(120)
    is_complete(cluster, spec)
    assert order.created


@LIVES
def test_a_set_comes_to_its_end_in_a_rough_world_and_keeps_its_claims(life):
    random = Random(life)
    policy = random.choice(("OrderedReady", "Parallel"))
    cluster = Cluster("statefulsets", *AROUND, seed=life, **QUICK)
    cluster.faults.rates = ROUGH
    spec: Json = {"replicas": random.randint(1, 5), "template": stateful_template()}
    made = stateful_set(**spec, podManagementPolicy=policy, volumeClaimTemplates=[CLAIM])
    cluster.create(node(), made)
    claims: dict[str, str] = {}
    for _ in range(30):
        disturb(cluster, random, "statefulsets", spec)
        cluster.advance(random.choice((0.05, 0.4, 3)))
        there = {each["metadata"]["name"]: each["metadata"]["uid"] for each in cluster.all("persistentvolumeclaims")}
        assert claims.items() <= there.items(), "a claim was lost"
        claims = there
    cluster.faults.rates = CALM
    cluster.advance(600)
    is_complete(cluster, spec)
    names = {f"data-{each['metadata']['name']}" for each in cluster.all("pods")}
    assert names <= set(claims) | {each["metadata"]["name"] for each in cluster.all("persistentvolumeclaims")}


class Doubles:
    """Sees every version of every pod: so many on a node at most that count."""

    def __init__(self, cluster: Cluster) -> None:
        self.most = 1
        self._pods: dict[str, Json] = {}
        self._watch = cluster.world.request(writes.watch("pods", str(cluster.server.revision)))

    def check(self) -> None:
        for change in self._watch.poll():
            if change.type in ("ADDED", "MODIFIED"):
                self._pods[change.object["metadata"]["uid"]] = change.object
            elif change.type == "DELETED":
                self._pods.pop(change.object["metadata"]["uid"], None)
            on = Counter(each["spec"].get("nodeName") for each in self._pods.values() if alive(each))
            on.pop(None, None)
            assert not on or max(on.values()) <= self.most, on


def rolling(missing: int | str, surge: int | str) -> Json:
    return {"rollingUpdate": {"maxUnavailable": missing, "maxSurge": surge}}


IN_PLACE = [rolling(1, 0), rolling(2, 0), rolling("50%", 0)]
SURGING = [rolling(0, 1), rolling(0, 2), rolling(0, "50%")]


def shake(cluster: Cluster, random: Random, spec: Json, nodes: dict[str, Json], strategies: Sequence[Json]) -> None:
    """One thing that happens to a DaemonSet, its pods or its nodes. `nodes`: name -> taint."""
    what = random.random()
    pods = [each for each in cluster.all("pods") if alive(each)]
    if pods and what < 0.15:
        cluster.world.call(writes.delete("pods", "default", random.choice(pods)["metadata"]["name"]))
    elif pods and what < 0.3:
        victim = random.choice(pods)["metadata"]["name"]
        cluster.world.call(writes.patch_status("pods", "default", victim, {"phase": "Failed"}))
    elif what < 0.38:
        cluster.world.restart("daemonsets")
    elif what < 0.5:
        spec["template"] = daemon_template(random.randint(1, 3))
    elif what < 0.6:
        name = f"m{random.getrandbits(30)}"
        nodes[name] = {}
        cluster.create(machine(name))
    elif what < 0.75 and nodes:
        name = random.choice(sorted(nodes))
        nodes[name] = random.choice(({}, {}, GPU, DEAD))
        cluster.patch("nodes", name, {"spec": {"taints": [nodes[name]] if nodes[name] else None}})
    elif what < 0.8 and len(nodes) > 1:
        name = random.choice(sorted(nodes))
        del nodes[name]
        cluster.delete("nodes", name)
    elif what < 0.9:
        spec["updateStrategy"] = random.choice(strategies)
    cluster.patch("daemonsets", "agent", {"spec": spec})


def covers(cluster: Cluster, spec: Json, nodes: dict[str, Json]) -> None:
    pods = [each for each in cluster.all("pods") if alive(each)]
    on = Counter(each["spec"].get("nodeName") for each in pods)
    for name, taint in nodes.items():
        assert on[name] == 1 if not taint else on[name] <= (taint is GPU), (name, taint, on)
    assert set(on) <= set(nodes)
    image = int(spec["template"]["spec"]["containers"][0]["image"].rpartition(":")[2])
    wanted = [name for name, taint in nodes.items() if not taint]
    assert all(version(each) == image for each in pods if each["spec"]["nodeName"] in wanted)
    status = cluster.status("daemonsets", "agent")
    numbers = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady")
    assert [status[each] for each in numbers] == [len(wanted)] * 3
    assert status.get("updatedNumberScheduled", 0) == status.get("numberAvailable", 0) == len(wanted)
    assert status["numberMisscheduled"] == len(pods) - len(wanted) and "numberUnavailable" not in status


def daemons(seed: int, rates: Rates) -> Cluster:
    cluster = Cluster("daemonsets", *AROUND, seed=seed, **QUICK)
    cluster.faults.rates = rates
    return cluster


@LIVES
def test_every_node_comes_to_its_one_pod_and_never_has_two(life):
    random = Random(life)
    cluster = daemons(life, ROUGH if life % 2 else CALM)
    nodes: dict[str, Json] = {f"m{each}": {} for each in range(3)}
    spec: Json = {"template": daemon_template()}
    doubles = Doubles(cluster)
    cluster.create(*map(machine, nodes), daemon_set(**spec))
    for _ in range(40):
        shake(cluster, random, spec, nodes, IN_PLACE)
        cluster.advance(random.choice((0.05, 0.4, 3)))
        doubles.check()
    cluster.faults.rates = CALM
    cluster.advance(3600)
    doubles.check()
    covers(cluster, spec, nodes)


@LIVES
def test_with_surge_a_node_has_two_pods_at_most_and_one_in_the_end(life):
    random = Random(life)
    cluster = daemons(life, ROUGH)
    nodes: dict[str, Json] = {f"m{each}": {} for each in range(4)}
    spec: Json = {"template": daemon_template(), "updateStrategy": random.choice(SURGING)}
    doubles = Doubles(cluster)
    doubles.most = 2
    cluster.create(*map(machine, nodes), daemon_set(**spec))
    for _ in range(30):
        shake(cluster, random, spec, nodes, SURGING)
        cluster.advance(random.choice((0.05, 0.4, 3)))
        doubles.check()
    cluster.faults.rates = CALM
    cluster.advance(3600)
    doubles.check()
    covers(cluster, spec, nodes)
