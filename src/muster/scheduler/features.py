"""Which features a pod needs its node to declare (KEP-5328), from its spec: those that v1.37 looks at to schedule.

The other features of v1.37's list (GuaranteedQoSPodCPUResize, InPlacePodLevelResourcesVerticalScaling) matter only to
a pod that is resized: they keep no new pod from a node.
"""

from __future__ import annotations

from muster.api.core import PodSpec

RESTART_ALL = "RestartAllContainersOnContainerExits"
HOST_NETWORK_USERS = "UserNamespacesHostNetworkSupport"


def required_features(spec: PodSpec) -> tuple[str, ...]:
    """Sorted."""
    needed = []
    containers = (*spec.containers, *spec.init_containers)
    if any(rule.action == "RestartAllContainers" for one in containers for rule in one.restart_policy_rules):
        needed.append(RESTART_ALL)
    if spec.host_network and spec.host_users is False:
        needed.append(HOST_NETWORK_USERS)
    return tuple(needed)
