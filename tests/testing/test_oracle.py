"""The oracle is the judge of the engine, so it is judged here: by cases, and by trying every assignment."""

from itertools import product

import pytest
from hypothesis import given, settings

from muster.model.plan import Bind
from muster.model.records import HostPort
from muster.testing import oracle
from muster.testing.builders import (
    entry,
    group,
    node,
    nodes,
    nomination,
    pod,
    pods,
    snapshot,
    taint,
    term,
    tolerate,
)
from muster.testing.strategies import Instance, instances


def by_trying_everything(instance: Instance, head) -> int:
    """The most members that some assignment places, going through all of them one pod at a time."""
    view, best = instance.snapshot, 0
    for choice in product([None, *view.nodes.names], repeat=len(head.pods)):
        binds = [Bind(p.key, p.uid, where) for p, where in zip(head.pods, choice, strict=True) if where]
        if len(binds) > best and not oracle.violations(view, head, binds):
            best = len(binds)
    return best


@settings(max_examples=60, deadline=None, derandomize=True)
@given(instances(nodes=3, pods=4, heads=1))
def test_no_assignment_places_more_than_the_oracle_says(instance):
    (head,) = instance.heads
    assert oracle.can_place(instance.snapshot, head).most == by_trying_everything(instance, head)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(instances(heads=1))
def test_its_assignment_is_sound_and_places_as_many_as_it_says(instance):
    (head,) = instance.heads
    view = instance.snapshot
    answer = oracle.can_place(view, head)
    uids = {member.key: member.uid for member in head.pods}
    assert oracle.violations(view, head, [Bind(k, uids[k], where) for k, where in answer.assignment.items()]) == []
    assert len(answer.assignment) == answer.most


def test_two_shapes_of_pods_that_only_fit_together_in_one_way_are_found():
    # 4 + 4 fill n1 and n2 only if the pods of 3 go together on the node of 6.
    cluster = snapshot([node("n1", gpus=4), node("n2", gpus=4), node("n3", gpus=6)])
    members = (*pods("big", 2, gpus=4, group="g"), *pods("mid", 2, gpus=3, group="g"))
    answer = oracle.can_place(cluster, entry(*members, group=group("g", 4)))
    assert answer.feasible and answer.most == 4
    assert {name for key, name in answer.assignment.items() if key.name.startswith("mid")} == {"n3"}


def test_a_gang_of_unlike_priorities_is_infeasible_whatever_room_there_is():
    members = (pod("p1", group="g", priority=1), pod("p2", group="g"))
    answer = oracle.can_place(snapshot(nodes("n", 3)), entry(*members, group=group("g", 2)))
    assert answer.most == 2 and not answer.feasible


def test_running_members_are_compared_too():
    head = entry(pod("p", group="g"), group=group("g", 1), bound=[pod("r", group="g", node="n1", scheduler_name="x")])
    assert oracle.mismatch(head) == "schedulerName"


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (tolerate(), True),
        (tolerate("a"), True),
        (tolerate("a", "1"), True),
        (tolerate("a", "2"), False),
        (tolerate("b"), False),
        (tolerate("a", effect="NoExecute"), False),
        (tolerate("a", "0")._replace(operator="Gt"), True),
        (tolerate("a", "1")._replace(operator="Gt"), False),
        (tolerate("a", "x")._replace(operator="Lt"), False),
    ],
)
def test_a_taint_is_tolerated_by_key_value_and_effect(toleration, tolerated):
    single = entry(pod("p", tolerations=[toleration]))
    cluster = snapshot([node("n1", taints=[taint("a", "1")])])
    assert oracle.can_place(cluster, single).feasible is tolerated


def test_a_taint_that_only_prefers_keeps_nobody_out():
    cluster = snapshot([node("n1", taints=[taint("a", "1", "PreferNoSchedule")])])
    assert oracle.can_place(cluster, entry(pod("p"))).feasible


def test_a_cordoned_node_takes_only_pods_that_tolerate_the_cordon():
    cluster = snapshot([node("n1", unschedulable=True)])
    assert not oracle.can_place(cluster, entry(pod("p"))).feasible
    assert oracle.can_place(cluster, entry(pod("p", tolerations=[tolerate(oracle.CORDON.key)]))).feasible


@pytest.mark.parametrize(
    ("requirement", "fits"),
    [
        (("rack", "In", ("r1", "r2")), True),
        (("rack", "NotIn", ("r1",)), False),
        (("room", "NotIn", ("r1",)), True),
        (("room", "Exists", ()), False),
        (("room", "DoesNotExist", ()), True),
        (("size", "Gt", ("9",)), True),
        (("size", "Lt", ("9",)), False),
        (("rack", "Gt", ("0",)), False),
        ((None, "In", ("n1",)), True),
        ((None, "NotIn", ("n1",)), False),
    ],
)
def test_node_affinity_reads_labels_numbers_and_the_name(requirement, fits):
    cluster = snapshot([node("n1", labels={"rack": "r1", "size": "10"})])
    assert oracle.can_place(cluster, entry(pod("p", required=[term(requirement)]))).feasible is fits


def test_affinity_without_terms_and_empty_terms_match_no_node():
    cluster = snapshot([node("n1")])
    assert not oracle.can_place(cluster, entry(pod("p", required=[]))).feasible
    assert not oracle.can_place(cluster, entry(pod("p", required=[term()]))).feasible


@pytest.mark.parametrize(
    ("taken", "wanted", "clash"),
    [
        (HostPort("TCP", 80, "0.0.0.0"), HostPort("TCP", 80, "10.0.0.1"), True),
        (HostPort("TCP", 80, "10.0.0.1"), HostPort("TCP", 80, "0.0.0.0"), True),
        (HostPort("TCP", 80, "10.0.0.1"), HostPort("TCP", 80, "10.0.0.2"), False),
        (HostPort("UDP", 80, "0.0.0.0"), HostPort("TCP", 80, "0.0.0.0"), False),
        (HostPort("TCP", 81, "0.0.0.0"), HostPort("TCP", 80, "0.0.0.0"), False),
    ],
)
def test_host_ports_clash_by_protocol_port_and_address(taken, wanted, clash):
    cluster = snapshot([node("n1")], [pod("b", node="n1", ports=[taken])])
    assert oracle.can_place(cluster, entry(pod("p", ports=[wanted]))).feasible is not clash


def test_members_with_one_host_port_need_a_node_each():
    head = entry(*pods("p", 3, ports=[80], group="g"), group=group("g", 3))
    assert oracle.can_place(snapshot(nodes("n", 2)), head).most == 2
    assert oracle.can_place(snapshot(nodes("n", 3)), head).feasible


def test_an_overcommitted_resource_does_not_matter_to_pods_that_do_not_ask_for_it():
    cluster = snapshot([node("n1", cpu=1000)], [pod("b", node="n1", cpu=2000)])
    assert oracle.can_place(cluster, entry(pod("p", memory=1))).feasible
    assert not oracle.can_place(cluster, entry(pod("p", cpu=1))).feasible


@pytest.mark.parametrize(("priority", "feasible"), [(5, False), (0, False), (-1, True)])
def test_a_nomination_holds_room_against_lower_and_equal_priority(priority, feasible):
    held = [nomination(pod("x", gpus=1, priority=priority), "n1")]
    cluster = snapshot([node("n1", gpus=1)], nominations=held)
    assert oracle.can_place(cluster, entry(pod("p", gpus=1))).feasible is feasible


def test_a_nomination_does_not_hold_room_against_its_own_pod_or_group():
    mine = pod("p", gpus=1)
    cluster = snapshot([node("n1", gpus=1)], nominations=[nomination(mine, "n1")])
    assert oracle.can_place(cluster, entry(mine)).feasible
    sibling, member = pods("m", 2, gpus=1, group="g")
    cluster = snapshot([node("n1", gpus=1)], nominations=[nomination(sibling, "n1")])
    assert oracle.can_place(cluster, entry(member, group=group("g", 1))).feasible


def test_violations_name_every_fault_of_a_plan():
    cluster = snapshot([node("n1", gpus=1)])
    a, b = pods("p", 2, gpus=1, group="g")
    head = entry(a, b, group=group("g", 2))
    assert oracle.violations(cluster, head, [Bind(a.key, a.uid, "n1")]) == []
    assert oracle.violations(cluster, head, [Bind(a.key, a.uid, "n1"), Bind(b.key, b.uid, "n1")]) == [
        "n1 cannot take 2 of them"
    ]
    assert oracle.violations(cluster, head, [Bind(a.key, "old", "n9")]) == [
        "default/p1 has another uid",
        "there is no node n9",
    ]


def test_what_a_plan_takes_is_missing_afterwards_and_its_nominations_are_gone():
    mine = pod("p", gpus=1, ports=[80], priority=9)
    cluster = snapshot([node("n1", gpus=2), node("n2", gpus=1)], nominations=[nomination(mine, "n2")])
    later = oracle.after(cluster, entry(mine), [Bind(mine.key, mine.uid, "n1")])
    assert later.nominations == ()
    assert not oracle.can_place(
        later, entry(pod("q", gpus=1, ports=[80], required=[term((None, "In", ("n1",)))]))
    ).feasible
    assert oracle.can_place(later, entry(*pods("q", 2, gpus=1, group="g"), group=group("g", 2))).feasible
    assert cluster.used.sum() == 0
