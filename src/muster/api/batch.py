"""Typed views of batch/v1: CronJob, and Job with v1.37's `spec.scheduling` (B18)."""

from __future__ import annotations

from muster.api.core import PodTemplate
from muster.api.meta import Condition, LabelSelector, ObjectMeta, Part
from muster.api.scheduling import (
    DisruptionMode,
    GroupResourceClaim,
    SchedulingConstraints,
    WorkloadPodGroupSchedulingPolicy,
)


class JobScheduling(Part, frozen=True):
    """How the pods of a Job are scheduled together; only `scheduling_policy.gang.min_count` may change later."""

    scheduling_policy: WorkloadPodGroupSchedulingPolicy | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    resource_claims: tuple[GroupResourceClaim, ...] = ()


class JobSpec(Part, frozen=True):
    template: PodTemplate = PodTemplate()
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = "NonIndexed"
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    selector: LabelSelector | None = None
    manual_selector: bool = False
    pod_replacement_policy: str | None = None
    managed_by: str | None = None
    scheduling: JobScheduling | None = None


class JobTemplate(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(Part, frozen=True):
    """`schedule` has five fields: minute, hour, day of the month, month, day of the week; or a name such as @daily."""

    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = "Allow"
    suspend: bool = False
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None
    job_template: JobTemplate = JobTemplate()


class CronJob(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CronJobSpec = CronJobSpec()


class JobStatus(Part, frozen=True):
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    completed_indexes: str = ""
    failed_indexes: str = ""
    start_time: str | None = None
    completion_time: str | None = None
    conditions: tuple[Condition, ...] = ()


class Job(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()
