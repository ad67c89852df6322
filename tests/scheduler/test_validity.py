"""Hierarchies under the rules of v1.38, and the release that a cluster aims at."""

import pytest

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.api.object import Object
from muster.model import wording
from muster.model.keys import Key
from muster.scheduler.cache import Cache
from muster.scheduler.ingest import Ingest
from muster.scheduler.validity import fault
from muster.sim.cluster import cluster
from muster.testing.builders import composite_manifest, gang_manifest, node_manifest, pod_manifest, workload_ref

GATES = FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
LATER = GATES.aiming_at("1.38")


def composite(name, parent=None, minimum=1, workload="w", **spec):
    link = {"parentCompositePodGroupName": parent} if parent else {}
    return composite_manifest(name, minimum, **link, **{"workloadRef": workload_ref(workload), **spec})


def leaf(name, parent, minimum=1, workload="w", **spec):
    link = {"parentCompositePodGroupName": parent, "workloadRef": workload_ref(workload)}
    return gang_manifest(name, minimum, **link, **spec)


def fault_of(*manifests):
    cache, ingest = Cache(checked=True), Ingest(topology=True)
    for manifest in manifests:
        manifest["metadata"]["uid"] = manifest["metadata"]["name"]
        if manifest["kind"] == "PodGroup":
            cache.put_group(ingest.group(Object(manifest)))
        else:
            cache.put_composite(ingest.composite(Object(manifest)))
    return fault(cache.forest, Key("default", "root"))


ALL, SINGLE = {"disruptionMode": {"all": {}}}, {"disruptionMode": {"single": {}}}


@pytest.mark.parametrize(
    ("manifests", "said"),
    [
        ([leaf("a", "root")], ""),
        ([leaf("a", "root", None)], 'CompositePodGroup "root" is a gang, and its child PodGroup "a" is basic'),
        ([composite("m", "root", None), leaf("a", "m", None)], 'its child CompositePodGroup "m" is basic'),
        ([leaf("a", "root", workload="other")], 'PodGroup "a" "other" (spec.workloadRef.workloadName)'),
        ([composite("m", "root"), composite("n", "m"), leaf("a", "n")], ""),
        ([composite("m", "root"), composite("n", "m"), composite("o", "n")], "hierarchy depth 5 exceeds maximum"),
        (
            [composite("m", "root"), composite("n", "m"), composite("o", "n"), leaf("a", "o")],
            "hierarchy depth 5 exceeds maximum allowed depth 4",
        ),
        (
            [composite(b, a) for a, b in zip(("root", *"mnop"), "mnopq", strict=True)],
            "hierarchy depth 7 exceeds maximum allowed depth 4",
        ),
    ],
)
def test_what_is_wrong_with_a_hierarchy_is_said(manifests, said):
    found = fault_of(composite("root"), *manifests)
    assert said in found and bool(said) == bool(found)


@pytest.mark.parametrize(("above", "below", "wrong"), [(ALL, SINGLE, True), (ALL, ALL, False), (SINGLE, ALL, False)])
def test_mode_all_above_mode_single_is_wrong(above, below, wrong):
    found = fault_of(composite("root", **above), leaf("a", "root", **below))
    assert bool(found) == wrong
    if wrong:
        assert found.endswith('has mode all, and its child PodGroup "a" single (spec.disruptionMode)')


def world_of(gates):
    world = cluster(gates, priority_admission=False)
    for manifest in (
        node_manifest("n1"),
        composite("root", priority=0),
        leaf("a", "root", None, priority=0),
        pod_manifest("p", group="a", priority=0),
    ):
        assert world.call(writes.create(manifest)).ok
    world.quiesce()
    return world


def pod_of(world):
    return world.call(writes.list_all("pods", "default")).body["items"][0]


def test_by_default_a_gang_may_have_basic_children_and_later_it_may_not():
    assert pod_of(world_of(GATES))["spec"]["nodeName"] == "n1"
    world = world_of(LATER)
    (condition,) = pod_of(world)["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "SchedulerError")
    ((entry, diagnosis),) = world.machine().diagnoses.items()
    assert entry.kind.value == "CompositePodGroup"
    assert 'its child PodGroup "a" is basic' in wording.verdict(diagnosis)


@pytest.mark.parametrize(("gates", "ok"), [(GATES, False), (LATER, True)])
def test_the_number_of_groups_may_change_from_the_next_release_on(gates, ok):
    world = cluster(gates, priority_admission=False)
    assert world.call(writes.create(composite("root", minimum=2))).ok

    def patched(policy):
        return world.call(writes.patch("compositepodgroups", "default", "root", {"spec": {"schedulingPolicy": policy}}))

    answer = patched({"gang": {"minGroupCount": 1}})
    assert answer.ok == ok
    if not ok:
        assert "spec.schedulingPolicy" in answer.body["message"]
    swapped = patched({"gang": None, "basic": {}})
    assert swapped.status == 422


def test_an_unknown_target_is_refused_with_those_that_are_known():
    with pytest.raises(ValueError, match=r"unknown target '1.39'; known: 1.37, 1.38"):
        GATES.aiming_at("1.39")
    assert LATER.changed({"NodeDeclaredFeatures": False}).target == "1.38"
