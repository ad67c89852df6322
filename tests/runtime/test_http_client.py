"""The official Python client against the embedded server."""

from __future__ import annotations

import threading
import time

import kubernetes
import pytest
from kubernetes import watch
from kubernetes.client.exceptions import ApiException

from muster.testing.builders import gang_manifest, node_manifest, pod_manifest
from served import serving

GROUP = ("scheduling.k8s.io", "v1beta1", "default", "podgroups")


@pytest.fixture
def connection(bare):
    configuration = kubernetes.client.Configuration(host=bare.url)
    with kubernetes.client.ApiClient(configuration) as client:
        yield client


@pytest.fixture
def core(connection):
    return kubernetes.client.CoreV1Api(connection)


@pytest.fixture
def custom(connection):
    return kubernetes.client.CustomObjectsApi(connection)


def refusal(call, *arguments, **named):
    with pytest.raises(ApiException) as refused:
        call(*arguments, **named)
    return refused.value


def bind(core, name, node):
    target = kubernetes.client.V1ObjectReference(kind="Node", api_version="v1", name=node)
    body = kubernetes.client.V1Binding(metadata=kubernetes.client.V1ObjectMeta(name=name), target=target)
    return core.create_namespaced_pod_binding(name, "default", body, _preload_content=False)


def test_typed_objects_go_in_and_come_out(core):
    container = kubernetes.client.V1Container(
        name="main",
        image="registry.k8s.io/pause:3.10",
        resources=kubernetes.client.V1ResourceRequirements(limits={"nvidia.com/gpu": "8"}),
        env=[kubernetes.client.V1EnvVar(name="A", value="b")],
    )
    pod = kubernetes.client.V1Pod(
        metadata=kubernetes.client.V1ObjectMeta(generate_name="worker-", labels={"app": "training"}),
        spec=kubernetes.client.V1PodSpec(containers=[container]),
    )
    made = core.create_namespaced_pod("default", pod)
    assert made.metadata.name.startswith("worker-") and made.metadata.uid
    again = core.read_namespaced_pod(made.metadata.name, "default")
    assert again.to_dict() == made.to_dict()
    assert again.spec.containers[0].env[0].value == "b"
    assert again.metadata.creation_timestamp.tzinfo is not None


def test_lists_with_selectors_and_pages(core):
    for number in range(5):
        core.create_namespaced_pod("default", pod_manifest(f"p{number}", labels={"odd": str(number % 2)}))
    assert [p.metadata.name for p in core.list_namespaced_pod("default", label_selector="odd=1").items] == ["p1", "p3"]
    page = core.list_pod_for_all_namespaces(limit=3)
    rest = core.list_pod_for_all_namespaces(limit=3, _continue=page.metadata._continue)
    assert [p.metadata.name for p in page.items + rest.items] == [f"p{number}" for number in range(5)]


def test_the_three_kinds_of_patches(core):
    core.create_namespaced_pod("default", pod_manifest("a", labels={"x": "1"}))
    strategic = core.patch_namespaced_pod("a", "default", {"metadata": {"labels": {"y": "2"}}})
    assert strategic.metadata.labels == {"x": "1", "y": "2"}
    steps = [{"op": "remove", "path": "/metadata/labels/x"}]
    assert core.patch_namespaced_pod("a", "default", steps).metadata.labels == {"y": "2"}
    status = core.patch_namespaced_pod_status(
        "a", "default", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    )
    assert status.status.conditions[0].type == "Ready"


def test_server_side_apply(core):
    def apply(manager, image, **named):
        container = {"name": "c", "image": image}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [container]}}
        kind = "application/apply-patch+yaml"
        return core.patch_namespaced_pod("a", "default", body, field_manager=manager, _content_type=kind, **named)

    (entry,) = apply("one", "i").metadata.managed_fields
    assert (entry.manager, entry.operation) == ("one", "Apply") and "f:spec" in entry.fields_v1
    refused = refusal(apply, "two", "j")
    assert refused.status == 409 and "Apply failed with 1 conflict" in refused.body
    assert apply("two", "j", force=True).spec.containers[0].image == "j"
    managers = [entry.manager for entry in core.read_namespaced_pod("a", "default").metadata.managed_fields]
    assert managers == ["one", "two"]


def test_a_lost_update_is_a_conflict(core):
    core.create_node(node_manifest("n1"))
    first, second = core.read_node("n1"), core.read_node("n1")
    first.spec.unschedulable = True
    core.replace_node("n1", first)
    second.metadata.labels["late"] = "yes"
    refused = refusal(core.replace_node, "n1", second)
    assert (refused.status, refused.reason) == (409, "Conflict")
    assert core.read_node("n1").spec.unschedulable is True


def test_binding_happens_once(core):
    core.create_namespaced_pod("default", pod_manifest("a"))
    assert bind(core, "a", "n1").status == 201
    assert core.read_namespaced_pod("a", "default").spec.node_name == "n1"
    refused = refusal(bind, core, "a", "n2")
    assert refused.status == 409 and "already assigned to node" in refused.body


def test_the_older_path_of_bindings_works_too(core):
    core.create_namespaced_pod("default", pod_manifest("a"))
    target = kubernetes.client.V1ObjectReference(kind="Node", name="n1")
    body = kubernetes.client.V1Binding(metadata=kubernetes.client.V1ObjectMeta(name="a"), target=target)
    core.create_namespaced_binding("default", body, _preload_content=False)
    assert core.read_namespaced_pod("a", "default").spec.node_name == "n1"


def test_a_budget_refuses_an_eviction(core, connection):
    core.create_namespaced_pod("default", pod_manifest("a", labels={"app": "x"}))
    bind(core, "a", "n1")
    core.patch_namespaced_pod_status("a", "default", {"status": {"phase": "Running", "conditions": READY}})
    policy = kubernetes.client.PolicyV1Api(connection)
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}
    policy.create_namespaced_pod_disruption_budget("default", budget)
    status = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1}
    policy.patch_namespaced_pod_disruption_budget_status("b", "default", {"status": status | {"expectedPods": 1}})
    eviction = kubernetes.client.V1Eviction(metadata=kubernetes.client.V1ObjectMeta(name="a"))
    refused = refusal(core.create_namespaced_pod_eviction, "a", "default", eviction)
    assert refused.status == 429 and "DisruptionBudget" in refused.body
    policy.patch_namespaced_pod_disruption_budget_status("b", "default", {"status": {"disruptionsAllowed": 1}})
    core.create_namespaced_pod_eviction("a", "default", eviction, _preload_content=False)
    assert core.read_namespaced_pod("a", "default").metadata.deletion_timestamp is not None


READY = [{"type": "Ready", "status": "True"}]


def test_deleting_with_grace_and_by_collection(core):
    core.create_namespaced_pod("default", pod_manifest("a"))
    bind(core, "a", "n1")
    assert core.delete_namespaced_pod("a", "default").metadata.deletion_grace_period_seconds == 30
    core.delete_namespaced_pod("a", "default", grace_period_seconds=0)
    assert refusal(core.read_namespaced_pod, "a", "default").status == 404
    for name in ("b", "c"):
        core.create_namespaced_pod("default", pod_manifest(name))
    core.delete_collection_namespaced_pod("default", field_selector="metadata.name=b")
    assert [p.metadata.name for p in core.list_namespaced_pod("default").items] == ["c"]


def test_groups_as_custom_objects(custom):
    made = custom.create_namespaced_custom_object(*GROUP, gang_manifest("pg", 3))
    assert made["spec"]["disruptionMode"] == {"single": {}}
    body = {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    after = custom.patch_namespaced_custom_object(*GROUP, "pg", body)
    assert after["spec"]["schedulingPolicy"]["gang"]["minCount"] == 2
    refused = refusal(custom.create_namespaced_custom_object, *GROUP, gang_manifest("bad", -1))
    assert refused.status == 422 and "spec.schedulingPolicy.gang.minCount" in refused.body
    assert [item["metadata"]["name"] for item in custom.list_namespaced_custom_object(*GROUP)["items"]] == ["pg"]
    custom.delete_namespaced_custom_object(*GROUP, "pg")
    assert custom.get_namespaced_custom_object(*GROUP, "pg")["metadata"]["deletionTimestamp"]


def test_a_watch_sees_what_happens_and_ends_in_time(core):
    core.create_namespaced_pod("default", pod_manifest("a"))

    def later():
        core.create_namespaced_pod("default", pod_manifest("b"))
        bind(core, "a", "n1")
        core.delete_namespaced_pod("b", "default")

    writer = threading.Timer(0.05, later)
    writer.start()
    stream = watch.Watch().stream(core.list_namespaced_pod, "default", timeout_seconds=1)
    told = [(event["type"], event["object"].metadata.name) for event in stream]
    writer.join()
    assert told == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


def test_a_watch_from_a_compacted_revision_is_gone(bare, core):
    revision = core.list_namespaced_pod("default").metadata.resource_version
    core.create_namespaced_pod("default", pod_manifest("a"))
    bare.on_loop(bare.api.compact)
    refused = refusal(
        lambda: list(
            watch.Watch().stream(core.list_namespaced_pod, "default", resource_version=revision, timeout_seconds=1)
        )
    )
    assert refused.status == 410


def test_discovery_and_version(connection):
    groups = kubernetes.client.ApisApi(connection).get_api_versions().groups
    assert "scheduling.k8s.io" in [group.name for group in groups]
    resources = kubernetes.client.CoreV1Api(connection).get_api_resources().resources
    assert {"pods", "pods/binding", "nodes"} <= {resource.name for resource in resources}
    assert kubernetes.client.VersionApi(connection).get_code().minor == "37"


def test_the_dynamic_client_finds_the_kinds(connection):
    dynamic = kubernetes.dynamic.DynamicClient(connection)
    groups = dynamic.resources.get(api_version="scheduling.k8s.io/v1beta1", kind="PodGroup")
    made = groups.create(body=gang_manifest("pg", 3), namespace="default")
    assert made.spec.schedulingPolicy.gang.minCount == 3
    assert groups.get(name="pg", namespace="default").metadata.uid == made.metadata.uid


def test_new_budgets_and_jobs_are_read_with_their_status(connection):
    policy, batch = kubernetes.client.PolicyV1Api(connection), kubernetes.client.BatchV1Api(connection)
    budget = {"metadata": {"name": "b"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "x"}}}}
    made = policy.create_namespaced_pod_disruption_budget("default", budget)
    assert (made.status.expected_pods, made.status.disruptions_allowed) == (0, 0)
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "pause"}]}}
    job = batch.create_namespaced_job("default", {"metadata": {"name": "j"}, "spec": {"template": template}})
    assert job.status is not None and batch.read_namespaced_job_status("j", "default").status.active is None


def test_a_budget_that_its_controller_has_looked_at_is_read_by_a_typed_client():
    with serving() as served:
        configuration = kubernetes.client.Configuration(host=served.url)
        with kubernetes.client.ApiClient(configuration) as client:
            policy = kubernetes.client.PolicyV1Api(client)
            budget = {"metadata": {"name": "b"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"a": "x"}}}}
            policy.create_namespaced_pod_disruption_budget("default", budget)
            served.settle()
            deadline = time.monotonic() + 5
            while True:
                found = policy.read_namespaced_pod_disruption_budget("b", "default")
                if found.status.conditions or time.monotonic() > deadline:
                    break
            (condition,) = found.status.conditions
            assert (condition.type, condition.message) == ("DisruptionAllowed", "")
            assert policy.list_namespaced_pod_disruption_budget("default").items[0].status.current_healthy == 0
