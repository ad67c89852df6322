"""A cluster in which nothing happens costs nothing, and a restart of every controller changes nothing in it."""

from __future__ import annotations

from typing import Any

from controller_world import WITH_JOB, Cluster, job, node, pod

from muster.controllers.machine import controllers, makers


def busy() -> Cluster:
    """Running, finished, failing and blocked things of every kind, settled."""
    cluster = Cluster(gates=WITH_JOB)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {}, "maxUnavailable": "25%"},
    }
    tolerant = {"tolerations": [{"operator": "Exists"}]}
    cluster.create(node(), node("n2"), budget, job(parallelism=3, completions=3))
    cluster.create(job("done", annotations={"muster.dev/run-for": "3s"}, completions=2))
    cluster.create(job("bad", annotations={"muster.dev/run-for": "1s", "muster.dev/exit": "1"}, backoffLimit=1))
    cluster.create(job("asleep", suspend=True))
    cluster.create(pod("lonely", on="n2", spec=tolerant))
    cluster.patch("nodes", "n2", {"metadata": {"annotations": {"muster.dev/lost": "true"}}})
    cluster.advance(600)
    return cluster


def state_of(cluster: Cluster) -> dict[str, list[dict[str, Any]]]:
    resources = ("nodes", "pods", "jobs", "workloads", "podgroups", "poddisruptionbudgets")
    return {resource: cluster.all(resource) for resource in resources}


def test_nothing_is_written_and_nobody_wakes_up_while_nothing_happens():
    cluster = busy()
    told: list[Any] = []
    for name in makers(WITH_JOB):
        machine = cluster.world.machine(name)
        handle = machine.handle
        machine.handle = lambda event, now, handle=handle: told.append(event) or handle(event, now)
    revision = cluster.server.revision
    cluster.advance(24 * 3600)
    assert cluster.server.revision == revision
    assert told == []


def test_restarting_every_controller_changes_nothing():
    cluster = busy()
    before = state_of(cluster)
    for name in makers(WITH_JOB):
        cluster.world.restart(name)
    cluster.advance(3600)
    assert state_of(cluster) == before


def test_there_is_one_controller_of_each_kind_and_groups_only_where_there_are_some():
    names = [type(machine).__name__ for machine in controllers(WITH_JOB)]
    everyone = [
        "Jobs",
        "Collector",
        "Nodes",
        "Hollow",
        "ResourceClaims",
        "PodGroups",
        "Disruption",
        "Volumes",
        "Claims",
        "Drivers",
    ]
    everyone += ["Deployments", "ReplicaSets", "StatefulSets", "DaemonSets"]
    assert sorted(names) == sorted(everyone)
    plain = [
        type(machine).__name__ for machine in controllers(Cluster().server.gates, run=False, volumes=False, apps=False)
    ]
    assert sorted(plain) == sorted(["Jobs", "Collector", "Nodes", "Hollow", "ResourceClaims"])
