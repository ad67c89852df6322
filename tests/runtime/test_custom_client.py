"""The official Python client with a kind that a user has defined, over HTTP."""

from __future__ import annotations

from pathlib import Path

import kubernetes
import pytest
import yaml
from kubernetes import watch
from kubernetes.client.exceptions import ApiException

TRAINING = Path(__file__).resolve().parents[2] / "examples" / "training"
WHERE = ("ml.example.com", "v1", "default", "trainingruns")


def test_the_official_client_defines_a_kind_and_works_with_its_objects(bare):
    configuration = kubernetes.client.Configuration(host=bare.url)
    with kubernetes.client.ApiClient(configuration) as connection:
        definitions = kubernetes.client.ApiextensionsV1Api(connection)
        runs = kubernetes.client.CustomObjectsApi(connection)
        made = definitions.create_custom_resource_definition(yaml.safe_load((TRAINING / "definition.yaml").read_text()))
        assert {entry.type: entry.status for entry in made.status.conditions} == {
            "NamesAccepted": "True",
            "Established": "True",
        }
        body = yaml.safe_load((TRAINING / "run.yaml").read_text())
        stored = runs.create_namespaced_custom_object(*WHERE, body)
        assert stored["spec"]["gpusPerWorker"] == 8
        with pytest.raises(ApiException) as refused:
            runs.create_namespaced_custom_object(*WHERE, {**body, "spec": {"image": "x", "workers": 0}})
        assert refused.value.status == 422
        runs.patch_namespaced_custom_object_status(*WHERE, "llama", {"status": {"ready": 3, "phase": "Running"}})
        runs.patch_namespaced_custom_object_scale(*WHERE, "llama", {"spec": {"replicas": 5}})
        seen = runs.get_namespaced_custom_object(*WHERE, "llama")
        assert (seen["spec"]["workers"], seen["status"]["ready"], seen["metadata"]["generation"]) == (5, 3, 2)
        since = stored["metadata"]["resourceVersion"]
        stream = watch.Watch().stream(
            runs.list_namespaced_custom_object, *WHERE, resource_version=since, timeout_seconds=5
        )
        told = [next(stream), next(stream)]
        assert [(event["type"], event["object"]["spec"]["workers"]) for event in told] == [
            ("MODIFIED", 4),
            ("MODIFIED", 5),
        ]
        definitions.delete_custom_resource_definition("trainingruns.ml.example.com")
        with pytest.raises(ApiException) as gone:
            runs.list_namespaced_custom_object(*WHERE)
        assert gone.value.status == 404
