"""What may change in a pod, and what a resize may change."""

from __future__ import annotations

from typing import Any

import pytest
from api_manifests import ALL, GONE, Json, errors, pairs, pod, spoiled

from muster.api import catalog
from muster.api.validation import pod_update

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ANYWHERE = {"key": "a", "operator": "Exists"}


def required(*terms: list[Json]) -> Json:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}}}


def expression(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}


PLAIN = pod(
    nodeSelector={"zone": "z"},
    tolerations=[{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
    activeDeadlineSeconds=60,
    schedulingGroup={"podGroupName": "g"},
)
GATED = spoiled(PLAIN, "spec.schedulingGates", [{"name": "one"}, {"name": "two"}])
NARROW = spoiled(GATED, "spec.affinity", required([expression("rack", "r1")], [expression("rack", "r2")]))

ALLOWED = [
    (PLAIN, "metadata.labels", {"a": "b"}),
    (PLAIN, "spec.containers[0].image", "other"),
    (PLAIN, "spec.tolerations", [*PLAIN["spec"]["tolerations"], ANYWHERE]),
    (PLAIN, "spec.tolerations[0].tolerationSeconds", 9),
    (PLAIN, "spec.activeDeadlineSeconds", 30),
    (GATED, "spec.schedulingGates", [{"name": "two"}]),
    (GATED, "spec.schedulingGates", GONE),
    (GATED, "spec.nodeSelector", {"zone": "z", "rack": "r"}),
    (GATED, "spec.affinity", required([expression("rack", "r1")])),
    (NARROW, "spec.affinity", required([expression("rack", "r1"), expression("x", "y")], [expression("rack", "r2")])),
]


@pytest.mark.parametrize(("old", "path", "value"), ALLOWED, ids=[entry[1] for entry in ALLOWED])
def test_this_may_change(old: Json, path: str, value: Any) -> None:
    assert errors(spoiled(old, path, value), old) == []


def test_gates_may_go_in_the_same_update_that_adds_where_the_pod_may_run() -> None:
    new = spoiled(spoiled(GATED, "spec.schedulingGates", GONE), "spec.nodeSelector.rack", "r")
    assert errors(new, GATED) == []


REFUSED = [
    (PLAIN, "spec.schedulingGroup.podGroupName", "other", "spec.schedulingGroup", "Invalid"),
    (PLAIN, "spec.schedulingGroup", GONE, "spec.schedulingGroup", "Invalid"),
    (pod(), "spec.schedulingGroup", {"podGroupName": "g"}, "spec.schedulingGroup", "Invalid"),
    (PLAIN, "spec.nodeSelector", {"zone": "z", "rack": "r"}, "spec", "Forbidden"),
    (PLAIN, "spec.affinity", required([expression("rack", "r1")]), "spec", "Forbidden"),
    (PLAIN, "spec.nodeName", "n", "spec.nodeName", "Forbidden"),
    (PLAIN, "spec.hostNetwork", True, "spec", "Forbidden"),
    (PLAIN, "spec.volumes", [{"name": "v", "emptyDir": {}}], "spec", "Forbidden"),
    (PLAIN, "spec.containers[0].resources", {"requests": {"cpu": "2"}}, "spec", "Forbidden"),
    (PLAIN, "spec.containers[0].env", [{"name": "A", "value": "b"}], "spec", "Forbidden"),
    (PLAIN, "spec.containers", PLAIN["spec"]["containers"] + [{"name": "d", "image": "i"}],
     "spec.containers", "Forbidden"),
    (PLAIN, "spec.tolerations", [], "spec.tolerations", "Forbidden"),
    (PLAIN, "spec.tolerations[0].effect", GONE, "spec.tolerations[0].effect", "Invalid"),
    (PLAIN, "spec.activeDeadlineSeconds", 61, "spec.activeDeadlineSeconds", "Invalid"),
    (PLAIN, "spec.activeDeadlineSeconds", GONE, "spec.activeDeadlineSeconds", "Invalid"),
    (PLAIN, "spec.schedulingGates", [{"name": "new"}], "spec.schedulingGates[0].name", "Forbidden"),
    (GATED, "spec.nodeSelector", {"zone": "y"}, "spec.nodeSelector", "Invalid"),
    (GATED, "spec.hostNetwork", True, "spec", "Forbidden"),
    (NARROW, "spec.affinity", required([expression("rack", "r1")]),
     f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms", "Invalid"),
    (NARROW, "spec.affinity", required([expression("rack", "r3")], [expression("rack", "r2")]),
     f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]", "Invalid"),
    (NARROW, "metadata.namespace", "other", "metadata.namespace", "Invalid"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "path", "value", "field", "kind"), REFUSED, ids=[f"{i}-{entry[1]}" for i, entry in enumerate(REFUSED)]
)
def test_this_may_not_change(old: Json, path: str, value: Any, field: str, kind: str) -> None:
    assert (field, kind) in pairs(errors(spoiled(old, path, value), old))


def test_the_refusal_names_the_fields_that_changed() -> None:
    new = spoiled(spoiled(PLAIN, "spec.hostname", "h"), "spec.volumes", [])
    (error,) = errors(spoiled(new, "spec.subdomain", "s"), PLAIN)
    assert "changed: spec.hostname, spec.subdomain" in str(error)


def test_what_admission_set_survives_an_update_that_leaves_it_out() -> None:
    stored = catalog.POD.prepare(PLAIN, None, ALL)
    stored["spec"] |= {"priority": 7, "preemptionPolicy": "Never"}
    again = catalog.POD.prepare(PLAIN, stored, ALL)
    assert again["spec"] == stored["spec"]


# --- resize ------------------------------------------------------------------------------------------------------

SIZED = pod(
    containers=[
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}},
        {"name": "d", "image": "i", "resources": {"limits": {"a.b/gpu": "1"}, "requests": {"a.b/gpu": "1"}}},
    ]
)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("spec.containers[0].resources.requests.cpu", "2", []),
        ("spec.containers[0].resources.limits.cpu", "1500m", []),
        ("spec.containers[1].resources.requests.cpu", "1", []),
        ("spec.containers[0].resources.requests.cpu", "3", [("spec.containers[0].resources.requests", "Invalid")]),
        ("spec.containers[0].resources.requests.cpu", "much",
         [("spec.containers[0].resources.requests[cpu]", "Invalid")]),
        ("spec.containers[0].resources.requests.cpu", GONE, [("spec.containers[0].resources.requests", "Forbidden")]),
        ("spec.containers[1].resources.limits", {"a.b/gpu": "2"}, [("spec", "Forbidden")]),
        ("spec.containers[0].image", "j", [("spec", "Forbidden")]),
        ("spec.nodeName", "n", [("spec", "Forbidden")]),
    ],
)  # fmt: skip
def test_a_resize_changes_cpu_and_memory_and_nothing_else(
    path: str, value: Any, expected: list[tuple[str, str]]
) -> None:
    assert pairs(pod_update.resize(spoiled(SIZED, path, value), SIZED, ALL)) == expected


def test_a_resize_keeps_the_qos_class() -> None:
    amounts = {"cpu": "1", "memory": "1Gi"}
    resources = {"requests": amounts, "limits": dict(amounts)}
    guaranteed = pod(containers=[{"name": "c", "image": "i", "resources": resources}])
    larger = spoiled(guaranteed, "spec.containers[0].resources.limits.cpu", "2")
    (error,) = pod_update.resize(larger, guaranteed, ALL)
    assert "Guaranteed to Burstable" in str(error)
    both = spoiled(larger, "spec.containers[0].resources.requests.cpu", "2")
    assert pod_update.resize(both, guaranteed, ALL) == []


def test_whoever_cannot_be_resized_is_told_why() -> None:
    larger = spoiled(SIZED, "spec.containers[0].resources.requests.cpu", "1500m")
    for status, says in (
        ({"phase": "Succeeded"}, "has ended"),
        ({"phase": "Running", "containerStatuses": [{"name": "c"}]}, "without support for resize"),
    ):
        (error,) = pod_update.resize({**larger, "status": status}, {**SIZED, "status": status}, ALL)
        assert (error.field, error.type) == ("metadata", "Forbidden") and says in str(error)
    mirror = spoiled(SIZED, "metadata.annotations", {"kubernetes.io/config.mirror": "x"})
    (error,) = pod_update.resize(mirror, mirror, ALL)
    assert "static pods cannot be resized" in str(error)


def test_of_init_containers_only_sidecars_are_resized() -> None:
    def made(cpu: str, **more: str) -> dict[str, Any]:
        first = {"name": "first", "image": "i", "resources": {"requests": {"cpu": cpu}}, **more}
        return pod(containers=[{"name": "c", "image": "i"}], initContainers=[first])

    (error,) = pod_update.resize(made("2"), made("1"), ALL)
    assert (error.field, error.type) == ("spec.initContainers[0].resources", "Forbidden")
    assert pod_update.resize(made("2", restartPolicy="Always"), made("1", restartPolicy="Always"), ALL) == []


# --- status ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}, []),
        ({"phase": "Lost"}, [("status.phase", "NotSupported")]),
        ({"startTime": "noon"}, [("status.startTime", "Invalid")]),
        ({"nominatedNodeName": "N"}, [("status.nominatedNodeName", "Invalid")]),
        ({"conditions": [{"type": "A", "status": "Yes"}]}, [("status.conditions[0].status", "NotSupported")]),
        ({"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "x"}}]},
         [("status.containerStatuses[0].allocatedResources[cpu]", "Invalid")]),
        ({"resources": {"requests": {"cpu": "-1"}}}, [("status.resources.requests[cpu]", "Invalid")]),
    ],
)  # fmt: skip
def test_a_status_that_cannot_be_read_is_refused(status: Json, expected: list[tuple[str, str]]) -> None:
    assert pairs(catalog.POD.validate_status(PLAIN | {"status": status}, PLAIN, ALL)) == expected
