"""A controller for TrainingRuns whose workers start together, with the official Python client (kubernetes 37 or newer).

muster up                                              # in one terminal
muster apply -f examples/training/definition.yaml      # in another
python examples/training/controller.py [http://...:7077]
muster apply -f examples/training/run.yaml             # in a third
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kubernetes import client, watch

from muster.workloadbuilder import Builder, BuildOptions, SchedulingConfig, WorkloadItem, pod_group_name, workload_name

RUNS = GROUP, VERSION, _ = "ml.example.com", "v1", "trainingruns"
SCHEDULING = "scheduling.k8s.io", "v1beta1"
ROLE = "workers"


def owner(run: dict[str, Any]) -> dict[str, Any]:
    meta = run["metadata"]
    named = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "TrainingRun", "name": meta["name"], "uid": meta["uid"]}
    return {**named, "controller": True, "blockOwnerDeletion": True}


def scheduling(run: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The Workload and the PodGroup of a run: a gang if it is synchronous."""
    meta, spec = run["metadata"], run["spec"]
    gang = spec.get("mode", "sync") == "sync"
    policy: dict[str, Any] = {"gang": {"minCount": spec["workers"]}} if gang else {"basic": {}}
    item = WorkloadItem(ROLE, SchedulingConfig(policy=policy))
    name = workload_name(meta["name"], meta["uid"])
    builder = Builder(item, BuildOptions(name, meta["namespace"], owner(run)))
    return builder.build_workload(), builder.new_pod_group(pod_group_name(name, ROLE), ROLE)


def worker(run: dict[str, Any], number: int, group: str) -> dict[str, Any]:
    meta, spec = run["metadata"], run["spec"]
    gpus = {"nvidia.com/gpu": str(spec.get("gpusPerWorker", 8))}
    container = {"name": "train", "image": spec["image"], "resources": {"requests": gpus, "limits": gpus}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{meta['name']}-{number}",
            "namespace": meta["namespace"],
            "labels": {"training-run": meta["name"]},
            "ownerReferences": [owner(run)],
        },
        "spec": {"schedulingGroup": {"podGroupName": group}, "containers": [container]},
    }


class Controller:
    """Makes what is missing of every run, and removes what a run that is gone has left."""

    def __init__(self, api: client.ApiClient) -> None:
        self.core, self.custom = client.CoreV1Api(api), client.CustomObjectsApi(api)

    def reconcile(self, run: dict[str, Any]) -> None:
        workload, group = scheduling(run)
        self.ensure("workloads", workload)
        self.ensure("podgroups", group)
        for number in range(run["spec"]["workers"]):
            with ignoring(409):
                pod = worker(run, number, group["metadata"]["name"])
                self.core.create_namespaced_pod(run["metadata"]["namespace"], pod)

    def ensure(self, plural: str, wanted: dict[str, Any]) -> None:
        place = *SCHEDULING, wanted["metadata"]["namespace"], plural
        with ignoring(409):
            self.custom.create_namespaced_custom_object(*place, wanted)
            return
        scaled = {"spec": wanted["spec"]}  # it is there: at most its minimum is another one
        self.custom.patch_namespaced_custom_object(*place, wanted["metadata"]["name"], scaled)

    def once(self) -> None:
        runs = self.custom.list_cluster_custom_object(*RUNS)["items"]
        alive = {run["metadata"]["uid"]: run for run in runs if "deletionTimestamp" not in run["metadata"]}
        for run in alive.values():
            self.reconcile(run)
        for plural in ("podgroups", "workloads"):
            for made in self.custom.list_cluster_custom_object(*SCHEDULING, plural)["items"]:
                for owner in made["metadata"].get("ownerReferences", ()):
                    if owner["kind"] == "TrainingRun" and owner["uid"] not in alive:
                        self.remove(plural, made["metadata"], owner["name"])

    def remove(self, plural: str, made: dict[str, Any], run: str) -> None:
        """What a run that is gone has left; clusters that collect such things may have been quicker."""
        space, pods = made["namespace"], f"training-run={run}"
        self.core.delete_collection_namespaced_pod(space, label_selector=pods, grace_period_seconds=0)
        with ignoring(404):
            self.custom.delete_namespaced_custom_object(*SCHEDULING, space, plural, made["name"])


@contextmanager
def ignoring(status: int) -> Iterator[None]:
    try:
        yield
    except client.ApiException as refused:
        if refused.status != status:
            raise


def main(server: str) -> None:
    controller = Controller(client.ApiClient(client.Configuration(host=server)))
    while True:
        controller.once()
        for _ in watch.Watch().stream(controller.custom.list_cluster_custom_object, *RUNS, timeout_seconds=60):
            controller.once()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7077")
