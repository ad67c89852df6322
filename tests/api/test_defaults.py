"""Defaults: what is filled in, what is dropped, and that nothing given is touched."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from api_manifests import ALL, Json, composite, errors, inner, job, leaf, node, pod, pod_group, workload
from hypothesis import given
from hypothesis import strategies as st

from muster.api import catalog
from muster.api.gates import FeatureGates

OFF = FeatureGates()
CLAIMS = [{"name": "c", "resourceClaimName": "x"}]
MANIFESTS = [
    pod(),
    pod(
        initContainers=[{"name": "i", "image": "a/b:1", "resources": {"limits": {"cpu": 1}}}],
        overhead={"cpu": "0.25"},
        resources={"requests": {"memory": "1024Mi"}},
        schedulingGroup={"podGroupName": "g"},
    ),
    node(),
    job(parallelism=3, suspend=True),
    pod_group(resourceClaims=CLAIMS),
    composite(),
    workload(podGroupTemplates=[leaf("a", resourceClaims=CLAIMS)]),
    workload(compositePodGroupTemplates=[inner("r", leaf("a", resourceClaims=CLAIMS))]),
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}},
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "n"}, "value": 3},
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "n"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
    },
]
GATES = [ALL, OFF]


def prepared(manifest: Json, old: Json | None = None, gates: FeatureGates = ALL) -> Json:
    return catalog.by_kind(manifest["apiVersion"], manifest["kind"]).prepare(manifest, old, gates)


@pytest.mark.parametrize("gates", GATES, ids=["on", "off"])
@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest["kind"])
def test_preparing_changes_nothing_it_was_given_and_once_is_enough(manifest: Json, gates: FeatureGates) -> None:
    before = copy.deepcopy(manifest)
    once = prepared(manifest, None, gates)
    assert manifest == before
    frozen = copy.deepcopy(once)
    assert prepared(once, once, gates) == once == frozen


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.floats(allow_nan=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)
FIELDS = ["metadata", "spec", "status", "value", "handler"]


@given(st.sampled_from(catalog.KINDS), st.dictionaries(st.sampled_from(FIELDS), JSON), st.sampled_from(GATES))
def test_whatever_is_sent_is_answered_with_errors_and_never_with_a_crash(
    kind: catalog.Kind, fields: dict[str, Any], gates: FeatureGates
) -> None:
    raw = {"apiVersion": kind.api_version, "kind": kind.kind, **fields}
    made = kind.prepare(raw, None, gates)
    for error in kind.validate(made, None, gates) + kind.validate_status(made, made, gates):
        assert str(error)


PATHS = [
    "spec",
    "spec.containers",
    "spec.template",
    "spec.template.spec",
    "spec.schedulingPolicy",
    "spec.scheduling",
    "spec.podGroupTemplates",
    "spec.compositePodGroupTemplates",
    "spec.devices",
    "spec.resources",
    "spec.tolerations",
    "spec.containers.0",
    "spec.containers.0.resources",
    "spec.containers.0.resources.requests",
    "spec.affinity",
    "status.capacity",
    "metadata.labels",
    "metadata.ownerReferences",
    "spec.overhead",
]


@given(st.sampled_from(MANIFESTS), st.sampled_from(PATHS), JSON, st.booleans())
def test_one_wrong_value_deep_inside_never_crashes(manifest: Json, path: str, value: Any, update: bool) -> None:
    spoiled = copy.deepcopy(manifest)
    holder: Any = spoiled
    *way, last = path.split(".")
    for step in way:
        holder = (
            holder[0] if step == "0" and holder else holder.setdefault(step, {}) if isinstance(holder, dict) else {}
        )
    if isinstance(holder, dict):
        holder[last] = value
    errors(spoiled, manifest if update else None)


def test_a_pod_gets_what_the_scheduler_and_the_kubelet_need_to_know() -> None:
    made = prepared(pod())
    wanted = {
        "schedulerName": "default-scheduler",
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
    }
    assert wanted.items() <= made["spec"].items()
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    given = {"schedulerName": "mine", "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
    assert given.items() <= prepared(pod(**given))["spec"].items()


def test_limits_stand_in_for_requests_and_amounts_become_canonical() -> None:
    resources = {"limits": {"cpu": 1, "memory": "1024Mi"}, "requests": {"cpu": "0.5"}}
    made = prepared(pod(containers=[{"name": "c", "image": "i", "resources": resources}]))
    assert made["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "500m", "memory": "1Gi"},
    }


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("host:5000/a", "Always"),
        ("a:1", "IfNotPresent"),
        ("a@sha256:0", "IfNotPresent"),
    ],
)
def test_images_without_a_version_are_pulled_always(image: str, policy: str) -> None:
    assert (
        prepared(pod(containers=[{"name": "c", "image": image}]))["spec"]["containers"][0]["imagePullPolicy"] == policy
    )


def test_a_new_object_has_no_status_but_nodes_bring_theirs() -> None:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    assert prepared(pod() | {"status": status})["status"]["phase"] == "Pending"
    assert prepared(pod_group() | {"status": status})["status"] == {}
    assert prepared(node())["status"]["allocatable"] == node()["status"]["capacity"]


@pytest.mark.parametrize(
    ("containers", "whole", "qos"),
    [
        ([{}], None, "BestEffort"),
        ([{"requests": {"a.b/gpu": "1"}, "limits": {"a.b/gpu": "1"}}], None, "BestEffort"),
        ([{"requests": {"cpu": "1"}}], None, "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}], None, "Guaranteed"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}, {}], None, "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}], None, "Burstable"),
        ([{}], {"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
    ],
)
def test_a_new_pod_knows_its_quality_of_service(containers: list[Json], whole: Json | None, qos: str) -> None:
    made = pod(containers=[{"name": f"c{i}", "image": "i", "resources": entry} for i, entry in enumerate(containers)])
    if whole:
        made["spec"]["resources"] = whole
    assert prepared(made)["status"]["qosClass"] == qos


def test_an_update_keeps_the_stored_status() -> None:
    stored = prepared(pod()) | {"status": {"phase": "Running"}}
    assert prepared(pod() | {"status": {"phase": "Failed"}}, stored)["status"] == {"phase": "Running"}


def test_the_group_of_a_pod_is_dropped_while_the_gate_is_off_also_from_templates() -> None:
    grouped = pod(schedulingGroup={"podGroupName": "g"})
    assert "schedulingGroup" not in prepared(grouped, None, OFF)["spec"]
    assert "schedulingGroup" in prepared(grouped, prepared(grouped), OFF)["spec"]
    template = {"spec": {**grouped["spec"], "restartPolicy": "Never"}}
    assert "schedulingGroup" not in prepared(job(template=template), None, OFF)["spec"]["template"]["spec"]


@pytest.mark.parametrize("build", [pod_group, composite])
def test_groups_are_disrupted_pod_by_pod_unless_they_say_otherwise(build: Any) -> None:
    assert prepared(build())["spec"]["disruptionMode"] == {"single": {}}
    assert prepared(build(disruptionMode={"all": {}}))["spec"]["disruptionMode"] == {"all": {}}


def test_templates_get_no_disruption_mode() -> None:
    made = prepared(workload(podGroupTemplates=[leaf("a")]))
    assert "disruptionMode" not in made["spec"]["podGroupTemplates"][0]


@pytest.mark.parametrize(
    ("spec", "parallelism", "completions"),
    [({}, 1, 1), ({"parallelism": 3}, 3, None), ({"completions": 3}, 1, 3), ({"parallelism": 0}, 0, None)],
)
def test_a_job_runs_one_pod_unless_it_says_otherwise(spec: Json, parallelism: int, completions: int | None) -> None:
    made = prepared(job(**spec))["spec"]
    assert (made["parallelism"], made.get("completions")) == (parallelism, completions)


def test_a_job_selects_its_own_pods_by_its_uid() -> None:
    made = prepared(job())
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert made["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert labels["batch.kubernetes.io/job-name"] == "j"
    by_hand = job(manualSelector=True, selector={"matchLabels": {"a": "b"}})
    assert prepared(by_hand)["spec"]["selector"] == {"matchLabels": {"a": "b"}}


def test_a_device_request_is_for_one_device() -> None:
    (claim,) = [manifest for manifest in MANIFESTS if manifest["kind"] == "ResourceClaim"]
    (request,) = prepared(claim)["spec"]["devices"]["requests"]
    assert request["exactly"] == {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}
