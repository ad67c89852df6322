"""resource.k8s.io: slices, taint rules, claims and their status, classes."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.instant import to_time

V1 = "resource.k8s.io/v1"


def slice_(name: str = "s", **spec: Any) -> dict[str, Any]:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    whole = {"driver": "gpu.example.com", "pool": pool, "nodeName": "n1", "devices": [{"name": "gpu-0"}], **spec}
    kept = {key: value for key, value in whole.items() if value is not None}
    return {"apiVersion": V1, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": kept}


def claim(name: str = "c", *requests: dict[str, Any], **devices: Any) -> dict[str, Any]:
    asked = list(requests) or [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    spec = {"devices": {"requests": asked, **devices}}
    return {"apiVersion": V1, "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}


def causes(answer) -> list[str]:
    assert answer.status == 422, answer.body
    return [cause["field"] for cause in answer.body["details"]["causes"]]


def test_a_slice_is_kept_with_canonical_amounts_and_a_generation(api):
    attributes = {"model": {"string": "H200"}, "example.com/mig": {"bool": True}, "driverVersion": {"version": "1.2.3"}}
    device = {"name": "gpu-0", "attributes": attributes, "capacity": {"memory": {"value": "0.5Gi"}}}
    made = api.made(slice_(devices=[device]))
    assert made["metadata"]["generation"] == 1
    assert made["spec"]["devices"][0]["capacity"]["memory"]["value"] == "512Mi"
    changed = {**made["spec"], "pool": {**made["spec"]["pool"], "generation": 2}}
    assert api.put({**made, "spec": changed}).body["metadata"]["generation"] == 2
    found = api.call("GET", api.path("resourceslices"), query={"fieldSelector": "spec.driver=gpu.example.com"})
    assert len(found.body["items"]) == 1
    found = api.call("GET", api.path("resourceslices"), query={"fieldSelector": "spec.nodeName=n2"})
    assert found.body["items"] == []


def device(**fields: Any) -> dict[str, Any]:
    return {"devices": [{"name": "d", **fields}]}


def capacity(**policy: Any) -> dict[str, Any]:
    return device(allowMultipleAllocations=True, capacity={"memory": {"value": "10", "requestPolicy": policy}})


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"driver": "Not_A_Domain"}, "spec.driver"),
        ({"driver": "x" * 64}, "spec.driver"),
        ({"nodeName": None}, "spec"),
        ({"allNodes": True}, "spec"),
        ({"pool": {"name": "a//b", "generation": 0, "resourceSliceCount": 1}}, "spec.pool.name"),
        ({"pool": {"name": "a", "generation": 0, "resourceSliceCount": 0}}, "spec.pool.resourceSliceCount"),
        ({"nodeName": None, "nodeSelector": {"nodeSelectorTerms": []}}, "spec.nodeSelector.nodeSelectorTerms"),
        ({"devices": [{"name": "a"}, {"name": "a"}]}, "spec.devices[1].name"),
        ({"devices": [{"name": f"d{i}"} for i in range(129)]}, "spec.devices"),
        (device(attributes={"a b": {"bool": True}}), "spec.devices[0].attributes[a b]"),
        (device(attributes={"a": {}}), "spec.devices[0].attributes[a]"),
        (device(attributes={"a": {"bool": True, "int": 1}}), "spec.devices[0].attributes[a]"),
        (device(attributes={"a": {"string": "x" * 65}}), "spec.devices[0].attributes[a].string"),
        (device(attributes={"a": {"version": "one"}}), "spec.devices[0].attributes[a].version"),
        (device(attributes={f"a{i}": {"int": i} for i in range(33)}), "spec.devices[0]"),
        (device(capacity={"m": {"value": "-1"}}), "spec.devices[0].capacity[m].value"),
        (device(nodeName="n1"), "spec.devices[0]"),
        (device(taints=[{"key": "k", "effect": "PreferNoSchedule"}]), "spec.devices[0].taints[0].effect"),
        (device(taints=[{"effect": "NoSchedule"}]), "spec.devices[0].taints[0].key"),
        (device(consumesCounters=[{"counterSet": "a", "counters": {}}]),
         "spec.devices[0].consumesCounters[0].counters"),
        ({"devices": None, "sharedCounters": [{"name": "A", "counters": {"c": {"value": "1"}}}]},
         "spec.sharedCounters[0].name"),
        ({"sharedCounters": [{"name": "a", "counters": {"c": {"value": "1"}}}]}, "spec"),
        (capacity(validValues=["1", "2"]), "spec.devices[0].capacity[memory].requestPolicy.default"),
        (capacity(default="3", validValues=["1", "2"]), "spec.devices[0].capacity[memory].requestPolicy.default"),
        (capacity(default="1", validValues=["2", "1"]), "spec.devices[0].capacity[memory].requestPolicy.validValues"),
        (capacity(default="1", validRange={"min": "1", "max": "11"}),
         "spec.devices[0].capacity[memory].requestPolicy.validRange.max"),
        (capacity(default="2", validRange={"min": "1", "max": "9", "step": "3"}),
         "spec.devices[0].capacity[memory].requestPolicy.validRange.step"),
        (device(capacity={"m": {"value": "1", "requestPolicy": {"default": "1"}}}),
         "spec.devices[0].capacity[m].requestPolicy"),
    ],
)  # fmt: skip
def test_a_wrong_slice_is_refused_with_its_field(api, spec, field):
    assert field in causes(api.create(slice_(**spec)))


def test_devices_with_taints_are_64_at_most(api):
    taints = [{"key": "k", "effect": "NoSchedule"}]
    many = [{"name": f"d{i}"} for i in range(65)]
    api.made(slice_(devices=many))
    assert causes(api.create(slice_("t", devices=[*many[:64], {"name": "x", "taints": taints}]))) == ["spec.devices"]


def test_where_a_slice_is_from_does_not_change(api):
    made = api.made(slice_())
    for field in ("driver", "nodeName"):
        assert f"spec.{field}" in causes(api.put({**made, "spec": {**made["spec"], field: "other"}}))


def test_taints_are_given_their_time(api):
    taints = [{"key": "k", "effect": "NoSchedule"}]
    made = api.made(slice_(devices=[{"name": "d", "taints": taints}]))
    assert made["spec"]["devices"][0]["taints"][0]["timeAdded"] == to_time(api.now)
    rule = {"apiVersion": V1, "kind": "DeviceTaintRule", "metadata": {"name": "r"}}
    rule["spec"] = {"deviceSelector": {"driver": "gpu.example.com"}, "taint": taints[0]}
    made = api.made(rule)
    first = made["spec"]["taint"]["timeAdded"]
    api.now += 10**10
    kept = api.patch("devicetaintrules", "r", {"spec": {"taint": {"value": "v"}}}).body
    assert kept["spec"]["taint"]["timeAdded"] == first
    moved = api.patch("devicetaintrules", "r", {"spec": {"taint": {"effect": "NoExecute"}}}).body
    assert moved["spec"]["taint"]["timeAdded"] == to_time(api.now) != first


def test_a_rule_tells_how_far_it_has_come(api):
    taint = {"key": "k", "effect": "NoExecute"}
    rule = {"apiVersion": V1, "kind": "DeviceTaintRule", "metadata": {"name": "r"}, "spec": {"taint": taint}}
    api.made(rule)
    condition = {"type": "EvictionInProgress", "status": "True", "reason": "Some", "message": "3 pods"}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    answer = api.patch("devicetaintrules", "r", {"status": {"conditions": [condition]}}, subresource="status")
    assert answer.status == 200 and answer.body["status"]["conditions"][0]["message"] == "3 pods"
    many = [{**condition, "type": f"T{i}"} for i in range(9)]
    answer = api.patch("devicetaintrules", "r", {"status": {"conditions": many}}, subresource="status")
    assert causes(answer) == ["status.conditions"]
    wrong = {**rule, "metadata": {"name": "s"}, "spec": {"taint": taint, "deviceSelector": {"device": "A"}}}
    assert causes(api.create(wrong)) == ["spec.deviceSelector.device"]


def exactly(**fields: Any) -> dict[str, Any]:
    return {"name": "gpu", "exactly": {"deviceClassName": "gpu", **fields}}


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        (claim("c", {"name": "gpu"}), "spec.devices.requests[0]"),
        (claim("c", exactly(), exactly()), "spec.devices.requests[1].name"),
        (claim("c", exactly(deviceClassName="")), "spec.devices.requests[0].exactly.deviceClassName"),
        (claim("c", exactly(count=-1)), "spec.devices.requests[0].exactly.count"),
        (claim("c", exactly(allocationMode="All", count=2)), "spec.devices.requests[0].exactly.count"),
        (claim("c", exactly(allocationMode="Some")), "spec.devices.requests[0].exactly.allocationMode"),
        (claim("c", exactly(selectors=[{"cel": {"expression": "1 +"}}])),
         "spec.devices.requests[0].exactly.selectors[0].cel.expression"),
        (claim("c", exactly(selectors=[{"cel": {"expression": "'text'"}}])),
         "spec.devices.requests[0].exactly.selectors[0].cel.expression"),
        (claim("c", exactly(tolerations=[{"operator": "Exists", "value": "v"}])),
         "spec.devices.requests[0].exactly.tolerations[0].value"),
        (claim("c", constraints=[{"requests": ["other"], "matchAttribute": "a.com/x"}]),
         "spec.devices.constraints[0].requests[0]"),
        (claim("c", constraints=[{"matchAttribute": "x"}]), "spec.devices.constraints[0].matchAttribute"),
        (claim("c", constraints=[{}]), "spec.devices.constraints[0]"),
        (claim("c", config=[{"requests": ["gpu"]}]), "spec.devices.config[0].opaque"),
        (claim("c", config=[{"opaque": {"driver": "d.com"}}]), "spec.devices.config[0].opaque.parameters"),
        (claim("c", {"name": "a", "firstAvailable": [{"name": "x", "deviceClassName": "g"}] * 2}),
         "spec.devices.requests[0].firstAvailable[1].name"),
    ],
)  # fmt: skip
def test_a_wrong_claim_is_refused_with_its_field(api, manifest, field):
    assert field in causes(api.create(manifest))


def test_alternatives_can_be_constrained_by_their_names(api):
    choice = {"name": "gpu", "firstAvailable": [{"name": "big", "deviceClassName": "gpu"}]}
    api.made(claim("c", choice, constraints=[{"requests": ["gpu/big"], "distinctAttribute": "a.com/x"}]))


def test_administrators_have_a_namespace_for_it(api):
    refused = api.create(claim("c", exactly(adminAccess=True)))
    assert causes(refused) == [""]
    assert "asked for by spec.devices.requests[0].exactly.adminAccess" in refused.body["message"]
    labels = {"resource.kubernetes.io/admin-access": "true"}
    api.made({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "admin", "labels": labels}})
    manifest = claim("c", exactly(adminAccess=True))
    api.made({**manifest, "metadata": {"name": "c", "namespace": "admin"}})


RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
CONSUMER = {"resource": "pods", "name": "p", "uid": "1"}


def allocated(*results: dict[str, Any]) -> dict[str, Any]:
    return {"devices": {"results": list(results) or [RESULT]}}


def test_a_claim_is_allocated_reserved_and_let_go(api):
    api.made(claim())

    def status(**fields: Any):
        return api.patch("resourceclaims", "c", {"status": fields}, subresource="status")

    assert causes(status(reservedFor=[CONSUMER])) == ["status.reservedFor"]
    assert status(allocation=allocated(), reservedFor=[CONSUMER]).status == 200
    other = allocated({**RESULT, "device": "gpu-1"})
    assert "status.allocation" in causes(status(allocation=other))
    network = {"ips": ["10.0.0.1/24"], "interfaceName": "eth1"}
    place = {key: RESULT[key] for key in ("driver", "pool", "device")}
    assert status(devices=[{**place, "networkData": network}]).status == 200
    assert "status.devices[0]" in causes(status(devices=[{**place, "device": "gpu-7"}]))
    assert "status.devices[0].networkData.ips[0]" in causes(
        status(devices=[{**place, "networkData": {"ips": ["10.0.0.1"]}}])
    )
    assert status(allocation=None, reservedFor=None, devices=None).status == 200
    assert "allocation" not in api.get("resourceclaims", "c").get("status", {})


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"request": "other"}, "status.allocation.devices.results[0].request"),
        ({"driver": ""}, "status.allocation.devices.results[0].driver"),
        ({"pool": "A"}, "status.allocation.devices.results[0].pool"),
        ({"device": "a/b"}, "status.allocation.devices.results[0].device"),
    ],
)
def test_an_allocation_names_devices_of_requests(api, change, field):
    api.made(claim())
    body = {"status": {"allocation": allocated({**RESULT, **change})}}
    assert field in causes(api.patch("resourceclaims", "c", body, subresource="status"))


def test_consumers_are_told_apart_and_come_no_more_to_what_is_deleted(api):
    api.made(claim() | {"metadata": {"name": "c", "finalizers": ["example.com/x"]}})
    body = {"status": {"allocation": allocated(), "reservedFor": [CONSUMER, CONSUMER]}}
    assert causes(api.patch("resourceclaims", "c", body, subresource="status")) == ["status.reservedFor[1].uid"]
    body["status"]["reservedFor"] = [CONSUMER]
    assert api.patch("resourceclaims", "c", body, subresource="status").status == 200
    api.delete("resourceclaims", "c")
    body["status"]["reservedFor"] = [CONSUMER, {**CONSUMER, "uid": "2"}]
    assert causes(api.patch("resourceclaims", "c", body, subresource="status")) == ["status.reservedFor"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"selectors": [{"cel": {"expression": "1 + 1"}}]}, "spec.selectors[0].cel.expression"),
        ({"selectors": [{}]}, "spec.selectors[0].cel"),
        ({"extendedResourceName": "cpu"}, "spec.extendedResourceName"),
        ({"config": [{"opaque": {"driver": "d.com", "parameters": {"x": "y" * 10_300}}}]},
         "spec.config[0].opaque.parameters"),
    ],
)  # fmt: skip
def test_a_wrong_class_is_refused_with_its_field(api, spec, field):
    manifest = {"apiVersion": V1, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec}
    assert causes(api.create(manifest)) == [field]


def test_a_good_class_is_kept(api):
    expression = 'device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "H200"'
    spec = {"selectors": [{"cel": {"expression": expression}}], "extendedResourceName": "example.com/gpu"}
    api.made({"apiVersion": V1, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec})
