"""What is shown of a hierarchy that waits."""

from __future__ import annotations

import pytest

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.cli.explain import paragraph
from muster.plugins import default_profile
from muster.sim.cluster import cluster
from muster.testing.builders import composite_manifest, gang_manifest, node_manifest, pod_manifest, workload_ref
from muster.views.queue import queue
from muster.views.why import why

GATES = FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")


@pytest.fixture
def waiting():
    world = cluster(GATES, seed=1, priority_admission=False)
    world.request(writes.create(node_manifest("n1", cpu="4")))
    world.request(writes.create(composite_manifest("root", 2, priority=0)))
    for name, cpu in (("small", "1"), ("big", "100")):
        link = {"parentCompositePodGroupName": "root", "workloadRef": workload_ref("w")}
        world.request(writes.create(gang_manifest(name, 2, priority=0, **link)))
        for rank in range(2):
            world.request(writes.create(pod_manifest(f"{name}-{rank}", group=name, cpu=cpu, priority=0)))
    world.quiesce()
    return world.machine()


def test_the_root_a_leaf_and_a_member_are_answered_with_the_hierarchy(waiting):
    asked = (("root", "CompositePodGroup"), ("small", "PodGroup"), ("big-0", "Pod"))
    found = [why(waiting, default_profile(), "default", name, kind) for name, kind in asked]
    assert {(row["kind"], row["name"]) for row in found} == {("CompositePodGroup", "root")}
    assert found[2]["pod"]["sentence"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert [(g["name"], g["depth"], g["satisfied"]) for g in found[0]["groups"]] == [
        ("root", 0, False),
        ("big", 1, False),
        ("small", 1, True),
    ]
    assert "(0/1 nodes are available: 1 Insufficient cpu)" in found[0]["sentence"]


def test_the_paragraph_shows_the_tree(waiting):
    (row,) = queue(waiting, default_profile())
    lines = paragraph(row).splitlines()
    assert any(line.startswith("  CompositePodGroup root: ") for line in lines)
    assert any(line.startswith('    PodGroup small: parent composite pod group "root" is') for line in lines)
