"""The way of pods with claims for devices, in a cluster with its controllers: what is written, what can go wrong."""

from __future__ import annotations

from typing import Any

from muster.api import writes
from muster.api.calls import Request
from muster.api.gates import FeatureGates
from muster.api.instant import MINUTE, SECOND
from muster.sim.allocations import DRIVER, GATES, RESOURCE, asking, resource
from muster.sim.cluster import cluster
from muster.sim.world import SCHEDULER, World
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest


class Place:
    """A cluster, and every request that its scheduler makes."""

    def __init__(self, gates: FeatureGates = GATES) -> None:
        self.world: World = cluster(gates, priority_admission=False, volumes=False, apps=False)
        self.asked: list[Request] = []
        self.world.overhear = self._overhear
        selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
        self.create(resource("DeviceClass", "gpu", selectors=selectors, extendedResourceName=RESOURCE))

    def _overhear(self, name: str, event: object, effects: Any) -> None:
        if name == SCHEDULER:
            self.asked += [effect.request for effect in effects if hasattr(effect, "request")]

    def create(self, *manifests: dict[str, Any]) -> None:
        for manifest in manifests:
            answer = self.world.call(writes.create(manifest))
            assert answer.ok, answer

    def node(self, name: str, *devices: dict[str, Any], **fields: Any) -> None:
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "pool": pool, "nodeName": name, "devices": list(devices)}
        self.create(node_manifest(name, **fields), resource("ResourceSlice", f"slice-{name}", **spec))

    def get(self, plural: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.world.call(writes.get(plural, "default", name)).body
        return found

    def status(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get("resourceclaims", name).get("status") or {}
        return found

    def patch(self, plural: str, name: str, **status: Any) -> None:
        assert self.world.call(writes.patch_status(plural, "default", name, status)).ok

    def settle(self, seconds: int = 5) -> None:
        self.world.advance(seconds * SECOND)

    def at(self, pod: str) -> str:
        return str(self.get("pods", pod)["spec"].get("nodeName") or "")

    def why(self, pod: str) -> str:
        conditions = self.get("pods", pod)["status"]["conditions"]
        return str(next(c["message"] for c in conditions if c["type"] == "PodScheduled"))

    def writes_to(self, claim: str) -> list[str]:
        return [r.path.rpartition("/")[2] for r in self.asked if f"/resourceclaims/{claim}" in r.path]


def pod(name: str, claim: str, **more: Any) -> dict[str, Any]:
    return pod_manifest(name, resourceClaims=[{"name": "g", "resourceClaimName": claim}], **more)


def claim(name: str, count: int = 1, **more: Any) -> dict[str, Any]:
    return resource("ResourceClaim", name, **asking(count, **more))


def test_a_claim_that_a_gang_shares_is_written_once_for_all_its_pods() -> None:
    place = Place()
    place.node("n1", {"name": "g0"})
    place.create(claim("c"), gang_manifest("g", 3), *(pod(f"g-{i}", "c", group="g") for i in range(3)))
    place.settle()
    assert [place.at(f"g-{i}") for i in range(3)] == ["n1"] * 3
    assert sorted(user["name"] for user in place.status("c")["reservedFor"]) == ["g-0", "g-1", "g-2"]
    assert place.writes_to("c") == ["c", "status"], "the finalizer, and one write for allocation and reservations"


def test_the_allocation_says_from_where_it_can_be_used_and_what_it_is() -> None:
    place = Place()
    place.node("n1", {"name": "g0", "taints": [{"key": "x", "effect": "NoSchedule"}]})
    tolerations = [{"key": "x", "operator": "Exists"}]
    place.create(claim("c", tolerations=tolerations), pod("p", "c"))
    place.settle()
    allocation = place.status("c")["allocation"]
    result = allocation["devices"]["results"][0]
    assert (result["request"], result["pool"], result["device"]) == ("gpu", "n1", "g0")
    assert result["tolerations"] == tolerations
    (term,) = allocation["nodeSelector"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}


def test_a_pod_is_bound_once_the_driver_says_that_its_device_is_ready() -> None:
    place = Place()
    place.node("n1", {"name": "g0", "bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]})
    place.create(claim("c"), pod("p", "c"))
    place.settle(30)
    assert place.at("p") == "", "allocated, and not ready"
    assert place.status("c")["allocation"]
    device = {"driver": DRIVER, "pool": "n1", "device": "g0"}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    place.patch("resourceclaims", "c", devices=[{**device, "conditions": [ready]}])
    place.settle()
    assert place.at("p") == "n1"


def test_a_device_that_cannot_be_made_ready_is_given_back() -> None:
    place = Place()
    place.node("n1", {"name": "g0", "bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]})
    place.create(claim("c"), pod("p", "c"))
    place.settle()
    device = {"driver": DRIVER, "pool": "n1", "device": "g0"}
    broken = {
        "type": "Broken",
        "status": "True",
        "reason": "",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    place.patch("resourceclaims", "c", devices=[{**device, "conditions": [broken]}])
    place.world.quiesce()
    assert "cannot be made ready" in place.why("p")
    assert place.at("p") == ""


def test_a_pod_does_not_wait_for_its_device_forever() -> None:
    place = Place()
    place.node("n1", {"name": "g0", "bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]})
    place.create(claim("c"), pod("p", "c"))
    place.settle()
    place.world.call(writes.patch("nodes", "", "n1", {"spec": {"unschedulable": True}}))
    place.world.advance(11 * MINUTE)
    assert place.at("p") == ""
    assert place.status("c") == {}, "neither allocated nor reserved"


def test_an_allocation_that_keeps_a_pod_from_every_node_is_given_up() -> None:
    place = Place()
    place.node("n1", {"name": "g0"}, cpu="2")
    place.create(claim("c"), pod("first", "c", cpu="1"))
    place.settle()
    assert place.at("first") == "n1"
    place.create(pod_manifest("fills", cpu="1", nodeName="n1"))
    place.node("n2", {"name": "g0"})
    here = {"driver": DRIVER, "pool": "n1", "device": "g0", "request": "gpu"}
    only = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}
    place.world.call(writes.delete("pods", "default", "first"))
    place.settle()
    place.create(claim("kept"), pod_manifest("more", cpu="1", nodeName="n1"))
    place.patch("resourceclaims", "kept", allocation={"devices": {"results": [here]}, "nodeSelector": only})
    place.create(pod("second", "kept", cpu="1"))
    place.settle(30)
    assert place.at("second") == "n2"
    assert place.status("kept")["allocation"]["devices"]["results"][0]["pool"] == "n2"


def test_the_claim_for_an_extended_resource_names_what_each_container_asked_for() -> None:
    place = Place()
    place.node("n1", {"name": "g0"}, {"name": "g1"})
    place.create(pod_manifest("p", more={RESOURCE: "2"}))
    place.settle()
    assert place.at("p") == "n1"
    told = place.get("pods", "p")["status"]["extendedResourceClaimStatus"]
    mapping = {"containerName": "main", "resourceName": RESOURCE, "requestName": "container-0-request-0"}
    assert told["requestMappings"] == [mapping]
    made = place.get("resourceclaims", told["resourceClaimName"])
    assert made["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert len(made["status"]["allocation"]["devices"]["results"]) == 2
    place.world.call(writes.delete("pods", "default", "p"))
    place.settle()
    assert place.get("resourceclaims", told["resourceClaimName"])["code"] == 404


def test_parts_of_a_shared_device_are_told_apart() -> None:
    place = Place()
    policy = {"default": "1", "validRange": {"min": "1"}}
    parts = {"capacity": {"parts": {"value": "2", "requestPolicy": policy}}, "allowMultipleAllocations": True}
    place.node("n1", {"name": "g0", **parts})
    place.create(*(claim(f"c{i}") for i in range(3)), *(pod(f"p{i}", f"c{i}") for i in range(3)))
    place.settle()
    assert sorted(place.at(f"p{i}") for i in range(3)) == ["", "n1", "n1"]
    given = [r for i in range(3) if (a := place.status(f"c{i}").get("allocation")) for r in a["devices"]["results"]]
    assert len({result["shareID"] for result in given}) == 2
    assert [result["consumedCapacity"] for result in given] == [{"parts": "1"}] * 2


def test_members_beyond_what_a_claim_can_be_reserved_for_wait_and_the_others_run() -> None:
    place = Place(FeatureGates.of("GenericWorkload"))
    place.node("n1", {"name": "g0"}, cpu="500", pods=500)
    place.create(claim("c"), gang_manifest("g", None))
    place.create(*(pod(f"g-{i:03}", "c", group="g", cpu="1") for i in range(260)))
    place.settle(20)
    running = [i for i in range(260) if place.at(f"g-{i:03}")]
    assert len(running) == 256
