"""Defaults, and what is dropped before validation.

Copy on write: a function here replaces the values along the path it changes and never writes into a nested value that
it was given, so an object may share structure with the store and with whoever sent it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from muster.api import quantity
from muster.api.core import PodSpec
from muster.api.gates import FeatureGates
from muster.api.qos import qos_class

Raw = Mapping[str, Any]
Json = dict[str, Any]

GRACE_SECONDS = 30
BACKOFF_LIMIT = 6
NO_BACKOFF_LIMIT = (1 << 31) - 1


# --- every kind --------------------------------------------------------------------------------------------------


def settle_status(obj: Json, old: Raw | None, *, keeps: bool) -> None:
    """On create the status is emptied unless the kind `keeps` it; on update it is the stored one."""
    if old is None:
        if not keeps:
            obj.pop("status", None)
    elif "status" in old:
        obj["status"] = old["status"]
    else:
        obj.pop("status", None)


def _part(holder: Raw, field: str) -> Json:
    """A private copy of a mapping field, empty if it is absent or no mapping (validation says so then)."""
    value = holder.get(field)
    return dict(value) if isinstance(value, Mapping) else {}


def _is_part(holder: Raw, field: str) -> bool:
    return field not in holder or isinstance(holder[field], Mapping)


# --- pods --------------------------------------------------------------------------------------------------------


def pod(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """Defaults of a pod; on update what admission has set stays unless it is given."""
    if not isinstance(obj.get("spec"), Mapping):
        return
    spec = obj["spec"] = pod_spec(obj["spec"], gates, _mapping(_mapping(old).get("spec")))
    if old is None:
        obj["status"] = _first_status(spec)
        return
    for field in ("priority", "preemptionPolicy", "serviceAccountName"):
        if field in old["spec"]:
            spec.setdefault(field, old["spec"][field])


def _first_status(spec: Raw) -> Json:
    try:
        return {"phase": "Pending", "qosClass": qos_class(msgspec.convert(spec, PodSpec))}
    except (msgspec.ValidationError, ValueError):
        return {"phase": "Pending"}  # validation says what is wrong


def pod_spec(given: Raw, gates: FeatureGates, old: Raw) -> Json:
    """A completed copy of a pod's spec. Fields behind gates that are off go, unless `old` has them (V26)."""
    spec = dict(given)
    if "schedulingGroup" in spec and not gates.generic_workload and "schedulingGroup" not in old:
        del spec["schedulingGroup"]
    if "resources" in spec and "PodLevelResources" not in gates.on and "resources" not in old:
        del spec["resources"]
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("terminationGracePeriodSeconds", GRACE_SECONDS)
    host_network = spec.get("hostNetwork") is True
    for field in ("containers", "initContainers"):
        if isinstance(spec.get(field), list):
            spec[field] = [_container(container, host_network) for container in spec[field]]
    if "resources" in spec:
        spec["resources"] = _pod_level(spec["resources"])
    if "overhead" in spec:
        spec["overhead"] = amounts(spec["overhead"])
    return spec


def _container(given: Any, host_network: bool) -> Any:
    if not isinstance(given, Mapping):
        return given
    container = dict(given)
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = _pull_policy(container.get("image"))
    if "resources" in container:
        container["resources"] = _resources(container["resources"])
    if isinstance(container.get("ports"), list):
        container["ports"] = [_port(port, host_network) for port in container["ports"]]
    return container


def _pull_policy(image: Any) -> str:
    """Always for an image without a fixed version."""
    name = str(image).rpartition("/")[2]
    return "Always" if "@" not in name and name.partition(":")[2] in ("", "latest") else "IfNotPresent"


def _port(given: Any, host_network: bool) -> Any:
    if not isinstance(given, Mapping):
        return given
    port = dict(given)
    if not port.get("protocol"):
        port["protocol"] = "TCP"
    if host_network and not port.get("hostPort") and "containerPort" in port:
        port["hostPort"] = port["containerPort"]
    return port


def _resources(given: Any) -> Any:
    """Canonical amounts; a limit stands in for a missing request."""
    if not isinstance(given, Mapping):
        return given
    made = dict(given)
    limits, requests = (amounts(made[field]) if field in made else {} for field in ("limits", "requests"))
    if isinstance(limits, dict) and isinstance(requests, dict):
        requests = {**limits, **requests}
    for field, values in (("limits", limits), ("requests", requests)):
        if field in made or values:
            made[field] = values
    return made


def _pod_level(given: Any) -> Any:
    """Canonical amounts. A pod-level limit is no request: what the containers ask for may be less."""
    if not isinstance(given, Mapping):
        return given
    return {field: amounts(value) if field in ("limits", "requests") else value for field, value in given.items()}


def amounts(given: Any) -> Any:
    """A resource list in canonical form; what is no quantity is left for validation to find."""
    if not isinstance(given, Mapping):
        return given
    return {name: _canonical(value) for name, value in given.items()}


def _canonical(value: Any) -> Any:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return value
    try:
        return quantity.canonical(value)
    except ValueError:
        return value


# --- nodes and small kinds ---------------------------------------------------------------------------------------


def node(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """Canonical amounts; without an allocatable, all of the capacity is."""
    if not isinstance(obj.get("status"), Mapping):
        return
    status = dict(obj["status"])
    for field in ("capacity", "allocatable"):
        if field in status:
            status[field] = amounts(status[field])
    if "capacity" in status:
        status.setdefault("allocatable", status["capacity"])
    obj["status"] = status


def namespace(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """Its own name as a label, and what keeps it until it is empty."""
    if not (_is_part(obj, "metadata") and _is_part(obj, "spec")):
        return
    metadata = _part(obj, "metadata")
    labels = _part(metadata, "labels")
    if "kubernetes.io/metadata.name" not in labels and _is_part(metadata, "labels"):
        labels["kubernetes.io/metadata.name"] = metadata.get("name", "")
        obj["metadata"] = metadata | {"labels": labels}
    if old is None:
        obj["spec"] = {"finalizers": ["kubernetes"]} | _part(obj, "spec")
        obj["status"] = {"phase": "Active"}


def priority_class(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
    obj.setdefault("value", 0)


def resource_claim(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    if isinstance(obj.get("spec"), Mapping):
        obj["spec"] = _claim_spec(obj["spec"])


def resource_claim_template(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    spec = obj.get("spec")
    if isinstance(spec, Mapping) and isinstance(spec.get("spec"), Mapping):
        obj["spec"] = {**spec, "spec": _claim_spec(spec["spec"])}


def _claim_spec(spec: Raw) -> Raw:
    """A request is for one device unless it says otherwise."""
    devices = spec.get("devices")
    if not isinstance(devices, Mapping) or not isinstance(devices.get("requests"), list):
        return spec
    requests = [_device_request(request) for request in devices["requests"]]
    return {**spec, "devices": {**devices, "requests": requests}}


def _device_request(request: Any) -> Any:
    if not isinstance(request, Mapping):
        return request
    made = dict(request)
    if isinstance(made.get("exactly"), Mapping):
        made["exactly"] = _exact_request(made["exactly"])
    if isinstance(made.get("firstAvailable"), list):
        made["firstAvailable"] = [
            _exact_request(choice) if isinstance(choice, Mapping) else choice for choice in made["firstAvailable"]
        ]
    return made


def _exact_request(request: Raw) -> Json:
    made = {"allocationMode": "ExactCount"} | dict(request)
    if made["allocationMode"] == "ExactCount":
        made.setdefault("count", 1)
    return made


# --- groups and Workloads ----------------------------------------------------------------------------------------


def pod_group(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """Pods may be evicted one by one unless the group says otherwise (V33); claims go while their gate is off (V26)."""
    if not _is_part(obj, "spec"):
        return
    spec = _part(obj, "spec")
    if not gates.workload_resource_claims and not _mapping(_mapping(old).get("spec")).get("resourceClaims"):
        spec.pop("resourceClaims", None)
    spec.setdefault("disruptionMode", {"single": {}})
    obj["spec"] = spec


def workload(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """Claims of templates go while their gate is off, unless the stored template has them (V26)."""
    if gates.workload_resource_claims or not isinstance(obj.get("spec"), Mapping):
        return
    kept = _names_with_claims(_mapping(_mapping(old).get("spec")))
    obj["spec"] = _without_claims(obj["spec"], kept)


def _without_claims(owner: Raw, kept: set[str]) -> Raw:
    made = dict(owner)
    for template in _templates(owner, "podGroupTemplates"):
        if "resourceClaims" in template and template.get("name") not in kept:
            made["podGroupTemplates"] = [_without_own_claims(leaf, kept) for leaf in owner["podGroupTemplates"]]
            break
    composites = _templates(owner, "compositePodGroupTemplates")
    if composites:
        made["compositePodGroupTemplates"] = [
            _without_claims(child, kept) if isinstance(child, Mapping) else child
            for child in owner["compositePodGroupTemplates"]
        ]
    return made


def _without_own_claims(leaf: Any, kept: set[str]) -> Any:
    if not isinstance(leaf, Mapping) or leaf.get("name") in kept:
        return leaf
    return {key: value for key, value in leaf.items() if key != "resourceClaims"}


def _names_with_claims(owner: Raw) -> set[str]:
    own = {leaf.get("name", "") for leaf in _templates(owner, "podGroupTemplates") if leaf.get("resourceClaims")}
    return own.union(*map(_names_with_claims, _templates(owner, "compositePodGroupTemplates")))


def _templates(owner: Raw, field: str) -> list[Raw]:
    given = owner.get(field)
    return [entry for entry in given if isinstance(entry, Mapping)] if isinstance(given, list) else []


def _mapping(value: Any) -> Raw:
    return value if isinstance(value, Mapping) else {}


# --- Jobs --------------------------------------------------------------------------------------------------------

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
    spec["template"] = _template(
        spec.get("template"), gates, _mapping(_mapping(_mapping(old).get("spec")).get("template"))
    )
    _select_own_pods(spec, _mapping((old or obj).get("metadata")))
    obj["spec"] = spec


def _job_claims(spec: Json, old: Raw | None, gates: FeatureGates) -> None:
    scheduling = spec.get("scheduling")
    stored = _mapping(_mapping(_mapping(old).get("spec")).get("scheduling"))
    if isinstance(scheduling, Mapping) and not gates.workload_resource_claims and not stored.get("resourceClaims"):
        spec["scheduling"] = {key: value for key, value in scheduling.items() if key != "resourceClaims"}


def _template(given: Any, gates: FeatureGates, old: Raw) -> Any:
    if not isinstance(given, Mapping) or not isinstance(given.get("spec"), Mapping):
        return given if given is not None else {}
    return {**given, "spec": pod_spec(given["spec"], gates, _mapping(old.get("spec")))}


def _select_own_pods(spec: Json, metadata: Raw) -> None:
    """The selector and labels that Kubernetes generates, unless the user selects by hand (`manualSelector`)."""
    uid, template = metadata.get("uid"), spec["template"]
    if not uid or spec["manualSelector"] is not False or not isinstance(template, Mapping):
        return
    own = {CONTROLLER_UID: uid, JOB_NAME: metadata.get("name", "")}
    inner = _part(template, "metadata")
    inner["labels"] = _part(inner, "labels") | own
    spec["template"] = {**template, "metadata": inner}
    spec.setdefault("selector", {"matchLabels": {CONTROLLER_UID: uid}})
