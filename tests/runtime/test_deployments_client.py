"""The official Python client with Deployments on a whole cluster: made, watched, scaled, changed, undone, deleted."""

from __future__ import annotations

import kubernetes
import pytest
from kubernetes import watch
from kubernetes.client.exceptions import ApiException

from served import serving

REVISION = "deployment.kubernetes.io/revision"


@pytest.fixture(scope="module")
def connection():
    with serving() as served:
        configuration = kubernetes.client.Configuration(host=served.url)
        with kubernetes.client.ApiClient(configuration) as client:
            yield client


@pytest.fixture
def apps(connection):
    return kubernetes.client.AppsV1Api(connection)


@pytest.fixture
def core(connection):
    return kubernetes.client.CoreV1Api(connection)


def deployment(name, replicas=3, image="v1"):
    client, labels = kubernetes.client, {"app": name}
    container = client.V1Container(name="c", image=image)
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=[container])
    )
    selector = client.V1LabelSelector(match_labels=labels)
    return client.V1Deployment(
        metadata=client.V1ObjectMeta(name=name),
        spec=client.V1DeploymentSpec(replicas=replicas, selector=selector, template=template),
    )


def rolled_out(apps, name):
    """Watches until it is done, as `kubectl rollout status` judges it; returns it."""
    for event in watch.Watch().stream(
        apps.list_namespaced_deployment, "default", field_selector=f"metadata.name={name}", timeout_seconds=30
    ):
        found = event["object"]
        status, wanted = found.status, found.spec.replicas
        counts = (status.updated_replicas or 0, status.replicas or 0, status.available_replicas or 0)
        if status.observed_generation == found.metadata.generation and counts == (wanted,) * 3:
            return found
    raise AssertionError(f"{name} was not rolled out: {apps.read_namespaced_deployment(name, 'default').status}")


def pods(core, name):
    found = core.list_namespaced_pod("default", label_selector=f"app={name}").items
    return [each for each in found if each.metadata.deletion_timestamp is None]


def until(core, name, condition):
    """Looks again with every change of the pods."""
    pods = core.list_namespaced_pod
    for _ in watch.Watch().stream(
        pods, "default", label_selector=f"app={name}", resource_version="0", timeout_seconds=20
    ):
        if condition():
            return
    assert condition()


def test_it_is_made_changed_scaled_and_undone(apps, core):
    apps.create_namespaced_deployment("default", deployment("web"))
    made = rolled_out(apps, "web")
    assert made.metadata.annotations[REVISION] == "1"
    assert {each.type: each.status for each in made.status.conditions} == {"Available": "True", "Progressing": "True"}
    assert all(each.spec.node_name for each in pods(core, "web"))

    change = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "v2"}]}}}}
    apps.patch_namespaced_deployment("web", "default", change)
    rolled_out(apps, "web")
    assert {each.spec.containers[0].image for each in pods(core, "web")} == {"v2"}

    apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 5}})
    assert rolled_out(apps, "web").spec.replicas == 5
    scale = apps.read_namespaced_deployment_scale("web", "default")
    assert (scale.spec.replicas, scale.status.replicas, scale.status.selector) == (5, 5, "app=web")

    versions = apps.list_namespaced_replica_set("default", label_selector="app=web").items
    (first,) = (each for each in versions if each.metadata.annotations[REVISION] == "1")
    template = first.spec.template
    template.metadata.labels.pop("pod-template-hash")
    body = [{"op": "replace", "path": "/spec/template", "value": apps.api_client.sanitize_for_serialization(template)}]
    apps.patch_namespaced_deployment("web", "default", body)
    assert rolled_out(apps, "web").metadata.annotations[REVISION] == "3"
    assert {each.spec.containers[0].image for each in pods(core, "web")} == {"v1"}

    apps.delete_namespaced_deployment("web", "default", propagation_policy="Foreground")
    until(core, "web", lambda: not core.list_namespaced_pod("default", label_selector="app=web").items)
    assert apps.list_namespaced_replica_set("default", label_selector="app=web").items == []


def test_a_pod_that_is_deleted_comes_back_under_another_name(apps, core):
    apps.create_namespaced_deployment("default", deployment("again", replicas=2))
    rolled_out(apps, "again")
    victim = pods(core, "again")[0].metadata.name
    core.delete_namespaced_pod(victim, "default")
    until(core, "again", lambda: len(pods(core, "again")) == 2)
    assert victim not in {each.metadata.name for each in pods(core, "again")}
    rolled_out(apps, "again")


def test_its_selector_is_fixed(apps):
    apps.create_namespaced_deployment("default", deployment("fixed", replicas=0))
    labels = {"app": "other"}
    change = {"spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}}
    with pytest.raises(ApiException) as refused:
        apps.patch_namespaced_deployment("fixed", "default", change)
    assert refused.value.status == 422
    assert "spec.selector" in refused.value.body and "field is immutable" in refused.value.body
