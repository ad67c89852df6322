"""Claims for devices: made from templates, reserved by whoever uses them, let go with the last one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from controller_world import Cluster, node, pod

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.sim.faults import CALM, Rates

GATES = FeatureGates.of("GenericWorkload", "DRAWorkloadResourceClaims")
MACHINES = ("resourceclaims", "podgroups", "collector", "hollow")
FINALIZER = "resource.kubernetes.io/delete-protection"
ONE_GPU = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}


def cluster(*machines: str, gates: FeatureGates = GATES, **more: Any) -> Cluster:
    made = Cluster(*(machines or MACHINES), gates=gates, **more)
    made.create(node())
    return made


def claim(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": ONE_GPU,
    }


def template(name: str = "t", **meta: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"metadata": meta, "spec": ONE_GPU} if meta else {"spec": ONE_GPU},
    }


def asking(name: str, entry: str = "g", of: str = "t", group: str = "", on: str | None = None) -> dict[str, Any]:
    """A pod with a claim from a template."""
    spec: dict[str, Any] = {"resourceClaims": [{"name": entry, "resourceClaimTemplateName": of}]}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    return pod(name, on, spec=spec)


def group(name: str = "pg", entry: str = "g", of: str = "t") -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 1}},
            "resourceClaims": [{"name": entry, "resourceClaimTemplateName": of}],
        },
    }


def made_for(one: Cluster, kind: str, name: str) -> list[str]:
    """Names of the claims that an object owns."""
    return [
        found["metadata"]["name"]
        for found in one.all("resourceclaims")
        for owner in found["metadata"].get("ownerReferences") or ()
        if (owner["kind"], owner["name"], owner["controller"]) == (kind, name, True)
    ]


def recorded(one: Cluster, resource: str, name: str) -> Mapping[str, str]:
    statuses = one.status(resource, name).get("resourceClaimStatuses") or ()
    return {status["name"]: status["resourceClaimName"] for status in statuses}


def reserve(one: Cluster, name: str, *consumers: tuple[str, str]) -> None:
    """Allocates a claim and reserves it, as a scheduler does."""
    there = one.get("resourceclaims", name)
    assert there is not None
    entries = []
    for resource, consumer in consumers:
        found = one.get(resource, consumer)
        assert found is not None
        entry = {"resource": resource, "name": consumer, "uid": found["metadata"]["uid"]}
        entries.append({**entry, "apiGroup": "scheduling.k8s.io"} if resource == "podgroups" else entry)
    one.patch("resourceclaims", name, {"metadata": {"finalizers": [FINALIZER]}})
    result = {"request": "gpu", "driver": "d", "pool": "p", "device": "g0"}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": entries}
    one.patch("resourceclaims", name, {"status": status}, "status")


def holders(one: Cluster, name: str) -> list[str]:
    return [consumer["name"] for consumer in one.status("resourceclaims", name).get("reservedFor") or ()]


def is_free(one: Cluster, name: str) -> bool:
    found = one.get("resourceclaims", name)
    assert found is not None
    return not (found.get("status") or {}).get("allocation") and not found["metadata"].get("finalizers")


def test_a_pod_gets_a_claim_of_its_own_from_the_template_and_records_its_name() -> None:
    one = cluster()
    one.create(template(labels={"team": "a"}), asking("p1"), asking("p2"))
    (first,), (second,) = made_for(one, "Pod", "p1"), made_for(one, "Pod", "p2")
    assert first != second
    assert recorded(one, "pods", "p1") == {"g": first}
    there = one.get("resourceclaims", first)
    assert there is not None
    assert there["metadata"]["labels"] == {"team": "a"}
    assert there["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"] == "g"
    assert there["spec"]["devices"]["requests"][0]["name"] == "gpu"


def test_a_group_gets_one_claim_before_it_has_pods_and_they_record_it() -> None:
    one = cluster()
    one.create(template(), group())
    (shared,) = made_for(one, "PodGroup", "pg")
    assert recorded(one, "podgroups", "pg") == {"g": shared}
    one.create(asking("p1", group="pg"), asking("p2", group="pg"))
    assert [recorded(one, "pods", name) for name in ("p1", "p2")] == [{"g": shared}] * 2
    assert len(one.all("resourceclaims")) == 1


def test_pods_wait_for_their_group_before_it_is_known_whose_the_claim_is() -> None:
    one = cluster()
    one.create(template(), asking("p1", group="pg"))
    assert one.all("resourceclaims") == []
    one.create(group())
    assert recorded(one, "pods", "p1") == {"g": made_for(one, "PodGroup", "pg")[0]}


@pytest.mark.parametrize(("entry", "of"), [("g", "other"), ("h", "t")])
def test_another_name_or_another_template_is_a_claim_of_the_pod(entry: str, of: str) -> None:
    one = cluster()
    one.create(template(), template("other"), group(), asking("p1", entry, of, group="pg"))
    assert recorded(one, "pods", "p1") == {entry: made_for(one, "Pod", "p1")[0]}
    assert len(made_for(one, "PodGroup", "pg")) == 1


def test_without_the_gate_every_pod_of_a_group_gets_its_own() -> None:
    one = cluster(gates=FeatureGates.of("GenericWorkload"))
    one.create(template(), group(), asking("p1", group="pg"), asking("p2", group="pg"))
    assert len(made_for(one, "Pod", "p1") + made_for(one, "Pod", "p2")) == 2
    assert made_for(one, "PodGroup", "pg") == []


def test_a_template_may_come_later_and_the_pod_is_told_once_that_it_is_missing() -> None:
    one = cluster()
    one.create(asking("p1"))
    one.patch("pods", "p1", {"metadata": {"labels": {"seen": "again"}}})
    (told,) = one.all("events")
    assert told["message"] == 'resource claim template "t" not found'
    assert (told["reason"], told["type"]) == ("FailedResourceClaimCreation", "Warning")
    one.create(template())
    assert len(made_for(one, "Pod", "p1")) == 1


def test_the_claim_of_a_pod_that_has_ended_goes_and_so_does_its_reservation() -> None:
    one = cluster()
    one.create(template(), asking("p1", on="n1"), claim("c"))
    (mine,) = made_for(one, "Pod", "p1")
    reserve(one, mine, ("pods", "p1"))
    reserve(one, "c", ("pods", "p1"))
    one.patch("pods", "p1", {"status": {"phase": "Succeeded"}}, "status")
    assert one.get("resourceclaims", mine) is None
    assert holders(one, "c") == []
    assert is_free(one, "c")


def test_a_claim_is_free_when_the_last_pod_that_reserved_it_is_gone() -> None:
    one = cluster()
    one.create(claim("c"), pod("p1"), pod("p2"))
    reserve(one, "c", ("pods", "p1"), ("pods", "p2"))
    one.delete("pods", "p1")
    assert holders(one, "c") == ["p2"]
    assert not is_free(one, "c")
    one.delete("pods", "p2")
    assert is_free(one, "c")


def test_a_pod_of_the_same_name_does_not_keep_the_reservation_of_an_earlier_one() -> None:
    one = cluster()
    one.create(claim("c"), pod("p1"))
    reserve(one, "c", ("pods", "p1"))
    one.world.call(writes.delete("pods", "default", "p1"))
    one.world.call(writes.create(pod("p1")))
    one.world.restart("resourceclaims")
    one.world.settle()
    assert is_free(one, "c")


def test_a_claim_stays_reserved_for_a_group_without_pods_until_the_group_is_gone() -> None:
    one = cluster()
    one.create(template(), claim("c"), group(), asking("p1", group="pg"))
    (shared,) = made_for(one, "PodGroup", "pg")
    for name in (shared, "c"):
        reserve(one, name, ("podgroups", "pg"))
    one.delete("podgroups", "pg")
    assert holders(one, "c") == ["pg"]
    one.delete("pods", "p1")
    assert one.get("podgroups", "pg") is None
    assert is_free(one, "c")
    assert one.get("resourceclaims", shared) is None


def test_a_deleted_claim_goes_when_nobody_has_it_any_more() -> None:
    one = cluster()
    one.create(claim("c"), pod("p1"))
    reserve(one, "c", ("pods", "p1"))
    one.delete("resourceclaims", "c")
    assert holders(one, "c") == ["p1"]
    one.delete("pods", "p1")
    assert one.get("resourceclaims", "c") is None


def test_an_allocation_that_is_reserved_for_nobody_yet_is_left_to_the_scheduler() -> None:
    one = cluster()
    one.create(claim("c"))
    reserve(one, "c")
    assert not is_free(one, "c")


def test_reservations_of_other_kinds_are_left_to_whoever_made_them() -> None:
    one = cluster()
    one.create(claim("c"))
    consumer = {"apiGroup": "example.com", "resource": "vms", "name": "vm", "uid": "1"}
    one.patch("resourceclaims", "c", {"status": {"allocation": {}, "reservedFor": [consumer]}}, "status")
    assert holders(one, "c") == ["vm"]


def test_a_name_that_somebody_else_has_is_passed_over() -> None:
    one = cluster()
    one.create(template(), asking("p1"))
    (name,) = made_for(one, "Pod", "p1")
    again = cluster()
    again.create(claim(name))
    again.create(template(), asking("p1"))
    (other,) = made_for(again, "Pod", "p1")
    assert other != name
    assert recorded(again, "pods", "p1") == {"g": other}


def test_a_claim_that_is_refused_is_told_and_tried_again() -> None:
    one = cluster()
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"count/resourceclaims.resource.k8s.io": "0"}},
    }
    one.create(quota, template(), asking("p1"))
    assert one.all("resourceclaims") == []
    (told,) = one.all("events")
    assert "exceeded quota: q" in told["message"]
    one.delete("resourcequotas", "q")
    one.advance(5)
    assert len(made_for(one, "Pod", "p1")) == 1


@pytest.mark.parametrize("start", range(6))
def test_whatever_is_lost_or_late_nobody_gets_two_claims_and_nothing_is_left_behind(start: int) -> None:
    one = cluster(seed=start, rates=Rates(lost_watch=0.05, late=0.3, conflict=0.2, unanswered=0.2))
    one.create(template(), group(), *(asking(f"p{i}", group="pg" if i % 2 else "") for i in range(6)))
    one.advance(60)
    one.faults.rates = CALM
    one.advance(60)
    assert len(made_for(one, "PodGroup", "pg")) == 1
    assert [len(made_for(one, "Pod", f"p{i}")) for i in range(6)] == [1, 0, 1, 0, 1, 0]
    for i in range(6):
        one.delete("pods", f"p{i}")
    one.delete("podgroups", "pg")
    one.advance(60)
    assert one.all("resourceclaims") == []
