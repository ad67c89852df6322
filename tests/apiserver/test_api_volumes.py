"""Volumes at the server: discovery, scopes, short names, the default class, statuses, strategic patches."""

from __future__ import annotations

from typing import Any

from muster.api import writes
from muster.api.calls import STRATEGIC_PATCH, Request
from muster.api.catalog import named
from muster.api.gates import FeatureGates
from muster.apiserver.server import ApiServer

Json = dict[str, Any]


class Served:
    """A server of its own, one second older with every call."""

    def __init__(self) -> None:
        uids = iter(range(1, 1000))
        self.server = ApiServer(FeatureGates(), new_uid=lambda: f"{next(uids):08x}-0000-4000-8000-000000000000")
        self.now = 0

    def __call__(self, request: Request) -> Any:
        self.now += 1_000_000
        return self.server.handle(request, self.now)

    def create(self, manifest: Json) -> Json:
        answer = self(writes.create(manifest))
        assert answer.ok, answer.body
        return dict(answer.body)


def claim(name: str = "c", **spec: Any) -> Json:
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": whole}


def storage_class(name: str, *, default: bool = True) -> Json:
    notes = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    meta = {"name": name, "annotations": notes}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": meta, "provisioner": "example.com/d"}


def test_the_kinds_of_storage_are_discovered_in_their_scopes() -> None:
    served = Served()
    found = served(Request("GET", "/apis/storage.k8s.io/v1")).body["resources"]
    scopes = {entry["name"]: entry["namespaced"] for entry in found}
    assert scopes == {
        "storageclasses": False,
        "csinodes": False,
        "csidrivers": False,
        "csistoragecapacities": True,
        "volumeattachments": False,
        "volumeattachments/status": False,
    }
    core = {entry["name"]: entry for entry in served(Request("GET", "/api/v1")).body["resources"]}
    assert core["persistentvolumeclaims"]["shortNames"] == ["pvc"]
    assert core["persistentvolumes"]["shortNames"] == ["pv"]
    assert (core["persistentvolumes"]["namespaced"], core["persistentvolumeclaims"]["namespaced"]) == (False, True)
    assert [named(short).kind for short in ("pv", "pvc", "sc")] == [
        "PersistentVolume", "PersistentVolumeClaim", "StorageClass",
    ]  # fmt: skip


def test_a_claim_without_a_class_gets_the_newest_default_and_one_with_an_empty_name_gets_none() -> None:
    served = Served()
    assert "storageClassName" not in served.create(claim("before"))["spec"]
    for name in ("old", "new"):
        served.create(storage_class(name))
    served.create(storage_class("newest", default=False))
    assert served.create(claim("one"))["spec"]["storageClassName"] == "new"
    assert served.create(claim("none", storageClassName=""))["spec"]["storageClassName"] == ""
    assert served.create(claim("own", storageClassName="old"))["spec"]["storageClassName"] == "old"


def test_a_claim_is_pending_at_first_and_its_status_is_written_beside_its_spec() -> None:
    served = Served()
    assert served.create({**claim(), "status": {"phase": "Bound"}})["status"] == {"phase": "Pending"}
    answer = served(writes.patch_status("pvc", "default", "c", {"phase": "Bound", "capacity": {"storage": "1Gi"}}))
    assert answer.body["status"] == {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    assert answer.body["spec"]["resources"]["requests"] == {"storage": "1Gi"}
    answer = served(writes.patch("pvc", "default", "c", {"status": {"phase": "Lost"}}))
    assert answer.body["status"]["phase"] == "Bound"


def test_a_volume_is_kept_from_becoming_another_and_says_so_at_the_field() -> None:
    served = Served()
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}
    served.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": spec})
    answer = served(writes.patch("pv", "", "pv", {"spec": {"hostPath": {"path": "/b"}}}))
    assert answer.status == 422
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == ["spec.persistentvolumesource"]
    answer = served(writes.patch("pv", "", "pv", {"spec": {"claimRef": {"namespace": "default", "name": "c"}}}))
    assert answer.body["spec"]["claimRef"] == {
        "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "default", "name": "c",
    }  # fmt: skip


def test_drivers_of_a_csi_node_are_merged_by_name() -> None:
    served = Served()
    node = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n"}}
    served.create({**node, "spec": {"drivers": [{"name": "a", "nodeID": "1"}]}})
    body = {"spec": {"drivers": [{"name": "b", "nodeID": "2"}]}}
    answer = served(writes.patch("csinodes", "", "n", body, STRATEGIC_PATCH))
    assert sorted(driver["name"] for driver in answer.body["spec"]["drivers"]) == ["a", "b"]


def test_a_misspelt_field_of_a_claim_is_refused_when_validation_is_strict() -> None:
    request = writes.create(claim(storageClass="x"))
    answer = Served()(Request(request.method, request.path, {"fieldValidation": "Strict"}, request.body))
    assert answer.status == 400
    assert "spec.storageClass" in answer.body["message"]
