"""Defaults of Services and of the kinds that keep replicas of a pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.defaults import parts
from muster.api.defaults.parts import Json, Raw
from muster.api.defaults.pods import pod_spec
from muster.api.defaults.storage import claim_spec
from muster.api.gates import FeatureGates


def service(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    if not isinstance(obj.get("spec"), Mapping):
        return
    spec = {"type": "ClusterIP", "sessionAffinity": "None"} | dict(obj["spec"])
    if isinstance(spec.get("ports"), list):
        spec["ports"] = [_port(port) for port in spec["ports"]]
    obj["spec"] = spec


def _port(given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    port = {"protocol": "TCP"} | dict(given)
    if "port" in port:
        port.setdefault("targetPort", port["port"])
    return port


def replication_controller(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """Its selector is the labels of its pods, unless it says another one; its own labels likewise."""
    _replicas(obj, old, gates)
    labels = parts.at(obj, "spec", "template", "metadata", "labels")
    if not labels:
        return
    obj["spec"] = {"selector": dict(labels)} | obj["spec"]
    metadata = parts.copied(obj, "metadata")
    if not metadata.get("labels"):
        obj["metadata"] = metadata | {"labels": dict(labels)}


def replica_set(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    _replicas(obj, old, gates)


def stateful_set(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    _replicas(obj, old, gates)
    if not isinstance(obj.get("spec"), Mapping):
        return
    spec = {"podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10} | obj["spec"]
    spec["updateStrategy"] = _strategy(spec.get("updateStrategy"), {"partition": 0, "maxUnavailable": 1})
    if parts.is_mapping(spec, "persistentVolumeClaimRetentionPolicy"):
        given = parts.copied(spec, "persistentVolumeClaimRetentionPolicy")
        spec["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Retain", "whenScaled": "Retain"} | given
    if isinstance(spec.get("volumeClaimTemplates"), list):
        spec["volumeClaimTemplates"] = [_claim(each) for each in spec["volumeClaimTemplates"]]
    obj["spec"] = spec


def _claim(given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}} | dict(given)
    if isinstance(claim.get("spec"), Mapping):
        claim["spec"] = claim_spec(claim["spec"])
    return claim


def deployment(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    _replicas(obj, old, gates)
    if isinstance(obj.get("spec"), Mapping):
        obj["spec"] = {"revisionHistoryLimit": 10, "progressDeadlineSeconds": 600} | obj["spec"]
        quarter = {"maxUnavailable": "25%", "maxSurge": "25%"}
        obj["spec"]["strategy"] = _strategy(obj["spec"].get("strategy"), quarter)


def daemon_set(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    if isinstance(obj.get("spec"), Mapping):
        obj["spec"] = {"revisionHistoryLimit": 10} | _templated(dict(obj["spec"]), old, gates)
        one = {"maxUnavailable": 1, "maxSurge": 0}
        obj["spec"]["updateStrategy"] = _strategy(obj["spec"].get("updateStrategy"), one)


def _strategy(given: Any, rolling: Raw) -> Any:
    if given is not None and not isinstance(given, Mapping):
        return given
    strategy = {"type": "RollingUpdate"} | dict(given or {})
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {**rolling, **parts.copied(strategy, "rollingUpdate")}
    return strategy


def _replicas(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """One, and a complete template."""
    if not isinstance(obj.get("spec"), Mapping):
        return
    obj["spec"] = _templated({"replicas": 1} | dict(obj["spec"]), old, gates)


def _templated(spec: Json, old: Raw | None, gates: FeatureGates) -> Json:
    template = spec.get("template")
    if isinstance(template, Mapping) and isinstance(template.get("spec"), Mapping):
        was = parts.at(old, "spec", "template", "spec")
        spec["template"] = {**template, "spec": pod_spec(template["spec"], gates, was)}
    return spec
