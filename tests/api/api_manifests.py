"""Valid manifests, and a way to spoil them."""

from __future__ import annotations

import copy
import re
from typing import Any

from muster.api import catalog
from muster.api.gates import WORKLOAD_AWARE, FeatureGates
from muster.api.validation import FieldError

Json = dict[str, Any]

ALL = FeatureGates.of(*WORKLOAD_AWARE)
GONE = object()
"""Takes a field away."""


def pod(**spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "pause"}], **spec},
    }


def node() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"rack": "r1"}},
        "spec": {"taints": [{"key": "dedicated", "value": "a", "effect": "NoSchedule"}]},
        "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def job(**spec: Any) -> Json:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", "uid": "u-1"},
        "spec": {
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "pause"}]}},
            **spec,
        },
    }


def pod_group(**spec: Any) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}, **spec},
    }


def composite(**spec: Any) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {
            "schedulingPolicy": {"gang": {"minGroupCount": 2}},
            "workloadRef": {"workloadName": "w", "templateName": "t"},
            **spec,
        },
    }


def workload(**spec: Any) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "default"},
        "spec": spec,
    }


def leaf(name: str, count: int = 2, **fields: Any) -> Json:
    return {"name": name, "schedulingPolicy": {"gang": {"minCount": count}}, **fields}


def inner(name: str, *leaves: Json, children: list[Json] | None = None, **fields: Any) -> Json:
    made: Json = {"name": name, "schedulingPolicy": {"gang": {"minGroupCount": 1}}, **fields}
    if leaves:
        made["podGroupTemplates"] = list(leaves)
    if children:
        made["compositePodGroupTemplates"] = children
    return made


def spoiled(manifest: Json, path: str, value: Any) -> Json:
    """A copy with the value at a path such as `spec.containers[0].name` replaced, added or (GONE) removed."""
    made = copy.deepcopy(manifest)
    *way, last = [int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+|(?<=\[)[^\]]+", path)]
    holder: Any = made
    for step in way:
        holder = holder[step] if isinstance(step, int) else holder.setdefault(step, {})
    if value is GONE:
        del holder[last]
    else:
        holder[last] = value
    return made


def errors(manifest: Json, old: Json | None = None, gates: FeatureGates = ALL) -> list[FieldError]:
    """What the rules say of a manifest after it went through `prepare`."""
    kind = catalog.by_kind(manifest["apiVersion"], manifest["kind"])
    stored = None if old is None else kind.prepare(old, None, gates)
    return kind.validate(kind.prepare(manifest, stored, gates), stored, gates)


def pairs(found: list[FieldError]) -> list[tuple[str, str]]:
    return [(error.field, error.type) for error in found]
