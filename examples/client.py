"""A gang with the official Python client (kubernetes 37 or newer): create, watch until bound, print where, clean up.

muster up                                   # in one terminal
python examples/client.py [http://...:7077] # in another
"""

from __future__ import annotations

import sys

from kubernetes import client, watch

NAMESPACE, NAME, MEMBERS = "default", "client-gang", 3


def group() -> client.V1beta1PodGroup:
    gang = client.V1beta1GangSchedulingPolicy(min_count=MEMBERS)
    policy = client.V1beta1PodGroupSchedulingPolicy(gang=gang)
    return client.V1beta1PodGroup(
        api_version="scheduling.k8s.io/v1beta1",
        kind="PodGroup",
        metadata=client.V1ObjectMeta(name=NAME),
        spec=client.V1beta1PodGroupSpec(scheduling_policy=policy),
    )


def pod(number: int) -> client.V1Pod:
    resources = client.V1ResourceRequirements(
        requests={"cpu": "1", "nvidia.com/gpu": "1"}, limits={"nvidia.com/gpu": "1"}
    )
    container = client.V1Container(name="main", image="registry.example/main:1", resources=resources)
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=f"{NAME}-{number}", labels={"app": NAME}),
        spec=client.V1PodSpec(
            scheduling_group=client.V1PodSchedulingGroup(pod_group_name=NAME), containers=[container]
        ),
    )


def bound_pods(core: client.CoreV1Api) -> dict[str, str]:
    """Pod -> node, once all members are bound, or after 30 seconds."""
    bound: dict[str, str] = {}
    selector = f"app={NAME}"
    for event in watch.Watch().stream(core.list_namespaced_pod, NAMESPACE, label_selector=selector, timeout_seconds=30):
        seen = event["object"]
        if seen.spec.node_name:
            bound[seen.metadata.name] = seen.spec.node_name
        if len(bound) == MEMBERS:
            break
    return bound


def main(server: str) -> None:
    api = client.ApiClient(client.Configuration(host=server))
    core, scheduling = client.CoreV1Api(api), client.SchedulingV1beta1Api(api)
    try:
        scheduling.create_namespaced_pod_group(NAMESPACE, group())
    except client.ApiException as refused:
        if refused.status == 409:
            sys.exit(f"PodGroup {NAME} exists already: remove it with `muster delete pg {NAME}`, then run this again")
        raise
    try:
        for number in range(MEMBERS):
            core.create_namespaced_pod(NAMESPACE, pod(number))
        bound = bound_pods(core)
    finally:
        core.delete_collection_namespaced_pod(NAMESPACE, label_selector=f"app={NAME}", grace_period_seconds=0)
        scheduling.delete_namespaced_pod_group(NAME, NAMESPACE)
    for name, node in sorted(bound.items()):
        print(f"{name} -> {node}")
    if len(bound) < MEMBERS:
        sys.exit(f"only {len(bound)} of {MEMBERS} pods were bound in 30 seconds")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7077")
