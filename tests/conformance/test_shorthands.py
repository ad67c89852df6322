"""Short forms become the manifests that the format says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muster.conformance.cases import CaseError, find, load
from muster.conformance.shorthands import manifests, numbered

CASES = Path(__file__).parents[2] / "conformance" / "cases"


def one(short: dict[str, Any], **options: Any) -> dict[str, Any]:
    (manifest,) = manifests(short, **options)
    return manifest


def test_a_node_has_110_pods_and_lacks_what_is_not_listed() -> None:
    node = one({"node": "n1", "cpu": "4", "extended": {"nvidia.com/gpu": "8"}, "labels": {"rack": "r1"}})
    assert node["status"]["allocatable"] == {"pods": "110", "cpu": "4", "nvidia.com/gpu": "8"}
    assert node["metadata"]["labels"]["rack"] == "r1"
    assert node["spec"] == {}


def test_a_node_may_have_taints_and_no_pod_slots() -> None:
    node = one({"node": "n1", "pods": 0, "taints": [{"key": "a", "effect": "NoSchedule"}]})
    assert node["status"]["allocatable"] == {"pods": "0"}
    assert node["spec"]["taints"] == [{"key": "a", "effect": "NoSchedule"}]


def test_many_are_numbered_from_their_start() -> None:
    assert [m["metadata"]["name"] for m in manifests({"pods": "p", "count": 3, "start": 4})] == ["p4", "p5", "p6"]
    assert [m["metadata"]["name"] for m in manifests({"nodes": "n", "count": 2})] == ["n1", "n2"]
    assert numbered("p", 0) == []


def test_a_pod_carries_requests_group_gates_and_node() -> None:
    pod = one(
        {"pod": "p", "cpu": "1", "memory": "1Gi", "extended": {"nvidia.com/gpu": "2"}, "group": "g", "gates": ["hold"],
         "node": "n1", "priority": 5, "scheduler": "other", "labels": {"app": "a"}}
    )  # fmt: skip
    (container,) = pod["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2"},
        "limits": {"nvidia.com/gpu": "2"},
    }
    assert pod["spec"]["schedulingGroup"] == {"podGroupName": "g"}
    assert pod["spec"]["schedulingGates"] == [{"name": "hold"}]
    assert (pod["spec"]["nodeName"], pod["spec"]["priority"], pod["spec"]["schedulerName"]) == ("n1", 5, "other")
    assert pod["metadata"]["labels"] == {"app": "a"}


def test_every_container_of_a_pod_uses_its_claims() -> None:
    pod = one({"pod": "p", "claims": [{"name": "c", "template": "t"}, {"name": "d", "claim": "existing"}]})
    assert pod["spec"]["resourceClaims"] == [
        {"name": "c", "resourceClaimTemplateName": "t"},
        {"name": "d", "resourceClaimName": "existing"},
    ]
    assert pod["spec"]["containers"][0]["resources"]["claims"] == [{"name": "c"}, {"name": "d"}]


def test_groups_and_pods_without_a_priority_agree_on_the_default() -> None:
    assert one({"pod": "p"})["spec"]["priority"] == one({"podgroup": "g", "basic": True})["spec"]["priority"] == 0
    assert "priority" not in one({"podgroup": "g", "gang": 2}, priority=None)["spec"]


def test_a_gang_has_its_minimum_and_a_basic_group_none() -> None:
    assert one({"podgroup": "g", "gang": 3})["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    assert one({"podgroup": "g", "basic": True})["spec"]["schedulingPolicy"] == {"basic": {}}
    assert one({"composite": "c", "gang": 3})["spec"]["schedulingPolicy"] == {"gang": {"minGroupCount": 3}}


def test_composites_and_groups_with_a_parent_refer_to_workload_w_and_their_own_name() -> None:
    own = {"workloadName": "w", "templateName": "c"}
    assert one({"composite": "c", "gang": 1})["spec"]["workloadRef"] == own
    assert one({"podgroup": "c", "gang": 1, "parent": "root"})["spec"]["workloadRef"] == own
    assert "workloadRef" not in one({"podgroup": "c", "gang": 1})["spec"]
    given = one({"podgroup": "g", "gang": 1, "parent": "r", "workload": {"name": "x", "template": "t"}})
    assert given["spec"]["workloadRef"] == {"workloadName": "x", "templateName": "t"}


def test_the_further_fields_of_a_group() -> None:
    spec = one({"podgroup": "g", "gang": 1, "topology": "rack", "disruption": "all", "preemptionPolicy": "Never"})[
        "spec"
    ]
    assert spec["schedulingConstraints"] == {"topology": [{"key": "rack"}]}
    assert spec["disruptionMode"] == {"all": {}}
    assert spec["preemptionPolicy"] == "Never"


def test_a_full_manifest_is_taken_as_it_is() -> None:
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    assert manifests(raw) == [raw]


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ("p1", "a manifest or a shorthand"),
        ({"pode": "p"}, "unknown shorthand 'pode'; known: node, nodes"),
        ({"pod": "p", "cpus": "1"}, "pod p: unknown key 'cpus'; known keys: affinity"),
        ({"pods": "p"}, "pods p: count is missing"),
    ],
)
def test_a_wrong_short_form_is_refused_with_the_reason(item: Any, reason: str) -> None:
    with pytest.raises(CaseError, match=reason):
        manifests(item)


def test_every_given_case_creates_objects_that_can_be_written_out() -> None:
    for path in find([CASES]):
        for action, argument in load(path).steps:
            if action == "create":
                assert all(m["metadata"] for item in argument for m in manifests(item))
