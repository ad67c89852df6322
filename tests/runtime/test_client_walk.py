"""What kubectl is walked through in test_kubectl.py, by the official Python client: it is always there."""

from __future__ import annotations

import json
import threading

import kubernetes
import pytest
import yaml
from kubernetes import watch
from kubernetes.client.exceptions import ApiException

from muster.testing.builders import gang_manifest, node_manifest, pod_manifest
from served import serving

APPLY = "application/apply-patch+yaml"
STRATEGIC, MERGE, JSON_PATCH = (
    f"application/{form}+json" for form in ("strategic-merge-patch", "merge-patch", "json-patch")
)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
LABELS = {"app": "x"}
TEMPLATE = {
    "metadata": {"labels": LABELS},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
}
GROUPS = ("scheduling.k8s.io", "v1beta1", "default", "podgroups")


@pytest.fixture
def connection(bare):
    configuration = kubernetes.client.Configuration(host=bare.url)
    with kubernetes.client.ApiClient(configuration) as client:
        yield client


@pytest.fixture
def core(connection):
    return kubernetes.client.CoreV1Api(connection)


@pytest.fixture
def apps(connection):
    return kubernetes.client.AppsV1Api(connection)


@pytest.fixture
def batch(connection):
    return kubernetes.client.BatchV1Api(connection)


def refusal(call, *arguments, **named):
    with pytest.raises(ApiException) as refused:
        call(*arguments, **named)
    return refused.value


def raw(connection, method, path, body=None, **headers):
    """Status, JSON and headers of a call that the client has no method for."""
    form = {"Content-Type": "application/json", "Accept": "application/json", **headers}
    try:
        answer = connection.call_api(method, connection.configuration.host + path, form, body)
    except ApiException as refused:
        return refused.status, json.loads(refused.body), refused.headers
    return answer.status, json.loads(answer.read()), answer.headers


def bind(core, name, node):
    target = kubernetes.client.V1ObjectReference(kind="Node", api_version="v1", name=node)
    body = kubernetes.client.V1Binding(metadata=kubernetes.client.V1ObjectMeta(name=name), target=target)
    return core.create_namespaced_pod_binding(name, "default", body, _preload_content=False)


def replica_set(name="r", replicas=1):
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}
    spec["template"] = {**TEMPLATE, "spec": {"containers": TEMPLATE["spec"]["containers"]}}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": spec}


def job(name="train", **meta):
    spec = {"parallelism": 2, "completions": 2, "template": TEMPLATE}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, **meta}, "spec": spec}


def cells(table, number=0):
    names = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(names, table["rows"][number]["cells"], strict=True))


# --- get, in every form ------------------------------------------------------------------------------------------


def test_tables_of_groups_pods_and_nodes(core, connection):
    core.create_node(node_manifest("n1"))
    custom = kubernetes.client.CustomObjectsApi(connection)
    custom.create_namespaced_custom_object(*GROUPS, gang_manifest("g", 2))
    core.create_namespaced_pod("default", pod_manifest("m", group="g"))
    path = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
    group = cells(raw(connection, "GET", path, Accept=TABLE)[1])
    assert {key: group[key] for key in ("Name", "Min", "Members", "Bound", "Status")} == {
        "Name": "g", "Min": 2, "Members": 1, "Bound": 0, "Status": "Pending"}  # fmt: skip
    assert "Age" in group
    pod = cells(raw(connection, "GET", "/api/v1/namespaces/default/pods", Accept=TABLE)[1])
    assert (pod["Ready"], pod["Status"]) == ("0/1", "Pending")
    assert cells(raw(connection, "GET", "/api/v1/nodes", Accept=TABLE)[1])["Status"] == "Ready"
    meta = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    partial = raw(connection, "GET", path, Accept=meta)[1]
    assert partial["kind"] == "PartialObjectMetadataList" and set(partial["items"][0]) <= {
        "kind", "apiVersion", "metadata"}  # fmt: skip


def test_lists_across_namespaces_by_labels_and_fields(core):
    core.create_namespace({"metadata": {"name": "team"}})
    for namespace, name, app in (("default", "a", "x"), ("default", "b", "y"), ("team", "a", "x")):
        core.create_namespaced_pod(namespace, pod_manifest(name, namespace=namespace, labels={"app": app}))
    bind(core, "a", "n1")

    def names(**query):
        found = core.list_pod_for_all_namespaces(**query).items
        return [(pod.metadata.namespace, pod.metadata.name) for pod in found]

    assert names(label_selector="app in (x)") == [("default", "a"), ("team", "a")]
    assert names(field_selector="metadata.name=a,metadata.namespace=team") == [("team", "a")]
    assert names(field_selector="spec.nodeName=n1") == [("default", "a")]
    assert names(field_selector="status.phase!=Pending") == []
    refused = refusal(core.list_pod_for_all_namespaces, field_selector="spec.more=1")
    assert refused.status == 400 and "field label not supported: spec.more" in refused.body


def test_watching_and_waiting_for_a_condition(core):
    core.create_namespaced_pod("default", pod_manifest("a"))
    since = core.list_namespaced_pod("default").metadata.resource_version
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    writer = threading.Timer(0.05, core.patch_namespaced_pod_status, ("a", "default", running))
    writer.start()
    stream = watch.Watch().stream(core.list_namespaced_pod, "default", resource_version=since, timeout_seconds=5)
    event = next(stream)
    assert event["type"] == "MODIFIED" and event["object"].status.phase == "Running"
    writer.join()


# --- create, replace, patch, and what is refused -----------------------------------------------------------------


def test_everything_that_kubectl_create_makes(core, apps, batch, connection):
    scheduling = kubernetes.client.SchedulingV1Api(connection)
    policy = kubernetes.client.PolicyV1Api(connection)
    made = scheduling.create_priority_class({"metadata": {"name": "high"}, "value": 5, "preemptionPolicy": "Never"})
    assert made.preemption_policy == "Never"
    budget = {"metadata": {"name": "half"}, "spec": {"minAvailable": "50%", "selector": {"matchLabels": LABELS}}}
    assert policy.create_namespaced_pod_disruption_budget("default", budget).spec.min_available == "50%"
    settings = {"metadata": {"name": "c"}, "data": {"a": "b"}}
    assert core.create_namespaced_config_map("default", settings).data == {"a": "b"}
    secret = core.create_namespaced_secret("default", {"metadata": {"name": "s"}, "stringData": {"a": "b"}})
    assert secret.data == {"a": "Yg=="}
    service = {"metadata": {"name": "v"}, "spec": {"ports": [{"port": 80}], "selector": LABELS}}
    assert core.create_namespaced_service("default", service).spec.ports[0].target_port == 80
    assert core.create_namespaced_service_account("default", {"metadata": {"name": "a"}}).metadata.uid
    assert batch.create_namespaced_job("default", job()).spec.completions == 2
    every = {"schedule": "0 4 * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}}
    cron = {"metadata": {"name": "n"}, "spec": every}
    assert batch.create_namespaced_cron_job("default", cron).spec.concurrency_policy == "Allow"
    assert apps.create_namespaced_replica_set("default", replica_set()).spec.replicas == 1


def test_unknown_fields_are_refused_warned_of_or_ignored(connection):
    body = {**pod_manifest("a"), "more": 1}
    path = "/api/v1/namespaces/default/pods"
    status, answer, _ = raw(connection, "POST", f"{path}?fieldValidation=Strict", body)
    assert status == 400 and 'strict decoding error: unknown field "more"' in answer["message"]
    status, _, headers = raw(connection, "POST", f"{path}?fieldValidation=Warn", body)
    assert status == 201 and headers["Warning"] == '299 - "unknown field \\"more\\""'
    body["metadata"] = {"name": "b"}
    assert "Warning" not in raw(connection, "POST", f"{path}?fieldValidation=Ignore", body)[2]


def test_a_dry_run_writes_nothing(core):
    core.create_namespaced_pod("default", pod_manifest("a", labels=LABELS))
    core.create_namespaced_pod("default", pod_manifest("b"), dry_run="All")
    core.patch_namespaced_pod("a", "default", {"metadata": {"labels": {"y": "z"}}}, dry_run="All")
    core.delete_namespaced_pod("a", "default", dry_run="All")
    (left,) = core.list_namespaced_pod("default").items
    assert (left.metadata.name, left.metadata.labels) == ("a", LABELS)


def test_every_patch_of_objects_and_subresources(core, apps):
    core.create_namespaced_pod("default", pod_manifest("a", labels={"x": "1"}))

    def patched(body, form, call=core.patch_namespaced_pod, **named):
        return call("a", "default", body, _content_type=form, **named)

    assert patched({"metadata": {"labels": {"x": None, "y": "2"}}}, MERGE).metadata.labels == {"y": "2"}
    steps = [
        {"op": "test", "path": "/metadata/labels/y", "value": "2"},
        {"op": "move", "from": "/metadata/labels/y", "path": "/metadata/labels/z"},
    ]
    assert patched(steps, JSON_PATCH).metadata.labels == {"z": "2"}
    toleration = {"key": "k", "operator": "Exists"}
    more = patched({"spec": {"tolerations": [toleration]}}, STRATEGIC).spec.tolerations
    assert "k" in [one.key for one in more]
    deleted = {"metadata": {"labels": {"$patch": "replace", "only": "1"}}}
    assert patched(deleted, STRATEGIC).metadata.labels == {"only": "1"}
    condition = {"status": {"conditions": [{"type": "x.example.com/y", "status": "True"}]}}
    assert patched(condition, STRATEGIC, core.patch_namespaced_pod_status).status.conditions[0].status == "True"
    resources = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}
    made = patched(resources, STRATEGIC, core.patch_namespaced_pod_resize)
    assert made.spec.containers[0].resources.requests["cpu"] == "2"
    assert refusal(patched, [{"op": "remove", "path": "/spec/nothing"}], JSON_PATCH).status == 422
    apps.create_namespaced_replica_set("default", replica_set("a"))
    scale = patched({"spec": {"replicas": 3}}, STRATEGIC, apps.patch_namespaced_replica_set_scale)
    assert scale.spec.replicas == 3 and scale.status.selector == "app=x"


def test_labels_annotations_edits_and_replacing(core):
    core.create_namespaced_pod("default", pod_manifest("a", labels=LABELS))
    changes = {"metadata": {"labels": {"tier": "one"}, "annotations": {"note": "here"}}}
    core.patch_namespaced_pod("a", "default", changes)
    edited = core.read_namespaced_pod("a", "default")
    edited.metadata.labels["tier"] = "two"
    after = core.replace_namespaced_pod("a", "default", edited)
    assert after.metadata.labels == {"app": "x", "tier": "two"} and after.metadata.annotations == {"note": "here"}
    refused = refusal(core.replace_namespaced_pod, "a", "default", edited)
    assert refused.status == 409 and "the object has been modified" in refused.body


# --- server-side apply -------------------------------------------------------------------------------------------


def test_apply_creates_merges_lets_go_and_meets_conflicts(core):
    def applied(manager, force=None, **labels):
        body = {**pod_manifest("a"), "metadata": {"name": "a", "labels": labels}}
        named = {"force": force} if force else {}
        return core.patch_namespaced_pod("a", "default", body, field_manager=manager, _content_type=APPLY, **named)

    applied("one", a="1")
    assert applied("two", a="1", b="1").metadata.labels == {"a": "1", "b": "1"}
    refused = refusal(applied, "three", a="2")
    assert refused.status == 409 and "Apply failed with 2 conflicts" in refused.body
    causes = json.loads(refused.body)["details"]["causes"]
    assert {cause["field"] for cause in causes} == {".metadata.labels.a"}
    applied("three", force=True, a="2")
    assert applied("two").metadata.labels == {"a": "2"}
    entries = core.read_namespaced_pod("a", "default").metadata.managed_fields
    owners = [e.manager for e in entries if "f:a" in e.fields_v1.get("f:metadata", {}).get("f:labels", {})]
    assert owners == ["three"]


def test_apply_of_a_status_and_of_a_scale(core, apps):
    core.create_namespaced_pod("default", pod_manifest("a"))
    body = {"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running"}}
    options = {"field_manager": "kubelet", "_content_type": APPLY}
    assert core.patch_namespaced_pod_status("a", "default", body, force=True, **options).status.phase == "Running"
    options["field_manager"] = "owner"
    apps.patch_namespaced_replica_set("r", "default", replica_set(replicas=2), **options)
    body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 5}}
    options["field_manager"] = "autoscaler"
    refused = refusal(apps.patch_namespaced_replica_set_scale, "r", "default", body, **options)
    assert refused.status == 409 and '"owner\\": .spec.replicas' in refused.body
    scaled = apps.patch_namespaced_replica_set_scale("r", "default", body, force=True, **options)
    assert scaled.spec.replicas == apps.read_namespaced_replica_set("r", "default").spec.replicas == 5
    plain = apps.patch_namespaced_replica_set_scale("r", "default", {"spec": {"replicas": 1}})
    assert plain.spec.replicas == 1


# --- delete ------------------------------------------------------------------------------------------------------


def test_deleting_with_grace_cascade_finalizers_and_preconditions(core, batch):
    core.create_namespaced_pod("default", pod_manifest("a"))
    bind(core, "a", "n1")
    uid = kubernetes.client.V1Preconditions(uid="another")
    options = kubernetes.client.V1DeleteOptions(preconditions=uid)
    assert refusal(core.delete_namespaced_pod, "a", "default", body=options).status == 409
    marked = core.delete_namespaced_pod("a", "default", grace_period_seconds=7)
    assert marked.metadata.deletion_grace_period_seconds == 7
    core.delete_namespaced_pod("a", "default", grace_period_seconds=0)
    assert refusal(core.read_namespaced_pod, "a", "default").status == 404
    batch.create_namespaced_job("default", job(finalizers=["example.com/hold"]))
    batch.delete_namespaced_job("train", "default", propagation_policy="Foreground")
    held = batch.read_namespaced_job("train", "default").metadata
    assert held.deletion_timestamp and "foregroundDeletion" in held.finalizers
    batch.patch_namespaced_job("train", "default", {"metadata": {"finalizers": None}}, _content_type=MERGE)
    assert refusal(batch.read_namespaced_job, "train", "default").status == 404
    assert refusal(batch.delete_namespaced_job, "train", "default", propagation_policy="Some").status == 422


# --- nodes -------------------------------------------------------------------------------------------------------


def test_cordon_taint_and_drain(core, connection):
    core.create_node(node_manifest("n1"))
    assert core.patch_node("n1", {"spec": {"unschedulable": True}}).spec.unschedulable is True
    table = raw(connection, "GET", "/api/v1/nodes", Accept=TABLE)[1]
    assert cells(table)["Status"] == "Ready,SchedulingDisabled"
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    assert core.patch_node("n1", {"spec": {"taints": [taint]}}).spec.taints[0].key == "k"
    core.create_namespaced_pod("default", pod_manifest("a"))
    bind(core, "a", "n1")
    eviction = kubernetes.client.V1Eviction(metadata=kubernetes.client.V1ObjectMeta(name="a"))
    core.create_namespaced_pod_eviction("a", "default", eviction, _preload_content=False)
    assert core.read_namespaced_pod("a", "default").metadata.deletion_timestamp
    freed = core.patch_node("n1", {"spec": {"unschedulable": None, "taints": None}}, _content_type=MERGE)
    assert not freed.spec.unschedulable and not freed.spec.taints


# --- what is served, and what is not -----------------------------------------------------------------------------


def test_discovery_and_documents(connection):
    form = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    groups = raw(connection, "GET", "/apis", Accept=form)[1]
    assert groups["kind"] == "APIGroupDiscoveryList"
    found = {
        resource["resource"]: resource
        for group in groups["items"] for version in group["versions"] for resource in version["resources"]
    }  # fmt: skip
    assert "pg" in found["podgroups"]["shortNames"]
    assert "scale" in [one["subresource"] for one in found["replicasets"]["subresources"]]
    assert "all" in found["cronjobs"]["categories"] and "all" in found["jobs"]["categories"]
    served = kubernetes.client.ApisApi(connection).get_api_versions().groups
    assert "scheduling.k8s.io" in [group.name for group in served]
    paths = raw(connection, "GET", "/openapi/v3")[1]["paths"]
    document = raw(connection, "GET", paths["apis/scheduling.k8s.io/v1beta1"]["serverRelativeURL"])[1]
    assert any(name.endswith("PodGroup") for name in document["components"]["schemas"])


@pytest.mark.parametrize("what", ["log", "exec", "attach", "portforward"])
def test_what_needs_a_kubelet_says_that_there_is_none(core, what):
    core.create_namespaced_pod("default", pod_manifest("a"))
    calls = {
        "log": core.read_namespaced_pod_log,
        "exec": core.connect_get_namespaced_pod_exec,
        "attach": core.connect_get_namespaced_pod_attach,
        "portforward": core.connect_get_namespaced_pod_portforward,
    }
    refused = refusal(calls[what], "a", "default")
    assert refused.status == 501 and "not served by hollow nodes" in refused.body


def test_what_a_description_shows_of_a_scheduled_gang():
    with serving() as served:
        configuration = kubernetes.client.Configuration(host=served.url)
        with kubernetes.client.ApiClient(configuration) as client:
            core, custom = kubernetes.client.CoreV1Api(client), kubernetes.client.CustomObjectsApi(client)
            custom.create_namespaced_custom_object(*GROUPS, gang_manifest("g", 2))
            for name in ("g-0", "g-1"):
                core.create_namespaced_pod("default", pod_manifest(name, group="g"))
            served.settle()
            group = custom.get_namespaced_custom_object(*GROUPS, "g")
            (condition,) = group["status"]["conditions"]
            assert (condition["type"], condition["reason"]) == ("PodGroupInitiallyScheduled", "Scheduled")
            node = core.read_node(core.read_namespaced_pod("g-0", "default").spec.node_name)
            assert node.status.node_info.kubelet_version.startswith("v1.37")
            events = core.list_namespaced_event("default", field_selector="involvedObject.name=g-0").items
            assert [(event.reason, event.type) for event in events] == [("Scheduled", "Normal")]
            assert yaml.safe_load(json.dumps(group)) == group
