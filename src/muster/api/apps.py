"""Typed views of kinds that say which pods belong together: Services, and whatever keeps replicas of a pod."""

# ruff: noqa: RUF012  (msgspec makes a new dict of an empty default for every instance)

from __future__ import annotations

import msgspec

from muster.api.core import PodTemplate
from muster.api.meta import LabelSelector, ObjectMeta, Part


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


class ReplicaSet(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSetSpec(Part, frozen=True):
    replicas: int | None = None
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
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


class Deployment(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeploymentSpec = DeploymentSpec()


class DaemonSetSpec(Part, frozen=True):
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    update_strategy: Strategy = Strategy()
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class DaemonSet(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DaemonSetSpec = DaemonSetSpec()
