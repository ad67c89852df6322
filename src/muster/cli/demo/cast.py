"""What the demo creates: plain manifests, as anybody would write them."""

from __future__ import annotations

from typing import Any

from muster.controllers.fleet import GPU, RACK, ZONE, Shape

Manifest = dict[str, Any]

FLEET = Shape(zones=2, racks=8, nodes=16, gpus=8)
"""256 nodes, 2,048 accelerators."""
FILLERS = 300
TRAINERS = 128
SMALLER = 112
"""The minimum that the training job is lowered to once a rack of 16 is gone."""
LEARNERS, ACTORS, LOADERS = 64, 24, 16
PREFILL, DECODE = 4, 8
TOO_MANY = 32
RESCUERS = FLEET.nodes
"""A pod for each node of a rack."""

GROWN, GROWN_CPU = "rescue-0", "24"
"""The pod that is resized, and to what."""
BESIDE, BESIDE_CPU = "beside", "128"
"""Who is in its way, with nearly all that a node of 144 cpu has left."""

TRAINING, SERVING, ROLES, TOO_BIG, FILLER = "training", "serving", "reinforcement", "too-big", "filler"
URGENT = "urgent"
PARTS = (TRAINING, SERVING, ROLES, FILLER, URGENT)
"""What is seen on the racks."""
APP = "app"
"""The label that says which part of the demo a pod belongs to."""


def priority_classes() -> list[Manifest]:
    """What may go, what evicts nobody, which is the default, and what may evict."""
    return [
        _class("spare", -10, "for whatever uses accelerators that nobody else wants", preemptionPolicy="Never"),
        _class("polite", 0, "evicts nobody", preemptionPolicy="Never", globalDefault=True),
        _class(URGENT, 1_000, "may evict what is less important"),
    ]


def _class(name: str, value: int, about: str, **more: Any) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "description": about,
        **more,
    }


def fillers() -> list[Manifest]:
    """Single pods of low priority, one accelerator each."""
    low = {"priorityClassName": "spare"}
    return [_pod(f"filler-{i}", FILLER, {"cpu": "2", GPU: "1"}, **low) for i in range(1, FILLERS + 1)]


def training() -> Manifest:
    """One Job, one gang: 128 pods with a whole node's accelerators each, which start together or not at all."""
    labels = {APP: TRAINING}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": TRAINING, "namespace": "default"},
        "spec": {
            "parallelism": TRAINERS,
            "completions": TRAINERS,
            "completionMode": "Indexed",
            # A pod that goes down with its node is replaced while it is still on its way out.
            "podReplacementPolicy": "TerminatingOrFailed",
            "backoffLimit": TRAINERS,
            "scheduling": {"schedulingPolicy": {"gang": {"minCount": TRAINERS}}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    **_spec({"cpu": "16", "memory": "64Gi", GPU: "8"}),
                    "restartPolicy": "Never",
                    "tolerations": [_gives_up_on("not-ready"), _gives_up_on("unreachable")],
                },
            },
        },
    }


def serving() -> list[Manifest]:
    """One replica of a model server: prefill and decode, each in one rack, both in one zone, or nothing at all."""
    parts = (("prefill", PREFILL, {"cpu": "8", GPU: "4"}), ("decode", DECODE, {"cpu": "4", GPU: "2"}))
    root = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": {"name": SERVING, "namespace": "default"},
        "spec": {
            "workloadRef": {"workloadName": SERVING, "templateName": "replica"},
            "schedulingPolicy": {"gang": {"minGroupCount": len(parts)}},
            "schedulingConstraints": {"topology": [{"key": ZONE}]},
        },
    }
    leaves = [
        _gang(
            f"{SERVING}-{role}",
            number,
            parentCompositePodGroupName=SERVING,
            workloadRef={"workloadName": SERVING, "templateName": role},
            schedulingConstraints={"topology": [{"key": RACK}]},
        )
        for role, number, _ in parts
    ]
    members = [
        _pod(f"{role}-{i}", SERVING, requests, schedulingGroup={"podGroupName": f"{SERVING}-{role}"})
        for role, number, requests in parts
        for i in range(number)
    ]
    return [root, *leaves, *members]


def roles() -> list[Manifest]:
    """A gang of three roles: learners with eight accelerators, actors with four, loaders with none."""
    count = LEARNERS + ACTORS + LOADERS
    parts = (
        ("learner", LEARNERS, {"cpu": "8", GPU: "8"}),
        ("actor", ACTORS, {"cpu": "8", GPU: "4"}),
        ("loader", LOADERS, {"cpu": "4", "memory": "32Gi"}),
    )
    members = [
        _pod(f"{role}-{i}", ROLES, requests, schedulingGroup={"podGroupName": ROLES})
        for role, number, requests in parts
        for i in range(number)
    ]
    return [_gang(ROLES, count), *members]


def too_big() -> list[Manifest]:
    """A gang of 32 whole nodes, of which fewer are free."""
    group = {"podGroupName": TOO_BIG}
    members = [_pod(f"big-{i}", TOO_BIG, {"cpu": "8", GPU: "8"}, schedulingGroup=group) for i in range(TOO_MANY)]
    return [_gang(TOO_BIG, TOO_MANY), *members]


def urgent() -> list[Manifest]:
    """A gang that has to have a whole rack, and may evict for it."""
    group = {"podGroupName": URGENT}
    priority = {"priorityClassName": URGENT}
    gang = _gang(URGENT, RESCUERS, schedulingConstraints={"topology": [{"key": RACK}]}, **priority)
    requests = {"cpu": "8", GPU: str(FLEET.gpus)}
    return [gang, *(_pod(f"rescue-{i}", URGENT, requests, schedulingGroup=group, **priority) for i in range(RESCUERS))]


def beside(node: str) -> Manifest:
    """A pod of low priority on this node that leaves hardly any cpu to others."""
    place = {"nodeSelector": {"kubernetes.io/hostname": node}, "priorityClassName": "spare"}
    return _pod(BESIDE, BESIDE, {"cpu": BESIDE_CPU}, **place)


def _gang(name: str, count: int, **spec: Any) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": count}}, **spec},
    }


def _pod(name: str, app: str, requests: dict[str, str], **spec: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {APP: app}},
        "spec": {**_spec(requests), **spec},
    }


def _spec(requests: dict[str, str]) -> Manifest:
    limits = {name: amount for name, amount in requests.items() if name == GPU}
    resources = {"requests": requests, **({"limits": limits} if limits else {})}
    return {"containers": [{"name": "main", "image": "registry.example/demo:1", "resources": resources}]}


def _gives_up_on(trouble: str) -> Manifest:
    """Leaves a node in trouble after 20 s instead of the usual 5 minutes."""
    key = f"node.kubernetes.io/{trouble}"
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}
