"""Every expectation notices the difference it is there for, and is quiet without one."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.calls import Request, Response
from muster.conformance.cases import CaseError
from muster.conformance.expect import differences, subset_differences
from muster.conformance.observed import Observed


def pod(name: str, node: str = "", group: str = "", namespace: str = "default", **status: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"nodeName": node} if node else {}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": status}


def deleted(name: str, group: str = "") -> dict[str, Any]:
    found = pod(name, "n1", group)
    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return found


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


NODES = [
    {"metadata": {"name": "n1", "labels": {"rack": "r1", "zone": "a"}}},
    {"metadata": {"name": "n2", "labels": {"rack": "r2", "zone": "a"}}},
    {"metadata": {"name": "bare"}},
]
GROUPS = [
    {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
        "status": {"conditions": [condition("PodGroupInitiallyScheduled", "True", "Scheduled")] if name == "g" else []},
    }
    for name in ("g", "h")
]
PODS = [
    pod("p1", "n1", "g"),
    pod("p2", "n2", "g"),
    pod("q1", "n1", "h"),
    pod(
        "q2",
        group="h",
        conditions=[condition("PodScheduled", "False", "Unschedulable", "0/3 nodes: 3 Insufficient cpu")],
    ),
    pod("wish", nominatedNodeName="n1"),
    pod("far", "n1", namespace="other"),
    deleted("v1", "victims"),
]
EVENTS = [
    {
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "q2"},
        "reason": "FailedScheduling",
        "message": "no room at all",
        "type": "Warning",
    }
]
CLAIMS = [
    {
        "metadata": {
            "name": "c-x-1", "namespace": "default", "annotations": {"resource.kubernetes.io/pod-claim-name": "x"},
            "ownerReferences": [{"kind": "Pod", "name": "c"}],
        },
        "status": {
            "allocation": {"devices": {"results": [{"request": "r", "device": "d0"}]}},
            "reservedFor": [{"resource": "pods", "name": "c"}],
        },
    }
]  # fmt: skip
TABLE = {
    "/api/v1/pods": PODS,
    "/api/v1/nodes": NODES,
    "/api/v1/events": EVENTS,
    "/apis/scheduling.k8s.io/v1beta1/podgroups": GROUPS,
    "/apis/resource.k8s.io/v1/resourceclaims": CLAIMS,
}


def call(request: Request) -> Response:
    return Response(200, {"items": TABLE[request.path]}) if request.path in TABLE else Response(404, {})


def found(expected: dict[str, Any]) -> list[str]:
    return differences(Observed(call, {"victims": {"v1", "v2"}}), expected)


HOLDS: list[dict[str, Any]] = [
    {"bound": ["p1", "other/far"]},
    {"unbound": ["q2"]},
    {"boundCount": {"g": 2, "h": 1}},
    {"groupsBound": [{"groups": ["g"], "count": 1}]},
    {"boundTotal": [{"groups": ["g", "h"], "count": 3}, {"pods": ["p1", "q1", "q2"], "node": "n1", "count": 2}]},
    {"on": {"p1": "n1", "p2": ["n1", "n2"]}},
    {"sameDomain": [{"group": "g", "key": "zone", "in": ["a"]}, {"groups": ["h"], "key": "rack"}]},
    {"distinctDomain": [{"groups": ["h"], "key": "rack"}]},
    {"evicted": ["v1", "v2"]},
    {"kept": ["p1"]},
    {"evictedCount": {"pods": ["p1", "v1", "v2"], "count": 2}},
    {"evictedCount": [{"group": "victims", "count": 2}, {"group": "g", "count": 0}]},
    {"nominated": {"wish": "n1", "q2": ""}},
    {
        "conditions": [
            {"kind": "Pod", "name": "q2", "type": "PodScheduled", "status": "False", "message": "Insufficient cpu"}
        ]
    },
    {"noConditions": [{"kind": "PodGroup", "name": "h"}]},
    {"events": [{"kind": "Pod", "name": "q2", "reason": "FailedScheduling", "message": "no room"}]},
    {"anyEvent": [{"kind": "Pod", "names": ["p1", "q2"], "reason": "FailedScheduling"}]},
    {"claims": [{"name": "c-x-1", "allocated": True, "devices": ["d0"], "requests": ["r"], "reservedFor": ["Pod/c"]}]},
    {"claims": [{"owner": {"kind": "Pod", "name": "c", "claim": "x"}, "deviceCount": 1, "reservedCount": 1}]},
    {"claimCount": 1},
    {"match": [{"kind": "PodGroup", "name": "g", "subset": {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}}]},
    {"match": [{"kind": "Pod", "name": "wish", "present": ["status.nominatedNodeName"], "missing": ["spec.nodeName"]}]},
    {"match": [{"kind": "Pod", "name": "nobody", "absent": True}]},
    {
        "match": [
            {
                "kind": "PodGroup",
                "name": "g",
                "present": ["status.conditions[0].type"],
                "missing": ["status.conditions[1]"],
            }
        ]
    },
]

FAILS: list[tuple[dict[str, Any], str]] = [
    ({"bound": ["q2"]}, "bound: q2 is not bound (Unschedulable: 0/3 nodes: 3 Insufficient cpu)"),
    ({"bound": ["nobody"]}, "bound: nobody does not exist"),
    ({"bound": ["far"]}, "bound: far does not exist"),
    ({"unbound": ["p1"]}, "unbound: p1 is bound to n1"),
    ({"unbound": ["nobody"]}, "unbound: nobody does not exist"),
    ({"boundCount": {"h": 2}}, "boundCount: h has 1 bound pods, not 2"),
    (
        {"groupsBound": [{"groups": ["g", "h"], "count": 1}]},
        "groupsBound: h has 1 bound pods, fewer than its minCount 2",
    ),
    ({"groupsBound": [{"groups": ["g"], "count": 0}]}, "groupsBound: 1 of g are bound, not 0"),
    ({"boundTotal": [{"pods": ["p1"], "node": "n2", "count": 1}]}, "boundTotal: 0 of p1 are bound to n2, not 1"),
    ({"on": {"p2": "n1"}}, "on: p2 is on n2, not on n1"),
    ({"on": {"q2": ["n1", "n2"]}}, "on: q2 is on no node, not on n1 or n2"),
    ({"sameDomain": [{"group": "g", "key": "rack"}]}, "sameDomain: g is in r1, r2, not in one rack"),
    ({"sameDomain": [{"group": "g", "key": "zone", "in": ["b"]}]}, "sameDomain: g is in a, not in b"),
    ({"sameDomain": [{"group": "g", "key": "missing"}]}, "sameDomain: g is in no domain, not in one missing"),
    ({"distinctDomain": [{"groups": ["g", "h"], "key": "rack"}]}, "distinctDomain: g and h are both in rack r1"),
    ({"evicted": ["p1"]}, "evicted: p1 is still there"),
    ({"kept": ["v1"]}, "kept: v1 is gone or being deleted"),
    ({"evictedCount": {"pods": ["v1", "v2"], "count": 1}}, "evictedCount: 2 of v1, v2 are evicted, not 1"),
    ({"nominated": {"wish": ""}}, "nominated: wish is nominated to n1, not to none"),
    (
        {"conditions": [{"kind": "PodGroup", "name": "g", "type": "PodGroupInitiallyScheduled", "status": "False"}]},
        "conditions: PodGroup g has PodGroupInitiallyScheduled=True/Scheduled,"
        " not PodGroupInitiallyScheduled=False/any",
    ),
    (
        {"conditions": [{"kind": "PodGroup", "name": "h", "type": "PodGroupInitiallyScheduled", "status": "True"}]},
        "conditions: PodGroup h has no condition PodGroupInitiallyScheduled",
    ),
    (
        {"noConditions": [{"kind": "PodGroup", "name": "g"}]},
        "noConditions: PodGroup g has PodGroupInitiallyScheduled=True/Scheduled",
    ),
    (
        {"events": [{"kind": "Pod", "name": "q2", "reason": "FailedScheduling", "message": "plenty"}]},
        "events: Pod q2 has no event FailedScheduling 'plenty'",
    ),
    ({"anyEvent": [{"kind": "Pod", "names": ["p1"], "reason": "R"}]}, "anyEvent: none of p1 has an event R ''"),
    (
        {"claims": [{"name": "c-x-1", "devices": ["d0", "d1"]}]},
        "claims: claim c-x-1 has devices ['d0'], not ['d0', 'd1']",
    ),
    ({"claims": [{"name": "nobody"}]}, "claims: claim nobody does not exist"),
    ({"claimCount": 0}, "claimCount: there are 1 claims, not 0"),
    ({"match": [{"kind": "Pod", "name": "p1", "absent": True}]}, "match: Pod p1 exists"),
    ({"match": [{"kind": "Pod", "name": "p1", "missing": ["spec.nodeName"]}]}, "match: Pod p1: spec.nodeName is there"),
    ({"match": [{"kind": "Pod", "name": "p1", "present": ["a.b"]}]}, "match: Pod p1: a.b is missing"),
    (
        {"match": [{"kind": "Pod", "name": "p1", "subset": {"spec": {"nodeName": "n2"}}}]},
        "match: Pod p1: spec.nodeName is 'n1', not 'n2'",
    ),
]


@pytest.mark.parametrize("expected", HOLDS, ids=lambda expected: next(iter(expected)))
def test_an_expectation_that_holds_says_nothing(expected: dict[str, Any]) -> None:
    assert found(expected) == []


@pytest.mark.parametrize(("expected", "sentence"), FAILS, ids=[sentence[:50] for _, sentence in FAILS])
def test_an_expectation_that_does_not_hold_says_why(expected: dict[str, Any], sentence: str) -> None:
    assert found(expected) == [sentence]


def test_every_expectation_of_the_format_is_known_and_tested_both_ways() -> None:
    holding = {key for expected in HOLDS for key in expected}
    failing = {key for expected, _ in FAILS for key in expected}
    with pytest.raises(CaseError, match="unknown expectation 'bond'; known: ") as error:
        found({"bond": []})
    known = set(str(error.value).split("known: ")[1].split(", "))
    assert holding == failing == known


def test_an_expectation_of_the_wrong_shape_is_a_mistake_of_the_case() -> None:
    with pytest.raises(CaseError, match="expectation boundTotal has the wrong shape"):
        found({"boundTotal": [{"count": 1}]})


def test_subsets_compare_lists_as_a_whole_and_do_not_take_true_for_one() -> None:
    assert list(subset_differences({"a": [1, 2]}, {"a": [1]})) == ["a is [1, 2], not [1]"]
    assert list(subset_differences({"a": 1}, {"a": True})) == ["a is 1, not True"]
    assert list(subset_differences({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}]})) == []
