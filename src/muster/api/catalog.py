"""Every kind Muster serves, in one table: names, versions, typed view, subresources, defaults, rules, gate.

The server's use of a `Kind`, in order: `prepare` (fields of gates that are off go, status is reset or kept, defaults
come), admission, `validate`. They leave their arguments alone; `prepare` shares what it does not change. Nulls and
fields of wrong types are gone before: the server's schema sees to that, and `validate` says so where it did not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from muster.api import admission, apps, batch, core, definitions, resource, scheduling, settings, storage
from muster.api.defaults import admission as admission_defaults
from muster.api.defaults import apps as apps_defaults
from muster.api.defaults import definitions as definition_defaults
from muster.api.defaults import groups, jobs, pods, status
from muster.api.defaults import settings as setting_defaults
from muster.api.defaults import small as small_defaults
from muster.api.defaults import storage as storage_defaults
from muster.api.gates import FeatureGates
from muster.api.meta import Part
from muster.api.validation import apps as apps_rules
from muster.api.validation import (
    cronjob,
    definition,
    job,
    node,
    pod,
    podgroup,
    policies,
    small,
    storage_classes,
    webhooks,
    workload,
)
from muster.api.validation import settings as setting_rules
from muster.api.validation import storage as storage_rules
from muster.api.validation.field import FieldError

Raw = Mapping[str, Any]
Defaults = Callable[[dict[str, Any], Raw | None, FeatureGates], None]
Validator = Callable[[Raw, Raw | None, FeatureGates], list[FieldError]]


def _no_defaults(obj: dict[str, Any], old: Raw | None, gates: FeatureGates) -> None:
    pass


def _no_rules(new: Raw, old: Raw | None, gates: FeatureGates) -> list[FieldError]:
    return []


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the table.

    `defaults(obj, old, gates)` fills a dict whose top level is private: it replaces what it changes and never writes
    into a nested value. `validate(new, old, gates)` returns every error it finds; `old` is None on create.
    """

    kind: str
    group: str
    version: str
    plural: str
    singular: str
    struct: type[Part]
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    subresources: tuple[str, ...] = ()
    gate: str | None = None
    """Served only with this gate on."""
    keeps_status: bool = False
    """A status given on create is kept (nodes register with theirs)."""
    counts: tuple[str, ...] = ()
    """Numbers that a status always has, also when they are 0."""
    status_keeps_metadata: bool = False
    """A write of the status changes nothing of the metadata."""
    deletes_collections: bool = True
    created_by_update: bool = False
    """A PUT of an object that is not there creates it."""
    needs_revision: bool = False
    """A PUT has to name the resourceVersion that it replaces."""
    defaults: Defaults = _no_defaults
    validate: Validator = _no_rules
    validate_status: Validator = _no_rules
    selectable: tuple[str, ...] = ()
    """Field selectors beyond metadata.name and metadata.namespace."""
    categories: tuple[str, ...] = ()
    """Names that stand for several resources, such as `all`."""
    deprecation: str = ""
    """What every call is warned of."""

    @property
    def resource(self) -> str:
        """What the store and the machines call it; kinds that users define have the group in it."""
        return self.plural

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    def served(self, gates: FeatureGates) -> bool:
        return self.gate is None or self.gate in gates.on

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of the collection, an object, or a subresource of it; `namespace` None: all namespaces.

        Raises:
            ValueError: a name or namespace is empty, by which one object would become all of them.
        """
        if name == "" or (namespace == "" and self.namespaced):
            raise ValueError(f"{self.plural}: empty {'name' if name == '' else 'namespace'}; None stands for all")
        base = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        where = (
            f"{base}/namespaces/{namespace}/{self.plural}" if self.namespaced and namespace else f"{base}/{self.plural}"
        )
        if name is None:
            return where
        return f"{where}/{name}/{subresource}" if subresource else f"{where}/{name}"

    def prepare(self, raw: Raw, old: Raw | None, gates: FeatureGates) -> dict[str, Any]:
        """What would be stored if it is valid: a new top level over shared nested values; `raw` is not changed."""
        obj = dict(raw)
        if self.has_status:
            status.settle(obj, old, keeps=self.keeps_status, counts=self.counts)
        self.defaults(obj, old, gates)
        return obj

    def shown(self, raw: Raw) -> Raw:
        """A stored object as it goes out."""
        return raw

    def kept(self, raw: dict[str, Any]) -> dict[str, Any]:
        """An object as it is stored."""
        return raw

    def changed(self, old: Raw, new: Raw) -> bool:
        """Whether anything but metadata and status differs, which makes a new generation."""
        return any(old.get(key) != new.get(key) for key in (old.keys() | new.keys()) - {"metadata", "status"})


NAMESPACE = Kind(
    "Namespace", "", "v1", "namespaces", "namespace", core.Namespace, ("ns",), False, ("status", "finalize"),
    selectable=("status.phase",), deletes_collections=False,
    defaults=small_defaults.namespace, validate=small.namespace,
)  # fmt: skip
NODE = Kind(
    "Node", "", "v1", "nodes", "node", core.Node, ("no",), False, ("status",), keeps_status=True,
    selectable=("spec.unschedulable",),
    defaults=small_defaults.node, validate=node.node, validate_status=node.node_status,
)  # fmt: skip
POD = Kind(
    "Pod", "", "v1", "pods", "pod", core.Pod, ("po",), True, ("status", "binding", "eviction", "resize"),
    selectable=(
        "spec.nodeName", "spec.schedulerName", "spec.restartPolicy", "status.phase", "status.nominatedNodeName",
    ),
    defaults=pods.pod, validate=pod.pod, validate_status=pod.pod_status,
)  # fmt: skip
EVENT = Kind(
    "Event", "", "v1", "events", "event", core.Event, ("ev",),
    selectable=(
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "reason", "reportingComponent", "source", "type",
    ),
    created_by_update=True, validate=small.event,
)  # fmt: skip
PRIORITY_CLASS = Kind(
    "PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses", "priorityclass", core.PriorityClass, ("pc",), False,
    defaults=small_defaults.priority_class, validate=small.priority_class,
)  # fmt: skip
WORKLOAD = Kind(
    "Workload", "scheduling.k8s.io", "v1beta1", "workloads", "workload", scheduling.Workload, ("wl",),
    gate="GenericWorkload",
    defaults=groups.workload, validate=workload.workload,
)  # fmt: skip
POD_GROUP = Kind(
    "PodGroup", "scheduling.k8s.io", "v1beta1", "podgroups", "podgroup", scheduling.PodGroup, ("pg",), True,
    ("status",), gate="GenericWorkload", status_keeps_metadata=True,
    defaults=groups.pod_group, validate=podgroup.pod_group, validate_status=podgroup.pod_group_status,
)  # fmt: skip
COMPOSITE_POD_GROUP = Kind(
    "CompositePodGroup", "scheduling.k8s.io", "v1alpha3", "compositepodgroups", "compositepodgroup",
    scheduling.CompositePodGroup, ("cpg",), True, ("status",), gate="CompositePodGroup",
    status_keeps_metadata=True,
    defaults=groups.pod_group, validate=podgroup.composite_pod_group,
    validate_status=podgroup.composite_pod_group_status,
)  # fmt: skip
JOB = Kind(
    "Job", "batch", "v1", "jobs", "job", batch.Job, (), True, ("status",), selectable=("status.successful",),
    defaults=jobs.job, validate=job.job, validate_status=job.job_status,
)  # fmt: skip
POD_DISRUPTION_BUDGET = Kind(
    "PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets", "poddisruptionbudget", core.PodDisruptionBudget,
    ("pdb",), True, ("status",), needs_revision=True,
    counts=("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"),
    validate=small.disruption_budget,
)  # fmt: skip
RUNTIME_CLASS = Kind(
    "RuntimeClass", "node.k8s.io", "v1", "runtimeclasses", "runtimeclass", core.RuntimeClass, (), False,
    needs_revision=True,
    validate=small.runtime_class,
)  # fmt: skip
RESOURCE_CLAIM = Kind(
    "ResourceClaim", "resource.k8s.io", "v1", "resourceclaims", "resourceclaim", resource.ResourceClaim, (), True,
    ("status",), status_keeps_metadata=True,
    defaults=small_defaults.resource_claim, validate=small.resource_claim,
)  # fmt: skip
RESOURCE_CLAIM_TEMPLATE = Kind(
    "ResourceClaimTemplate", "resource.k8s.io", "v1", "resourceclaimtemplates", "resourceclaimtemplate",
    resource.ResourceClaimTemplate,
    defaults=small_defaults.resource_claim_template,
    validate=small.resource_claim_template,
)  # fmt: skip
DEVICE_CLASS = Kind(
    "DeviceClass", "resource.k8s.io", "v1", "deviceclasses", "deviceclass", resource.DeviceClass, (), False,
    validate=small.device_class,
)  # fmt: skip
LEASE = Kind(
    "Lease", "coordination.k8s.io", "v1", "leases", "lease", core.Lease,
    created_by_update=True, needs_revision=True, validate=small.lease,
)  # fmt: skip
PERSISTENT_VOLUME = Kind(
    "PersistentVolume", "", "v1", "persistentvolumes", "persistentvolume", storage.PersistentVolume, ("pv",), False,
    ("status",), defaults=storage_defaults.persistent_volume, validate=storage_rules.persistent_volume,
)  # fmt: skip
PERSISTENT_VOLUME_CLAIM = Kind(
    "PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", "persistentvolumeclaim",
    storage.PersistentVolumeClaim, ("pvc",), True, ("status",),
    defaults=storage_defaults.persistent_volume_claim, validate=storage_rules.persistent_volume_claim,
)  # fmt: skip
STORAGE_CLASS = Kind(
    "StorageClass", "storage.k8s.io", "v1", "storageclasses", "storageclass", storage.StorageClass, ("sc",), False,
    defaults=storage_defaults.storage_class, validate=storage_classes.storage_class,
)  # fmt: skip
CSI_NODE = Kind(
    "CSINode", "storage.k8s.io", "v1", "csinodes", "csinode", storage.CsiNode, (), False,
    validate=storage_classes.csi_node,
)  # fmt: skip
CSI_DRIVER = Kind(
    "CSIDriver", "storage.k8s.io", "v1", "csidrivers", "csidriver", storage.CsiDriver, (), False,
    defaults=storage_defaults.csi_driver, validate=storage_classes.csi_driver,
)  # fmt: skip
CSI_STORAGE_CAPACITY = Kind(
    "CSIStorageCapacity", "storage.k8s.io", "v1", "csistoragecapacities", "csistoragecapacity",
    storage.CsiStorageCapacity, validate=storage_classes.csi_storage_capacity,
)  # fmt: skip
VOLUME_ATTACHMENT = Kind(
    "VolumeAttachment", "storage.k8s.io", "v1", "volumeattachments", "volumeattachment", storage.VolumeAttachment,
    (), False, ("status",), validate=storage_classes.volume_attachment,
)  # fmt: skip

SERVICE = Kind(
    "Service", "", "v1", "services", "service", apps.Service, ("svc",), True, ("status",),
    defaults=apps_defaults.service, validate=apps_rules.service,
)  # fmt: skip
REPLICATION_CONTROLLER = Kind(
    "ReplicationController", "", "v1", "replicationcontrollers", "replicationcontroller", apps.ReplicationController,
    ("rc",), True, ("status", "scale"), counts=("replicas",),
    defaults=apps_defaults.replication_controller, validate=apps_rules.replication_controller,
)  # fmt: skip
REPLICA_SET = Kind(
    "ReplicaSet", "apps", "v1", "replicasets", "replicaset", apps.ReplicaSet, ("rs",), True, ("status", "scale"),
    counts=("replicas",),
    defaults=apps_defaults.replica_set, validate=apps_rules.replica_set,
)  # fmt: skip
STATEFUL_SET = Kind(
    "StatefulSet", "apps", "v1", "statefulsets", "statefulset", apps.StatefulSet, ("sts",), True, ("status", "scale"),
    counts=("replicas",),
    defaults=apps_defaults.stateful_set, validate=apps_rules.stateful_set,
)  # fmt: skip
DEPLOYMENT = Kind(
    "Deployment", "apps", "v1", "deployments", "deployment", apps.Deployment, ("deploy",), True, ("status", "scale"),
    defaults=apps_defaults.deployment, validate=apps_rules.deployment,
)  # fmt: skip
DAEMON_SET = Kind(
    "DaemonSet", "apps", "v1", "daemonsets", "daemonset", apps.DaemonSet, ("ds",), True, ("status",),
    counts=("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"),
    defaults=apps_defaults.daemon_set, validate=apps_rules.daemon_set,
)  # fmt: skip
CRON_JOB = Kind(
    "CronJob", "batch", "v1", "cronjobs", "cronjob", batch.CronJob, ("cj",), True, ("status",),
    defaults=jobs.cron_job, validate=cronjob.cron_job,
)  # fmt: skip
CONFIG_MAP = Kind(
    "ConfigMap", "", "v1", "configmaps", "configmap", settings.ConfigMap, ("cm",), validate=setting_rules.config_map,
)  # fmt: skip
SECRET = Kind(
    "Secret", "", "v1", "secrets", "secret", settings.Secret, selectable=("type",),
    defaults=setting_defaults.secret, validate=setting_rules.secret,
)  # fmt: skip
SERVICE_ACCOUNT = Kind(
    "ServiceAccount", "", "v1", "serviceaccounts", "serviceaccount", settings.ServiceAccount, ("sa",),
    validate=setting_rules.service_account,
)  # fmt: skip
CUSTOM_RESOURCE_DEFINITION = Kind(
    "CustomResourceDefinition", "apiextensions.k8s.io", "v1", "customresourcedefinitions", "customresourcedefinition",
    definitions.CustomResourceDefinition, ("crd", "crds"), False, ("status",), categories=("api-extensions",),
    needs_revision=True,
    defaults=definition_defaults.definition, validate=definition.definition,
    validate_status=definition.definition_status,
)  # fmt: skip

VALIDATING_ADMISSION_POLICY = Kind(
    "ValidatingAdmissionPolicy", "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies",
    "validatingadmissionpolicy", admission.ValidatingAdmissionPolicy, (), False, ("status",),
    categories=("api-extensions",), defaults=admission_defaults.policy, validate=policies.policy,
)  # fmt: skip
VALIDATING_ADMISSION_POLICY_BINDING = Kind(
    "ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings",
    "validatingadmissionpolicybinding", admission.ValidatingAdmissionPolicyBinding, (), False,
    categories=("api-extensions",), defaults=admission_defaults.binding, validate=policies.binding,
)  # fmt: skip
VALIDATING_WEBHOOK_CONFIGURATION = Kind(
    "ValidatingWebhookConfiguration", "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",
    "validatingwebhookconfiguration", admission.ValidatingWebhookConfiguration, (), False,
    categories=("api-extensions",), defaults=admission_defaults.validating_webhooks, validate=webhooks.validating,
)  # fmt: skip
MUTATING_WEBHOOK_CONFIGURATION = Kind(
    "MutatingWebhookConfiguration", "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations",
    "mutatingwebhookconfiguration", admission.MutatingWebhookConfiguration, (), False,
    categories=("api-extensions",), defaults=admission_defaults.mutating_webhooks, validate=webhooks.mutating,
)  # fmt: skip

KINDS: tuple[Kind, ...] = (
    NAMESPACE,
    NODE,
    POD,
    EVENT,
    PRIORITY_CLASS,
    WORKLOAD,
    POD_GROUP,
    COMPOSITE_POD_GROUP,
    JOB,
    POD_DISRUPTION_BUDGET,
    RUNTIME_CLASS,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    DEVICE_CLASS,
    LEASE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    CSI_NODE,
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    VOLUME_ATTACHMENT,
    SERVICE,
    REPLICATION_CONTROLLER,
    REPLICA_SET,
    STATEFUL_SET,
    DEPLOYMENT,
    DAEMON_SET,
    CRON_JOB,
    CONFIG_MAP,
    SECRET,
    SERVICE_ACCOUNT,
    CUSTOM_RESOURCE_DEFINITION,
    VALIDATING_ADMISSION_POLICY,
    VALIDATING_ADMISSION_POLICY_BINDING,
    VALIDATING_WEBHOOK_CONFIGURATION,
    MUTATING_WEBHOOK_CONFIGURATION,
)

_BY_PLURAL: Mapping[str, Kind] = MappingProxyType({kind.plural: kind for kind in KINDS})
_BY_PATH = MappingProxyType({(kind.group, kind.version, kind.plural): kind for kind in KINDS})
_BY_KIND = MappingProxyType({(kind.api_version, kind.kind): kind for kind in KINDS})
_BY_NAME = MappingProxyType(
    {
        name.lower(): kind
        for kind in KINDS
        for name in (kind.plural, kind.singular, kind.kind, *kind.short_names, f"{kind.plural}.{kind.group}")
    }
)


_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?", re.ASCII)


def version_order(version: str) -> tuple[Any, ...]:
    """A key that sorts versions as Kubernetes does: stable, beta, alpha, the newest of each first."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (3, version)
    level = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return (level, -int(found[1]), -int(found[3] or 0))


def by_resource(plural: str) -> Kind:
    """The kind of a plural name, as machines name resources.

    Raises:
        KeyError: there is none.
    """
    return _BY_PLURAL[plural]


def by_path(group: str, version: str, plural: str) -> Kind | None:
    """The kind behind a URL path; group "" is the core group."""
    return _BY_PATH.get((group, version, plural))


def by_kind(api_version: str, kind: str) -> Kind:
    """The kind of an object.

    Raises:
        ValueError: it is unknown; names the version it is served in, or the kinds there are.
    """
    found = _BY_KIND.get((api_version, kind))
    if found is not None:
        return found
    same = [other.api_version for other in KINDS if other.kind == kind]
    if same:
        raise ValueError(f"kind {kind} is served as apiVersion {', '.join(same)}, not {api_version!r}")
    raise ValueError(
        f"no kind {kind!r} in apiVersion {api_version!r}; known kinds: {', '.join(other.kind for other in KINDS)}"
    )


def named(name: str) -> Kind:
    """The kind a person names: plural, singular, kind or short name, in any case.

    Raises:
        ValueError: it is unknown; lists the plurals there are.
    """
    found = _BY_NAME.get(name) or _BY_NAME.get(name.lower())
    if found is None:
        raise ValueError(f"unknown resource {name!r}; known: {', '.join(sorted(_BY_PLURAL))}")
    return found
