"""Effective requests and usage, against a pod's life played step by step."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from muster.api import requests
from muster.api.core import Pod

RESOURCES = ("cpu", "memory", "example.com/gpu")


def pod(**spec: Any) -> Pod:
    status = spec.pop("status", {})
    return msgspec.convert({"spec": {"containers": [], **spec}, "status": status}, Pod)


def container(name: str = "c", restart: str | None = None, limits: dict | None = None, **asked: int) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": name,
        "image": "i",
        "resources": {"requests": {k: f"{v}" for k, v in asked.items()}},
    }
    if limits:
        made["resources"]["limits"] = {k: f"{v}" for k, v in limits.items()}
    if restart:
        made["restartPolicy"] = restart
    return made


AMOUNTS = st.dictionaries(st.sampled_from(RESOURCES), st.integers(0, 9), max_size=3)
CONTAINERS = st.lists(AMOUNTS.map(lambda asked: container(**asked)), min_size=1, max_size=3)
INITS = st.lists(
    st.tuples(AMOUNTS, st.booleans()).map(lambda pair: container("i", "Always" if pair[1] else None, **pair[0])),
    max_size=4,
)


def units(name: str, value: int) -> int:
    return value * 1000 if name == "cpu" else value


def asked(entry: dict[str, Any], name: str) -> int:
    return int(entry["resources"]["requests"].get(name, 0))


def played(containers: list[Any], inits: list[Any], name: str) -> int:
    """The most that is in use at once from start to end: each init container beside the sidecars started before it."""
    moments, sidecars = [0], 0
    for init in inits:
        moments.append(sidecars + asked(init, name))
        if init.get("restartPolicy") == "Always":
            sidecars += asked(init, name)
    moments.append(sidecars + sum(asked(entry, name) for entry in containers))
    return max(moments)


@given(CONTAINERS, INITS, AMOUNTS)
def test_the_request_is_the_peak_of_the_pods_life_and_its_overhead(
    containers: list[Any], inits: list[Any], overhead: dict[str, int]
) -> None:
    found = requests.pod_requests(
        pod(containers=containers, initContainers=inits, overhead={k: f"{v}" for k, v in overhead.items()})
    )
    for name in RESOURCES:
        assert found.get(name, 0) == units(name, played(containers, inits, name) + overhead.get(name, 0))


def test_a_sidecar_counts_beside_the_init_containers_after_it_and_not_those_before() -> None:
    sidecar, init, main = container("s", "Always", cpu=1), container("i", cpu=2), container(cpu=1)
    assert requests.pod_requests(pod(containers=[main], initContainers=[sidecar, init])) == {"cpu": 3000}
    assert requests.pod_requests(pod(containers=[main], initContainers=[init, sidecar])) == {"cpu": 2000}


def test_a_limit_stands_in_for_a_missing_request_only() -> None:
    made = pod(containers=[container(cpu=1, limits={"cpu": 3, "memory": 5})])
    assert requests.pod_requests(made) == {"cpu": 1000, "memory": 5}


def test_a_pod_level_request_replaces_the_sum_of_that_resource_and_no_other() -> None:
    made = pod(
        containers=[container(cpu=1, memory=7), container("d", cpu=1, **{"example.com/gpu": 2})],
        resources={"requests": {"cpu": "5", "example.com/gpu": "9"}},
        overhead={"cpu": "1"},
    )
    assert requests.pod_requests(made) == {"cpu": 6000, "memory": 7, "example.com/gpu": 2}


def test_a_pod_level_limit_stands_in_where_nothing_is_requested() -> None:
    made = pod(containers=[container(memory=7)], resources={"limits": {"cpu": "5", "memory": "9"}})
    assert requests.pod_requests(made) == {"cpu": 5000, "memory": 7}


def resized(desired: int, allocated: int | None, actual: int | None, reason: str | None) -> dict[str, int]:
    entry: dict[str, Any] = {"name": "c"}
    if allocated is not None:
        entry["allocatedResources"] = {"cpu": f"{allocated}"}
    if actual is not None:
        entry["resources"] = {"requests": {"cpu": f"{actual}"}}
    status: dict[str, Any] = {"containerStatuses": [entry]}
    if reason:
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return requests.pod_usage(pod(containers=[container(cpu=desired)], status=status))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.sampled_from([None, "Deferred"]))
def test_usage_is_the_largest_of_desired_allocated_and_actual(
    desired: int, allocated: int, actual: int, reason: str | None
) -> None:
    assert resized(desired, allocated, actual, reason) == {"cpu": 1000 * max(desired, allocated, actual)}


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_an_infeasible_wish_does_not_count(desired: int, allocated: int, actual: int) -> None:
    assert resized(desired, allocated, actual, "Infeasible") == {"cpu": 1000 * max(allocated, actual)}


def test_a_container_of_which_nothing_is_reported_counts_as_desired_even_when_infeasible() -> None:
    assert resized(4, None, None, "Infeasible") == {"cpu": 4000}


def test_usage_sees_sidecars_and_pod_level_resources_grow() -> None:
    made = pod(
        containers=[container(cpu=1)],
        initContainers=[container("s", "Always", cpu=1)],
        status={"initContainerStatuses": [{"name": "s", "allocatedResources": {"cpu": "4"}}]},
    )
    assert requests.pod_usage(made) == {"cpu": 5000}
    whole = pod(
        containers=[container(cpu=1)],
        resources={"requests": {"cpu": "2"}},
        status={"allocatedResources": {"cpu": "6"}},
    )
    assert requests.pod_usage(whole) == {"cpu": 6000}


def test_without_a_resize_usage_is_the_request() -> None:
    made = pod(containers=[container(cpu=2)], status={"containerStatuses": [{"name": "c", "ready": True}]})
    assert requests.pod_usage(made) == requests.pod_requests(made) == {"cpu": 2000}
