from __future__ import annotations

import pytest

from muster.api.gates import FeatureGates
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest


def priority_class(name, value, **fields):
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    } | fields


def composite(name, **spec):
    body = {
        "schedulingPolicy": {"gang": {"minGroupCount": 1}},
        "workloadRef": {"workloadName": "w", "templateName": "t"},
    }
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": {"name": name},
        "spec": body | spec,
    }


KINDS = [
    lambda **spec: pod_manifest("x", **spec),
    lambda **spec: gang_manifest("x", 2, **spec),
    lambda **spec: composite("x", **spec),
]


@pytest.fixture(params=KINDS, ids=["Pod", "PodGroup", "CompositePodGroup"])
def manifest(request):
    return request.param


def test_a_class_becomes_a_number(api, manifest):
    api.made(priority_class("high", 1000))
    assert api.made(manifest(priorityClassName="high"))["spec"]["priority"] == 1000


def test_without_a_class_the_priority_is_zero(api, manifest):
    spec = api.made(manifest())["spec"]
    assert spec["priority"] == 0 and not spec.get("priorityClassName")


def test_the_global_default_is_used_and_named(api, manifest):
    api.made(priority_class("normal", 50, globalDefault=True))
    spec = api.made(manifest())["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (50, "normal")


def test_an_unknown_class_is_forbidden(api, manifest):
    answer = api.create(manifest(priorityClassName="nope"))
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert "no PriorityClass with name nope was found" in answer.body["message"]


def test_a_number_that_differs_from_the_class_is_forbidden(api, manifest):
    api.made(priority_class("high", 1000))
    answer = api.create(manifest(priorityClassName="high", priority=7))
    assert answer.status == 403 and "spec.priority (7)" in answer.body["message"]
    assert api.create(manifest(priority=7)).status == 403


def test_an_equal_number_passes(api, manifest):
    api.made(priority_class("high", 1000))
    assert api.create(manifest(priorityClassName="high", priority=1000)).status == 201


def test_the_system_classes_exist(api, manifest):
    spec = pod_manifest("x", priorityClassName="system-node-critical")
    assert api.made(spec)["spec"]["priority"] == 2_000_001_000


def test_without_priority_admission_numbers_are_taken_as_they_are(new_api, manifest):
    api = new_api(priority_admission=False)
    assert api.made(manifest(priority=7))["spec"]["priority"] == 7


def test_a_pod_gets_the_preemption_policy_of_its_class(api):
    api.made(priority_class("polite", 1000, preemptionPolicy="Never"))
    assert api.made(pod_manifest("a", priorityClassName="polite"))["spec"]["preemptionPolicy"] == "Never"
    assert api.made(pod_manifest("b"))["spec"]["preemptionPolicy"] == "PreemptLowerPriority"
    assert api.create(pod_manifest("c", preemptionPolicy="Never")).status == 403


def test_a_group_gets_the_policy_of_its_class_only_with_the_gate(new_api):
    for gates, policy in ((["PodGroupPreemptionPolicy"], "Never"), ([], None)):
        api = new_api(FeatureGates.of("GenericWorkload", *gates))
        api.made(priority_class("polite", 1000, preemptionPolicy="Never"))
        assert api.made(gang_manifest("pg", 2, priorityClassName="polite"))["spec"].get("preemptionPolicy") == policy


def test_templates_of_a_workload_are_not_resolved(api):
    template = {"name": "t", "schedulingPolicy": {"basic": {}}, "priorityClassName": "nope"}
    workload = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "w"},
        "spec": {"podGroupTemplates": [template]},
    }
    assert "priority" not in api.made(workload)["spec"]["podGroupTemplates"][0]


def test_updates_are_left_alone(api):
    api.made(priority_class("high", 1000))
    api.made(gang_manifest("pg", 2, priorityClassName="high"))
    api.delete("pc", "high")
    assert api.patch("podgroups", "pg", {"metadata": {"labels": {"a": "b"}}}).body["spec"]["priority"] == 1000


def test_only_one_class_is_the_global_default(api):
    api.made(priority_class("one", 1, globalDefault=True))
    answer = api.create(priority_class("two", 2, globalDefault=True))
    assert answer.status == 403 and "one is already marked as default" in answer.body["message"]
    assert api.patch("pc", "one", {"description": "still"}).status == 200


@pytest.mark.parametrize("change", [{"value": 2}, {"preemptionPolicy": "Never"}])
def test_the_number_and_policy_of_a_class_never_change(api, change):
    api.made(priority_class("one", 1))
    answer = api.patch("pc", "one", change)
    assert answer.status == 422 and next(iter(change)) in answer.body["message"]


def test_nothing_joins_a_group_that_is_being_deleted(api):
    api.made(gang_manifest("pg", 2))
    api.delete("podgroups", "pg")
    answer = api.create(pod_manifest("late", group="pg"))
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert "because it is being deleted" in answer.body["message"]
    assert api.create(pod_manifest("other", group="not-there-yet")).status == 201


def test_no_group_joins_a_composite_that_is_being_deleted(api):
    api.made(composite("root"))
    assert api.get("cpg", "root")["metadata"]["finalizers"] == ["scheduling.k8s.io/compositepodgroup-protection"]
    api.delete("cpg", "root")
    parent = {"parentCompositePodGroupName": "root", "workloadRef": {"workloadName": "w", "templateName": "t"}}
    assert api.create(gang_manifest("leaf", 2, **parent)).status == 403
    assert api.create(composite("inner", **parent)).status == 403


def test_a_pod_stays_five_minutes_on_a_broken_node_unless_it_says_otherwise(api):
    plain = {entry["key"]: entry for entry in api.made(pod_manifest("a"))["spec"]["tolerations"]}
    assert {key: entry["tolerationSeconds"] for key, entry in plain.items()} == {
        "node.kubernetes.io/not-ready": 300,
        "node.kubernetes.io/unreachable": 300,
    }
    own = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]
    made = api.made(pod_manifest("b", tolerations=own))["spec"]["tolerations"]
    assert [entry.get("tolerationSeconds") for entry in made] == [5, 300]
    everything = [{"operator": "Exists"}]
    assert api.made(pod_manifest("c", tolerations=everything))["spec"]["tolerations"] == everything


def test_default_tolerations_come_back_when_a_patch_takes_them(api):
    api.made(pod_manifest("a"))
    own = {"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}
    after = api.patch("pods", "a", {"spec": {"tolerations": [own]}})
    assert [entry["key"] for entry in after.body["spec"]["tolerations"]] == [
        "dedicated",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]


def test_nodes_need_no_namespace(api):
    assert api.create(node_manifest("n1")).status == 201
