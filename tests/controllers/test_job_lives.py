"""Jobs in a rough world: late and lost events, refused and unanswered writes, pods that are deleted, a controller that
is restarted. What must hold at every moment is checked at every moment."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from controller_world import WITH_JOB, Cluster, job, node

from muster.api import writes
from muster.api.instant import MILLISECOND
from muster.controllers.jobs import indexes
from muster.sim.faults import CALM, Rates

ROUGH = Rates(lost_watch=0.02, late=0.3, conflict=0.08, unanswered=0.05)
TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"


def is_active(pod: dict[str, Any]) -> bool:
    return pod["status"]["phase"] not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


class Witness:
    """Sees every revision of every pod, and checks what must hold at each of them."""

    def __init__(self, cluster: Cluster, parallelism: int) -> None:
        self.succeeded: set[str] = set()
        self.failed: set[str] = set()
        self._cluster = cluster
        self._parallelism = parallelism
        self._active: dict[str, str | None] = {}
        self._watch = cluster.world.request(writes.watch("pods", str(cluster.server.revision)))

    def check(self) -> None:
        for change in self._watch.poll():
            if change.type != "BOOKMARK":
                self._see(change.type, change.object)
        status = self._cluster.status("jobs", "train")
        assert status.get("failed", 0) <= len(self.failed)
        assert status.get("succeeded", 0) <= len(self.succeeded)

    def _see(self, change: str, pod: dict[str, Any]) -> None:
        uid, tracked = pod["metadata"]["uid"], TRACKING in pod["metadata"].get("finalizers", ())
        if change != "DELETED" and is_active(pod):
            self._active[uid] = pod["metadata"]["annotations"].get(INDEX)
        else:
            self._active.pop(uid, None)
            if tracked:
                (self.succeeded if pod["status"]["phase"] == "Succeeded" else self.failed).add(uid)
        assert len(self._active) <= self._parallelism
        places = Counter(index for index in self._active.values() if index is not None)
        assert all(count == 1 for count in places.values())


def disturb(cluster: Cluster, random: Random, most: int) -> None:
    """A user deletes a pod, suspends or resumes the Job, or scales it; or the controller is restarted."""
    pods = [each for each in cluster.all("pods") if is_active(each)]
    what = random.random()
    if pods and what < 0.25:
        victim = random.choice(pods)["metadata"]
        cluster.world.call(writes.delete("pods", "default", victim["name"], uid=victim["uid"]))
    elif what < 0.4:
        cluster.world.restart("jobs")
    elif what < 0.5:
        cluster.patch("jobs", "train", {"spec": {"suspend": random.random() < 0.5}})
    elif what < 0.6:
        cluster.patch("jobs", "train", {"spec": {"parallelism": random.randint(1, most)}})


def live(seed: int, manifest: dict[str, Any], *, steps: int = 60) -> tuple[Cluster, Witness]:
    random = Random(seed)
    cluster = Cluster(gates=WITH_JOB, seed=seed, start_delay=300 * MILLISECOND, stop_delay=500 * MILLISECOND)
    cluster.create(node("n1"))
    witness = Witness(cluster, manifest["spec"]["parallelism"])
    cluster.faults.rates = ROUGH
    cluster.create(manifest)
    for _ in range(steps):
        cluster.advance(random.random() * 2)
        witness.check()
        disturb(cluster, random, manifest["spec"]["parallelism"])
    cluster.faults.rates = CALM
    cluster.patch("jobs", "train", {"spec": {"suspend": False}})
    for _ in range(240):
        cluster.advance(5)
        witness.check()
        if cluster.conditions("jobs", "train").keys() & {"Complete", "Failed"}:
            break
    cluster.advance(10)
    return cluster, witness


@pytest.mark.parametrize("life", range(6))
def test_an_indexed_job_completes_every_index_once_whatever_happens(life):
    manifest = job(
        annotations={"muster.dev/run-for": "3s"},
        parallelism=4,
        completions=9,
        completionMode="Indexed",
        backoffLimit=1000,
        scheduling={"schedulingPolicy": {"gang": {}}},
    )
    cluster, witness = live(life, manifest)
    status = cluster.status("jobs", "train")
    assert cluster.conditions("jobs", "train").get("Complete") == "True"
    assert indexes.parse(status["completedIndexes"]) == set(range(9))
    assert (status["succeeded"], status.get("failed", 0), status["active"]) == (9, len(witness.failed), 0)
    groups = {each["spec"]["schedulingGroup"]["podGroupName"] for each in cluster.all("pods")}
    assert groups == {each["metadata"]["name"] for each in cluster.all("podgroups")}
    assert len(groups) == 1


@pytest.mark.parametrize("life", range(6))
def test_a_job_without_indexes_counts_every_pod_once_whatever_happens(life):
    manifest = job(annotations={"muster.dev/run-for": "3s"}, parallelism=3, completions=7, backoffLimit=1000)
    cluster, witness = live(life, manifest)
    status = cluster.status("jobs", "train")
    assert cluster.conditions("jobs", "train").get("Complete") == "True"
    assert (status["succeeded"], status.get("failed", 0)) == (len(witness.succeeded), len(witness.failed))
    assert status["succeeded"] >= 7
    assert not status["uncountedTerminatedPods"] if "uncountedTerminatedPods" in status else True
    assert not any(is_active(each) for each in cluster.all("pods"))


@pytest.mark.parametrize("life", range(4))
def test_a_job_whose_pods_fail_ends_as_failed_with_the_right_count(life):
    manifest = job(
        annotations={"muster.dev/run-for": "1s", "muster.dev/exit": "3"}, parallelism=2, completions=4, backoffLimit=3
    )
    cluster, witness = live(life, manifest, steps=20)
    status = cluster.status("jobs", "train")
    assert cluster.conditions("jobs", "train").get("Failed") == "True"
    assert (
        (status.get("succeeded", 0), status["failed"])
        == (len(witness.succeeded), len(witness.failed))
        == (0, len(witness.failed))
    )
    assert len(witness.failed) > 3
