"""The made-up cluster is like a real one, and everything the shapes want to place has room in it."""

import pytest

from muster.bench import fleet, shapes
from muster.testing.builders import GPU


def test_nodes_have_unique_names_racks_of_sixteen_and_a_few_taints():
    nodes = fleet.nodes(200)
    racks = [node["metadata"]["labels"]["topology.muster.dev/rack"] for node in nodes]
    assert len({node["metadata"]["name"] for node in nodes}) == 200
    assert {racks.count(rack) for rack in racks[:192]} == {16}
    assert sum("taints" in node["spec"] for node in nodes) == 4
    assert len(list(fleet.usable(200))) == 196


def test_numbers_shrink_with_the_cluster_and_never_to_nothing():
    assert [fleet.scaled(1_000, nodes) for nodes in (1, 50, 5_000, 20_000)] == [1, 10, 1_000, 1_000]


def test_pods_carry_what_a_controller_and_admission_add():
    spec = fleet.pod("p", "app", gpus=1)["spec"]
    assert spec["restartPolicy"] == "Always"
    assert {toleration["tolerationSeconds"] for toleration in spec["tolerations"]} == {300}
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "4Gi", GPU: "1"}


def test_a_mixed_gang_has_five_roles_and_needs_all_its_members():
    gang, *members = fleet.mixed_gang("g", 4)
    assert gang["spec"]["schedulingPolicy"]["gang"]["minCount"] == len(members) == 20
    assert len({str(member["spec"]["containers"][0]["resources"]) for member in members}) == 5


def test_large_racks_are_fifty_and_hold_a_constrained_gang():
    nodes = fleet.nodes(5_000, fleet.per_large_rack(5_000))
    assert len({node["metadata"]["labels"][fleet.RACK] for node in nodes}) == 50
    group, *members = fleet.racked_gang("g", 4, gpus=4)
    assert group["spec"]["schedulingConstraints"] == {"topology": [{"key": fleet.RACK}]}
    assert len(members) == 4
    assert fleet.per_large_rack(50) == 4


@pytest.mark.parametrize("nodes", [50, 5_000])
def test_large_gangs_leave_some_room(nodes):
    pods = sum(len(gang) - 1 for gang in shapes.large_gangs(nodes))
    assert pods * 4 <= len(list(fleet.usable(nodes))) * fleet.GPUS
