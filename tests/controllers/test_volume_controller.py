"""Claims are bound, volumes made and taken back; claims of pods are made and kept while in use."""

from __future__ import annotations

from typing import Any

import pytest
from controller_world import Cluster, node, pod

from muster.api import writes
from muster.sim.faults import ROUGH

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
SELECTED = "volume.kubernetes.io/selected-node"


def cluster(**options: Any) -> Cluster:
    return Cluster("volumes", "claims", "collector", "hollow", **options)


def claim(name: str = "c", size: str = "1Gi", modes: tuple[str, ...] = ("ReadWriteOnce",), **spec: Any) -> Json:
    whole = {"accessModes": list(modes), "resources": {"requests": {"storage": size}}, **spec}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": whole}


def volume(name: str, size: str = "1Gi", modes: tuple[str, ...] = ("ReadWriteOnce",), **spec: Any) -> Json:
    labels = spec.pop("labels", {})
    whole = {"accessModes": list(modes), "capacity": {"storage": size}, "hostPath": {"path": "/d"}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "labels": labels}, "spec": whole}


def storage_class(name: str = "fast", *, late: bool = False, default: bool = False, **fields: Any) -> Json:
    notes = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": notes},
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer" if late else "Immediate",
        **fields,
    }


def place(**labels: str) -> Json:
    expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}


def where(found: Json) -> dict[str, list[str]]:
    """The labels that a volume's node affinity asks for."""
    terms = found["spec"].get("nodeAffinity", {}).get("required", {}).get("nodeSelectorTerms", [])
    return {each["key"]: each["values"] for term in terms for each in term["matchExpressions"]}


def bound_to(world: Cluster, name: str = "c") -> str | None:
    """The volume of a claim that says it is bound, where volume and claim agree."""
    found = world.get("persistentvolumeclaims", name)
    assert found is not None
    if found["status"]["phase"] != "Bound":
        return None
    held = world.get("persistentvolumes", found["spec"]["volumeName"])
    assert held is not None
    assert held["spec"]["claimRef"]["uid"] == found["metadata"]["uid"]
    assert held["status"]["phase"] == "Bound"
    assert found["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
    assert found["status"]["capacity"] == held["spec"]["capacity"]
    return str(found["spec"]["volumeName"])


def choose(world: Cluster, name: str, claim_name: str = "c") -> None:
    """What the scheduler does for a claim that waits for its first consumer."""
    world.patch("persistentvolumeclaims", claim_name, {"metadata": {"annotations": {SELECTED: name}}})


# --- binding -----------------------------------------------------------------------------------------------------


def test_a_claim_gets_the_smallest_volume_that_fits() -> None:
    world = cluster()
    world.create(volume("big", "10Gi"), volume("small", "500Mi"), volume("right", "2Gi"))
    world.create(claim(size="1Gi"))
    assert bound_to(world) == "right"
    assert world.status("persistentvolumes", "big")["phase"] == "Available"


@pytest.mark.parametrize(
    ("other", "wanted"),
    [
        ({"storageClassName": "slow"}, {}),
        ({"volumeMode": "Block"}, {}),
        ({}, {"selector": {"matchLabels": {"tier": "gold"}}}),
        ({"claimRef": {"namespace": "default", "name": "another"}}, {}),
        ({}, {"accessModes": ["ReadWriteMany"]}),
    ],
)
def test_a_volume_that_does_not_fit_is_left_alone(other: Json, wanted: Json) -> None:
    world = cluster()
    world.create(volume("pv", "5Gi", **other), claim(storageClassName="", **wanted))
    assert bound_to(world) is None
    assert world.reasons("PersistentVolumeClaim") == ["FailedBinding"]


def test_a_volume_that_comes_later_is_taken_by_one_claim_only() -> None:
    world = cluster()
    world.create(claim("a"), claim("b"))
    world.create(volume("pv"))
    assert sorted(str(bound_to(world, name)) for name in "ab") == ["None", "pv"]


def test_a_volume_and_a_claim_that_name_each_other_are_bound() -> None:
    world = cluster()
    world.create(volume("pv", "5Gi", claimRef={"namespace": "default", "name": "c"}), volume("tight"), claim())
    assert bound_to(world) == "pv"
    world.create(volume("mine", "5Gi"), claim("d", volumeName="mine"))
    assert bound_to(world, "d") == "mine"


def test_a_claim_that_asks_for_the_wrong_volume_waits_and_is_told() -> None:
    world = cluster()
    world.create(volume("pv"), claim(size="2Gi", volumeName="pv"))
    assert bound_to(world) is None
    assert "VolumeMismatch" in world.reasons("PersistentVolumeClaim")


def test_the_fewest_access_modes_are_spent() -> None:
    world = cluster()
    world.create(volume("wide", "1Gi", ("ReadWriteOnce", "ReadOnlyMany")), volume("narrow", "9Gi"))
    world.create(claim())
    assert bound_to(world) == "narrow"


def test_a_claim_whose_volume_is_gone_is_lost() -> None:
    world = cluster()
    world.create(volume("pv"), claim())
    world.delete("persistentvolumes", "pv")
    assert bound_to(world) == "pv"  # kept while it is bound
    world.patch("persistentvolumes", "pv", {"metadata": {"finalizers": None}})
    assert world.status("persistentvolumeclaims", "c")["phase"] == "Lost"


# --- making volumes ----------------------------------------------------------------------------------------------


def test_a_claim_of_an_immediate_class_gets_a_volume_made_for_it() -> None:
    world = cluster()
    world.create(storage_class(default=True), claim(size="3Gi"))
    found = world.get("persistentvolumes", str(bound_to(world)))
    assert found is not None
    assert found["spec"]["csi"]["driver"] == "csi.example.com"
    assert found["spec"]["capacity"] == {"storage": "3Gi"}
    assert found["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
    assert found["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == "csi.example.com"
    assert where(found) == {}
    notes = (world.get("persistentvolumeclaims", "c") or {})["metadata"]["annotations"]
    assert notes["volume.kubernetes.io/storage-provisioner"] == "csi.example.com"


def test_a_class_or_a_default_that_comes_later_is_used() -> None:
    world = cluster()
    world.create(claim(storageClassName="fast"), claim("d"))
    assert (bound_to(world), bound_to(world, "d")) == (None, None)
    world.create(storage_class(default=True))
    assert bound_to(world) and bound_to(world, "d")


@pytest.mark.parametrize(
    ("labels", "csi_keys", "allowed", "expected"),
    [
        ({ZONE: "a", "kubernetes.io/hostname": "n1"}, [], [], {ZONE: ["a"]}),
        ({"kubernetes.io/hostname": "n1"}, [], [], {"kubernetes.io/hostname": ["n1"]}),
        ({ZONE: "a", "rack": "r1"}, ["rack"], [], {"rack": ["r1"]}),
        ({"zone": "b", ZONE: "a"}, [], [("zone", ["b", "c"])], {"zone": ["b"]}),
        ({}, [], [], {}),
    ],
)  # fmt: skip
def test_a_volume_of_a_late_class_is_made_where_its_pod_goes(
    labels: dict[str, str], csi_keys: list[str], allowed: list[tuple[str, list[str]]], expected: Json
) -> None:
    world = cluster()
    terms = [{"matchLabelExpressions": [{"key": key, "values": values} for key, values in allowed]}] if allowed else []
    drivers = [{"name": "csi.example.com", "nodeID": "n1", "topologyKeys": csi_keys}] if csi_keys else []
    csi_node = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n1"}}
    world.create(node(metadata={"name": "n1", "labels": labels}), {**csi_node, "spec": {"drivers": drivers}})
    world.create(storage_class(late=True, allowedTopologies=terms), claim(storageClassName="fast"))
    assert bound_to(world) is None
    assert world.reasons("PersistentVolumeClaim") == ["WaitForFirstConsumer"]
    choose(world, "n1")
    assert where(world.get("persistentvolumes", str(bound_to(world))) or {}) == expected


def test_a_late_class_leaves_free_volumes_to_the_scheduler_which_may_reserve_one() -> None:
    world = cluster()
    world.create(storage_class(late=True, provisioner="kubernetes.io/no-provisioner"))
    world.create(volume("pv", storageClassName="fast"), claim(storageClassName="fast"))
    assert bound_to(world) is None
    uid = (world.get("persistentvolumeclaims", "c") or {})["metadata"]["uid"]
    reference = {"namespace": "default", "name": "c", "uid": uid}
    world.patch("persistentvolumes", "pv", {"spec": {"claimRef": reference}})
    assert bound_to(world) == "pv"


def test_a_chosen_node_gets_only_a_volume_that_it_reaches() -> None:
    world = cluster()
    world.create(node(metadata={"name": "n1", "labels": {"zone": "a"}}), storage_class(late=True))
    world.create(volume("far", storageClassName="fast", nodeAffinity=place(zone="b")), claim(storageClassName="fast"))
    choose(world, "n1")
    assert str(bound_to(world)).startswith("pvc-")


@pytest.mark.parametrize("provisioner", ["csi.example.com", "kubernetes.io/no-provisioner"])
def test_a_choice_of_a_node_that_is_gone_is_taken_back_whatever_the_class(provisioner: str) -> None:
    world = cluster()
    notes = {SELECTED: "n1"}
    wanted = claim(storageClassName="fast")
    world.create(node(metadata={"name": "n2"}), storage_class(late=True, provisioner=provisioner))
    world.create({**wanted, "metadata": {**wanted["metadata"], "annotations": notes}})
    assert SELECTED not in ((world.get("persistentvolumeclaims", "c") or {})["metadata"].get("annotations") or {})
    assert bound_to(world) is None


def test_without_room_the_claim_goes_back_to_the_scheduler_until_there_is_some() -> None:
    world = cluster()
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "csi.example.com"}}
    capacity = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": "a", "namespace": "default"},
        "storageClassName": "fast",
        "nodeTopology": {"matchLabels": {"zone": "a"}},
        "capacity": "1Gi",
    }
    world.create(*(node(metadata={"name": f"n-{zone}", "labels": {"zone": zone}}) for zone in "ab"))
    world.create({**driver, "spec": {"storageCapacity": True}}, capacity, storage_class(late=True))
    world.create(claim(size="2Gi", storageClassName="fast"))
    for name in ("n-a", "n-b", "n-none"):
        choose(world, name)
        assert SELECTED not in (world.get("persistentvolumeclaims", "c") or {})["metadata"]["annotations"]
        assert bound_to(world) is None
    assert world.reasons("PersistentVolumeClaim").count("ProvisioningFailed") == 3
    world.patch("csistoragecapacities", "a", {"capacity": "2Gi"})
    choose(world, "n-a")
    assert bound_to(world)


def test_a_made_volume_goes_with_its_claim_unless_it_is_to_be_retained() -> None:
    world = cluster()
    world.create(storage_class(), storage_class("kept", reclaimPolicy="Retain"))
    world.create(claim(storageClassName="fast"), claim("k", storageClassName="kept"), volume("pv", storageClassName=""))
    world.create(claim("s", storageClassName=""))
    names = [bound_to(world, name) for name in ("c", "k", "s")]
    for name in ("c", "k", "s"):
        world.delete("persistentvolumeclaims", name)
    assert world.all("persistentvolumeclaims") == []
    left = {each["metadata"]["name"]: each["status"]["phase"] for each in world.all("persistentvolumes")}
    assert left == {names[1]: "Released", "pv": "Released"}
    world.create(claim("s", storageClassName=""))
    assert bound_to(world, "s") is None  # a released volume is not for anyone before it is cleaned up


# --- claims of pods ----------------------------------------------------------------------------------------------


def using(name: str, *volumes: Json, on: str | None = None) -> Json:
    return pod(name, on, spec={"volumes": list(volumes)})


TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": claim()["spec"]}
SCRATCH = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": TEMPLATE}}


def test_a_pod_gets_its_ephemeral_claim_and_takes_it_along_when_it_goes() -> None:
    world = cluster()
    world.create(storage_class(default=True), node(), using("p", SCRATCH, on="n1"))
    found = world.get("persistentvolumeclaims", "p-scratch")
    assert found is not None
    assert found["metadata"]["labels"] == {"a": "b"}
    assert [owner["name"] for owner in found["metadata"]["ownerReferences"]] == ["p"]
    assert bound_to(world, "p-scratch")
    world.delete("pods", "p")
    world.advance(60)
    assert world.all("persistentvolumeclaims") == []
    assert world.all("persistentvolumes") == []


def test_an_ephemeral_claim_that_is_deleted_while_its_pod_lives_is_made_again() -> None:
    world = cluster()
    world.create(using("p", SCRATCH))
    before = (world.get("persistentvolumeclaims", "p-scratch") or {})["metadata"]["uid"]
    world.delete("persistentvolumeclaims", "p-scratch")
    after = (world.get("persistentvolumeclaims", "p-scratch") or {})["metadata"]["uid"]
    assert before != after


def test_a_claim_of_the_same_name_that_is_not_the_pods_is_not_touched() -> None:
    world = cluster()
    world.create(claim("p-scratch"), using("p", SCRATCH))
    assert "ownerReferences" not in (world.get("persistentvolumeclaims", "p-scratch") or {})["metadata"]
    assert world.reasons("Pod") == ["FailedBinding"]


def test_a_claim_in_use_stays_until_its_pod_has_ended() -> None:
    world = cluster()
    mounted = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    world.create(volume("pv"), claim(), node(), using("p", mounted, on="n1"), using("waiting", mounted))
    world.delete("persistentvolumeclaims", "c")
    assert "deletionTimestamp" in (world.get("persistentvolumeclaims", "c") or {})["metadata"]
    world.delete("persistentvolumes", "pv")
    assert world.status("persistentvolumes", "pv")["phase"] == "Bound"
    world.delete("pods", "p")
    world.advance(60)
    assert world.get("persistentvolumeclaims", "c") is None
    assert world.get("persistentvolumes", "pv") is None


# --- whatever happens --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", range(12))
def test_late_and_lost_watches_and_restarts_change_nothing_in_the_end(turn: int) -> None:
    world = cluster(seed=turn, rates=ROUGH)
    world.create(storage_class(default=True), node(), *(volume(f"pv{i}", storageClassName="") for i in range(3)))
    for i in range(6):
        world.create(claim(f"made{i}"), claim(f"found{i}", storageClassName=""), using(f"p{i}", SCRATCH, on="n1"))
    for i in range(2):
        assert world.world.call(writes.delete("persistentvolumeclaims", "default", f"made{i}")).ok
    world.advance(120)
    volumes = {each["metadata"]["name"]: each for each in world.all("persistentvolumes")}
    claims = world.all("persistentvolumeclaims")
    held = [each["spec"]["volumeName"] for each in claims if each["status"]["phase"] == "Bound"]
    assert len(held) == len(set(held)) == 4 + 3 + 6
    assert sorted(held) == sorted(volumes)
    for each in claims:
        if each["status"]["phase"] == "Bound":
            assert volumes[each["spec"]["volumeName"]]["spec"]["claimRef"]["uid"] == each["metadata"]["uid"]


# --- drivers of nodes ------------------------------------------------------------------------------------------


def test_a_node_that_names_drivers_gets_a_csi_node_with_their_limits_which_goes_with_it() -> None:
    world = Cluster("drivers")
    notes = {"muster.dev/csi-drivers": "disk.example.com=16, other.example.com,wrong=many"}
    world.create(node(metadata={"name": "n1", "annotations": notes}), node(metadata={"name": "n2"}))
    found = world.get("csinodes", "n1")
    assert found is not None
    limits = {one["name"]: one.get("allocatable") for one in found["spec"]["drivers"]}
    assert limits == {"disk.example.com": {"count": 16}, "other.example.com": None}
    assert world.get("csinodes", "n2") is None
    world.delete("nodes", "n1")
    assert world.get("csinodes", "n1") is None
