"""The official Python client with quotas, limits, events of both groups, devices and questions about access."""

from __future__ import annotations

import kubernetes
import pytest
from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException

from muster.controllers.fleet import Shape
from served import serving


@pytest.fixture(scope="module")
def connection():
    with serving(fleet=Shape(zones=1, racks=1, nodes=1, gpus=0)) as served:
        configuration = kubernetes.client.Configuration(host=served.url)
        with kubernetes.client.ApiClient(configuration) as made:
            yield made


def pod(name, **resources):
    container = client.V1Container(name="main", image="i", resources=client.V1ResourceRequirements(**resources))
    return client.V1Pod(metadata=client.V1ObjectMeta(name=name), spec=client.V1PodSpec(containers=[container]))


def refusal(call, *arguments, **named):
    with pytest.raises(ApiException) as refused:
        call(*arguments, **named)
    return refused.value


def test_quotas_and_limits(connection):
    core = client.CoreV1Api(connection)
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name="team")))
    item = client.V1LimitRangeItem(type="Container", default_request={"cpu": "250m"}, max={"memory": "1Gi"})
    meta = client.V1ObjectMeta(name="q")
    core.create_namespaced_limit_range("team", client.V1LimitRange(metadata=meta, spec={"limits": [item]}))
    spec = client.V1ResourceQuotaSpec(hard={"pods": "2", "requests.cpu": "500m"})
    core.create_namespaced_resource_quota("team", client.V1ResourceQuota(metadata=meta, spec=spec))
    core.create_namespaced_pod("team", pod("a"))
    assert core.read_namespaced_resource_quota("q", "team").status.used == {"pods": "1", "requests.cpu": "250m"}
    refused = refusal(core.create_namespaced_pod, "team", pod("b", requests={"cpu": "1"}))
    assert refused.status == 403 and "exceeded quota: q, requested: requests.cpu=1" in refused.body
    refused = refusal(core.create_namespaced_pod, "team", pod("b", limits={"memory": "2Gi"}))
    assert refused.status == 403 and "maximum memory usage per Container is 1Gi, but limit is 2Gi" in refused.body
    core.delete_namespaced_pod("a", "team", grace_period_seconds=0)
    assert core.read_namespaced_resource_quota("q", "team").status.used["pods"] == "0"
    core.delete_namespace("team")


def test_an_event_of_the_new_group_is_an_old_one_too(connection):
    core, events = client.CoreV1Api(connection), client.EventsV1Api(connection)
    about = client.V1ObjectReference(kind="Pod", namespace="default", name="p")
    body = client.EventsV1Event(
        metadata=client.V1ObjectMeta(name="e"),
        event_time="2026-01-01T00:00:00.000000Z",
        regarding=about,
        reason="Bound",
        action="Binding",
        note="on n1",
        type="Normal",
        reporting_controller="example.com/scheduler",
        reporting_instance="one",
    )
    made = events.create_namespaced_event("default", body)
    assert core.read_namespaced_event("e", "default").message == "on n1"
    series = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}}
    events.patch_namespaced_event("e", "default", series)
    found = core.list_namespaced_event("default", field_selector="involvedObject.name=p").items
    assert [event.series.count for event in found] == [2] and found[0].metadata.uid == made.metadata.uid
    core.delete_namespaced_event("e", "default")
    assert refusal(events.read_namespaced_event, "e", "default").status == 404


def test_questions_about_access(connection):
    authorization = client.AuthorizationV1Api(connection)
    asked = client.V1ResourceAttributes(namespace="default", verb="create", resource="pods")
    spec = client.V1SelfSubjectAccessReviewSpec(resource_attributes=asked)
    review = client.V1SelfSubjectAccessReview(spec=spec)
    assert authorization.create_self_subject_access_review(review).status.allowed is True
    rules = client.V1SelfSubjectRulesReview(spec=client.V1SelfSubjectRulesReviewSpec(namespace="default"))
    assert authorization.create_self_subject_rules_review(rules).status.resource_rules[0].verbs == ["*"]
    who = client.AuthenticationV1Api(connection).create_self_subject_review(client.V1SelfSubjectReview())
    assert who.status.user_info.username == "muster:user"


def test_scales_are_read_and_written_wherever_there_are_replicas(connection):
    apps = client.AppsV1Api(connection)
    labels = {"app": "s"}
    container = client.V1Container(name="main", image="i")
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=[container])
    )
    spec = client.V1DeploymentSpec(replicas=1, selector=client.V1LabelSelector(match_labels=labels), template=template)
    meta = client.V1ObjectMeta(name="s")
    apps.create_namespaced_deployment("default", client.V1Deployment(metadata=meta, spec=spec))
    apps.patch_namespaced_deployment_scale("s", "default", {"spec": {"replicas": 0}})
    scale = apps.read_namespaced_deployment_scale("s", "default")
    assert scale.spec.replicas == 0 and scale.status.selector == "app=s"
    apps.delete_namespaced_deployment("s", "default")


def until(listing, namespace, there):
    """Watches a collection until `there` holds of one of its objects."""
    stream = watch.Watch()
    for event in stream.stream(listing, namespace, timeout_seconds=20):
        if there(event["object"]):
            stream.stop()
            return event["object"]
    raise AssertionError("it did not get there")


def test_a_job_makes_what_there_is_room_for_and_the_rest_once_there_is_more(connection):
    core, batch = client.CoreV1Api(connection), client.BatchV1Api(connection)
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name="jobs")))
    meta = client.V1ObjectMeta(name="q")
    spec = client.V1ResourceQuotaSpec(hard={"pods": "1"})
    core.create_namespaced_resource_quota("jobs", client.V1ResourceQuota(metadata=meta, spec=spec))
    template = client.V1PodTemplateSpec(spec=pod("a").spec)
    template.spec.restart_policy = "Never"
    wide = client.V1JobSpec(parallelism=2, completions=2, template=template)
    batch.create_namespaced_job("jobs", client.V1Job(metadata=client.V1ObjectMeta(name="wide"), spec=wide))
    told = until(core.list_namespaced_event, "jobs", lambda event: event.reason == "FailedCreate")
    assert "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1" in told.message
    assert len(core.list_namespaced_pod("jobs").items) == 1
    core.patch_namespaced_resource_quota("q", "jobs", {"spec": {"hard": {"pods": "2"}}})
    until(batch.list_namespaced_job, "jobs", lambda job: job.status.active == 2)
    assert core.read_namespaced_resource_quota("q", "jobs").status.used == {"pods": "2"}
    core.delete_namespace("jobs")


def test_devices_and_the_status_of_claims(connection):
    custom = client.CustomObjectsApi(connection)
    group = ("resource.k8s.io", "v1")
    devices = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": devices},
    }
    custom.create_namespaced_custom_object(*group, "default", "resourceclaims", manifest)
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "p", "device": "gpu-0"}
    status = {"status": {"allocation": {"devices": {"results": [{**result, "request": "other"}]}}}}
    refused = refusal(custom.patch_namespaced_custom_object_status, *group, "default", "resourceclaims", "c", status)
    assert refused.status == 422 and "status.allocation.devices.results[0].request" in refused.body
    status = {"status": {"allocation": {"devices": {"results": [result]}}}}
    custom.patch_namespaced_custom_object_status(*group, "default", "resourceclaims", "c", status)
    found = custom.get_namespaced_custom_object(*group, "default", "resourceclaims", "c")
    assert found["status"]["allocation"]["devices"]["results"] == [result]
    custom.delete_namespaced_custom_object(*group, "default", "resourceclaims", "c")
