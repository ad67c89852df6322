"""ResourceQuota: what counts, what is refused, what is given back; the sums are exact whatever happens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.api.calls import MERGE_PATCH
from muster.apiserver.durable import record, restored
from muster.apiserver.quota import problems

POD = {"apiVersion": "v1", "kind": "Pod"}


def quota(name: str = "q", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": spec}


def pod(name: str, requests: Any = None, limits: Any = None, **spec: Any) -> dict[str, Any]:
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    container = {"name": "main", "image": "x", "resources": resources}
    return {**POD, "metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def claim(name: str, storage: str, cls: str = "gold") -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": cls,
        "resources": {"requests": {"storage": storage}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def used(api, name: str = "q") -> dict[str, str]:
    return api.get("resourcequotas", name)["status"]["used"]


def refused(answer) -> str:
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden"), answer.body
    return answer.body["message"]


def test_a_pod_too_many_is_refused_with_the_three_numbers(api):
    api.made(quota(hard={"pods": "1", "requests.cpu": "2", "requests.memory": "1Gi"}))
    api.made(pod("a", {"cpu": "1500m", "memory": "512Mi"}))
    assert used(api) == {"pods": "1", "requests.cpu": "1500m", "requests.memory": "512Mi"}
    said = refused(api.create(pod("b", {"cpu": "1", "memory": "1Mi"})))
    assert said == (
        'pods "b" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=1, used: pods=1,requests.cpu=1500m, '
        "limited: pods=1,requests.cpu=2"
    )
    assert api.gone("pods", "b") and used(api)["pods"] == "1"


def test_a_new_quota_counts_what_is_there_and_says_so_in_its_answer(api):
    api.made(pod("a", {"cpu": "1"}))
    status = api.made(quota(hard={"cpu": "4", "pods": "3", "count/pods": "9"}))["status"]
    assert status == {
        "hard": {"cpu": "4", "pods": "3", "count/pods": "9"},
        "used": {"cpu": "1", "pods": "1", "count/pods": "1"},
    }
    api.patch("resourcequotas", "q", {"spec": {"hard": {"cpu": None, "limits.cpu": "1"}}})
    assert used(api) == {"pods": "1", "count/pods": "1", "limits.cpu": "0"}


def test_a_pod_that_has_ended_only_counts_as_an_object(api):
    api.made(quota(hard={"pods": "1", "count/pods": "2", "requests.cpu": "1"}))
    api.made(pod("a", {"cpu": "1"}))
    api.patch("pods", "a", {"status": {"phase": "Succeeded"}}, subresource="status")
    assert used(api) == {"pods": "0", "count/pods": "1", "requests.cpu": "0"}
    api.made(pod("b", {"cpu": "1"}))
    api.delete("pods", "a")
    assert used(api) == {"pods": "1", "count/pods": "1", "requests.cpu": "1"}
    api.delete("pods", "b")
    assert used(api) == {"pods": "0", "count/pods": "0", "requests.cpu": "0"}


def test_what_a_quota_bounds_has_to_be_said_by_every_container(api):
    api.made(quota(hard={"requests.cpu": "4", "limits.memory": "4Gi"}))
    two = pod("a", {"cpu": "1"})
    two["spec"]["containers"].append({"name": "side", "image": "x", "resources": {"limits": {"memory": "1Gi"}}})
    said = refused(api.create(two))
    assert said.endswith("failed quota: q: must specify limits.memory for: main; requests.cpu for: side")


def test_a_dry_run_is_checked_and_charges_nothing(api):
    api.made(quota(hard={"pods": "1"}))
    assert api.create(pod("a"), dryRun="All").status == 201
    assert used(api) == {"pods": "0"}
    api.made(pod("a"))
    assert "exceeded quota" in refused(api.create(pod("b"), dryRun="All"))


def test_extended_resources_count_by_their_requests(api):
    api.made(quota(hard={"requests.nvidia.com/gpu": "8"}))
    api.made(pod("a", limits={"nvidia.com/gpu": "6"}))
    assert "requested: requests.nvidia.com/gpu=4, used: requests.nvidia.com/gpu=6" in refused(
        api.create(pod("b", limits={"nvidia.com/gpu": "4"}))
    )
    api.made(pod("c"))


def test_a_resize_may_not_outgrow_the_quota(api):
    api.made(quota(hard={"requests.cpu": "2"}))
    api.made(pod("a", {"cpu": "1"}))

    def resize(cpu: str):
        resources = {"requests": {"cpu": cpu}}
        body = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
        return api.patch("pods", "a", body, "application/strategic-merge-patch+json", subresource="resize")

    assert "requested: requests.cpu=2, used: requests.cpu=1, limited: requests.cpu=2" in refused(resize("3"))
    assert resize("2").status == 200 and used(api) == {"requests.cpu": "2"}
    assert resize("500m").status == 200 and used(api) == {"requests.cpu": "500m"}


def test_claims_count_by_storage_and_by_class_and_may_not_outgrow_it(api):
    gold = "gold.storageclass.storage.k8s.io/requests.storage"
    api.made(quota(hard={"requests.storage": "10Gi", gold: "4Gi", "persistentvolumeclaims": "5"}))
    api.made(claim("a", "3Gi"))
    api.made(claim("b", "6Gi", "silver"))
    assert used(api) == {"requests.storage": "9Gi", gold: "3Gi", "persistentvolumeclaims": "2"}
    assert f"exceeded quota: q, requested: {gold}=2Gi" in refused(api.create(claim("c", "2Gi")))


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({"type": "ClusterIP"}, ("1", "0", "0")),
        ({"type": "NodePort"}, ("1", "2", "0")),
        ({"type": "LoadBalancer"}, ("1", "2", "1")),
        ({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}, ("1", "0", "1")),
    ],
)
def test_services_count_with_their_ports(api, spec, counts):
    names = ("services", "services.nodeports", "services.loadbalancers")
    api.made(quota(hard=dict.fromkeys(names, "2")))
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    api.made({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": ports, **spec}})
    assert tuple(used(api)[name] for name in names) == counts


def test_any_kind_can_be_counted(api):
    api.made(quota(hard={"count/jobs.batch": "1", "configmaps": "1", "resourcequotas": "1"}))
    assert used(api) == {"count/jobs.batch": "0", "configmaps": "0", "resourcequotas": "1"}
    api.made({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {"template": template}}
    api.made(job)
    for manifest in ({**job, "metadata": {"name": "b"}}, quota("r", hard={"pods": "1"})):
        assert "exceeded quota: q" in refused(api.create(manifest))


def test_devices_count_by_class(api):
    name = "gpu.example.com.deviceclass.resource.k8s.io/devices"
    api.made(quota(hard={name: "40"}))

    def device_claim(claim: str, **exactly: Any):
        requests = [{"name": "r", "exactly": {"deviceClassName": "gpu.example.com", **exactly}}]
        spec = {"devices": {"requests": requests}}
        meta = {"name": claim}
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": spec}

    api.made(device_claim("a", count=4))
    api.made(device_claim("b", allocationMode="All"))
    assert used(api) == {name: "36"}
    assert f"requested: {name}=5" in refused(api.create(device_claim("c", count=5)))


@pytest.mark.parametrize(
    ("spec", "inside", "outside"),
    [
        ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 9}, {}),
        ({"scopes": ["NotTerminating"]}, {}, {"activeDeadlineSeconds": 9}),
        ({"scopes": ["BestEffort"]}, {}, {"requests": {"cpu": "1"}}),
        ({"scopes": ["NotBestEffort"]}, {"requests": {"cpu": "1"}}, {}),
        ({"scopes": ["PriorityClass"]}, {"priorityClassName": "system-node-critical"}, {}),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
                }
            },
            {"priorityClassName": "high"},
            {"priorityClassName": "system-node-critical"},
        ),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "NotIn", "values": ["high"]}]
                }
            },
            {},
            {"priorityClassName": "high"},
        ),
        (
            {"scopes": ["CrossNamespacePodAffinity"]},
            {
                "affinity": {
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"topologyKey": "zone", "namespaces": ["other"], "labelSelector": {}}
                        ]
                    }
                }
            },
            {},
        ),
    ],
)
def test_scopes_say_which_pods_count(api, spec, inside, outside):
    api.made(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    )
    api.made(quota(hard={"pods": "1"}, **spec))
    api.made(pod("out", **outside))
    assert used(api) == {"pods": "0"}
    api.made(pod("in", **inside))
    assert used(api) == {"pods": "1"}
    assert "exceeded quota: q" in refused(api.create(pod("more", **inside)))
    api.made(pod("out2", **outside))


def test_an_update_into_the_scope_of_a_full_quota_is_refused(api):
    api.made(quota(hard={"pods": "0"}, scopes=["Terminating"]))
    api.made(pod("a"))
    assert "exceeded quota: q" in refused(api.patch("pods", "a", {"spec": {"activeDeadlineSeconds": 9}}))


def test_an_apply_and_a_users_kind_are_charged_too(api):
    api.made(quota(hard={"pods": "1", "count/widgets.example.com": "1"}))
    query = {"fieldManager": "me"}
    answer = api.call("PATCH", api.path("pods", "a"), pod("a"), query, "application/apply-patch+yaml")
    assert answer.status == 201
    answer = api.call("PATCH", api.path("pods", "b"), pod("b"), query, "application/apply-patch+yaml")
    assert "exceeded quota" in refused(answer)
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    api.made(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": spec,
        }
    )
    path = "/apis/example.com/v1/namespaces/default/widgets"
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
    assert api.call("POST", path, body).status == 201
    said = refused(api.call("POST", path, {**body, "metadata": {"name": "b"}}))
    assert said.startswith('widgets.example.com "b" is forbidden: exceeded quota: q')
    assert used(api) == {"pods": "1", "count/widgets.example.com": "1"}


def test_a_quota_below_what_is_taken_refuses_only_more(api):
    api.made(pod("a", {"cpu": "2"}))
    api.made(quota(hard={"requests.cpu": "1"}))
    assert "used: requests.cpu=2, limited: requests.cpu=1" in refused(api.create(pod("b", {"cpu": "1m"})))
    assert api.patch("pods", "a", {"metadata": {"labels": {"x": "y"}}}).status == 200


def test_nobody_writes_what_is_taken_but_the_server(api):
    api.made(quota(hard={"pods": "2"}))
    api.made(pod("a"))
    wrong = {"status": {"hard": {"pods": "99"}, "used": {"pods": "0"}}}
    assert api.patch("resourcequotas", "q", wrong, subresource="status").status == 200
    assert api.get("resourcequotas", "q")["status"] == {"hard": {"pods": "2"}, "used": {"pods": "1"}}


def test_other_namespaces_are_free(api):
    api.made(quota(hard={"pods": "0"}))
    api.made({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    api.made({**pod("a"), "metadata": {"name": "a", "namespace": "other"}})
    refused(api.create(pod("a")))
    api.delete("resourcequotas", "q")
    api.made(pod("a"))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"hard": {"gpus": "1"}}, "spec.hard[gpus]"),
        ({"hard": {"pods": "1500m"}}, "spec.hard[pods]"),
        ({"hard": {"cpu": "-1"}}, "spec.hard[cpu]"),
        ({"hard": {}, "scopes": ["Odd"]}, "spec.scopes[0]"),
        ({"hard": {"services": "1"}, "scopes": ["BestEffort"]}, "spec.scopes[0]"),
        ({"hard": {"cpu": "1"}, "scopes": ["BestEffort"]}, "spec.scopes[0]"),
        ({"hard": {"pods": "1"}, "scopes": ["BestEffort", "NotBestEffort"]}, "spec.scopes"),
    ],
)
def test_a_wrong_quota_is_refused_with_its_field(api, spec, field):
    answer = api.create(quota(**spec))
    assert answer.status == 422 and [cause["field"] for cause in answer.body["details"]["causes"]] == [field]


def test_scopes_do_not_change(api):
    api.made(quota(hard={"pods": "1"}))
    answer = api.patch("resourcequotas", "q", {"spec": {"scopes": ["Terminating"]}})
    assert answer.status == 422 and answer.body["details"]["causes"][0]["field"] == "spec.scopes"


# --- whatever happens --------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "d"])
CPU = st.sampled_from(["250m", "500m", "1", "1500m"])
STEPS = st.one_of(
    st.tuples(st.just("pod"), NAMES, CPU, st.booleans()),
    st.tuples(st.just("claim"), NAMES, st.sampled_from(["1Gi", "2Gi", "500M"]), st.booleans()),
    st.tuples(st.just("end"), NAMES, st.sampled_from(["Succeeded", "Failed", "Running"]), st.booleans()),
    st.tuples(st.just("delete"), NAMES, st.sampled_from(["pods", "persistentvolumeclaims"]), st.booleans()),
    st.tuples(st.just("resize"), NAMES, CPU, st.booleans()),
    st.tuples(st.just("deadline"), NAMES, CPU, st.booleans()),
    st.tuples(st.just("quota"), st.sampled_from(["q", "r", "s"]), CPU, st.booleans()),
    st.tuples(st.just("unquota"), st.sampled_from(["q", "r", "s"]), CPU, st.booleans()),
    st.tuples(st.just("bind"), NAMES, CPU, st.booleans()),
    st.tuples(st.just("crash"), NAMES, CPU, st.booleans()),
)


def carry_out(api, step) -> None:
    what, name, value, flag = step
    dry = {"dryRun": "All"} if flag and value == "1" else {}
    match what:
        case "pod":
            api.create(pod(name, {"cpu": value}, **({"activeDeadlineSeconds": 9} if flag else {})), **dry)
        case "claim":
            api.create(claim(name, value, "gold" if flag else "silver"))
        case "end":
            api.patch("pods", name, {"status": {"phase": value}}, subresource="status")
        case "delete":
            api.delete(value, name, {"gracePeriodSeconds": 0} if flag else None)
        case "resize":
            body = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": value}}}]}}
            api.patch("pods", name, body, "application/strategic-merge-patch+json", subresource="resize", **dry)
        case "deadline":
            api.patch("pods", name, {"spec": {"activeDeadlineSeconds": 5}}, MERGE_PATCH, **dry)
        case "quota":
            hard = {"pods": "3", "requests.cpu": value, "count/pods": "4"}
            if name == "s":
                hard = {"requests.storage": "3Gi", "count/persistentvolumeclaims": "2", "resourcequotas": "3"}
            scopes = {"scopes": ["Terminating"]} if name == "r" else {}
            hard = {key: amount for key, amount in hard.items() if name != "r" or key != "count/pods"}
            answer = api.create(quota(name, hard=hard, **scopes))
            if answer.status == 409:
                api.patch("resourcequotas", name, {"spec": {"hard": hard}})
        case "unquota":
            api.delete("resourcequotas", name)
        case "bind":
            api.bind(name, "n")
        case "crash":
            crash(api.server.store, settled=flag)


def crash(store, *, settled: bool) -> None:
    """Forgets what was written since the last time that everything was safe, or makes it safe."""
    if store.outbox is not None and not settled:
        store.retract(store.outbox)
    store.outbox, store.settled = [], store.revision


def amounts(bounds) -> dict[tuple[str, str], int]:
    return {(bound.name, name): value for bound in bounds for name, value in bound.used.items()}


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, min_size=5, max_size=40))
def test_what_is_kept_is_what_is_there_and_nothing_outgrows_a_quota(new_api, steps):
    api = new_api()
    store = api.server.store
    for step in steps:
        before = amounts(store.quotas.of("default"))
        carry_out(api, step)
        assert list(problems(store)) == []
        if step[0] in ("quota", "end", "crash"):
            continue  # a bound may be below what there is, a pod that had ended may have begun again
        for bound in store.quotas.of("default"):
            for name, value in bound.used.items():
                assert value <= max(bound.hard[name], before.get((bound.name, name), 0)), (step, name)


def test_taking_back_what_was_not_settled_takes_back_its_charge(api):
    api.made(quota(hard={"pods": "2"}))
    api.made(pod("a"))
    store = api.server.store
    store.outbox, store.settled = [], store.revision
    assert api.create(pod("b")).status == 201
    store.retract(store.outbox)
    assert list(problems(store)) == [] and used(api) == {"pods": "1"}


def test_a_restart_counts_anew(api, new_api):
    api.server.store.outbox = kept = []
    api.made({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    api.made({**quota(hard={"pods": "2", "requests.cpu": "2"}), "metadata": {"name": "q", "namespace": "team"}})
    for name in ("a", "b"):
        api.made({**pod(name, {"cpu": "500m"}), "metadata": {"name": name, "namespace": "team"}})
    api.call("DELETE", "/api/v1/namespaces/team/pods/a")
    begun = kept[0].event.revision - 1
    again = new_api(store=restored(map(record, kept), begun, 1_000))
    read = again.call("GET", "/api/v1/namespaces/team/resourcequotas/q").body
    assert read["status"]["used"] == {"pods": "1", "requests.cpu": "500m"}
    assert list(problems(again.server.store)) == []
    again.made({**pod("c", {"cpu": "1500m"}), "metadata": {"name": "c", "namespace": "team"}})
    assert "exceeded quota: q" in refused(
        again.create({**pod("d", {"cpu": "1"}), "metadata": {"name": "d", "namespace": "team"}})
    )
