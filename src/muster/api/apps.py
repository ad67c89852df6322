"""Typed views of kinds that say which pods belong together: Services, and whatever keeps replicas of a pod."""

# ruff: noqa: RUF012  (msgspec makes a new dict of an empty default for every instance)

from __future__ import annotations

from typing import Any

import msgspec

from muster.api.core import PodTemplate
from muster.api.meta import LabelSelector, ObjectMeta, Part
from muster.api.storage import PersistentVolumeClaim


class ServicePort(Part, frozen=True):
    name: str = ""
    protocol: str = "TCP"
    port: int = 0
    node_port: int = 0


class ServiceSpec(Part, frozen=True):
    """A Service without a selector means no pods."""

    selector: dict[str, str] = {}
    ports: tuple[ServicePort, ...] = ()
    type: str = "ClusterIP"
    external_name: str = ""
    cluster_ip: str = msgspec.field(default="", name="clusterIP")


class Service(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Part, frozen=True):
    replicas: int | None = None
    selector: dict[str, str] = {}
    template: PodTemplate = PodTemplate()


class ReplicationController(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ReplicaSetSpec(Part, frozen=True):
    replicas: int | None = None
    min_ready_seconds: int = 0
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class ReplicaSetStatus(Part, frozen=True):
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    terminating_replicas: int | None = None
    observed_generation: int = 0


class ReplicaSet(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class StatefulRollingUpdate(Part, frozen=True):
    """Pods below `partition` are left as they are; `max_unavailable` is a number or a percentage."""

    partition: int | None = None
    max_unavailable: int | str | None = None


class StatefulStrategy(Part, frozen=True):
    """`type` is RollingUpdate or OnDelete."""

    type: str = "RollingUpdate"
    rolling_update: StatefulRollingUpdate | None = None


class Ordinals(Part, frozen=True):
    start: int = 0


class ClaimRetention(Part, frozen=True):
    """What becomes of the claims of pods that go: Retain or Delete."""

    when_deleted: str = "Retain"
    when_scaled: str = "Retain"


class StatefulSetSpec(Part, frozen=True):
    replicas: int | None = None
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    update_strategy: StatefulStrategy = StatefulStrategy()
    ordinals: Ordinals | None = None
    persistent_volume_claim_retention_policy: ClaimRetention | None = None
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class StatefulSet(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: StatefulSetSpec = StatefulSetSpec()


class RollingUpdate(Part, frozen=True):
    """How many pods may be missing, and how many may be there beyond those wanted: numbers or percentages."""

    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


class Strategy(Part, frozen=True):
    """`type` is RollingUpdate, Recreate (Deployments) or OnDelete (DaemonSets)."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(Part, frozen=True):
    replicas: int | None = None
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    progress_deadline_seconds: int | None = None
    paused: bool = False
    strategy: Strategy = Strategy()
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class DeploymentStatus(Part, frozen=True):
    """`collision_count`: how many names of ReplicaSets were taken; part of what the next ones are hashed from."""

    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    terminating_replicas: int | None = None
    observed_generation: int = 0
    collision_count: int | None = None


class Deployment(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class DaemonSetSpec(Part, frozen=True):
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    update_strategy: Strategy = Strategy()
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class DaemonSet(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DaemonSetSpec = DaemonSetSpec()


class ControllerRevision(Part, frozen=True):
    """One state of a StatefulSet or DaemonSet: `data` is a patch that leads back to it."""

    metadata: ObjectMeta = ObjectMeta()
    data: Any = None
    revision: int | None = None
