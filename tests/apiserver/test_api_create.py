from __future__ import annotations

import pytest

from muster.api.gates import FeatureGates
from muster.apiserver import metadata
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest


def test_a_created_object_gets_its_identity_from_the_server(api):
    given = pod_manifest("a", labels={"app": "web"})
    given["metadata"] |= {"uid": "mine", "creationTimestamp": "2000-01-01T00:00:00Z", "generation": 7}
    made = api.made(given)
    meta = made["metadata"]
    assert meta["uid"].startswith("00000000-")
    assert meta["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert (meta["generation"], meta["namespace"], meta["labels"]) == (1, "default", {"app": "web"})
    assert meta["resourceVersion"] == str(api.server.revision)
    assert api.get("pods", "a") == made


def test_the_caller_s_manifest_is_left_alone(api):
    given = pod_manifest("a", gpus=1)
    before = repr(given)
    api.made(given)
    api.bind("a", "n1")
    assert repr(given) == before


def test_every_write_moves_the_revision_by_one(api):
    first = api.server.revision
    api.made(pod_manifest("a"))
    api.made(pod_manifest("b"))
    api.create(pod_manifest("b"))
    api.get("pods", "a")
    assert api.server.revision == first + 2


def test_a_name_that_is_taken_is_a_conflict(api):
    api.made(pod_manifest("a"))
    answer = api.create(pod_manifest("a"))
    assert (answer.status, answer.body["reason"]) == (409, "AlreadyExists")
    assert answer.body["details"] == {"name": "a", "kind": "pods"}


def test_generate_name_makes_different_names_with_a_random_looking_suffix(api):
    given = pod_manifest("")
    del given["metadata"]["name"]
    given["metadata"]["generateName"] = "worker-"
    names = {api.made(given)["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("worker-") and len(name) == len("worker-") + metadata.SUFFIX for name in names)


def test_a_generated_name_that_is_taken_is_tried_again(new_api):
    uids = iter([*"abcdef", "same", "uid of the first", "same", "other", "uid of the second"])
    api = new_api(new_uid=lambda: next(uids))
    given = pod_manifest("")
    given["metadata"] = {"generateName": "p-", "namespace": "default"}
    first, second = api.made(given)["metadata"], api.made(given)["metadata"]
    assert (first["name"], first["uid"]) == ("p-" + metadata.suffix("same"), "uid of the first")
    assert (second["name"], second["uid"]) == ("p-" + metadata.suffix("other"), "uid of the second")


def test_without_a_name_the_error_names_both_ways_to_give_one(api):
    given = pod_manifest("")
    answer = api.create(given)
    assert answer.status == 422
    assert "metadata.name: Required value: name or generateName is required" in answer.body["message"]


def test_a_long_generate_name_is_cut_to_fit(api):
    given = pod_manifest("")
    given["metadata"] = {"generateName": "a" * 70, "namespace": "default"}
    assert len(api.made(given)["metadata"]["name"]) == 63


def test_dry_run_answers_and_stores_nothing(api):
    revision = api.server.revision
    answer = api.create(pod_manifest("a"), dryRun="All")
    assert answer.status == 201 and answer.body["metadata"]["name"] == "a"
    assert api.server.revision == revision and api.gone("pods", "a")


def test_dry_run_takes_no_other_value(api):
    answer = api.create(pod_manifest("a"), dryRun="Some")
    assert answer.status == 422 and "dryRun" in answer.body["message"]


def test_the_status_of_a_new_pod_is_the_server_s(api):
    given = pod_manifest("a") | {"status": {"phase": "Running"}}
    assert api.made(given)["status"]["phase"] == "Pending"


def test_a_node_registers_with_its_status(api):
    assert api.made(node_manifest("n1", gpus=8))["status"]["allocatable"]["nvidia.com/gpu"] == "8"


def test_a_podgroup_is_defaulted_and_protected(api):
    made = api.made(gang_manifest("pg", 3))
    assert made["spec"]["disruptionMode"] == {"single": {}}
    assert made["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]


@pytest.mark.parametrize("mode", ["Warn", ""])
def test_unknown_fields_are_warned_of_and_dropped(api, mode):
    given = pod_manifest("a")
    given["spec"]["replicas"] = 3
    given["spec"]["containers"][0]["imagee"] = "x"
    answer = api.create(given, **({"fieldValidation": mode} if mode else {}))
    assert answer.status == 201
    assert 'unknown field \\"spec.replicas\\"' in answer.headers["Warning"]
    assert 'unknown field \\"spec.containers[0].imagee\\"' in answer.headers["Warning"]
    assert "replicas" not in answer.body["spec"] and "imagee" not in answer.body["spec"]["containers"][0]


def test_strict_validation_refuses_unknown_fields_by_path(api):
    given = pod_manifest("a")
    given["spec"]["containers"][0]["resources"]["request"] = {"cpu": "1"}
    answer = api.create(given, fieldValidation="Strict")
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert 'strict decoding error: unknown field "spec.containers[0].resources.request"' in answer.body["message"]
    assert api.gone("pods", "a")


def test_ignored_unknown_fields_are_dropped_without_a_warning(api):
    given = pod_manifest("a")
    given["spec"]["nonsense"] = True
    answer = api.create(given, fieldValidation="Ignore")
    assert answer.status == 201 and "Warning" not in answer.headers and "nonsense" not in answer.body["spec"]


def test_another_field_validation_is_refused_where_it_matters(api):
    given = pod_manifest("a")
    given["spec"]["nonsense"] = True
    answer = api.create(given, fieldValidation="Sometimes")
    assert answer.status == 422 and '"Ignore", "Strict", "Warn"' in answer.body["message"]


def test_fields_that_muster_does_not_read_survive(api):
    given = pod_manifest(
        "a", dnsConfig={"nameservers": ["1.2.3.4"]}, hostAliases=[{"ip": "1.2.3.4", "hostnames": ["h"]}]
    )
    made = api.made(given)
    assert made["spec"]["dnsConfig"] == {"nameservers": ["1.2.3.4"]}
    assert made["spec"]["hostAliases"] == [{"ip": "1.2.3.4", "hostnames": ["h"]}]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"containers": {}}, "spec.containers"),
        ({"containers": [{"name": 7}]}, "spec.containers[0].name"),
        ({"priority": "high"}, "spec.priority"),
        ({"priority": 1 << 31}, "spec.priority"),
        ({"priority": 1.5}, "spec.priority"),
        ({"hostNetwork": "true"}, "spec.hostNetwork"),
        ({"nodeSelector": {"a": 1}}, "spec.nodeSelector[a]"),
        ({"overhead": {"cpu": True}}, "spec.overhead[cpu]"),
        ({"tolerations": [[]]}, "spec.tolerations[0]"),
        ({"affinity": "none"}, "spec.affinity"),
        (
            {"containers": [{"name": "c", "ports": [{"containerPort": "80"}]}]},
            "spec.containers[0].ports[0].containerPort",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_at_its_path_in_every_mode(api, change, field):
    given = pod_manifest("a", **change)
    for mode in ("Strict", "Warn", "Ignore"):
        answer = api.create(given, fieldValidation=mode)
        assert (answer.status, answer.body["reason"]) == (400, "BadRequest"), answer.body
        assert [cause["field"] for cause in answer.body["details"]["causes"]] == [field]
        assert f"{field}: must be " in answer.body["message"]


def test_null_is_the_same_as_absent(api):
    given = pod_manifest("a", nodeSelector=None, affinity={"nodeAffinity": None})
    made = api.made(given)
    assert "nodeSelector" not in made["spec"] and made["spec"]["affinity"] == {}


def test_a_quantity_given_as_a_number_becomes_text(api):
    given = pod_manifest("a", cpu=None, overhead={"cpu": 0.5})
    given["spec"]["containers"][0]["resources"] = {"requests": {"cpu": 2}, "limits": {"nvidia.com/gpu": 8}}
    made = api.made(given)
    resources = made["spec"]["containers"][0]["resources"]
    assert resources["requests"]["cpu"] == "2" and resources["limits"]["nvidia.com/gpu"] == "8"
    assert made["spec"]["overhead"]["cpu"] == "500m"


def test_apiversion_and_kind_may_be_left_out(api):
    given = pod_manifest("a")
    del given["apiVersion"], given["kind"]
    answer = api.call("POST", "/api/v1/namespaces/default/pods", given)
    assert answer.status == 201
    assert list(answer.body)[:3] == ["apiVersion", "kind", "metadata"]
    assert (answer.body["apiVersion"], answer.body["kind"]) == ("v1", "Pod")


@pytest.mark.parametrize("wrong", [{"kind": "Node"}, {"apiVersion": "v2"}, {"apiVersion": "batch/v1", "kind": "Job"}])
def test_a_kind_that_does_not_match_the_path_is_refused(api, wrong):
    answer = api.call("POST", "/api/v1/namespaces/default/pods", pod_manifest("a") | wrong)
    assert answer.status == 400 and "want apiVersion v1, kind Pod" in answer.body["message"]


def test_a_namespace_that_does_not_match_the_path_is_refused(api):
    answer = api.call("POST", "/api/v1/namespaces/default/pods", pod_manifest("a", namespace="other"))
    assert answer.status == 400 and "does not match the namespace" in answer.body["message"]


def test_a_resource_version_cannot_be_given_on_create(api):
    given = pod_manifest("a")
    given["metadata"]["resourceVersion"] = "5"
    assert api.create(given).status == 400


def test_a_cluster_wide_kind_has_no_namespace(api):
    given = node_manifest("n1")
    given["metadata"]["namespace"] = "default"
    answer = api.call("POST", "/api/v1/nodes", given)
    assert answer.status == 422 and "metadata.namespace: Forbidden" in answer.body["message"]


def test_creating_in_all_namespaces_at_once_is_not_allowed(api):
    answer = api.call("POST", "/api/v1/pods", pod_manifest("a"))
    assert (answer.status, answer.body["reason"]) == (405, "MethodNotAllowed")
    assert "/api/v1/namespaces/NAMESPACE/pods" in answer.body["message"]


def test_kinds_behind_a_gate_that_is_off_are_not_served(new_api):
    api = new_api(FeatureGates())
    for path in (
        "/apis/scheduling.k8s.io/v1beta1/podgroups",
        "/apis/scheduling.k8s.io/v1beta1/namespaces/default/workloads",
        "/apis/scheduling.k8s.io/v1alpha3/compositepodgroups",
    ):
        answer = api.call("GET", path)
        assert (answer.status, answer.body["reason"]) == (404, "NotFound")
        assert "feature gate" in answer.body["message"]


def test_the_scheduling_group_is_dropped_while_its_gate_is_off(new_api):
    api = new_api(FeatureGates())
    assert "schedulingGroup" not in api.made(pod_manifest("a", group="pg"))["spec"]


def test_the_scheduling_group_is_kept_while_its_gate_is_on(api):
    assert api.made(pod_manifest("a", group="pg"))["spec"]["schedulingGroup"] == {"podGroupName": "pg"}


def test_all_errors_of_an_object_are_reported_with_field_and_type(new_api):
    api = new_api(priority_admission=False)
    answer = api.create(gang_manifest("pg", 0, priority=2_000_000_000) | {"metadata": {"name": "PG"}})
    assert answer.status == 422
    found = {(cause["field"], cause["reason"]) for cause in answer.body["details"]["causes"]}
    assert found == {
        ("spec.schedulingPolicy.gang.minCount", "FieldValueRequired"),
        ("spec.priority", "FieldValueInvalid"),
        ("metadata.name", "FieldValueInvalid"),
    }
    assert (answer.body["details"]["kind"], answer.body["details"]["group"]) == ("PodGroup", "scheduling.k8s.io")


@pytest.mark.parametrize("amount", [10**69, float("inf"), float("nan")])
def test_a_number_that_is_no_quantity_is_refused_at_its_field(api, amount):
    given = pod_manifest("a")
    given["spec"]["containers"][0]["resources"] = {"requests": {"cpu": amount}}
    answer = api.create(given)
    field = "spec.containers[0].resources.requests[cpu]"
    assert answer.status == 400 and [cause["field"] for cause in answer.body["details"]["causes"]] == [field]


def test_a_new_object_of_a_kind_with_a_status_has_one(api):
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {}}
    job_spec = {"template": {"spec": {**pod_manifest("a")["spec"], "restartPolicy": "Never"}}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": job_spec}
    counts = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}
    assert api.made(job)["status"] == {} == api.made(gang_manifest("pg", 2))["status"]
    made = api.made(budget)
    assert made["status"] == counts
    patched = api.patch("poddisruptionbudgets", "b", {"status": {"expectedPods": 2}}, subresource="status")
    assert patched.body["status"] == counts | {"expectedPods": 2}
    without = {key: value for key, value in patched.body.items() if key != "status"}
    assert api.put(without, "status").body["status"] == counts
