"""Deployments in a rough world: late and lost events, refused and unanswered writes, restarted controllers, users who
change their minds. What must hold at every moment is checked at every moment."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from controller_world import Cluster, node
from test_deployments import MACHINES, deployment, images, rolling, scale, set_image, sizes

from muster.api import writes
from muster.api.instant import MILLISECOND
from muster.sim.faults import CALM, Rates

ROUGH = Rates(lost_watch=0.01, late=0.3, latest=500 * MILLISECOND, conflict=0.08, unanswered=0.03)
STRATEGIES = [(1, 0), (0, 1), (2, 2), ("50%", "50%"), (0, "100%"), ("100%", 0)]


def is_active(pod: dict[str, Any]) -> bool:
    return pod["status"]["phase"] not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return is_active(pod) and any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


class Witness:
    """Sees every revision of every pod: at most `most`, and at least `least` ready ones.

    That is from when the Deployment knows of so many: of pods that get ready it is told later.
    """

    def __init__(self, cluster: Cluster, most: int, least: int = 0) -> None:
        self.most, self.least = most, least
        self._cluster = cluster
        self._pods: dict[str, dict[str, Any]] = {}
        self._begun = False
        self._watch = cluster.world.request(writes.watch("pods", str(cluster.server.revision)))

    def check(self) -> None:
        for change in self._watch.poll():
            if change.type != "BOOKMARK":
                self._see(change.type, change.object)
        self._begun |= self._cluster.status("deployments", "web").get("availableReplicas", 0) >= self.least

    def _see(self, change: str, pod: dict[str, Any]) -> None:
        if change == "DELETED":
            self._pods.pop(pod["metadata"]["uid"], None)
        else:
            self._pods[pod["metadata"]["uid"]] = pod
        assert sum(map(is_active, self._pods.values())) <= self.most
        ready = sum(map(is_ready, self._pods.values()))
        assert not self._begun or ready >= self.least


def rough(seed: int, replicas: int, **spec: Any) -> Cluster:
    cluster = Cluster(*MACHINES, seed=seed, start_delay=300 * MILLISECOND, stop_delay=500 * MILLISECOND)
    cluster.create(node("n1"), node("n2"))
    cluster.faults.rates = ROUGH
    cluster.create(deployment(replicas=replicas, **spec))
    return cluster


def heals(cluster: Cluster, image: str, replicas: int) -> None:
    """Left alone, it comes to where it should be."""
    cluster.faults.rates = CALM
    cluster.patch("nodes", "n1", {"metadata": {"annotations": {"muster.dev/lost": None}}})
    cluster.advance(600)
    assert images(cluster) == [image] * replicas
    assert sizes(cluster).pop(image) == replicas
    assert sum(sizes(cluster).values()) == replicas
    status = cluster.status("deployments", "web")
    assert [status.get(f"{each}Replicas", 0) for each in ("updated", "available", "unavailable")] == [
        replicas,
        replicas,
        0,
    ]


def bounds(replicas: int, surge: Any, missing: Any) -> tuple[int, int]:
    """As a person would read the strategy."""

    def number(given: Any, up: bool) -> int:
        if isinstance(given, int):
            return given
        part = int(given[:-1]) * replicas
        return (part + 99) // 100 if up else part // 100

    return replicas + number(surge, True), max(0, replicas - number(missing, False))


def test_a_rollout_keeps_to_its_limits_at_every_moment(seed):
    random, strategy = Random(seed), STRATEGIES[seed % len(STRATEGIES)]
    replicas = random.randint(2, 7)
    cluster = rough(seed, replicas, strategy=rolling(*strategy))
    witness = Witness(cluster, *bounds(replicas, *strategy))
    image = "v1"
    for step in range(24):
        if step % 6 == 5:
            image = f"v{random.randint(1, 4)}"
            set_image(cluster, image)
        if random.random() < 0.1:
            cluster.world.restart("deployments")
        cluster.advance(random.random())
        witness.check()
    heals(cluster, image, replicas)
    witness.check()


def test_whatever_users_and_nodes_do_it_comes_to_what_it_should_be_and_never_has_too_many_pods(seed):
    random = Random(seed)
    strategy = random.choice([*STRATEGIES, None])
    surge, missing = strategy or (0, 0)
    replicas = 4
    cluster = rough(seed, replicas, strategy=rolling(surge, missing) if strategy else {"type": "Recreate"})
    witness = Witness(cluster, most=bounds(8, surge, missing)[0])
    image = "v1"
    for _ in range(40):
        what = random.random()
        pods = [each["metadata"] for each in cluster.all("pods") if is_active(each)]
        if pods and what < 0.2:
            victim = random.choice(pods)
            cluster.world.call(writes.delete("pods", "default", victim["name"], uid=victim["uid"]))
        elif what < 0.3:
            cluster.world.restart(random.choice(("deployments", "replicasets")))
        elif what < 0.4:
            image = f"v{random.randint(1, 3)}"
            set_image(cluster, image)
        elif what < 0.5:
            replicas = random.randint(0, 8)
            scale(cluster, replicas)
        elif what < 0.6:
            lost = random.choice(("true", None))
            cluster.patch("nodes", "n1", {"metadata": {"annotations": {"muster.dev/lost": lost}}})
        elif what < 0.65:
            cluster.advance(60)
        cluster.advance(random.random() * 2)
        witness.check()
    heals(cluster, image, replicas)


@pytest.mark.parametrize("number", range(8))
def test_recreation_never_mixes_versions(number):
    random = Random(number)
    cluster = rough(number, 3, strategy={"type": "Recreate"})
    watch = cluster.world.request(writes.watch("pods", str(cluster.server.revision)))
    there: dict[str, str] = {}
    image = "v1"
    for step in range(30):
        if step % 6 == 5:
            image = f"v{random.randint(1, 4)}"
            set_image(cluster, image)
        if random.random() < 0.1:
            cluster.world.restart("deployments")
        cluster.advance(random.random())
        for change in watch.poll():
            if change.type == "DELETED":
                there.pop(change.object["metadata"]["uid"], None)
            elif change.type != "BOOKMARK":
                there[change.object["metadata"]["uid"]] = change.object["spec"]["containers"][0]["image"]
            assert len(set(there.values())) <= 1
    heals(cluster, image, 3)
