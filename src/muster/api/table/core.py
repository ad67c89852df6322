"""The core group: nodes, pods, and what people keep beside them."""

from __future__ import annotations

from muster.api import apps, core, quotas, settings
from muster.api.defaults import apps as apps_defaults
from muster.api.defaults import pods
from muster.api.defaults import quotas as quota_defaults
from muster.api.defaults import settings as setting_defaults
from muster.api.defaults import small as small_defaults
from muster.api.kind import Kind
from muster.api.validation import apps as apps_rules
from muster.api.validation import events as event_rules
from muster.api.validation import node, pod, small
from muster.api.validation import quotas as quota_rules
from muster.api.validation import settings as setting_rules

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
    created_by_update=True, validate=event_rules.event,
)  # fmt: skip
SERVICE = Kind(
    "Service", "", "v1", "services", "service", apps.Service, ("svc",), True, ("status",),
    defaults=apps_defaults.service, validate=apps_rules.service,
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
RESOURCE_QUOTA = Kind(
    "ResourceQuota", "", "v1", "resourcequotas", "resourcequota", quotas.ResourceQuota, ("quota",), True, ("status",),
    defaults=quota_defaults.resource_quota, validate=quota_rules.resource_quota,
    validate_status=quota_rules.resource_quota_status,
)  # fmt: skip
LIMIT_RANGE = Kind(
    "LimitRange", "", "v1", "limitranges", "limitrange", quotas.LimitRange, ("limits",),
    defaults=quota_defaults.limit_range, validate=quota_rules.limit_range,
)  # fmt: skip
