"""What a scheduler decides by: scheduling.k8s.io, node.k8s.io and coordination.k8s.io."""

from __future__ import annotations

from muster.api import core, scheduling
from muster.api.defaults import groups
from muster.api.defaults import small as small_defaults
from muster.api.kind import Kind
from muster.api.validation import podgroup, small, workload

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
RUNTIME_CLASS = Kind(
    "RuntimeClass", "node.k8s.io", "v1", "runtimeclasses", "runtimeclass", core.RuntimeClass, (), False,
    needs_revision=True,
    validate=small.runtime_class,
)  # fmt: skip
LEASE = Kind(
    "Lease", "coordination.k8s.io", "v1", "leases", "lease", core.Lease,
    created_by_update=True, needs_revision=True, validate=small.lease,
)  # fmt: skip
