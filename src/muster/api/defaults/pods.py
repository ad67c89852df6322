"""Defaults of pods and of pod templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from muster.api.core import PodSpec
from muster.api.defaults import parts
from muster.api.defaults.amounts import amounts
from muster.api.defaults.parts import Json, Raw
from muster.api.defaults.storage import pod_volumes
from muster.api.gates import FeatureGates
from muster.api.qos import qos_class

GRACE_SECONDS = 30


def pod(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """Defaults of a pod; on update what admission has set stays unless it is given."""
    if not isinstance(obj.get("spec"), Mapping):
        return
    spec = obj["spec"] = pod_spec(obj["spec"], gates, parts.at(old, "spec"))
    if old is None:
        obj["status"] = first_status(spec)
        return
    for field in ("priority", "preemptionPolicy", "serviceAccountName"):
        if field in old["spec"]:
            spec.setdefault(field, old["spec"][field])


def first_status(spec: Raw) -> Json:
    """The status of a pod that nobody has scheduled yet."""
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
    if "volumes" in spec:
        spec["volumes"] = pod_volumes(spec["volumes"])
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
