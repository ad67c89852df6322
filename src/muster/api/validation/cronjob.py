"""Rules for CronJobs, which are stored: nothing makes their Jobs."""

from __future__ import annotations

from muster.api import batch
from muster.api.gates import FeatureGates
from muster.api.validation import apps, checks, job, names
from muster.api.validation.checks import Errors
from muster.api.validation.field import SPEC

LONGEST_NAME = 52
"""So that the names of its Jobs, which have eleven characters more, are labels."""
_POLICIES = ("Allow", "Forbid", "Replace")
_NAMED = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_FIELDS = 5


def _cron_job(new: batch.CronJob, old: batch.CronJob | None, gates: FeatureGates) -> Errors:
    spec = new.spec
    errors = _schedule(spec.schedule) + checks.one_of(spec.concurrency_policy, SPEC / "concurrencyPolicy", _POLICIES)
    errors += checks.at_least(spec.starting_deadline_seconds, SPEC / "startingDeadlineSeconds", 0)
    errors += checks.at_least(spec.successful_jobs_history_limit, SPEC / "successfulJobsHistoryLimit", 0)
    errors += checks.at_least(spec.failed_jobs_history_limit, SPEC / "failedJobsHistoryLimit", 0)
    return errors + job.job_spec(spec.job_template.spec, gates, SPEC / "jobTemplate" / "spec")


def _schedule(given: str) -> Errors:
    at = SPEC / "schedule"
    if not given:
        return [at.required()]
    if given in _NAMED or given.startswith("@every ") or len(given.split()) == _FIELDS:
        return []
    return [at.invalid(given, f"expected exactly 5 fields, found {len(given.split())}: {given.split()}")]


def _name(value: str) -> str | None:
    if len(value) > LONGEST_NAME:
        return f"must be no more than {LONGEST_NAME} characters"
    return names.dns_subdomain(value)


cron_job = apps.rules(batch.CronJob, _cron_job, _name)
