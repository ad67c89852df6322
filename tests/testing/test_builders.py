"""What the builders make is what the rest of the tests take for granted."""

import numpy as np
import pytest

from muster.model.keys import Key
from muster.model.records import EntryKind, HostPort, Phase, Policy
from muster.testing import builders
from muster.testing.builders import GPU, entry, gang_manifests, group, node, nomination, pod, pods, snapshot


def test_alike_pods_share_one_class_and_differ_in_name_and_uid():
    three = pods("p", 3, gpus=1, group="g", namespace="team")
    assert len({id(member.cls) for member in three}) == 1
    assert [str(member.key) for member in three] == ["team/p1", "team/p2", "team/p3"]
    assert len({member.uid for member in three}) == 3


def test_a_pod_with_a_node_is_running_and_holds_what_it_asks_for():
    running = pod("p", node="n1", cpu=500)
    assert running.phase is Phase.BOUND and running.holds_room
    assert running.usage == running.cls.requests == (("cpu", 500), ("pods", 1))


def test_a_snapshot_adds_up_what_bound_pods_hold_per_node():
    taken = [pod("a", node="n1", cpu=500), pod("b", node="n1", gpus=2), pod("c", node="n2", ports=[80])]
    view = snapshot([node("n2"), node("n1", gpus=8)], taken)
    row = view.axis.row
    assert view.nodes.names == ("n1", "n2")
    np.testing.assert_array_equal(view.used[row["pods"]], [2, 1])
    np.testing.assert_array_equal(view.used[row["cpu"]], [500, 0])
    np.testing.assert_array_equal(view.used[row[GPU]], [2, 0])
    assert view.ports == {HostPort("TCP", 80, "0.0.0.0"): {"n2": 1}}


def test_a_snapshot_cannot_be_written_to():
    view = snapshot([node("n1")])
    with pytest.raises(ValueError, match="read-only"):
        view.used[0, 0] = 1


def test_an_entry_of_a_gang_needs_what_running_and_finished_members_leave_of_the_minimum():
    gang = group("g", 5)
    members = pods("p", 4, group="g")
    assert entry(*members, group=gang, bound=[pod("r", node="n1", group="g")], succeeded=1).needed == 3
    assert entry(*members, group=group("g")).needed == 1
    assert group("g").policy is Policy.BASIC


def test_an_entry_without_a_group_is_one_pod():
    single = entry(pod("p", priority=7))
    assert (single.key.kind, single.priority, single.needed) == (EntryKind.POD, 7, 1)
    with pytest.raises(ValueError):
        entry(*pods("p", 2))


def test_a_nomination_names_the_group_of_its_pod():
    assert nomination(pod("p", group="g", namespace="team"), "n1").group == Key("team", "g")
    assert nomination(pod("p"), "n1").group is None


def test_extended_resources_of_a_manifest_have_equal_limits():
    manifest = builders.pod_manifest("p", gpus=2, cpu="500m")
    resources = manifest["spec"]["containers"][0]["resources"]
    assert resources == {"requests": {"cpu": "500m", GPU: "2"}, "limits": {GPU: "2"}}


def test_gang_manifests_are_a_group_and_its_members():
    gang, *members = gang_manifests("g", 3, min_count=2, priority=5)
    assert gang["spec"] == {"schedulingPolicy": {"gang": {"minCount": 2}}, "priority": 5}
    assert [member["spec"]["schedulingGroup"]["podGroupName"] for member in members] == ["g", "g", "g"]
    assert [member["spec"]["priority"] for member in members] == [5, 5, 5]


def test_a_node_manifest_reports_equal_capacity_and_allocatable():
    manifest = builders.node_manifest("n1", gpus=8, taints=[{"key": "a", "effect": "NoSchedule"}], unschedulable=True)
    assert manifest["status"]["capacity"] == manifest["status"]["allocatable"]
    assert manifest["status"]["allocatable"][GPU] == "8"
    assert manifest["spec"] == {"unschedulable": True, "taints": [{"key": "a", "effect": "NoSchedule"}]}
