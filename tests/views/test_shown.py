"""The parts of a diagnosis as data."""

import json

import pytest

from muster.api.gates import FeatureGates
from muster.plugins import default_profile
from muster.testing.builders import (
    composite_manifest,
    gang_manifest,
    node_manifest,
    pod_manifest,
    workload_ref,
)
from muster.views.why import why
from synchronous import Driver

PROFILE = default_profile()
GATES = FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
RACK = "topology.muster.dev/rack"
CONSTRAINT = {"schedulingConstraints": {"topology": [{"key": RACK}]}}


@pytest.fixture
def driver() -> Driver:
    driver = Driver(gates=GATES)
    for rack in ("r1", "r2"):
        driver.create(*(node_manifest(f"{rack}-{n}", gpus=4, labels={RACK: rack}) for n in (1, 2)))
    return driver


def asked(driver, name, kind="PodGroup"):
    found = why(driver.scheduler, PROFILE, "default", name, kind)
    assert json.loads(json.dumps(found)) == found
    return found


def test_the_nearest_domain_has_its_label_and_what_it_lacks(driver):
    driver.create(pod_manifest("x", gpus=1, nodeName="r1-1"))
    pods = [pod_manifest(f"g-{n}", group="g", gpus=1) for n in range(10)]
    driver.create(gang_manifest("g", 10, **CONSTRAINT), *pods)
    domain = asked(driver, "g")["domain"]
    assert (domain["key"], domain["value"], domain["looked"]) == (RACK, "r2", 2)
    assert (domain["holds"], domain["short"], domain["others"]) == (8, 2, {"r1": 3})
    assert domain["lacks"] == {"resource": "nvidia.com/gpu", "lacking": 2, "where": "rack r2", "nodes": 2}


def test_every_kind_of_missing_members_is_told(driver):
    heads = [pod_manifest("h", group="g", gpus=5), pod_manifest("s", group="g", cpu="1000")]
    driver.create(gang_manifest("g", 5), *heads, *(pod_manifest(f"w-{n}", group="g", gpus=9) for n in range(3)))
    found = asked(driver, "g")
    assert [(lack["pod"], lack["pods"]) for lack in found["lacks"]] == [("w-0", 3), ("h", 1), ("s", 1)]
    assert found["lacks"][2]["shortfall"]["resource"] == "cpu"
    assert found["domain"] is None


def test_the_path_leads_to_the_first_group_that_fails_by_itself(driver):
    parent = {"workloadRef": workload_ref("w")}
    driver.create(composite_manifest("root", 2), composite_manifest("sub", 2, parentCompositePodGroupName="root"))
    for name, above, gpus in (("ok", "root", 1), ("a", "sub", 1), ("b", "sub", 9)):
        driver.create(
            gang_manifest(name, 1, parentCompositePodGroupName=above, **parent),
            pod_manifest(f"{name}-0", group=name, gpus=gpus),
        )
    found = asked(driver, "root", "CompositePodGroup")
    assert [step["name"] for step in found["path"]] == ["root", "sub", "b"]
    assert found["path"][-1]["kind"] == "PodGroup"
    reasons = {group["name"]: group["reasons"] for group in found["groups"]}
    assert reasons["b"][0]["reason"] == "INSUFFICIENT"


def test_a_leaf_of_a_hierarchy_speaks_of_the_nodes_of_its_domain(driver):
    driver.create(composite_manifest("root", 1))
    driver.create(
        gang_manifest("leaf", 3, parentCompositePodGroupName="root", workloadRef=workload_ref("w"), **CONSTRAINT),
        *(pod_manifest(f"leaf-{n}", group="leaf", gpus=4) for n in range(3)),
    )
    found = asked(driver, "root", "CompositePodGroup")
    assert "it needs 3 members in one rack, 2 can be placed in rack r1 (0/2 nodes are available" in found["sentence"]
    assert found["remedies"] == ["lower minCount of leaf to 2", "add 1 node like r1-1 in rack r1"]
    assert found["groups"][1]["domain"] == {"key": RACK, "value": "r1"}
