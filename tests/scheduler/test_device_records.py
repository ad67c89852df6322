"""Slices, classes and claims as the scheduler takes them in."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.quantity import NANOS
from muster.api.resource import DELETE_PROTECTION
from muster.model.devices import (
    EVERYWHERE,
    UNIT,
    Allotment,
    Attribute,
    Choice,
    Constraint,
    DeviceCapacity,
    DeviceKey,
    DeviceRecord,
    DeviceTaint,
    DeviceToleration,
    DeviceUse,
    Draw,
    Failure,
    Grant,
    PoolKey,
    Range,
    Reach,
    TaintRule,
    User,
)
from muster.model.keys import Key
from muster.model.terms import Requirement, Term
from muster.scheduler import claims

RACK = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}]}
IN_RACK = Reach(terms=(Term((Requirement("rack", "In", ("r1",)),)),))


def slice_of(*devices: dict[str, Any], **spec: Any) -> dict[str, Any]:
    pool = {"name": "p", "generation": 3, "resourceSliceCount": 2}
    return {"metadata": {"name": "s"}, "spec": {"driver": "d.io", "pool": pool, "devices": list(devices), **spec}}


def test_amounts_are_billionths_here_and_there() -> None:
    assert UNIT == NANOS


def test_a_slice_says_pool_reach_counters_and_devices() -> None:
    shared = [{"name": "mem", "counters": {"slices": {"value": "7"}}}]
    found = claims.resource_slice(slice_of({"name": "g0"}, nodeName="n1", sharedCounters=shared))
    assert (found.name, found.pool, found.generation, found.slices) == ("s", PoolKey("d.io", "p"), 3, 2)
    assert found.reach == Reach("n1")
    assert found.devices == (DeviceRecord("g0"),)
    assert found.counters == {("mem", "slices"): 7 * UNIT}


@pytest.mark.parametrize(
    ("where", "reach"),
    [({"allNodes": True}, EVERYWHERE), ({"nodeSelector": RACK}, IN_RACK), ({"nodeName": "n2"}, Reach("n2"))],
)
def test_a_device_may_say_itself_from_where_it_can_be_used(where: dict[str, Any], reach: Reach) -> None:
    assert claims.resource_slice(slice_of({"name": "g0"}, **where)).reach == reach
    own = claims.resource_slice(slice_of({"name": "g0", **where}, perDeviceNodeSelection=True))
    assert own.devices[0].reach == reach


def test_attributes_and_capacities_have_complete_names_and_their_types() -> None:
    attributes = {
        "model": {"string": "h100"},
        "ecc": {"bool": False},
        "index": {"int": 0},
        "driver": {"version": "1.2.3"},
        "other.io/roots": {"strings": ["a", "b"]},
    }
    device = claims.resource_slice(slice_of({"name": "g0", "attributes": attributes})).devices[0]
    assert device.attributes == {
        "d.io/model": Attribute("string", ("h100",)),
        "d.io/ecc": Attribute("bool", (False,)),
        "d.io/index": Attribute("int", (0,)),
        "d.io/driver": Attribute("version", ("1.2.3",)),
        "other.io/roots": Attribute("string", ("a", "b"), listed=True),
    }


@pytest.mark.parametrize("names", [("memory", "d.io/memory"), ("d.io/memory", "memory")])
def test_what_names_the_driver_goes_before_what_leaves_it_out(names: tuple[str, str]) -> None:
    capacity = {name: {"value": "2" if "/" in name else "1"} for name in names}
    device = claims.resource_slice(slice_of({"name": "g0", "capacity": capacity})).devices[0]
    assert device.capacity == {"d.io/memory": DeviceCapacity(2 * UNIT)}


def test_parts_of_shared_devices_counters_taints_and_conditions_are_taken_in() -> None:
    policy = {"default": "1", "validRange": {"min": "1", "max": "8", "step": "500m"}}
    some = {"default": "1", "validValues": ["1", "4"]}
    raw = {
        "name": "g0",
        "allowMultipleAllocations": True,
        "capacity": {"a": {"value": "8", "requestPolicy": policy}, "b": {"value": "8", "requestPolicy": some}},
        "consumesCounters": [{"counterSet": "mem", "counters": {"slices": {"value": "3"}}}],
        "taints": [{"key": "broken", "effect": "NoExecute"}],
        "bindsToNode": True,
        "bindingConditions": ["Attached"],
        "bindingFailureConditions": ["Failed"],
    }
    device = claims.resource_slice(slice_of(raw)).devices[0]
    assert device.capacity == {
        "d.io/a": DeviceCapacity(8 * UNIT, UNIT, (), Range(UNIT, 8 * UNIT, UNIT // 2)),
        "d.io/b": DeviceCapacity(8 * UNIT, UNIT, (UNIT, 4 * UNIT)),
    }
    assert device.draws == (Draw("mem", "slices", 3 * UNIT),)
    assert device.taints == (DeviceTaint("broken", "", "NoExecute"),)
    assert (device.shared, device.binds_to_node, device.conditions, device.failures) == (
        True,
        True,
        ("Attached",),
        ("Failed",),
    )


def test_a_claim_says_what_it_asks_for_in_the_order_of_its_wishes() -> None:
    selectors = [{"cel": {"expression": "true"}}]
    exactly = {
        "deviceClassName": "gpu",
        "selectors": selectors,
        "count": 2,
        "tolerations": [{"key": "broken", "operator": "Exists"}],
        "capacity": {"requests": {"memory": "1Gi"}},
    }
    wishes = [
        {"name": "big", "deviceClassName": "gpu", "allocationMode": "All"},
        {"name": "small", "deviceClassName": "gpu"},
    ]
    admin = {"deviceClassName": "gpu", "adminAccess": True}
    requests = [
        {"name": "a", "exactly": exactly},
        {"name": "b", "firstAvailable": wishes},
        {"name": "c", "exactly": admin},
    ]
    constraints = [{"matchAttribute": "d.io/numa", "requests": ["a"]}, {"distinctAttribute": "d.io/root"}]
    found = claims.shape({"devices": {"requests": requests, "constraints": constraints}})
    tolerations = (DeviceToleration("broken", "Exists"),)
    assert found.requests == (
        (Choice("a", "gpu", ("true",), 2, tolerations=tolerations, capacity=(("memory", 2**30 * UNIT),)),),
        (Choice("b/big", "gpu", count=None), Choice("b/small", "gpu")),
        (Choice("c", "gpu", admin=True),),
    )
    assert found.constraints == (Constraint("d.io/numa", requests=("a",)), Constraint("d.io/root", distinct=True))


def test_an_allocated_claim_says_what_it_has_from_where_and_who_uses_it() -> None:
    result = {
        "request": "a",
        "driver": "d.io",
        "pool": "p",
        "device": "g0",
        "adminAccess": True,
        "consumedCapacity": {"memory": "1"},
    }
    raw = {
        "metadata": {
            "name": "c",
            "namespace": "ns",
            "uid": "u",
            "resourceVersion": "7",
            "finalizers": [DELETE_PROTECTION],
            "ownerReferences": [{"uid": "pod", "controller": True}],
        },
        "spec": {"devices": {"requests": []}},
        "status": {
            "allocation": {"devices": {"results": [result]}, "nodeSelector": RACK},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "pod"}],
        },
    }
    found = claims.claim(raw)
    grant = Grant("a", DeviceKey("d.io", "p", "g0"), True, (("d.io/memory", UNIT),))
    assert (found.key, found.uid, found.version, found.owner) == (Key("ns", "c"), "u", "7", "pod")
    assert found.allotment == Allotment((grant,), IN_RACK)
    assert found.users == (User("pods", "p", "pod"),)
    assert found.protected
    assert not found.terminating
    assert claims.claim({**raw, "status": {"allocation": {}}}).allotment == Allotment(())
    assert claims.claim({**raw, "status": {}}).allotment is None


def test_a_pod_uses_claims_by_name_or_by_what_its_status_says_was_made() -> None:
    spec = {
        "resourceClaims": [
            {"name": "a", "resourceClaimName": "mine"},
            {"name": "b", "resourceClaimTemplateName": "t"},
            {"name": "c", "resourceClaimTemplateName": "t"},
        ]
    }
    status = {"resourceClaimStatuses": [{"name": "b", "resourceClaimName": "p-b-x"}]}
    assert claims.uses_of(spec, status) == (
        DeviceUse("a", "mine"),
        DeviceUse("b", "p-b-x", "t"),
        DeviceUse("c", "", "t"),
    )
    assert claims.uses_of({}, {}) == ()


def test_a_taint_rule_means_devices_by_driver_pool_and_name() -> None:
    rule = {
        "taint": {"key": "k", "value": "v", "effect": "NoSchedule"},
        "deviceSelector": {"driver": "d.io", "device": "g"},
    }
    found = claims.taint_rule({"spec": rule})
    assert found == TaintRule(DeviceTaint("k", "v", "NoSchedule"), "d.io", "", "g")
    assert found.means(DeviceKey("d.io", "any", "g"))
    assert not found.means(DeviceKey("d.io", "any", "h"))


def test_an_expression_is_carried_out_on_what_a_device_says() -> None:
    device = claims.resource_slice(
        slice_of(
            {
                "name": "g0",
                "attributes": {"model": {"string": "h100"}, "v": {"version": "1.2.3"}, "x.io/l": {"ints": [1, 2]}},
                "capacity": {"memory": {"value": "80Gi"}},
            }
        )
    ).devices[0]
    for text in (
        "device.driver == 'd.io' && device.attributes['d.io'].model == 'h100'",
        "device.attributes['d.io'].v.isGreaterThan(semver('1.2.2'))",
        "2 in device.attributes['x.io'].l",
        "device.capacity['d.io'].memory.compareTo(quantity('80Gi')) == 0",
    ):
        assert claims.matcher(text)("d.io", device) is True, text
    assert claims.matcher("device.attributes['d.io'].model == 'a100'")("d.io", device) is False
    assert claims.matcher("device.attributes['d.io'].none")("d.io", device) == Failure("no such key: none")
    broken = claims.matcher("device.driver ==")("d.io", device)
    assert isinstance(broken, Failure)
    assert "compilation failed" in broken
