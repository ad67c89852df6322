"""The way of pods with claims: from the choice of volumes over their binding to the node, and what can come between."""

from __future__ import annotations

from muster.api.gates import FeatureGates
from muster.api.machine import ADDED
from muster.model import wording
from muster.model.keys import Key
from muster.scheduler.cache import Cache
from muster.testing.builders import composite_manifest, gang_manifest, node_manifest, pod_manifest, workload_ref
from synchronous import GENERIC, Driver

SELECTED = "volume.kubernetes.io/selected-node"


def storage_class(name="late", provisioner="example.com/disk", mode="WaitForFirstConsumer", **more):
    meta = {"metadata": {"name": name}}
    return {"kind": "StorageClass", "provisioner": provisioner, "volumeBindingMode": mode, **meta, **more}


def claim(name, class_name="late", size="1Gi", modes=("ReadWriteOnce",)):
    spec = {"accessModes": [*modes], "storageClassName": class_name, "resources": {"requests": {"storage": size}}}
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def volume(name, node=None, class_name="late", size="1Gi", **more):
    spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": class_name, **more}
    if node:
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}


def pod(name, *claims, **more):
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    return pod_manifest(name, volumes=volumes, **more)


def bind(driver, name, to):
    """What the volume controller does once a claim has its volume."""

    def edit(raw):
        raw["metadata"].setdefault("annotations", {})["pv.kubernetes.io/bind-completed"] = "yes"
        raw["spec"]["volumeName"] = to

    driver.change("PersistentVolumeClaim", name, edit)


def selected(driver, name):
    raw = driver.objects["persistentvolumeclaims"][("default", name)]
    return raw["metadata"].get("annotations", {}).get(SELECTED)


def reserved(driver):
    """Volume -> the claim that it names."""
    volumes = driver.objects["persistentvolumes"].values()
    return {raw["metadata"]["name"]: raw["spec"]["claimRef"]["name"] for raw in volumes if "claimRef" in raw["spec"]}


def message(driver, name):
    return driver.condition("Pod", name)["message"]


def made(driver, name, to, node):
    """A provisioner has made a volume for a claim, and it is bound."""
    driver.create(volume(to, node, claimRef={"namespace": "default", "name": name}))
    bind(driver, name, to)


def waiting():
    driver = Driver()
    driver.create(node_manifest("n1"), storage_class(), claim("c"), pod("p", "c"))
    return driver


def test_a_volume_is_made_for_the_node_that_was_chosen_and_the_pod_bound_once_it_is_there():
    driver = waiting()
    assert (driver.bound(), selected(driver, "c")) == (set(), "n1")
    told = wording.verdict(driver.scheduler.diagnoses[driver.pod("p")])
    assert told == 'Pod default/p waits: persistentvolumeclaim "c" is not bound yet, for node n1.'
    made(driver, "c", "made", "n1")
    assert driver.nodes_of("p") == ["n1"]
    assert not driver.scheduler.cache.stock.chosen
    assert not driver.scheduler.diagnoses


def test_a_free_volume_is_reserved_and_the_smallest_that_does_is_taken():
    driver = Driver()
    volumes = (volume("large", "n1", size="9Gi"), volume("small", "n1", size="2Gi"), volume("other", "n1", "x"))
    driver.create(node_manifest("n1"), storage_class(provisioner="kubernetes.io/no-provisioner"), *volumes)
    driver.create(claim("c"), pod("p", "c"))
    assert (driver.bound(), reserved(driver), selected(driver, "c")) == (set(), {"small": "c"}, None)
    bind(driver, "c", "small")
    assert driver.nodes_of("p") == ["n1"]


def test_pods_decided_together_do_not_get_the_same_volume():
    driver = Driver()
    driver.create(node_manifest("n1"), storage_class(provisioner="kubernetes.io/no-provisioner"))
    driver.scheduler.paused = True
    driver.create(volume("v1", "n1"), volume("v2", "n1"), *(claim(f"c{i}") for i in range(3)))
    for i in range(3):
        driver.put(pod(f"p{i}", f"c{i}"), ADDED)
    driver.run()
    driver.scheduler.paused = False
    driver.create(node_manifest("full", cpu="0"))
    assert sorted(reserved(driver)) == ["v1", "v2"]
    assert len(set(reserved(driver).values())) == 2
    left = next(f"p{i}" for i in range(3) if f"c{i}" not in reserved(driver).values())
    assert "didn't find available persistent volumes to bind" in message(driver, left)


def test_claims_that_are_not_bound_in_time_give_the_room_back_and_the_pod_tries_again():
    driver = waiting()
    driver.advance(599)
    assert driver.scheduler.commit.claiming
    before = driver.decisions
    driver.advance(1.5)
    assert not driver.scheduler.cache.assumed
    driver.advance(15)
    assert driver.decisions > before
    assert driver.scheduler.commit.claiming
    made(driver, "c", "made", "n1")
    assert driver.bound() == {"p"}


def test_a_scheduler_that_died_before_the_volume_was_made_is_followed_by_one_that_goes_on_there():
    driver = waiting()
    driver.create(node_manifest("n2", cpu="640"))
    driver.restart()
    assert selected(driver, "c") == "n1"
    assert driver.scheduler.commit.claiming
    made(driver, "c", "made", "n1")
    assert driver.nodes_of("p") == ["n1"]


def test_a_scheduler_that_died_after_it_reserved_a_volume_is_followed_by_one_that_keeps_it():
    driver = Driver()
    driver.create(node_manifest("n1"), storage_class(provisioner="kubernetes.io/no-provisioner"))
    driver.create(volume("v2", "n1", size="2Gi"), claim("c"), pod("p", "c"))
    driver.create(volume("v1", "n1"))
    driver.restart()
    assert reserved(driver) == {"v2": "c"}
    bind(driver, "c", "v2")
    assert driver.bound() == {"p"}


def test_a_restart_while_claims_are_waited_for_knows_the_same():
    driver = waiting()
    old = driver.scheduler.cache
    driver.restart()
    assert isinstance(old, Cache) and old == driver.scheduler.cache


def test_a_provisioner_that_gives_the_claim_back_lets_the_pod_go_elsewhere():
    driver = waiting()
    driver.create(node_manifest("n2"))
    driver.change("Node", "n1", lambda raw: raw["spec"].update(unschedulable=True))
    driver.change("PersistentVolumeClaim", "c", lambda raw: raw["metadata"]["annotations"].pop(SELECTED))
    assert not driver.scheduler.commit.claiming
    driver.advance(2)
    assert selected(driver, "c") == "n2"


def test_a_claim_that_is_deleted_while_it_is_waited_for_is_waited_for_anew():
    driver = waiting()
    driver.delete("PersistentVolumeClaim", "c")
    driver.advance(2)
    assert message(driver, "p") == '0/1 nodes are available: persistentvolumeclaim "c" not found.'
    driver.create(claim("c"))
    driver.advance(11)
    assert selected(driver, "c") == "n1"


def test_a_node_that_goes_while_a_volume_is_made_for_it_lets_the_pod_go():
    driver = waiting()
    driver.delete("Node", "n1")
    assert not driver.scheduler.commit.claiming
    assert not driver.scheduler.cache.assumed


def test_writes_that_are_refused_are_sent_again():
    driver = Driver()
    driver.refuse["c"] = 500
    driver.create(node_manifest("n1"), storage_class(), claim("c"), pod("p", "c"))
    assert selected(driver, "c") is None
    driver.refuse.clear()
    driver.advance(2)
    assert selected(driver, "c") == "n1"
    made(driver, "c", "made", "n1")
    assert driver.bound() == {"p"}


def test_a_volume_that_somebody_changed_meanwhile_is_chosen_anew():
    driver = Driver()
    driver.refuse["v1"] = 409
    driver.create(node_manifest("n1"), storage_class(provisioner="kubernetes.io/no-provisioner"))
    driver.create(volume("v1", "n1"), claim("c"), pod("p", "c"))
    assert not driver.scheduler.commit.claiming
    driver.refuse.clear()
    driver.advance(2)
    assert reserved(driver) == {"v1": "c"}


def test_a_gang_waits_whole_if_one_of_its_claims_finds_no_volume():
    driver = Driver()
    nodes = [node_manifest(f"n{i}", cpu="1") for i in range(4)]
    driver.create(*nodes, storage_class(provisioner="kubernetes.io/no-provisioner"))
    driver.create(*(volume(f"v{i}", f"n{i}") for i in range(3)), *(claim(f"c{i}") for i in range(4)))
    driver.create(gang_manifest("g", 4), *(pod(f"g-{i}", f"c{i}", group="g") for i in range(4)))
    assert (driver.bound(), reserved(driver)) == (set(), {})
    verdict = wording.verdict(driver.scheduler.diagnoses[driver.group("g")])
    assert "it needs 4 members at once, 3 can be placed, 1 short" in verdict
    assert "didn't find available persistent volumes to bind" in verdict
    driver.create(volume("v3", "n3"))
    driver.advance(2)
    assert set(reserved(driver)) == {"v0", "v1", "v2", "v3"}


def test_members_without_claims_wait_for_the_claims_of_the_others():
    driver = Driver()
    driver.create(node_manifest("n1"), storage_class(), claim("c"), gang_manifest("g", 2))
    driver.create(pod("g-0", "c", group="g"), pod_manifest("g-1", group="g"))
    assert driver.bound() == set()
    made(driver, "c", "made", "n1")
    assert driver.bound() == {"g-0", "g-1"}


def test_a_gang_of_which_all_wait_for_claims_gives_everything_back_when_one_is_lost():
    driver = Driver()
    driver.create(node_manifest("n1"), storage_class(), claim("c0"), claim("c1"), gang_manifest("g", 2))
    driver.create(*(pod(f"g-{i}", f"c{i}", group="g") for i in range(2)))
    assert len(driver.scheduler.commit.claiming) == 2
    driver.delete("PersistentVolumeClaim", "c1")
    assert not driver.scheduler.commit.claiming
    assert not driver.scheduler.cache.assumed


def test_a_claim_for_one_pod_is_free_once_its_pod_is_gone():
    driver = Driver()
    driver.create(node_manifest("n1"), claim("c", "", modes=["ReadWriteOncePod"]), volume("v", class_name=""))
    bind(driver, "c", "v")
    driver.create(pod("first", "c"), pod("second", "c"))
    assert driver.bound() == {"first"}
    assert 'persistentvolumeclaim "c" is used by another pod' in message(driver, "second")
    driver.delete("Pod", "first")
    driver.advance(2)
    assert driver.bound() == {"second"}


def test_a_claim_made_for_another_pod_of_the_name_is_not_taken():
    driver = Driver()
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    made_for = claim("p-scratch")
    made_for["metadata"]["ownerReferences"] = [{**owner, "uid": "uid-of-the-last-one"}]
    ephemeral = pod_manifest("p", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}])
    ephemeral["metadata"]["uid"] = "uid-p"
    driver.create(node_manifest("n1"), storage_class(), made_for, ephemeral)
    assert (
        message(driver, "p")
        == '0/1 nodes are available: persistentvolumeclaim "p-scratch" was not created for the pod.'
    )
    driver.change("PersistentVolumeClaim", "p-scratch", lambda raw: raw["metadata"].update(ownerReferences=[owner]))
    driver.advance(2)
    assert selected(driver, "p-scratch") == "n1"


def test_a_change_of_other_claims_wakes_nobody():
    driver = Driver()
    driver.create(node_manifest("n1"), pod("p", "c"))
    driver.advance(20)
    before = driver.decisions
    driver.create(claim("other"), storage_class("other"), volume("v", class_name="other"))
    driver.advance(20)
    assert driver.decisions == before
    driver.create(storage_class(), claim("c"))
    assert driver.decisions > before
    assert driver.scheduler.cache.stock.chosen.keys() == {Key("default", "c")}


def test_a_volume_is_held_for_a_pod_that_is_nominated():
    driver = Driver()
    driver.create(node_manifest("n1", cpu="1"), pod_manifest("old", cpu="1", nodeName="n1"))
    driver.create(storage_class(provisioner="kubernetes.io/no-provisioner"), volume("v1", "n1"), claim("c"), claim("d"))
    first = pod("first", "c", cpu="1", priority=10)
    first["status"] = {"nominatedNodeName": "n1"}
    driver.create(first, pod("second", "d", cpu="0"))
    assert (reserved(driver), driver.scheduler.cache.assumed) == ({}, {})
    assert "didn't find available persistent volumes to bind" in message(driver, "second")
    driver.delete("Pod", "old")
    driver.advance(15)
    assert reserved(driver) == {"v1": "c"}


def in_zone(name, zone):
    here = {"key": "zone", "operator": "In", "values": [zone]}
    return volume(name, nodeAffinity={"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}})


def nominated(name, *claims, node="n1", **more):
    made = pod(name, *claims, **more)
    made["status"] = {"nominatedNodeName": node}
    return made


def zone(*volumes, claims=("c", "d")):
    """Two nodes in one zone, the first of them full, and volumes that both can reach."""
    driver = Driver()
    driver.create(
        node_manifest("n1", cpu="1", labels={"zone": "a"}), node_manifest("n2", cpu="500m", labels={"zone": "a"})
    )
    driver.create(
        pod_manifest("old", cpu="1", nodeName="n1"), storage_class(provisioner="kubernetes.io/no-provisioner")
    )
    driver.create(*volumes, *(claim(name) for name in claims))
    return driver


def test_a_volume_that_a_zone_shares_is_held_for_a_pod_that_is_nominated():
    driver = zone(in_zone("v1", "a"))
    driver.create(nominated("first", "c", cpu="1", priority=10), pod("second", "d", cpu="0"))
    assert (reserved(driver), driver.scheduler.cache.assumed) == ({}, {})
    assert "didn't find available persistent volumes to bind" in message(driver, "second")
    driver.delete("Pod", "old")
    driver.advance(15)
    assert reserved(driver) == {"v1": "c"}


def test_what_is_left_of_a_zone_goes_to_others_and_what_is_held_to_somebody_more_important():
    driver = zone(in_zone("v1", "a"), in_zone("v2", "a"), claims="cde")
    driver.create(nominated("first", "c", cpu="1", priority=10), pod("second", "d", cpu="0"))
    assert set(reserved(driver).values()) == {"d"}
    driver.create(pod("third", "e", cpu="0", priority=11))
    assert set(reserved(driver).values()) == {"d", "e"}


def test_room_that_a_zone_shares_is_held_for_a_pod_that_is_nominated():
    driver = zone()
    driver.delete("StorageClass", "late")
    tracked = {"kind": "CSIDriver", "metadata": {"name": "example.com/disk"}, "spec": {"storageCapacity": True}}
    meta = {"metadata": {"name": "a"}, "nodeTopology": {"matchLabels": {"zone": "a"}}, "capacity": "1Gi"}
    driver.create(storage_class(), tracked, {"kind": "CSIStorageCapacity", "storageClassName": "late", **meta})
    driver.create(nominated("first", "c", cpu="1", priority=10), pod("second", "d", cpu="0"))
    assert (selected(driver, "c"), selected(driver, "d")) == (None, None)
    assert "not have enough free storage" in message(driver, "second")
    driver.delete("Pod", "old")
    driver.advance(15)
    assert (selected(driver, "c"), selected(driver, "d")) == ("n1", None)


def test_a_zones_volume_is_free_again_when_the_pod_that_is_nominated_goes():
    driver = zone(in_zone("v1", "a"))
    driver.create(nominated("first", "c", cpu="1", priority=10), pod("second", "d", cpu="0"))
    driver.delete("Pod", "first")
    driver.advance(15)
    assert reserved(driver) == {"v1": "d"}


def test_of_volumes_the_one_is_left_that_a_nominated_pod_can_reach():
    """The smaller one would be taken first, and is the only one in reach of the node that is held."""
    driver = Driver()
    driver.create(
        node_manifest("n1", cpu="1"), node_manifest("n2", cpu="500m"), pod_manifest("old", cpu="1", nodeName="n1")
    )
    driver.create(storage_class(provisioner="kubernetes.io/no-provisioner"), claim("c"), claim("d"))
    driver.create(volume("v1"), volume("v2", "n2", size="2Gi"))
    driver.create(nominated("first", "c", cpu="1", priority=10), pod("second", "d", cpu="500m"))
    assert reserved(driver) == {"v2": "d"}
    driver.delete("Pod", "old")
    driver.advance(15)
    assert reserved(driver) == {"v2": "d", "v1": "c"}


def test_a_claim_that_two_nominated_pods_share_holds_one_volume():
    driver = zone(in_zone("v1", "a"), in_zone("v2", "a"))
    both = [nominated(f"first-{i}", "c", cpu="1", priority=10) for i in range(2)]
    driver.create(*both, pod("second", "d", cpu="0"))
    assert set(reserved(driver).values()) == {"d"}


def late_gang(minimum, with_claims, without, gates=GENERIC, group=None):
    driver = Driver(gates)
    driver.create(node_manifest("n1"), storage_class(), *(claim(f"c{i}") for i in range(with_claims)))
    driver.create(*(group or [gang_manifest("g", minimum)]))
    pods = [pod(f"g-{i}", f"c{i}", group="g") for i in range(with_claims)]
    pods += [pod_manifest(f"g-{i}", group="g") for i in range(with_claims, with_claims + without)]
    driver.scheduler.paused = True
    for one in pods:
        driver.put(one, ADDED)
    driver.run()
    driver.scheduler.paused = False
    driver.create(node_manifest("full", cpu="0"))
    return driver


def test_a_gang_goes_once_the_claims_of_its_minimum_are_bound_and_the_others_follow():
    driver = late_gang(3, 3, 1)
    made(driver, "c2", "v2", "n1")
    assert driver.bound() == set()
    assert not driver.scheduler.queue.entries
    made(driver, "c0", "v0", "n1")
    assert driver.bound() == {"g-0", "g-2", "g-3"}
    made(driver, "c1", "v1", "n1")
    assert driver.bound() == {"g-0", "g-1", "g-2", "g-3"}


def test_members_beyond_the_minimum_hold_nobody_up():
    driver = late_gang(2, 2, 2)
    assert driver.bound() == {"g-2", "g-3"}


def test_members_of_a_basic_group_go_one_by_one():
    driver = late_gang(None, 2, 1)
    assert driver.bound() == {"g-2"}
    made(driver, "c1", "v1", "n1")
    assert driver.bound() == {"g-1", "g-2"}


def test_a_member_beyond_the_minimum_that_loses_its_claim_comes_back_alone():
    driver = late_gang(2, 3, 0)
    made(driver, "c0", "v0", "n1")
    driver.delete("PersistentVolumeClaim", "c2")
    assert (driver.bound(), len(driver.scheduler.commit.claiming)) == (set(), 2)
    made(driver, "c1", "v1", "n1")
    assert driver.bound() == {"g-0", "g-1"}


def test_a_member_that_comes_later_makes_the_minimum_whole_together_with_one_that_is_ready():
    driver = late_gang(2, 1, 1)
    driver.create(pod_manifest("g-2", group="g"))
    assert driver.bound() == {"g-1", "g-2"}


def test_a_claim_that_fails_releases_all_of_the_gang_and_every_member_is_told_why():
    driver = late_gang(3, 2, 1)
    made(driver, "c0", "v0", "n1")
    driver.delete("PersistentVolumeClaim", "c1")
    assert (driver.bound(), driver.scheduler.cache.assumed, driver.scheduler.commit.claiming) == (set(), {}, {})
    assert message(driver, "g-1") == 'persistentvolumeclaim "c1" was deleted'
    for name in ("g-0", "g-2"):
        assert message(driver, name) == 'waited with its group: g-1: persistentvolumeclaim "c1" was deleted'
    assert not driver.scheduler.cache.stock.chosen
    driver.create(claim("c1"))
    driver.advance(15)
    assert selected(driver, "c1") == "n1"
    made(driver, "c1", "v1", "n1")
    assert driver.bound() == {"g-0", "g-1", "g-2"}


def test_a_gang_whose_claims_take_too_long_is_released_whole():
    driver = late_gang(3, 2, 1)
    made(driver, "c0", "v0", "n1")
    driver.advance(601)
    assert (driver.bound(), driver.scheduler.cache.assumed, driver.scheduler.commit.claiming) == (set(), {}, {})
    assert "not bound within 10 minutes" in message(driver, "g-2")


def test_a_gang_of_which_a_waiting_member_is_deleted_is_released():
    driver = late_gang(3, 1, 2)
    driver.delete("Pod", "g-2")
    assert (driver.bound(), driver.scheduler.cache.assumed) == (set(), {})
    made(driver, "c0", "v0", "n1")
    assert driver.bound() == set()
    driver.create(pod_manifest("g-3", group="g"))
    driver.advance(15)
    assert driver.bound() == {"g-0", "g-1", "g-3"}


def test_a_gang_is_released_when_the_node_of_a_member_that_is_ready_goes():
    driver = late_gang(2, 1, 1)
    driver.delete("Node", "n1")
    assert (driver.bound(), driver.scheduler.cache.assumed) == (set(), {})


def test_a_gang_of_which_a_claim_cannot_be_written_gives_all_its_room_back():
    driver = Driver()
    driver.refuse["c1"] = 500
    driver.create(node_manifest("n1"), storage_class(), claim("c0"), claim("c1"), gang_manifest("g", 3))
    driver.create(*(pod(f"g-{i}", f"c{i}", group="g") for i in range(2)), pod_manifest("g-2", group="g"))
    made(driver, "c0", "v0", "n1")
    driver.advance(59)
    assert len(driver.scheduler.cache.assumed) == 3
    driver.advance(2)
    assert (driver.bound(), driver.scheduler.cache.assumed) == (set(), {})
    driver.refuse.clear()
    driver.advance(90)
    made(driver, "c1", "v1", "n1")
    assert driver.bound() == {"g-0", "g-1", "g-2"}


def test_a_gang_is_planned_again_with_the_nodes_that_were_written_before_the_scheduler_died():
    driver = late_gang(3, 2, 1)
    made(driver, "c0", "v0", "n1")
    for i in range(3):
        driver.create(node_manifest(f"larger-{i}", cpu="640"))
    driver.restart()
    assert driver.bound() == set()
    assert (selected(driver, "c1"), len(driver.scheduler.cache.assumed)) == ("n1", 3)
    made(driver, "c1", "v1", "n1")
    assert driver.bound() == {"g-0", "g-1", "g-2"}
    assert driver.nodes_of("g-0", "g-1") == ["n1", "n1"]


def test_a_gang_that_is_being_deleted_gives_its_room_back_at_once():
    driver = late_gang(2, 1, 1)
    driver.delete("PodGroup", "g")
    assert (driver.bound(), driver.scheduler.cache.assumed) == (set(), {})


def test_a_lowered_minimum_lets_those_go_that_are_ready():
    driver = late_gang(3, 1, 2)
    driver.change("PodGroup", "g", lambda raw: raw["spec"]["schedulingPolicy"]["gang"].update(minCount=2))
    assert driver.bound() == {"g-1", "g-2"}


def test_a_claim_that_is_deleted_while_its_write_is_to_be_repeated_is_not_waited_for():
    driver = Driver()
    driver.refuse["c"] = 500
    driver.create(node_manifest("n1"), storage_class(), claim("c"), gang_manifest("g", 2))
    driver.create(pod("g-0", "c", group="g"), pod_manifest("g-1", group="g"))
    driver.delete("PersistentVolumeClaim", "c")
    driver.advance(2)
    assert (driver.bound(), driver.scheduler.cache.assumed) == (set(), {})
    assert message(driver, "g-0") == 'persistentvolumeclaim "c" was deleted'


TREES = FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")


def late_tree(minimum):
    """Groups a (with claims) and b (without) of two each below a root that needs `minimum` of them."""
    below = {"parentCompositePodGroupName": "root", "workloadRef": workload_ref("w")}
    driver = Driver(TREES)
    driver.create(node_manifest("n1"), storage_class(), claim("c0"), claim("c1"))
    driver.hold_decisions()
    driver.create(composite_manifest("root", minimum), gang_manifest("a", 2, **below), gang_manifest("b", 2, **below))
    driver.create(*(pod(f"a-{i}", f"c{i}", group="a") for i in range(2)))
    driver.create(*(pod_manifest(f"b-{i}", group="b") for i in range(2)))
    driver.release()
    return driver


def test_a_hierarchy_goes_whole_if_all_of_it_belongs_to_its_minimum():
    driver = late_tree(2)
    made(driver, "c0", "v0", "n1")
    assert (driver.bound(), len(driver.scheduler.cache.assumed)) == (set(), 4)
    made(driver, "c1", "v1", "n1")
    assert driver.bound() == {"a-0", "a-1", "b-0", "b-1"}


def test_groups_that_are_enough_for_a_hierarchy_do_not_wait_for_the_rest():
    driver = late_tree(1)
    assert driver.bound() == {"b-0", "b-1"}
    made(driver, "c0", "v0", "n1")
    assert driver.bound() == {"b-0", "b-1"}
    driver.delete("PersistentVolumeClaim", "c1")
    assert "a-0" not in driver.bound() and not driver.scheduler.cache.assumed


def test_a_claim_that_fails_releases_the_whole_minimum_of_a_hierarchy():
    driver = late_tree(2)
    driver.delete("PersistentVolumeClaim", "c1")
    assert (driver.bound(), driver.scheduler.cache.assumed) == (set(), {})
    assert message(driver, "b-1") == 'waited with its group: a-1: persistentvolumeclaim "c1" was deleted'
