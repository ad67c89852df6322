"""Pods made from a Job's template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from muster.controllers.jobs.members import INDEX, TRACKING
from muster.workloadbuilder.adapters.job import owner_of
from muster.workloadbuilder.names import hash_text

Json = Mapping[str, Any]
_LONGEST_BASE = 52
"""So that a name with index and suffix still is a DNS label, as host names must be."""
_INDEX_ENV = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}},
}


def is_indexed(job: Json) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def pod_names(job: Json, index: int | None, first: int) -> Iterator[str]:
    """Names for a new pod, best first: the same for the same Job, index and number of pods that have failed before.

    A controller that was restarted while a create was under way asks for the same name again, and is told that it
    exists.
    """
    meta = job["metadata"]
    uid = meta["uid"]
    base = f"{meta['name'][:_LONGEST_BASE]}{'' if index is None else f'-{index}'}"
    for number in count(first):
        yield f"{base}-{hash_text(f'{uid}/{index}/{number}')[-5:]}"


class PodTemplate:
    """A Job's pod template, prepared once for many pods that share its parts."""

    def __init__(self, job: Json, group: str | None) -> None:
        template = job["spec"].get("template") or {}
        meta = template.get("metadata") or {}
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        self._base_name = name
        self._namespace = job["metadata"].get("namespace") or "default"
        self._owner = [owner_of(job)]
        self._labels = {
            **(meta.get("labels") or {}),
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
            "controller-uid": uid,
            "job-name": name,
        }
        self._annotations = meta.get("annotations") or {}
        self._finalizers = [*(meta.get("finalizers") or ()), TRACKING]
        self._spec = dict(template.get("spec") or {})
        if group is not None:
            self._spec["schedulingGroup"] = {"podGroupName": group}
        if is_indexed(job):
            for field in ("containers", "initContainers"):
                if self._spec.get(field):
                    self._spec[field] = [_with_index(container) for container in self._spec[field]]

    def pod(self, name: str, index: int | None) -> dict[str, Any]:
        labels, annotations, spec = self._labels, self._annotations, self._spec
        if index is not None:
            labels = {**labels, INDEX: str(index)}
            annotations = {**annotations, INDEX: str(index)}
            spec = {**spec, "hostname": f"{self._base_name[:_LONGEST_BASE]}-{index}"}
        metadata: dict[str, Any] = {
            "name": name,
            "generateName": f"{name.rpartition('-')[0]}-",
            "namespace": self._namespace,
            "labels": labels,
            "ownerReferences": self._owner,
            "finalizers": self._finalizers,
        }
        if annotations:
            metadata["annotations"] = annotations
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _with_index(container: Json) -> Json:
    env = container.get("env") or []
    if any(each.get("name") == _INDEX_ENV["name"] for each in env):
        return container
    return {**container, "env": [*env, _INDEX_ENV]}
