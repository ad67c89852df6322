"""Typed views of pods, nodes and the small kinds around them (v1, policy/v1, scheduling.k8s.io/v1, node.k8s.io/v1)."""

# ruff: noqa: RUF012  (msgspec makes a new dict of an empty default for every instance)

from __future__ import annotations

import msgspec

from muster.api.meta import Condition, LabelSelector, ObjectMeta, Part, Quantity
from muster.api.volumes import Volume, VolumeDevice, VolumeMount

# --- pod: containers ---------------------------------------------------------------------------------------------


class ResourceClaimUse(Part, frozen=True):
    """A container's use of one of its pod's resource claims."""

    name: str = ""
    request: str = ""


class Resources(Part, frozen=True):
    """ResourceRequirements of a container or of a whole pod."""

    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    claims: tuple[ResourceClaimUse, ...] = ()


NO_RESOURCES = Resources()


class ContainerPort(Part, frozen=True):
    name: str = ""
    container_port: int = 0
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class ContainerRestartRule(Part, frozen=True):
    """What happens when the container exits; which exits it is about is not read."""

    action: str = ""


class Container(Part, frozen=True):
    """A container; an init container with `restart_policy` Always is a sidecar."""

    name: str = ""
    image: str = ""
    resources: Resources = NO_RESOURCES
    ports: tuple[ContainerPort, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    volume_devices: tuple[VolumeDevice, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    image_pull_policy: str = ""
    termination_message_policy: str = ""

    @property
    def sidecar(self) -> bool:
        return self.restart_policy == "Always"


# --- pod: where it may run ---------------------------------------------------------------------------------------


class NodeSelectorRequirement(Part, frozen=True):
    """`operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Part, frozen=True):
    """All requirements must hold; a term without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Part, frozen=True):
    """Alternatives."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Part, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Part, frozen=True):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredSchedulingTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Part, frozen=True):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Part, frozen=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Part, frozen=True):
    """Pod affinity and pod anti-affinity alike."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Part, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Part, frozen=True):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class Toleration(Part, frozen=True):
    """`key` "" with Exists tolerates every key, `effect` "" every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class PodSchedulingGate(Part, frozen=True):
    name: str = ""


class PodSchedulingGroup(Part, frozen=True):
    """The PodGroup of a pod, in its own namespace (V13)."""

    pod_group_name: str | None = None


class PodResourceClaim(Part, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


# --- pod ---------------------------------------------------------------------------------------------------------


class HostAlias(Part, frozen=True):
    ip: str = ""
    hostnames: tuple[str, ...] = ()


class PodReadinessGate(Part, frozen=True):
    condition_type: str = ""


class PodSpec(Part, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    overhead: dict[str, Quantity] = {}
    resources: Resources | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    restart_policy: str = "Always"
    dns_policy: str = "ClusterFirst"
    host_network: bool = False
    host_pid: bool = msgspec.field(default=False, name="hostPID")
    host_ipc: bool = msgspec.field(default=False, name="hostIPC")
    host_users: bool | None = None
    """False: the pod has a user namespace of its own."""
    hostname: str = ""
    subdomain: str = ""
    runtime_class_name: str | None = None
    service_account_name: str = ""
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None
    volumes: tuple[Volume, ...] = ()
    ephemeral_containers: tuple[dict[str, object], ...] = ()
    readiness_gates: tuple[PodReadinessGate, ...] = ()
    host_aliases: tuple[HostAlias, ...] = ()


class ContainerState(Part, frozen=True):
    """Present members say the state; their content is not read."""

    running: dict[str, object] | None = None
    terminated: dict[str, object] | None = None
    waiting: dict[str, object] | None = None


class ContainerStatus(Part, frozen=True):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    allocated_resources: dict[str, Quantity] = {}
    resources: Resources | None = None
    state: ContainerState | None = None


class PodStatus(Part, frozen=True):
    phase: str = "Pending"
    conditions: tuple[Condition, ...] = ()
    reason: str = ""
    message: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    allocated_resources: dict[str, Quantity] = {}
    resources: Resources | None = None


class Pod(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplate(Part, frozen=True):
    """PodTemplateSpec: what a controller makes pods from."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


# --- node --------------------------------------------------------------------------------------------------------


class Taint(Part, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class PodPreemptionPolicy(Part, frozen=True):
    """`disable_resize_preemption` names who forbids resize preemption on this node (R8)."""

    disable_resize_preemption: tuple[str, ...] = ()


class NodeSpec(Part, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    pod_preemption_policy: PodPreemptionPolicy | None = None


class ContainerImage(Part, frozen=True):
    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeStatus(Part, frozen=True):
    capacity: dict[str, Quantity] = {}
    allocatable: dict[str, Quantity] = {}
    images: tuple[ContainerImage, ...] = ()
    conditions: tuple[Condition, ...] = ()
    declared_features: tuple[str, ...] = ()
    """Features whose support depends on the node, and that this one has (KEP-5328)."""


class Node(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# --- small kinds -------------------------------------------------------------------------------------------------


class NamespaceSpec(Part, frozen=True):
    finalizers: tuple[str, ...] = ()


class NamespaceStatus(Part, frozen=True):
    phase: str = ""


class Namespace(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class PriorityClass(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None


class PodDisruptionBudgetSpec(Part, frozen=True):
    """`min_available` and `max_unavailable` are counts, or percentages such as "50%"."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Part, frozen=True):
    observed_generation: int = 0
    disrupted_pods: dict[str, str] = {}
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class ObjectReference(Part, frozen=True):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventSource(Part, frozen=True):
    component: str = ""
    host: str = ""


class Event(Part, frozen=True):
    """A v1 Event."""

    metadata: ObjectMeta = ObjectMeta()
    involved_object: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    reason: str = ""
    message: str = ""
    type: str = ""
    action: str = ""
    count: int = 0
    source: EventSource = EventSource()
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    reporting_component: str = ""
    reporting_instance: str = ""


class Overhead(Part, frozen=True):
    pod_fixed: dict[str, Quantity] = {}


class RuntimeClassScheduling(Part, frozen=True):
    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    handler: str = ""
    overhead: Overhead | None = None
    scheduling: RuntimeClassScheduling | None = None


class LeaseSpec(Part, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()
