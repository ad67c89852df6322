"""Fleets from a short shape."""

from __future__ import annotations

from collections import Counter

import pytest
from controller_world import Cluster

from muster.controllers.fleet import GPU, HOSTNAME, RACK, ZONE, Shape, node_manifests


def test_a_fleet_has_its_zones_racks_and_nodes_with_accelerators():
    nodes = node_manifests(Shape(zones=2, racks=8, nodes=16, gpus=8))
    labels = [each["metadata"]["labels"] for each in nodes]
    assert len(nodes) == len({each["metadata"]["name"] for each in nodes}) == 256
    assert Counter(each[ZONE] for each in labels) == {"z1": 128, "z2": 128}
    assert set(Counter(each[RACK] for each in labels).values()) == {16}
    assert all(each[RACK].startswith(each[ZONE]) for each in labels)
    assert all(each["metadata"]["labels"][HOSTNAME] == each["metadata"]["name"] for each in nodes)
    assert {each["status"]["allocatable"][GPU] for each in nodes} == {"8"}


def test_the_server_takes_the_nodes_as_they_are():
    cluster = Cluster("nodes")
    cluster.create(*node_manifests(Shape(racks=2, nodes=2, gpus=4, cpu="500m", memory="1Gi", pods=20)))
    assert [each["status"]["capacity"] for each in cluster.all("nodes")] == 4 * [
        {"cpu": "500m", "memory": "1Gi", "pods": "20", GPU: "4"}
    ]
    assert not any(each.get("spec", {}).get("taints") for each in cluster.all("nodes"))


def test_nodes_without_accelerators_do_not_mention_them():
    (only,) = node_manifests(Shape())
    assert GPU not in only["status"]["capacity"]


@pytest.mark.parametrize(
    ("shape", "field"),
    [
        ({"zones": 0}, "zones"),
        ({"racks": -1}, "racks"),
        ({"nodes": 0}, "nodes"),
        ({"gpus": -1}, "gpus"),
        ({"pods": 0}, "pods"),
        ({"nodes": True}, "nodes"),
        ({"cpu": "many"}, "cpu"),
        ({"memory": "-1Gi"}, "memory"),
        ({"zones": 1000, "racks": 1000, "nodes": 1000}, "zones x racks x nodes"),
    ],
)
def test_an_impossible_shape_is_refused_by_name(shape, field):
    with pytest.raises(ValueError, match=f"^{field}"):
        Shape(**shape)


def test_nodes_say_what_kubectl_shows_of_them():
    (only,) = node_manifests(Shape(), "2026-01-01T00:00:00Z")
    assert only["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.37")
    assert only["status"]["addresses"] == [{"type": "Hostname", "address": "z1-r1-n1"}]
    (ready,) = only["status"]["conditions"]
    assert ready["lastHeartbeatTime"] == ready["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert "lastHeartbeatTime" not in node_manifests(Shape())[0]["status"]["conditions"][0]
