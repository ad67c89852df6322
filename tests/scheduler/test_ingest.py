from __future__ import annotations

import pytest

from muster.api.object import Object
from muster.model.devices import DeviceUse
from muster.model.records import HostPort, Phase, Policy, Requirement, Taint, Term
from muster.model.volumes import WHOLE, ClaimUse, Disk, PodVolumes
from muster.scheduler.ingest import Ingest, Malformed
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest


def stored(manifest, **meta):
    manifest["metadata"] |= {"uid": "u1", "creationTimestamp": "2026-01-01T00:00:07Z", "generation": 3, **meta}
    manifest["metadata"].setdefault("namespace", "default")
    return Object(manifest)


def test_pods_that_differ_only_in_name_and_environment_share_one_class():
    ingest, first, second = Ingest(), pod_manifest("a", gpus=2), pod_manifest("b", gpus=2)
    second["spec"]["containers"][0]["env"] = [{"name": "RANK", "value": "1"}]
    assert ingest.pod(stored(first)).cls is ingest.pod(stored(second)).cls


def test_requests_are_in_model_units_and_count_the_pod_itself():
    record = Ingest().pod(stored(pod_manifest("a", cpu="1500m", memory="1Gi", gpus=2)))
    assert dict(record.cls.requests) == {"pods": 1, "cpu": 1500, "memory": 1 << 30, "nvidia.com/gpu": 2}


def test_a_pod_tells_its_phase_node_group_and_age():
    ingest = Ingest()
    manifest = pod_manifest("a", group="g", nodeName="n1")
    record = ingest.pod(stored(manifest))
    assert (record.phase, record.node, record.group, record.generation) == (Phase.BOUND, "n1", "g", 3)
    assert record.usage == record.cls.requests
    assert record.created == 1_767_225_607_000_000
    ended = ingest.pod(stored({**manifest, "status": {"phase": "Succeeded"}}))
    assert (ended.phase, ended.holds_room) == (Phase.SUCCEEDED, False)


def test_without_the_gate_a_group_is_not_looked_at():
    assert Ingest(groups=False).pod(stored(pod_manifest("a", group="g"))).group is None


def test_a_resized_pod_takes_the_largest_of_its_amounts():
    manifest = pod_manifest("a", cpu="1", nodeName="n1")
    told = {"name": "main", "allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "2"}}}
    manifest["status"] = {"phase": "Running", "containerStatuses": [told]}
    assert dict(Ingest().pod(stored(manifest)).usage)["cpu"] == 3000


def test_where_a_pod_may_run_is_read_from_its_affinity():
    expression = {"key": "zone", "operator": "In", "values": ["a"]}
    by_name = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    terms = [{"matchExpressions": [expression]}, {"matchFields": [by_name]}, {}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    cls = Ingest().pod(stored(pod_manifest("a", affinity=affinity))).cls
    assert cls.required == (
        Term((Requirement("zone", "In", ("a",)),)),
        Term((Requirement(None, "In", ("n1",)),)),
        Term(()),
    )


def test_host_ports_come_with_protocol_and_address():
    assert Ingest().pod(stored(pod_manifest("a", ports=[80]))).cls.host_ports == (HostPort("TCP", 80, "0.0.0.0"),)


def test_of_a_pod_its_claims_for_devices_are_known_by_entry_and_source():
    record = Ingest().pod(stored(pod_manifest("a", resourceClaims=[{"name": "g", "resourceClaimName": "c"}])))
    assert (record.devices, record.cls.devices) == ((DeviceUse("g", "c"),), True)


def test_volumes_that_every_node_has_are_of_no_interest():
    record = Ingest().pod(stored(pod_manifest("a", volumes=[{"name": "v", "emptyDir": {}}])))
    assert (record.volumes, record.cls.stores) == (None, False)


def test_of_a_pod_its_claims_are_known_by_name_and_its_disks_by_what_it_takes_of_them():
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "disk", "gcePersistentDisk": {"pdName": "d", "readOnly": True}},
        {"name": "far", "rbd": {"monitors": ["m1", "m2"], "image": "i", "pool": "p"}},
    ]
    record = Ingest().pod(stored(pod_manifest("a", volumes=volumes)))
    assert record.volumes == PodVolumes(
        (ClaimUse("c"), ClaimUse("a-scratch", ephemeral=True)),
        ((Disk("GCE", "d"), 1), (Disk("RBD", "m1/p/i"), WHOLE), (Disk("RBD", "m2/p/i"), WHOLE)),
    )
    assert record.cls.stores


@pytest.mark.parametrize(
    "spoil",
    [
        lambda spec: spec["containers"][0]["resources"].update(requests={"cpu": "many"}),
        lambda spec: spec.update(tolerations=[{"key": 7}]),
        lambda spec: spec.update(priority="high"),
        lambda spec: spec.update(containers="none"),
    ],
)
def test_a_pod_with_a_wrong_field_is_malformed_and_nothing_worse(spoil):
    manifest = pod_manifest("a")
    spoil(manifest["spec"])
    with pytest.raises(Malformed):
        Ingest().pod(stored(manifest))


def test_a_node_is_read_with_its_taints_images_and_whole_amounts():
    manifest = node_manifest("n1", cpu="4", gpus=8, taints=[{"key": "k", "effect": "NoSchedule"}], unschedulable=True)
    manifest["status"]["images"] = [{"names": ["repo/image"], "sizeBytes": 5}]
    record = Ingest().node(stored(manifest))
    assert dict(record.allocatable)["cpu"] == 4000
    assert (record.taints, record.unschedulable) == ((Taint("k", "", "NoSchedule"),), True)
    assert record.images == {"repo/image:latest": 5}


@pytest.mark.parametrize("cordoned", [False, True])
def test_the_taint_that_copies_a_cordon_counts_as_the_cordon(cordoned):
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    record = Ingest().node(stored(node_manifest("n1", taints=[taint], unschedulable=cordoned)))
    assert (record.taints, record.unschedulable) == ((), True)


def test_a_group_is_read_with_its_policy_and_whether_it_was_scheduled():
    manifest = gang_manifest("g", 4, priority=7)
    manifest["status"] = {"conditions": [{"type": "PodGroupInitiallyScheduled", "status": "True"}]}
    record = Ingest().group(stored(manifest))
    assert (record.policy, record.min_count, record.priority, record.scheduled) == (Policy.GANG, 4, 7, True)
    assert Ingest().group(stored(gang_manifest("b", None))).policy is Policy.BASIC


@pytest.mark.parametrize("topology", [False, True])
def test_a_topology_constraint_counts_only_with_its_gate(topology):
    manifest = gang_manifest("g", 2, schedulingConstraints={"topology": [{"key": "rack"}]})
    assert Ingest(topology=topology).group(stored(manifest)).topology_key == ("rack" if topology else None)


def test_a_group_without_any_policy_is_malformed():
    manifest = gang_manifest("g", 2)
    manifest["spec"]["schedulingPolicy"] = {}
    with pytest.raises(Malformed, match="neither basic nor gang"):
        Ingest().group(stored(manifest))
