"""Submits a gang with the official Python client and waits until it is bound.

    pip install kubernetes
    python examples/client.py http://127.0.0.1:7077
"""

from __future__ import annotations

import sys
from typing import Any

from kubernetes import client, watch

GROUP, VERSION = "scheduling.k8s.io", "v1beta1"
NAMESPACE, NAME, MEMBERS = "default", "client-gang", 3


def pod(number: int) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{NAME}-{number}", "labels": {"app": NAME}},
        "spec": {
            "schedulingGroup": {"podGroupName": NAME},
            "containers": [{"name": "main", "image": "registry.example/main:1", "resources": resources}],
        },
    }


def main(server: str) -> None:
    api = client.ApiClient(client.Configuration(host=server))
    core, custom = client.CoreV1Api(api), client.CustomObjectsApi(api)
    group = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "PodGroup",
        "metadata": {"name": NAME},
        "spec": {"schedulingPolicy": {"gang": {"minCount": MEMBERS}}},
    }
    custom.create_namespaced_custom_object(GROUP, VERSION, NAMESPACE, "podgroups", group)
    for number in range(MEMBERS):
        core.create_namespaced_pod(NAMESPACE, pod(number))
    bound: dict[str, str] = {}
    selector = f"app={NAME}"
    for event in watch.Watch().stream(core.list_namespaced_pod, NAMESPACE, label_selector=selector, timeout_seconds=30):
        seen = event["object"]
        if seen.spec.node_name:
            bound[seen.metadata.name] = seen.spec.node_name
        if len(bound) == MEMBERS:
            break
    for name, node in sorted(bound.items()):
        print(f"{name} -> {node}")
    if len(bound) < MEMBERS:
        sys.exit(f"only {len(bound)} of {MEMBERS} pods were bound in 30 seconds")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7077")
