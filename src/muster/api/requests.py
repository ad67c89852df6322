"""A pod's effective request and its usage of a node: one rule for scheduler, quota and kubelet.

Amounts are in the units of `quantity.amount`; the pod itself (`pods`: 1) is not included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from muster.api.core import Container, ContainerStatus, Pod, PodSpec, Resources
from muster.api.meta import Quantity
from muster.api.quantity import amount

_POD_LEVEL = ("cpu", "memory")


def pod_requests(pod: Pod) -> dict[str, int]:
    """What the pod asks for: the larger of its containers and its init phase, pod-level requests, overhead.

    A sidecar (init container with restartPolicy Always) counts with the containers, and with every init container that
    is listed after it. A limit stands in for a missing request.

    Raises:
        ValueError: a quantity is none.
    """
    return _effective(pod.spec, _desired, pod.spec.resources)


def pod_usage(pod: Pod) -> dict[str, int]:
    """What a pod takes from its node while an in-place resize may be under way.

    Per container the largest of desired, allocated and actual; only of allocated and actual once the node has said that
    the desired one is Infeasible.

    Raises:
        ValueError: a quantity is none.
    """
    status = pod.status
    if not (
        status.container_statuses or status.allocated_resources or status.resources or status.init_container_statuses
    ):
        return pod_requests(pod)
    known = {entry.name: entry for entry in (*status.container_statuses, *status.init_container_statuses)}
    infeasible = resize_infeasible(pod)

    def used(container: Container) -> dict[str, int]:
        return _used(container, known.get(container.name), infeasible)

    return _effective(pod.spec, used, _pod_level_used(pod, infeasible))


def pod_allocated(pod: Pod) -> dict[str, int]:
    """What the pod's kubelet has set aside for it: what counts when a kubelet is asked for room (KEP-1287).

    Where a status does not tell, and for pods that have not started, what is desired.

    Raises:
        ValueError: a quantity is none.
    """
    status = pod.status
    told = {entry.name: entry for entry in (*status.container_statuses, *status.init_container_statuses)}

    def allocated(container: Container) -> dict[str, int]:
        entry = told.get(container.name)
        return _desired(container) | (resource_amounts(entry.allocated_resources) if entry else {})

    level = pod.spec.resources
    if level is not None and status.allocated_resources:
        level = Resources(requests=level.requests | status.allocated_resources, limits=level.limits)
    return _effective(pod.spec, allocated, level)


def pod_limits(pod: Pod) -> dict[str, int]:
    """What the pod may take at most, as far as its containers are limited: the larger of containers and init phase.

    Pod-level limits stand in for the sum of that resource; overhead comes on top of what is limited.

    Raises:
        ValueError: a quantity is none.
    """
    spec = pod.spec
    total = _containers(spec, _limited)
    if spec.resources is not None:
        total |= {name: amount(name, value) for name, value in spec.resources.limits.items() if is_pod_level(name)}
    for name, value in resource_amounts(spec.overhead).items():
        if total.get(name):
            total[name] += value
    return total


def resize_deferred(pod: Pod) -> bool:
    """The kubelet said that the resize has to wait for room (condition PodResizePending, reason Deferred)."""
    return any(
        condition.type == "PodResizePending" and condition.status == "True" and condition.reason == "Deferred"
        for condition in pod.status.conditions
    )


def resize_infeasible(pod: Pod) -> bool:
    """The kubelet said that this node can never do the resize (condition PodResizePending, reason Infeasible)."""
    return any(
        condition.type == "PodResizePending" and condition.status == "True" and condition.reason == "Infeasible"
        for condition in pod.status.conditions
    )


def resource_amounts(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    """A resource list (a node's allocatable, an overhead) in units."""
    return {name: amount(name, quantity) for name, quantity in quantities.items()}


def requested(resources: Resources) -> dict[str, int]:
    """Requests of one container, with limits standing in."""
    if not resources.limits:
        return resource_amounts(resources.requests)
    return resource_amounts({**resources.limits, **resources.requests})


def _containers(spec: PodSpec, of: Callable[[Container], dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in spec.containers:
        _add(total, of(container))
    if spec.init_containers:
        _raise_to(total, _init_phase(spec.init_containers, of, total))
    return total


def _effective(spec: PodSpec, of: Callable[[Container], dict[str, int]], pod_level: Resources | None) -> dict[str, int]:
    total = _containers(spec, of)
    if pod_level is not None:
        _override(total, pod_level)
    if spec.overhead:
        _add(total, resource_amounts(spec.overhead))
    return total


def _init_phase(
    containers: tuple[Container, ...], of: Callable[[Container], dict[str, int]], total: dict[str, int]
) -> dict[str, int]:
    """The most that is asked for at once while init containers run; adds the sidecars to `total`."""
    peak: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    for container in containers:
        needs = of(container)
        if container.sidecar:
            _add(sidecars, needs)
            _add(total, needs)
            _raise_to(peak, sidecars)
        else:
            _add(needs, sidecars)
            _raise_to(peak, needs)
    return peak


def _override(total: dict[str, int], pod_level: Resources) -> None:
    """Pod-level requests replace the sum of that resource; a pod-level limit stands in where nothing is requested."""
    for name, quantity in pod_level.limits.items():
        if is_pod_level(name) and name not in pod_level.requests:
            total.setdefault(name, amount(name, quantity))
    for name, quantity in pod_level.requests.items():
        if is_pod_level(name):
            total[name] = amount(name, quantity)


def is_pod_level(name: str) -> bool:
    """Whether a resource may be asked for by the pod as a whole (KEP-2837)."""
    return name in _POD_LEVEL or name.startswith("hugepages-")


def _desired(container: Container) -> dict[str, int]:
    return requested(container.resources)


def _limited(container: Container) -> dict[str, int]:
    return resource_amounts(container.resources.limits)


def _used(container: Container, status: ContainerStatus | None, infeasible: bool) -> dict[str, int]:
    desired = requested(container.resources)
    if status is None or (status.resources is None and not status.allocated_resources):
        return desired
    used = resource_amounts(status.allocated_resources)
    if status.resources is not None:
        _raise_to(used, resource_amounts(status.resources.requests))
    if not infeasible:
        _raise_to(used, desired)
    return used


def _pod_level_used(pod: Pod, infeasible: bool) -> Resources | None:
    desired, status = pod.spec.resources, pod.status
    if desired is None or (status.resources is None and not status.allocated_resources):
        return desired
    present = [status.allocated_resources, status.resources.requests if status.resources else {}]
    lists = present if infeasible else [*present, desired.requests]
    largest: dict[str, Quantity] = {}
    for quantities in lists:
        for name, quantity in quantities.items():
            if name not in largest or amount(name, quantity) > amount(name, largest[name]):
                largest[name] = quantity
    return Resources(requests=largest, limits=desired.limits)


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise_to(total: dict[str, int], other: Mapping[str, int]) -> None:
    for name, value in other.items():
        if value > total.get(name, 0):
            total[name] = value
