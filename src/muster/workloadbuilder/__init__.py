"""For authors of controllers: a workload as you see it -> Workload, PodGroups, CompositePodGroups."""

from muster.workloadbuilder.build import Builder
from muster.workloadbuilder.forms import Record, as_record, as_yaml
from muster.workloadbuilder.items import (
    BuildOptions,
    Callback,
    SchedulingConfig,
    UserBlock,
    WorkloadInput,
    WorkloadItem,
    default_min_count,
)
from muster.workloadbuilder.materialize import BuildError
from muster.workloadbuilder.names import pod_group_name, workload_name

__all__ = [
    "BuildError",
    "BuildOptions",
    "Builder",
    "Callback",
    "Record",
    "SchedulingConfig",
    "UserBlock",
    "WorkloadInput",
    "WorkloadItem",
    "as_record",
    "as_yaml",
    "default_min_count",
    "pod_group_name",
    "workload_name",
]
