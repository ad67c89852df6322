"""The official Python client with StatefulSets, DaemonSets and their revisions, on a whole cluster over HTTP."""

from __future__ import annotations

import kubernetes
import pytest
from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException

from muster.controllers.fleet import Shape
from served import serving

NAMESPACE = "default"


@pytest.fixture(scope="module")
def connection():
    with serving(fleet=Shape(zones=1, racks=1, nodes=3, gpus=0)) as served:
        configuration = kubernetes.client.Configuration(host=served.url)
        with kubernetes.client.ApiClient(configuration) as made:
            yield made


def template(name, image):
    container = client.V1Container(name="main", image=image)
    spec = client.V1PodSpec(containers=[container], termination_grace_period_seconds=0)
    return client.V1PodTemplateSpec(metadata=client.V1ObjectMeta(labels={"app": name}), spec=spec)


def until(listing, name, there):
    """Watches one object of a collection until `there` holds of it."""
    stream = watch.Watch()
    for event in stream.stream(listing, NAMESPACE, field_selector=f"metadata.name={name}", timeout_seconds=20):
        if there(event["object"]):
            stream.stop()
            return event["object"]
    raise AssertionError(f"{name} did not get there")


def test_a_stateful_set_with_claims_lives_and_is_updated(connection):
    apps, core = client.AppsV1Api(connection), client.CoreV1Api(connection)
    claim = client.V1PersistentVolumeClaim(
        metadata=client.V1ObjectMeta(name="data"),
        spec=client.V1PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"], resources=client.V1VolumeResourceRequirements(requests={"storage": "1Gi"})
        ),
    )
    spec = client.V1StatefulSetSpec(
        replicas=2,
        service_name="db",
        selector=client.V1LabelSelector(match_labels={"app": "db"}),
        template=template("db", "registry.example/db:1"),
        volume_claim_templates=[claim],
    )
    made = apps.create_namespaced_stateful_set(
        NAMESPACE, client.V1StatefulSet(metadata=client.V1ObjectMeta(name="db"), spec=spec)
    )
    assert made.spec.update_strategy.rolling_update.partition == 0
    assert made.spec.persistent_volume_claim_retention_policy.when_scaled == "Retain"
    until(core.list_namespaced_persistent_volume_claim, "data-db-0", lambda each: each.spec.volume_mode == "Filesystem")
    pod = until(core.list_namespaced_pod, "db-0", lambda each: True)
    assert pod.spec.volumes[0].persistent_volume_claim.claim_name == "data-db-0"
    with pytest.raises(ApiException) as refused:
        apps.patch_namespaced_stateful_set("db", NAMESPACE, {"spec": {"podManagementPolicy": "Parallel"}})
    assert refused.value.status == 422
    apps.delete_namespaced_stateful_set("db", NAMESPACE, propagation_policy="Foreground")


def test_a_daemon_set_is_followed_by_watch_through_an_update(connection):
    apps, core = client.AppsV1Api(connection), client.CoreV1Api(connection)
    spec = client.V1DaemonSetSpec(
        selector=client.V1LabelSelector(match_labels={"app": "agent"}),
        template=template("agent", "registry.example/agent:1"),
        update_strategy=client.V1DaemonSetUpdateStrategy(
            rolling_update=client.V1RollingUpdateDaemonSet(max_unavailable="100%")
        ),
    )
    apps.create_namespaced_daemon_set(
        NAMESPACE, client.V1DaemonSet(metadata=client.V1ObjectMeta(name="agent"), spec=spec)
    )
    until(apps.list_namespaced_daemon_set, "agent", lambda each: (each.status.number_available or 0) == 3)
    pods = core.list_namespaced_pod(NAMESPACE, label_selector="app=agent").items
    assert len({each.spec.node_name for each in pods}) == 3
    apps.patch_namespaced_daemon_set(
        "agent",
        NAMESPACE,
        {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "registry.example/agent:2"}]}}}},
    )

    def updated(each):
        status = each.status
        fresh = status.observed_generation == each.metadata.generation
        return fresh and status.updated_number_scheduled == 3 and status.number_available == 3

    until(apps.list_namespaced_daemon_set, "agent", updated)
    revisions = apps.list_namespaced_controller_revision(NAMESPACE, label_selector="app=agent").items
    assert sorted(each.revision for each in revisions) == [1, 2]
    assert {each.metadata.owner_references[0].kind for each in revisions} == {"DaemonSet"}
    newest = max(revisions, key=lambda each: each.revision)
    containers = newest.data["spec"]["template"]["spec"]["containers"]
    assert containers[0]["image"] == "registry.example/agent:2"
    apps.delete_namespaced_daemon_set("agent", NAMESPACE)


def test_a_stateful_set_is_scaled_updated_and_taken_back_by_its_revision(connection):
    apps, core = client.AppsV1Api(connection), client.CoreV1Api(connection)
    spec = client.V1StatefulSetSpec(
        replicas=1,
        service_name="web",
        selector=client.V1LabelSelector(match_labels={"app": "web"}),
        template=template("web", "registry.example/web:1"),
    )
    apps.create_namespaced_stateful_set(
        NAMESPACE, client.V1StatefulSet(metadata=client.V1ObjectMeta(name="web"), spec=spec)
    )
    scaled = apps.patch_namespaced_stateful_set_scale("web", NAMESPACE, {"spec": {"replicas": 2}})
    assert (scaled.spec.replicas, scaled.status.selector) == (2, "app=web")

    def settled(each):
        status = each.status
        fresh = status.observed_generation == each.metadata.generation
        return fresh and status.ready_replicas == status.updated_replicas == status.current_replicas == 2

    first = until(apps.list_namespaced_stateful_set, "web", settled).status.current_revision
    image = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "registry.example/web:2"}]}}}}
    apps.patch_namespaced_stateful_set("web", NAMESPACE, image)
    second = until(apps.list_namespaced_stateful_set, "web", settled).status.current_revision
    assert second != first
    revision = apps.read_namespaced_controller_revision(first, NAMESPACE)
    apps.patch_namespaced_stateful_set("web", NAMESPACE, revision.data)
    assert until(apps.list_namespaced_stateful_set, "web", settled).status.current_revision == first
    pods = core.list_namespaced_pod(NAMESPACE, label_selector="app=web").items
    assert {each.metadata.name: each.spec.containers[0].image for each in pods} == {
        "web-0": "registry.example/web:1",
        "web-1": "registry.example/web:1",
    }
    numbers = {each.metadata.name: each.revision for each in apps.list_namespaced_controller_revision(NAMESPACE).items}
    assert (numbers[first], numbers[second]) == (3, 2)
    apps.delete_namespaced_stateful_set("web", NAMESPACE)
