"""A batch/v1 Job as a workload: one leaf, its policy and constraints from `spec.scheduling` (B18-B26)."""

from __future__ import annotations

from typing import Any

from muster.workloadbuilder.build import Builder
from muster.workloadbuilder.items import (
    Block,
    BuildOptions,
    SchedulingConfig,
    UserBlock,
    WorkloadInput,
    WorkloadItem,
    default_min_count,
)
from muster.workloadbuilder.names import pod_group_name, workload_name

GROUP_TEMPLATE = "scheduling.k8s.io/group-template-name"
"""On a Job of another controller: the leaf template of that controller's Workload that its group is made from (B22)."""
PARENT = "scheduling.k8s.io/parent-composite-podgroup"
"""On such a Job: the CompositePodGroup that its group is a child of."""

_LONGEST_TEMPLATE = 63
_FIELDS = (  # of WorkloadInput, of spec.scheduling
    ("policy", "schedulingPolicy"),
    ("constraints", "schedulingConstraints"),
    ("disruption_mode", "disruptionMode"),
    ("resource_claims", "resourceClaims"),
)


def own_group(job: Block) -> str | None:
    """The PodGroup that the Job's own pod template names: the user's, and not the controller's business."""
    template = (job["spec"].get("template") or {}).get("spec") or {}
    return (template.get("schedulingGroup") or {}).get("podGroupName")


def controller_of(job: Block) -> Block | None:
    """The owner reference of the controller that the Job belongs to."""
    for reference in job["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return reference  # type: ignore[no-any-return]
    return None


def delegated_template(job: Block) -> str | None:
    """The template that the Job's controller wants its group made from; None if it does not delegate."""
    if controller_of(job) is None:
        return None
    return (job["metadata"].get("annotations") or {}).get(GROUP_TEMPLATE)


def wants_group(job: Block) -> bool:
    """Whether a PodGroup is to be made for the Job, its own or a delegated one (B22)."""
    if own_group(job) is not None:
        return False
    return controller_of(job) is None or delegated_template(job) is not None


def template_name(job: Block) -> str:
    """Name of the only template; a DNS label, so the name of a Job as long as that is shortened (B20)."""
    suffix = "-pgt-0"
    return f"{job['metadata']['name'][: _LONGEST_TEMPLATE - len(suffix)]}{suffix}"


def workload_name_of(job: Block) -> str:
    return workload_name(job["metadata"]["name"], job["metadata"]["uid"])


def group_name_of(job: Block) -> str:
    """Name of the PodGroup of a Job that is its own workload."""
    return pod_group_name(workload_name_of(job), template_name(job))


def owner_of(job: Block) -> dict[str, Any]:
    meta = job["metadata"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def options_for(job: Block) -> BuildOptions:
    return BuildOptions(
        name=workload_name_of(job),
        namespace=job["metadata"].get("namespace") or "default",
        owner=owner_of(job),
        allowed_policies=("basic", "gang"),
        allowed_disruption_modes=("single", "all"),
    )


def item_for(job: Block) -> WorkloadItem:
    """The Job as an item: basic by default, a gang without a count as large as the parallelism (B19, B21).

    The priority class of the pods becomes that of the group, or group and pods would disagree (B26).
    """
    spec, scheduling = job["spec"], job["spec"].get("scheduling") or {}
    pods = (spec.get("template") or {}).get("spec") or {}
    parallelism = spec.get("parallelism")
    return WorkloadItem(
        template_name(job),
        SchedulingConfig(policy={"basic": {}}, priority_class_name=pods.get("priorityClassName") or ""),
        WorkloadInput(
            **{
                attribute: UserBlock((field,), leaf=scheduling[field])
                for attribute, field in _FIELDS
                if scheduling.get(field) is not None
            }
        ),
        (default_min_count(max(1, 1 if parallelism is None else parallelism)),),
    )


def builder_for(job: Block) -> Builder:
    return Builder(item_for(job), options_for(job))


def compile_group(job: Block, workload: Block) -> dict[str, Any]:
    """The PodGroup of a Job from its own Workload, which owns it too, so that either can be deleted first (B23).

    Raises:
        BuildError: the Workload lacks the template.
    """
    group = Builder.from_existing_workload(workload, options_for(job)).new_pod_group(
        group_name_of(job), template_name(job)
    )
    meta = workload["metadata"]
    group["metadata"]["ownerReferences"].append(
        {"apiVersion": workload["apiVersion"], "kind": "Workload", "name": meta["name"], "uid": meta["uid"]}
    )
    return group


def compile_delegated_group(job: Block, workload: Block, name: str) -> dict[str, Any]:
    """The PodGroup of a Job from the Workload of the controller that the Job belongs to (B22).

    Raises:
        BuildError: the Workload lacks the template that the Job names.
    """
    template = delegated_template(job) or ""
    group = Builder.from_existing_workload(workload, options_for(job)).new_pod_group(name, template)
    parent = (job["metadata"].get("annotations") or {}).get(PARENT)
    if parent:
        group["spec"]["parentCompositePodGroupName"] = parent
    return group
