"""From a Workload's template to a PodGroup or CompositePodGroup (B10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muster.workloadbuilder.items import Block

_COPIED = (
    "schedulingPolicy",
    "schedulingConstraints",
    "resourceClaims",
    "disruptionMode",
    "priorityClassName",
    "priority",
    "preemptionPolicy",
)
WORKLOAD_API = "scheduling.k8s.io/v1beta1"
POD_GROUP_API = "scheduling.k8s.io/v1beta1"
COMPOSITE_API = "scheduling.k8s.io/v1alpha3"


class BuildError(Exception):
    """A workload that cannot be built, or a template that is not there (B8)."""


def new_pod_group(workload: Block, name: str, template: str, owner: Block | None) -> dict[str, Any]:
    """A PodGroup made from the leaf template of that name, wherever it is in the tree.

    Raises:
        BuildError: there is none.
    """
    found = _find(leaf_templates(workload), template, workload)
    return _group("PodGroup", POD_GROUP_API, workload, name, found, owner)


def new_composite_pod_group(workload: Block, name: str, template: str, owner: Block | None) -> dict[str, Any]:
    """A CompositePodGroup made from the composite template of that name; naming its parent is left to the caller.

    Raises:
        BuildError: there is none.
    """
    found = _find(composite_templates(workload), template, workload)
    return _group("CompositePodGroup", COMPOSITE_API, workload, name, found, owner)


def leaf_templates(workload: Block) -> Iterator[Block]:
    spec = workload.get("spec") or {}
    yield from spec.get("podGroupTemplates") or ()
    for composite in composite_templates(workload):
        yield from composite.get("podGroupTemplates") or ()


def composite_templates(workload: Block) -> Iterator[Block]:
    waiting = list((workload.get("spec") or {}).get("compositePodGroupTemplates") or ())
    while waiting:
        template = waiting.pop(0)
        yield template
        waiting.extend(template.get("compositePodGroupTemplates") or ())


def controller_of(owner: Block) -> dict[str, Any]:
    """The owner reference that makes this owner the controller."""
    return {**owner, "controller": True}


def _find(templates: Iterator[Block], name: str, workload: Block) -> Block:
    known = []
    for template in templates:
        if template["name"] == name:
            return template
        known.append(template["name"])
    there = ", ".join(known) or "none"
    raise BuildError(f"Workload {workload['metadata']['name']!r} has no template {name!r} of this kind; it has {there}")


def _group(
    kind: str, api_version: str, workload: Block, name: str, template: Block, owner: Block | None
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": workload["metadata"].get("namespace", "")}
    if owner is not None:
        metadata["ownerReferences"] = [controller_of(owner)]
    reference = {"workloadName": workload["metadata"]["name"], "templateName": template["name"]}
    spec = {"workloadRef": reference, **{key: template[key] for key in _COPIED if key in template}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
