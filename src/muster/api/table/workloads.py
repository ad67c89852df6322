"""What makes pods and what protects them: groups apps, batch and policy, and the core group's ReplicationController."""

from __future__ import annotations

from muster.api import apps, batch, core
from muster.api.defaults import apps as apps_defaults
from muster.api.defaults import jobs
from muster.api.kind import Kind
from muster.api.validation import apps as apps_rules
from muster.api.validation import cronjob, job, replica_status, small

JOB = Kind(
    "Job", "batch", "v1", "jobs", "job", batch.Job, (), True, ("status",), selectable=("status.successful",),
    defaults=jobs.job, validate=job.job, validate_status=job.job_status,
)  # fmt: skip
CRON_JOB = Kind(
    "CronJob", "batch", "v1", "cronjobs", "cronjob", batch.CronJob, ("cj",), True, ("status",),
    defaults=jobs.cron_job, validate=cronjob.cron_job,
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
    validate_status=replica_status.replica_set,
)  # fmt: skip
STATEFUL_SET = Kind(
    "StatefulSet", "apps", "v1", "statefulsets", "statefulset", apps.StatefulSet, ("sts",), True, ("status", "scale"),
    counts=("availableReplicas", "replicas"),
    defaults=apps_defaults.stateful_set, validate=apps_rules.stateful_set,
)  # fmt: skip
DEPLOYMENT = Kind(
    "Deployment", "apps", "v1", "deployments", "deployment", apps.Deployment, ("deploy",), True, ("status", "scale"),
    defaults=apps_defaults.deployment, validate=apps_rules.deployment,
    validate_status=replica_status.deployment,
)  # fmt: skip
DAEMON_SET = Kind(
    "DaemonSet", "apps", "v1", "daemonsets", "daemonset", apps.DaemonSet, ("ds",), True, ("status",),
    counts=("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"),
    defaults=apps_defaults.daemon_set, validate=apps_rules.daemon_set,
)  # fmt: skip
CONTROLLER_REVISION = Kind(
    "ControllerRevision", "apps", "v1", "controllerrevisions", "controllerrevision", apps.ControllerRevision,
    validate=apps_rules.controller_revision,
)  # fmt: skip
POD_DISRUPTION_BUDGET = Kind(
    "PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets", "poddisruptionbudget", core.PodDisruptionBudget,
    ("pdb",), True, ("status",), needs_revision=True,
    counts=("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"),
    validate=small.disruption_budget,
)  # fmt: skip
