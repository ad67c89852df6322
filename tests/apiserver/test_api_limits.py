"""LimitRange: defaults for containers that say nothing, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest


def limit_range(*limits: dict[str, Any], name: str = "l") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name}, "spec": {"limits": list(limits)}}


def pod(name: str, *resources: dict[str, Any], **spec: Any) -> dict[str, Any]:
    containers = [{"name": f"c{i}", "image": "x", "resources": each} for i, each in enumerate(resources or ({},))]
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers, **spec}}


def refused(answer) -> str:
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden"), answer.body
    return answer.body["message"]


def resources(made) -> list[dict[str, Any]]:
    return [container["resources"] for container in made["spec"]["containers"]]


def test_containers_get_what_they_do_not_name(api):
    api.made(limit_range({"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}))
    made = api.made(pod("a", {}, {"requests": {"cpu": "500m"}}, {"limits": {"cpu": "3"}}))
    assert resources(made) == [
        {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
        {"requests": {"cpu": "500m"}, "limits": {"cpu": "2"}},
        {"requests": {"cpu": "3"}, "limits": {"cpu": "3"}},
    ]
    assert made["status"]["qosClass"] == "Burstable"
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu request for container c0; cpu limit for container c0; cpu limit for container c1"
    )


def test_the_most_is_the_default_limit_and_that_the_default_request(api):
    limits = api.made(limit_range({"type": "Container", "max": {"cpu": "4"}, "min": {"cpu": "1", "memory": "1Mi"}}))
    (limit,) = limits["spec"]["limits"]
    assert limit["default"] == {"cpu": "4"} and limit["defaultRequest"] == {"cpu": "4", "memory": "1Mi"}


def test_all_that_is_wrong_is_said_at_once(api):
    api.made(
        limit_range(
            {
                "type": "Container",
                "min": {"cpu": "500m"},
                "max": {"memory": "1Gi"},
                "maxLimitRequestRatio": {"cpu": "2"},
            }
        )
    )
    wrong = {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}}
    assert refused(api.create(pod("a", wrong))) == (
        'pods "a" is forbidden: [minimum cpu usage per Container is 500m, but request is 100m, '
        "maximum memory usage per Container is 1Gi, but limit is 2Gi, "
        "cpu max limit to request ratio per Container is 2, but provided ratio is 10.000000]"
    )


def test_what_has_a_least_must_be_asked_for(api):
    api.made(limit_range({"type": "Pod", "min": {"cpu": "1"}, "max": {"memory": "1Gi"}}))
    assert refused(api.create(pod("a"))) == (
        'pods "a" is forbidden: [minimum cpu usage per Pod is 1.  No request is specified, '
        "maximum memory usage per Pod is 1Gi.  No limit is specified]"
    )


def test_pods_are_measured_as_a_whole(api):
    api.made(limit_range({"type": "Pod", "max": {"cpu": "3"}}))
    half = {"requests": {"cpu": "1"}, "limits": {"cpu": "1500m"}}
    api.made(pod("a", half, half))
    assert "maximum cpu usage per Pod is 3, but limit is 4500m" in refused(api.create(pod("b", half, half, half)))


def test_init_containers_are_bounded_too(api):
    api.made(limit_range({"type": "Container", "max": {"cpu": "1"}}))
    init = {"name": "init", "image": "x", "resources": {"limits": {"cpu": "2"}}}
    assert "but limit is 2" in refused(api.create(pod("a", initContainers=[init])))


def test_claims_are_bounded_when_made_and_when_grown(api):
    api.made(limit_range({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}))

    def claim(name: str, storage: str):
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}

    low, high = refused(api.create(claim("a", "1Mi"))), refused(api.create(claim("a", "3Gi")))
    assert low.endswith("minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi")
    assert high.endswith("maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi")
    api.made(claim("a", "2Gi"))


def test_a_resize_is_only_asked_about_what_it_changes(api):
    api.made(pod("a", {"requests": {"cpu": "4", "memory": "1Gi"}}))
    api.made(limit_range({"type": "Container", "min": {"memory": "512Mi"}, "maxLimitRequestRatio": {"cpu": "1"}}))

    def resize(**requests: str):
        body = {"spec": {"containers": [{"name": "c0", "resources": {"requests": requests}}]}}
        return api.patch("pods", "a", body, "application/strategic-merge-patch+json", subresource="resize")

    assert resize(memory="768Mi").status == 200
    assert "minimum memory usage per Container is 512Mi, but request is 1Mi" in refused(resize(memory="1Mi"))


def test_defaults_come_before_the_quota(api):
    api.made(limit_range({"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}))
    hard = {"requests.cpu": "1", "limits.cpu": "2"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}
    api.made(quota)
    api.made(pod("a"))
    assert api.get("resourcequotas", "q")["status"]["used"] == hard


@pytest.mark.parametrize(
    ("limit", "field"),
    [
        ({"type": "Odd"}, "type"),
        ({"type": "Pod", "default": {"cpu": "1"}}, "default"),
        ({"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}, "min[cpu]"),
        ({"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "2"}}, "defaultRequest[cpu]"),
        ({"type": "Container", "max": {"storage": "1"}}, "max[storage]"),
        ({"type": "Container", "max": {"cpu": "-1"}}, "max[cpu]"),
        ({"type": "Container", "maxLimitRequestRatio": {"cpu": "500m"}}, "maxLimitRequestRatio[cpu]"),
        (
            {"type": "Pod", "min": {"cpu": "1"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "3"}},
            "maxLimitRequestRatio[cpu]",
        ),
        ({"type": "PersistentVolumeClaim", "min": {"cpu": "1"}}, "limits"),
    ],
)
def test_a_wrong_range_is_refused_with_its_field(api, limit, field):
    answer = api.create(limit_range(limit))
    assert answer.status == 422
    assert f"spec.limits[0].{field}" in [cause["field"] for cause in answer.body["details"]["causes"]]


def test_a_type_stands_only_once(api):
    limit = {"type": "Container", "max": {"cpu": "1"}}
    answer = api.create(limit_range(limit, limit))
    assert answer.status == 422 and answer.body["details"]["causes"][0]["reason"] == "FieldValueDuplicate"
