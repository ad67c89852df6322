"""Typed views of scheduling.k8s.io: Workload and PodGroup (v1beta1), CompositePodGroup (v1alpha3), parts (V1-V14).

These views are complete: every field of the v1.37 types is here, so equality of views is equality of specs.
"""

from __future__ import annotations

from muster.api.meta import Condition, Empty, ObjectMeta, Part

# --- parts -------------------------------------------------------------------------------------------------------


class Gang(Part, frozen=True):
    """All or nothing; a `min_count` of 0 means that it is absent (V19)."""

    min_count: int = 0


class SchedulingPolicy(Part, frozen=True):
    """Exactly one member (V8)."""

    basic: Empty | None = None
    gang: Gang | None = None


class CompositeGang(Part, frozen=True):
    min_group_count: int = 0


class CompositeSchedulingPolicy(Part, frozen=True):
    """Exactly one member (V8)."""

    basic: Empty | None = None
    gang: CompositeGang | None = None


class TopologyConstraint(Part, frozen=True):
    key: str = ""


class SchedulingConstraints(Part, frozen=True):
    topology: tuple[TopologyConstraint, ...] = ()

    @property
    def topology_key(self) -> str | None:
        return self.topology[0].key if self.topology else None


class DisruptionMode(Part, frozen=True):
    """Exactly one member (V9): pods may be evicted one by one, or only all together."""

    single: Empty | None = None
    all: Empty | None = None


class GroupResourceClaim(Part, frozen=True):
    """Exactly one source (V11)."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class WorkloadReference(Part, frozen=True):
    workload_name: str = ""
    template_name: str = ""


class ControllerReference(Part, frozen=True):
    api_group: str = ""
    kind: str = ""
    name: str = ""


# --- Workload ----------------------------------------------------------------------------------------------------


class PodGroupTemplate(Part, frozen=True):
    name: str = ""
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    resource_claims: tuple[GroupResourceClaim, ...] = ()
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None


class CompositePodGroupTemplate(Part, frozen=True):
    name: str = ""
    scheduling_policy: CompositeSchedulingPolicy = CompositeSchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()
    composite_pod_group_templates: tuple[CompositePodGroupTemplate, ...] = ()


class WorkloadSpec(Part, frozen=True):
    controller_ref: ControllerReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()
    composite_pod_group_templates: tuple[CompositePodGroupTemplate, ...] = ()


class Workload(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()


# --- PodGroup ----------------------------------------------------------------------------------------------------


class PodGroupSpec(Part, frozen=True):
    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    resource_claims: tuple[GroupResourceClaim, ...] = ()
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None


class GroupResourceClaimStatus(Part, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class PodGroupStatus(Part, frozen=True):
    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[GroupResourceClaimStatus, ...] = ()


class PodGroup(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


# --- CompositePodGroup -------------------------------------------------------------------------------------------


class CompositePodGroupSpec(Part, frozen=True):
    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None
    scheduling_policy: CompositeSchedulingPolicy = CompositeSchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None


class CompositePodGroupStatus(Part, frozen=True):
    conditions: tuple[Condition, ...] = ()


class CompositePodGroup(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CompositePodGroupSpec = CompositePodGroupSpec()
    status: CompositePodGroupStatus = CompositePodGroupStatus()


# --- building blocks that controllers embed (V14) ----------------------------------------------------------------


class OptionalGang(Part, frozen=True):
    """`min_count` may be left to the controller."""

    min_count: int | None = None


class WorkloadPodGroupSchedulingPolicy(Part, frozen=True):
    basic: Empty | None = None
    gang: OptionalGang | None = None
