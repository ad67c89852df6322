"""The short forms of objects in case files, as full manifests (conformance README, "steps")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from muster.conformance.cases import CaseError

Manifest = dict[str, Any]
Short = Mapping[str, Any]

V1BETA1, V1ALPHA3 = "scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3"


def manifests(item: Any, *, priority: int | None = 0) -> list[Manifest]:
    """The objects that one entry of a `create` list stands for: a full manifest, or a shorthand of one or many.

    A pod or group in short form that names no priority gets `priority`, so that a group and its pods agree; None
    leaves it to the Priority admission.

    Raises:
        CaseError: it is neither.
    """
    if not isinstance(item, dict) or not item:
        raise CaseError(f"an object is a manifest or a shorthand, not {item!r}")
    if "apiVersion" in item or "kind" in item:
        return [item]
    form = next(iter(item))
    if form not in _FORMS:
        raise CaseError(
            f"unknown shorthand {form!r}; known: {', '.join(_FORMS)}; or a manifest with apiVersion and kind"
        )
    keys, build = _FORMS[form]
    unknown = sorted(item.keys() - keys - {form})
    if unknown:
        raise CaseError(f"{form} {item[form]}: unknown key {unknown[0]!r}; known keys: {', '.join(sorted(keys))}")
    made = build(item)
    if priority is not None and form in _WITH_PRIORITY:
        for manifest in made:
            manifest["spec"].setdefault("priority", priority)
    return made


def numbered(prefix: str, count: int, start: int = 1) -> list[str]:
    """The names of `count` numbered objects: `p1`, `p2`, …"""
    return [f"{prefix}{number}" for number in range(start, start + count)]


def _node(short: Short) -> Manifest:
    capacity = {"pods": str(short.get("pods", 110))}
    capacity |= {name: str(short[name]) for name in ("cpu", "memory") if name in short}
    capacity |= {name: str(amount) for name, amount in short.get("extended", {}).items()}
    name = short["node"]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **short.get("labels", {})}},
        "spec": {"taints": list(short["taints"])} if short.get("taints") else {},
        "status": {
            "capacity": capacity,
            "allocatable": dict(capacity),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def _pod(short: Short) -> Manifest:
    requests = {name: str(short[name]) for name in ("cpu", "memory") if name in short}
    extended = {name: str(amount) for name, amount in short.get("extended", {}).items()}
    resources: Manifest = {}
    if requests or extended:
        resources["requests"] = {**requests, **extended}
    if extended:
        resources["limits"] = extended
    claims = short.get("claims", [])
    if claims:
        resources["claims"] = [{"name": claim["name"]} for claim in claims]
    spec: Manifest = {
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": resources}],
    }
    for key, name in _POD_FIELDS.items():
        if key in short:
            spec[name] = short[key]
    if "group" in short:
        spec["schedulingGroup"] = {"podGroupName": short["group"]}
    if short.get("gates"):
        spec["schedulingGates"] = [{"name": gate} for gate in short["gates"]]
    if claims:
        spec["resourceClaims"] = [_claim(claim) for claim in claims]
    metadata: Manifest = {"name": short["pod"]}
    if short.get("labels"):
        metadata["labels"] = dict(short["labels"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


_WITH_PRIORITY = frozenset(("pod", "pods", "podgroup", "composite"))
_POD_FIELDS = {
    "node": "nodeName",
    "priority": "priority",
    "nodeSelector": "nodeSelector",
    "tolerations": "tolerations",
    "affinity": "affinity",
    "scheduler": "schedulerName",
    "preemptionPolicy": "preemptionPolicy",
}


def _claim(claim: Short) -> Manifest:
    """`template:` or `claim:` name the source of the entry `name`."""
    entry: Manifest = {"name": claim["name"]}
    if "template" in claim:
        entry["resourceClaimTemplateName"] = claim["template"]
    if "claim" in claim:
        entry["resourceClaimName"] = claim["claim"]
    return entry


def _group(short: Short, form: str, kind: str, api_version: str, minimum: str) -> Manifest:
    name = short[form]
    policy: Manifest = {"gang": {minimum: short["gang"]}} if "gang" in short else {"basic": {}}
    spec: Manifest = {"schedulingPolicy": policy}
    if "priority" in short:
        spec["priority"] = short["priority"]
    if "topology" in short:
        spec["schedulingConstraints"] = {"topology": [{"key": short["topology"]}]}
    if "disruption" in short:
        spec["disruptionMode"] = {short["disruption"]: {}}
    if "parent" in short:
        spec["parentCompositePodGroupName"] = short["parent"]
    if "preemptionPolicy" in short:
        spec["preemptionPolicy"] = short["preemptionPolicy"]
    if short.get("claims"):
        spec["resourceClaims"] = [_claim(claim) for claim in short["claims"]]
    workload = short.get("workload")
    if workload is None and (form == "composite" or "parent" in short):
        workload = {"name": "w", "template": name}
    if workload is not None:
        spec["workloadRef"] = {"workloadName": workload["name"], "templateName": workload["template"]}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _podgroup(short: Short) -> Manifest:
    return _group(short, "podgroup", "PodGroup", V1BETA1, "minCount")


def _composite(short: Short) -> Manifest:
    return _group(short, "composite", "CompositePodGroup", V1ALPHA3, "minGroupCount")


def _pdb(short: Short) -> Manifest:
    spec: Manifest = {"selector": {"matchLabels": dict(short["selector"])}}
    spec |= {key: short[key] for key in ("minAvailable", "maxUnavailable") if key in short}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": short["pdb"]}, "spec": spec}


def _priority_class(short: Short) -> Manifest:
    body: Manifest = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": short["priorityclass"]},
        "value": short["value"],
    }
    body |= {key: short[key] for key in ("preemptionPolicy", "globalDefault") if key in short}
    return body


def _many(form: str, build: Callable[[Short], Manifest]) -> Callable[[Short], list[Manifest]]:
    def every(short: Short) -> list[Manifest]:
        if not isinstance(short.get("count"), int):
            raise CaseError(f"{form}s {short[form + 's']}: count is missing")
        return [
            build({**short, form: name}) for name in numbered(short[form + "s"], short["count"], short.get("start", 1))
        ]

    return every


def _one(build: Callable[[Short], Manifest]) -> Callable[[Short], list[Manifest]]:
    return lambda short: [build(short)]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NODE = _words("cpu memory labels extended taints pods")
_POD = _words(
    "group cpu memory extended priority labels node nodeSelector tolerations affinity scheduler gates claims "
    "preemptionPolicy"
)
_GROUP = _words("gang basic topology priority disruption parent preemptionPolicy workload")
_MANY = _words("count start")
_FORMS: Mapping[str, tuple[frozenset[str], Callable[[Short], list[Manifest]]]] = {
    "node": (_NODE, _one(_node)),
    "nodes": (_NODE | _MANY, _many("node", _node)),
    "podgroup": (_GROUP | {"claims"}, _one(_podgroup)),
    "composite": (_GROUP, _one(_composite)),
    "pods": (_POD | _MANY, _many("pod", _pod)),
    "pod": (_POD, _one(_pod)),
    "pdb": (_words("selector minAvailable maxUnavailable"), _one(_pdb)),
    "priorityclass": (_words("value preemptionPolicy globalDefault"), _one(_priority_class)),
}
