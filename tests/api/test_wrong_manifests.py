"""Wrong manifests, each answered by an error at the right field that says what would be right."""

from __future__ import annotations

from typing import Any

import pytest
from api_manifests import GONE, composite, errors, job, leaf, node, pairs, pod, pod_group, spoiled, workload

LONG = "x" * 64
TERM = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CONTAINER = "spec.containers[0]"


def small(api_version: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}


WRONG = [
    # (manifest, what is spoiled, with what, where the error is, its type, what it says)
    (pod(), "metadata.name", "Bad_Name", "metadata.name", "Invalid", "lower case"),
    (pod(), "metadata.name", GONE, "metadata.name", "Required", "name or generateName"),
    (pod(), "metadata.generateName", "Bad-", "metadata.generateName", "Invalid", "lower case"),
    (pod(), "metadata.labels", {"a/b/c": "x"}, "metadata.labels", "Invalid", "prefix"),
    (pod(), "metadata.labels", {"app": LONG}, "metadata.labels[app]", "Invalid", "63 characters"),
    (pod(), "metadata.annotations", {"-x": ""}, "metadata.annotations", "Invalid", "alphanumeric"),
    (pod(), "metadata.annotations", {"x": "y" * (1 << 18)}, "metadata.annotations", "TooLong", "262144"),
    (pod(), "metadata.finalizers", ["mine"], "metadata.finalizers[0]", "Invalid", "fully qualified"),
    (
        pod(),
        "metadata.ownerReferences",
        [{"apiVersion": "v1", "kind": "Node", "name": "n"}],
        "metadata.ownerReferences[0].uid",
        "Required",
        "empty",
    ),
    (
        pod(),
        "metadata.ownerReferences",
        [{"apiVersion": "v1", "kind": "A", "name": n, "uid": n, "controller": True} for n in "ab"],
        "metadata.ownerReferences",
        "Invalid",
        "only one",
    ),
    (pod(), "spec", {}, "spec.containers", "Required", "at least one"),
    (pod(), "spec", "x", "spec", "Invalid", "Expected object"),
    (pod(), "spec.priority", "high", "spec.priority", "Invalid", "Expected int"),
    (pod(), "spec.containers[0]", 7, CONTAINER, "Invalid", "Expected object"),
    (pod(), f"{CONTAINER}.name", "C", f"{CONTAINER}.name", "Invalid", "lower case"),
    (pod(), f"{CONTAINER}.image", GONE, f"{CONTAINER}.image", "Required", "image"),
    (pod(), f"{CONTAINER}.image", " pause", f"{CONTAINER}.image", "Invalid", "whitespace"),
    (
        pod(),
        f"{CONTAINER}.imagePullPolicy",
        "Sometimes",
        f"{CONTAINER}.imagePullPolicy",
        "NotSupported",
        "IfNotPresent",
    ),
    (pod(), "spec.volumes", [{"emptyDir": {}}], "spec.volumes[0].name", "Required", ""),
    (pod(), "spec.volumes", [{"name": "V", "emptyDir": {}}], "spec.volumes[0].name", "Invalid", "lower case"),
    (pod(), "spec.volumes", [{"name": "v", "emptyDir": {}}] * 2, "spec.volumes[1].name", "Duplicate", "unique"),
    (pod(), "spec.volumes", [{"name": "v"}], "spec.volumes[0]", "Required", "a volume type"),
    (
        pod(),
        "spec.volumes",
        [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}],
        "spec.volumes[0].hostPath",
        "Forbidden",
        "more than 1 volume type",
    ),
    (pod(), "spec.ephemeralContainers", [{"name": "d", "image": "i"}], "spec.ephemeralContainers", "Forbidden", "new"),
    (
        job(),
        "spec.template.spec.ephemeralContainers",
        [{}],
        "spec.template.spec.ephemeralContainers",
        "Forbidden",
        "new",
    ),
    (pod(), "spec.readinessGates", [{}], "spec.readinessGates[0].conditionType", "Required", ""),
    (
        pod(),
        "spec.readinessGates",
        [{"conditionType": "a b"}],
        "spec.readinessGates[0].conditionType",
        "Invalid",
        "alphanumeric",
    ),
    (pod(), "spec.hostAliases", [{"hostnames": ["a"]}], "spec.hostAliases[0].ip", "Required", ""),
    (pod(), "spec.hostAliases", [{"ip": "1.2.3"}], "spec.hostAliases[0].ip", "Invalid", "IP address"),
    (
        pod(),
        "spec.hostAliases",
        [{"ip": "::1", "hostnames": ["A_b"]}],
        "spec.hostAliases[0].hostnames[0]",
        "Invalid",
        "lower case",
    ),
    (job(), "spec.selector", {"matchLabels": {"app": "x"}}, "spec.selector", "Invalid", "manualSelector"),
    (job(), "spec.managedBy", "mine", "spec.managedBy", "Invalid", "domain-prefixed"),
    (job(), "spec.managedBy", "example.com/" + LONG, "spec.managedBy", "TooLong", "63"),
    (pod(), "spec.initContainers", [{"name": "c", "image": "i"}], f"{CONTAINER}.name", "Duplicate", "unique"),
    (
        pod(),
        f"{CONTAINER}.resources.requests",
        {"cpu": "1 core"},
        f"{CONTAINER}.resources.requests[cpu]",
        "Invalid",
        "500m",
    ),
    (pod(), f"{CONTAINER}.resources.requests", {"cpu": "-1"}, f"{CONTAINER}.resources.requests[cpu]", "Invalid", "0"),
    (
        pod(),
        f"{CONTAINER}.resources.requests",
        {"gpu": "1"},
        f"{CONTAINER}.resources.requests[gpu]",
        "Invalid",
        "example.com",
    ),
    (
        pod(),
        f"{CONTAINER}.resources.limits",
        {"a.b/gpu": "1500m"},
        f"{CONTAINER}.resources.limits[a.b/gpu]",
        "Invalid",
        "integer",
    ),
    (
        pod(),
        f"{CONTAINER}.resources.requests",
        {"a.b/gpu": "2"},
        f"{CONTAINER}.resources.limits",
        "Required",
        "set it to 2",
    ),
    (
        pod(),
        f"{CONTAINER}.resources",
        {"requests": {"a.b/gpu": "1"}, "limits": {"a.b/gpu": "2"}},
        f"{CONTAINER}.resources.requests",
        "Invalid",
        "equal to a.b/gpu limit of 2",
    ),
    (
        pod(),
        f"{CONTAINER}.resources",
        {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
        f"{CONTAINER}.resources.requests",
        "Invalid",
        "cpu limit of 1",
    ),
    (pod(), f"{CONTAINER}.ports", [{"containerPort": 0}], f"{CONTAINER}.ports[0].containerPort", "Required", "65535"),
    (
        pod(),
        f"{CONTAINER}.ports",
        [{"containerPort": 1, "hostPort": 70000}],
        f"{CONTAINER}.ports[0].hostPort",
        "Invalid",
        "65535",
    ),
    (
        pod(),
        f"{CONTAINER}.ports",
        [{"containerPort": 1, "protocol": "udp"}],
        f"{CONTAINER}.ports[0].protocol",
        "NotSupported",
        "UDP",
    ),
    (
        pod(),
        f"{CONTAINER}.ports",
        [{"containerPort": 1, "hostPort": 1}, {"containerPort": 2, "hostPort": 1}],
        f"{CONTAINER}.ports[1].hostPort",
        "Duplicate",
        "unique",
    ),
    (
        pod(hostNetwork=True),
        f"{CONTAINER}.ports",
        [{"containerPort": 1, "hostPort": 2}],
        f"{CONTAINER}.ports[0].containerPort",
        "Invalid",
        "hostPort",
    ),
    (
        pod(),
        f"{CONTAINER}.resources.claims",
        [{"name": "gpu"}],
        f"{CONTAINER}.resources.claims[0].name",
        "Invalid",
        "resourceClaims",
    ),
    (
        pod(),
        "spec.resources",
        {"requests": {"a.b/gpu": "1"}},
        "spec.resources.requests[a.b/gpu]",
        "Invalid",
        "on a container",
    ),
    (pod(), "spec.resourceClaims", [{"name": "a"}], "spec.resourceClaims[0]", "Invalid", "resourceClaimTemplateName"),
    (pod(), "spec.restartPolicy", "Sometimes", "spec.restartPolicy", "NotSupported", "OnFailure"),
    (pod(), "spec.terminationGracePeriodSeconds", -1, "spec.terminationGracePeriodSeconds", "Invalid", "0"),
    (pod(), "spec.preemptionPolicy", "Maybe", "spec.preemptionPolicy", "NotSupported", "Never"),
    (pod(), "spec.schedulerName", "My Scheduler", "spec.schedulerName", "Invalid", "lower case"),
    (pod(), "spec.nodeSelector", {"a b": "c"}, "spec.nodeSelector", "Invalid", "alphanumeric"),
    (pod(), "spec.schedulingGates", [{"name": "a"}, {"name": "a"}], "spec.schedulingGates[1]", "Duplicate", "unique"),
    (pod(schedulingGates=[{"name": "a"}]), "spec.nodeName", "n", "spec.nodeName", "Forbidden", "schedulingGates"),
    (pod(), "spec.schedulingGroup", {}, "spec.schedulingGroup", "Invalid", "podGroupName"),
    (
        pod(),
        "spec.schedulingGroup",
        {"podGroupName": "G"},
        "spec.schedulingGroup.podGroupName",
        "Invalid",
        "lower case",
    ),
    (pod(), "spec.tolerations", [{"value": "x"}], "spec.tolerations[0].operator", "Invalid", "Exists"),
    (
        pod(),
        "spec.tolerations",
        [{"key": "a", "operator": "Exists", "value": "x"}],
        "spec.tolerations[0].operator",
        "Invalid",
        "empty",
    ),
    (
        pod(),
        "spec.tolerations",
        [{"key": "a", "operator": "Lt", "value": "5"}],
        "spec.tolerations[0].operator",
        "NotSupported",
        "Equal",
    ),
    (
        pod(),
        "spec.tolerations",
        [{"key": "a", "effect": "Never"}],
        "spec.tolerations[0].effect",
        "NotSupported",
        "NoExecute",
    ),
    (
        pod(),
        "spec.tolerations",
        [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1}],
        "spec.tolerations[0].effect",
        "Invalid",
        "NoExecute",
    ),
    (pod(), "spec.affinity.nodeAffinity", {REQUIRED: {}}, TERM, "Required", "at least one"),
    (
        pod(),
        "spec.affinity.nodeAffinity",
        {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "is"}]}]}},
        f"{TERM}[0].matchExpressions[0].operator",
        "NotSupported",
        "DoesNotExist",
    ),
    (
        pod(),
        "spec.affinity.nodeAffinity",
        {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]}},
        f"{TERM}[0].matchExpressions[0].values",
        "Required",
        "In",
    ),
    (
        pod(),
        "spec.affinity.nodeAffinity",
        {
            REQUIRED: {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]}]
            }
        },
        f"{TERM}[0].matchExpressions[0].values",
        "Required",
        "single",
    ),
    (
        pod(),
        "spec.affinity.nodeAffinity",
        {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [{"key": "spec.x", "operator": "In", "values": ["a"]}]}]}},
        f"{TERM}[0].matchFields[0].key",
        "Invalid",
        "metadata.name",
    ),
    (
        pod(),
        "spec.affinity.nodeAffinity",
        {PREFERRED: [{"weight": 101, "preference": {}}]},
        f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight",
        "Invalid",
        "100",
    ),
    (
        pod(),
        "spec.affinity.podAntiAffinity",
        {REQUIRED: [{"labelSelector": {}}]},
        f"spec.affinity.podAntiAffinity.{REQUIRED}[0].topologyKey",
        "Required",
        "",
    ),
    (
        pod(),
        "spec.topologySpreadConstraints",
        [{"maxSkew": 0, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}],
        "spec.topologySpreadConstraints[0].maxSkew",
        "Invalid",
        "zero",
    ),
    (node(), "metadata.namespace", "default", "metadata.namespace", "Forbidden", "not allowed"),
    (node(), "spec.taints", [{"key": "a"}], "spec.taints[0].effect", "Required", "NoSchedule"),
    (node(), "spec.taints", [{"key": "a", "effect": "NoSchedule"}] * 2, "spec.taints[1]", "Duplicate", "unique"),
    (node(), "status.capacity", {"cpu": "four"}, "status.capacity[cpu]", "Invalid", "500m"),
    (node(), "status.capacity", {"pods": "1.5"}, "status.capacity[pods]", "Invalid", "integer"),
    (node(), "spec.podPreemptionPolicy", {}, "spec.podPreemptionPolicy", "Forbidden", "InPlacePodVerticalScaling"),
    (job(), "spec.parallelism", -1, "spec.parallelism", "Invalid", "0"),
    (
        job(),
        "spec.template.spec.restartPolicy",
        "Always",
        "spec.template.spec.restartPolicy",
        "NotSupported",
        "OnFailure",
    ),
    (job(), "spec.completionMode", "Sorted", "spec.completionMode", "NotSupported", "Indexed"),
    (job(parallelism=2), "spec.completionMode", "Indexed", "spec.completions", "Required", "Indexed"),
    (job(), "spec.backoffLimitPerIndex", 1, "spec.backoffLimitPerIndex", "Invalid", "indexed"),
    (job(), "metadata.name", "j" * 64, "metadata.name", "Invalid", "63"),
    (job(), "spec.scheduling", {"schedulingPolicy": {}}, "spec.scheduling.schedulingPolicy", "Invalid", "basic, gang"),
    (
        job(),
        "spec.scheduling",
        {"schedulingPolicy": {"gang": {"minCount": 0}}},
        "spec.scheduling.schedulingPolicy.gang.minCount",
        "Invalid",
        "1",
    ),
    (job(), "spec.scheduling", {"disruptionMode": {"all": {}}}, "spec.scheduling.disruptionMode", "Invalid", "gang"),
    (pod_group(), "spec.schedulingPolicy", GONE, "spec.schedulingPolicy", "Invalid", "exactly one of basic, gang"),
    (pod_group(), "spec.preemptionPolicy", "Maybe", "spec.preemptionPolicy", "NotSupported", "Never"),
    (pod_group(), "spec.parentCompositePodGroupName", "c", "spec.workloadRef", "Required", "Workload"),
    (
        pod_group(),
        "spec.schedulingPolicy.gang.minCount",
        "three",
        "spec.schedulingPolicy.gang.minCount",
        "Invalid",
        "int",
    ),
    (composite(), "spec.workloadRef", GONE, "spec.workloadRef", "Required", "Workload"),
    (composite(), "spec.schedulingPolicy", {"gang": {}}, "spec.schedulingPolicy.gang.minGroupCount", "Required", "1"),
    (
        workload(podGroupTemplates=[leaf("a")]),
        "spec.controllerRef",
        {"kind": "..", "name": "x"},
        "spec.controllerRef.kind",
        "Invalid",
        "..",
    ),
    (small("scheduling.k8s.io/v1", "PriorityClass"), "value", 2_000_000_000, "value", "Forbidden", "1000000000"),
    (
        small("scheduling.k8s.io/v1", "PriorityClass"),
        "metadata.name",
        "system-mine",
        "metadata.name",
        "Forbidden",
        "reserved",
    ),
    (
        small("policy/v1", "PodDisruptionBudget"),
        "spec",
        {"minAvailable": 1, "maxUnavailable": 1},
        "spec",
        "Invalid",
        "both",
    ),
    (small("policy/v1", "PodDisruptionBudget"), "spec.minAvailable", "half", "spec.minAvailable", "Invalid", "50%"),
    (small("policy/v1", "PodDisruptionBudget"), "spec.minAvailable", "101%", "spec.minAvailable", "Invalid", "100%"),
    (small("v1", "Namespace"), "metadata.name", "a.b", "metadata.name", "Invalid", "label"),
    (small("node.k8s.io/v1", "RuntimeClass"), "description", "x", "handler", "Required", ""),
    (
        small("coordination.k8s.io/v1", "Lease"),
        "spec.leaseDurationSeconds",
        0,
        "spec.leaseDurationSeconds",
        "Invalid",
        "1",
    ),
    (small("coordination.k8s.io/v1", "Lease"), "spec.renewTime", "noon", "spec.renewTime", "Invalid", "RFC 3339"),
    (
        small("resource.k8s.io/v1", "ResourceClaim"),
        "spec.devices.requests",
        [{"name": "a"}],
        "spec.devices.requests[0]",
        "Invalid",
        "firstAvailable",
    ),
]


@pytest.mark.parametrize(
    ("manifest", "path", "value", "field", "kind", "says"),
    WRONG,
    ids=[f"{i}-{manifest['kind']}-{path}" for i, (manifest, path, *_) in enumerate(WRONG)],
)
def test_a_wrong_manifest_is_refused_at_its_field_with_what_would_be_right(
    manifest: dict[str, Any], path: str, value: Any, field: str, kind: str, says: str
) -> None:
    assert errors(spoiled(manifest, path, value)), "nothing was refused"
    found = errors(spoiled(manifest, path, value))
    assert (field, kind) in pairs(found), [str(error) for error in found]
    message = next(str(error) for error in found if (error.field, error.type) == (field, kind))
    assert message.startswith(f"{field}: ")
    assert says in message


@pytest.mark.parametrize(
    "manifest", [entry[0] for entry in WRONG if entry[3] not in ("handler",)], ids=lambda m: m["kind"]
)
def test_the_same_manifest_unspoiled_is_accepted(manifest: dict[str, Any]) -> None:
    assert errors(manifest) == []
