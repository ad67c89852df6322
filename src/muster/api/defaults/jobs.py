"""Defaults of Jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.defaults import parts
from muster.api.defaults.parts import Json, Raw
from muster.api.defaults.pods import pod_spec
from muster.api.gates import FeatureGates

BACKOFF_LIMIT = 6
NO_BACKOFF_LIMIT = (1 << 31) - 1
CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"


def job(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """Defaults of a Job; one with a uid gets its selector, and labels of its pods to match."""
    if not isinstance(obj.get("spec"), Mapping):
        return
    spec = dict(obj["spec"])
    if "parallelism" not in spec and "completions" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("backoffLimit", NO_BACKOFF_LIMIT if "backoffLimitPerIndex" in spec else BACKOFF_LIMIT)
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    _job_claims(spec, old, gates)
    spec["template"] = _template(spec.get("template"), gates, parts.at(old, "spec", "template", "spec"))
    _select_own_pods(spec, parts.at(old or obj, "metadata"))
    obj["spec"] = spec


def _job_claims(spec: Json, old: Raw | None, gates: FeatureGates) -> None:
    scheduling = spec.get("scheduling")
    stored = parts.at(old, "spec", "scheduling")
    if isinstance(scheduling, Mapping) and not gates.workload_resource_claims and not stored.get("resourceClaims"):
        spec["scheduling"] = {key: value for key, value in scheduling.items() if key != "resourceClaims"}


def _template(given: Any, gates: FeatureGates, old: Raw) -> Any:
    if not isinstance(given, Mapping) or not isinstance(given.get("spec"), Mapping):
        return given if given is not None else {}
    return {**given, "spec": pod_spec(given["spec"], gates, old)}


def _select_own_pods(spec: Json, metadata: Raw) -> None:
    """The selector and labels that Kubernetes generates, unless the user selects by hand (`manualSelector`)."""
    uid, template = metadata.get("uid"), spec["template"]
    if not uid or spec["manualSelector"] is not False or not isinstance(template, Mapping):
        return
    own = {CONTROLLER_UID: uid, JOB_NAME: metadata.get("name", "")}
    inner = parts.copied(template, "metadata")
    inner["labels"] = parts.copied(inner, "labels") | own
    spec["template"] = {**template, "metadata": inner}
    spec.setdefault("selector", {"matchLabels": {CONTROLLER_UID: uid}})


def cron_job(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    if not isinstance(obj.get("spec"), Mapping):
        return
    limits = {"successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}
    spec = {"concurrencyPolicy": "Allow", "suspend": False} | limits | dict(obj["spec"])
    template = spec.get("jobTemplate")
    if isinstance(template, Mapping):
        made = {"spec": template.get("spec")}
        was = parts.at(old, "spec", "jobTemplate")
        job(made, was or None, gates)
        spec["jobTemplate"] = {**template, **made} if made["spec"] is not None else template
    obj["spec"] = spec
