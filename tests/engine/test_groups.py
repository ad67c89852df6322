"""What decide() does with heads of the queue, by the statements it has to keep."""

from dataclasses import replace

import pytest

from muster.engine.decide import decide
from muster.model.diagnosis import Reason, Verdict
from muster.plugins import default_profile
from muster.testing import builders

PROFILE = default_profile()


def outcome(snapshot, *entries):
    return decide(snapshot, entries, PROFILE, now=0)


def bound(decision, head=0):
    return {bind.pod.name: bind.node for bind in decision.plans[head].binds}


def gang(name, needed, *pods, **fields):
    return builders.entry(*pods, group=builders.group(name, needed), **fields)


def test_a_gang_that_fits_is_bound_whole_and_names_the_nodes_it_relies_on():
    decision = outcome(builders.snapshot(builders.nodes("n", 2, gpus=4)), gang("g", 8, *builders.pods("p", 8, gpus=1)))
    assert sorted(bound(decision)) == [f"p{i}" for i in range(1, 9)]
    assert decision.plans[0].generations == {"n1": 1, "n2": 1}
    assert decision.diagnoses[0].verdict is Verdict.SCHEDULED


def test_a_gang_that_lacks_one_slot_gets_nothing_and_leaves_the_room_to_the_next():
    snapshot = builders.snapshot(builders.nodes("n", 2, gpus=4))
    decision = outcome(
        snapshot, gang("g", 9, *builders.pods("p", 9, gpus=1)), gang("h", 8, *builders.pods("q", 8, gpus=1))
    )
    assert not bound(decision) and len(bound(decision, 1)) == 8
    assert (decision.diagnoses[0].placed, decision.diagnoses[0].verdict) == (8, Verdict.UNSCHEDULABLE)


def test_extra_members_are_bound_as_far_as_they_fit_the_older_ones_first():
    decision = outcome(builders.snapshot([builders.node("n", gpus=3)]), gang("g", 2, *builders.pods("p", 5, gpus=1)))
    assert sorted(bound(decision)) == ["p1", "p2", "p3"]
    assert {key.name for key in decision.diagnoses[0].pods} == {"p4", "p5"}
    assert decision.diagnoses[0].verdict is Verdict.SCHEDULED


def test_a_big_member_is_dropped_if_that_makes_the_minimum():
    pods = [builders.pod("big", cpu=4000), *builders.pods("small", 2, cpu=2000)]
    decision = outcome(builders.snapshot([builders.node("n", cpu=4000)]), gang("g", 2, *pods))
    assert sorted(bound(decision)) == ["small1", "small2"]


def test_running_and_succeeded_members_count_towards_the_minimum():
    running = builders.pods("r", 2, node="n", group="g", gpus=1)
    snapshot = builders.snapshot([builders.node("n", gpus=3)], running)
    pending = builders.pods("p", 1, gpus=1)
    assert bound(outcome(snapshot, gang("g", 4, *pending, bound=running, succeeded=1))) == {"p1": "n"}
    assert not bound(outcome(snapshot, gang("g", 5, *pending, bound=running, succeeded=1)))


def test_a_basic_group_binds_what_fits():
    pods = [builders.pod("huge", cpu=999_000), builders.pod("fine", cpu=1000)]
    decision = outcome(builders.snapshot([builders.node("n")]), builders.entry(*pods, group=builders.group("b")))
    assert bound(decision) == {"fine": "n"}


def test_an_entry_without_pending_pods_is_a_success_without_effect():
    decision = outcome(builders.snapshot([builders.node("n")]), gang("g", 1))
    assert (decision.diagnoses[0].verdict, decision.plans[0].steps) == (Verdict.SCHEDULED, ())


@pytest.mark.parametrize(
    ("change", "reason", "values"),
    [
        ({"scheduler_name": "other"}, Reason.SCHEDULER_NAME_MISMATCH, ("default-scheduler", "other")),
        ({"priority": 7}, Reason.PRIORITY_MISMATCH, ("0", "7")),
        ({"preemption_policy": "Never"}, Reason.PREEMPTION_POLICY_MISMATCH, ("PreemptLowerPriority", "Never")),
    ],
)
@pytest.mark.parametrize("among", ["pending", "running"])
def test_members_that_disagree_are_refused_before_any_placement(change, reason, values, among):
    odd = replace(builders.pod("odd", cpu=1, node="n" if among == "running" else None), **change)
    pending = [builders.pod("p", cpu=1), *([odd] if among == "pending" else [])]
    running = [odd] if among == "running" else []
    decision = outcome(builders.snapshot([builders.node("n")]), gang("g", 1, *pending, bound=running))
    diagnosis = decision.diagnoses[0]
    assert (diagnosis.verdict, diagnosis.rejections[0].reason, diagnosis.names) == (Verdict.ERROR, reason, values)
    assert not decision.plans[0].steps


def test_a_policy_of_the_group_is_compared_with_every_member():
    group = builders.group("g", 1, preemption_policy="Never")
    decision = outcome(builders.snapshot([builders.node("n")]), builders.entry(builders.pod("p"), group=group))
    assert decision.diagnoses[0].names == ("Never", "PreemptLowerPriority")


def test_room_nominated_to_an_equal_pod_is_kept_and_to_a_lower_one_is_not():
    nodes = [builders.node("n", gpus=1)]
    for priority, free in ((0, False), (-1, True)):
        waiting = builders.pod("w", gpus=1, priority=priority, nominated="n")
        snapshot = builders.snapshot(nodes, nominations=[builders.nomination(waiting, "n")])
        decision = outcome(snapshot, builders.entry(builders.pod("p", gpus=1)))
        assert bool(bound(decision)) is free
    assert decision.diagnoses[0].verdict is Verdict.SCHEDULED


def test_a_nominated_pod_takes_its_own_room_and_then_holds_it_no_longer():
    waiting = builders.pod("w", gpus=1, nominated="n2")
    nodes = builders.nodes("n", 2, gpus=1)
    snapshot = builders.snapshot(nodes, nominations=[builders.nomination(waiting, "n2")])
    decision = outcome(snapshot, builders.entry(waiting), builders.entry(builders.pod("p", gpus=1)))
    assert (bound(decision, 0), bound(decision, 1)) == ({"w": "n2"}, {"p": "n1"})


def test_a_nomination_of_an_entry_that_failed_holds_against_the_next_one():
    members = [builders.pod("m1", group="g", gpus=1, nominated="n"), builders.pod("m2", group="g", gpus=9)]
    snapshot = builders.snapshot([builders.node("n", gpus=1)], nominations=[builders.nomination(members[0], "n")])
    decision = outcome(snapshot, gang("g", 2, *members), builders.entry(builders.pod("p", gpus=1)))
    assert not bound(decision, 0) and not bound(decision, 1)
    assert [r.reason for r in decision.diagnoses[1].rejections] == [Reason.NOMINATED_AWAY]


def test_nominated_members_go_to_their_nodes_whatever_the_order():
    nodes = builders.nodes("n", 3, gpus=1)
    members = [builders.pod(f"m{i}", group="g", gpus=1, nominated=f"n{4 - i}") for i in (1, 2)]
    snapshot = builders.snapshot(nodes, nominations=[builders.nomination(m, m.nominated_node) for m in members])
    assert bound(outcome(snapshot, gang("g", 2, *members))) == {"m1": "n3", "m2": "n2"}


def test_members_with_ranks_are_laid_along_the_nodes_by_rank():
    ranks = [3, 0, 2, 1]
    members = [replace(pod, rank=r) for pod, r in zip(builders.pods("p", 4, gpus=1), ranks, strict=True)]
    placed = bound(outcome(builders.snapshot(builders.nodes("n", 2, gpus=2)), gang("g", 4, *members)))
    assert {f"p{i + 1}": placed[f"p{i + 1}"] for i in range(4)} == {"p1": "n2", "p2": "n1", "p3": "n2", "p4": "n1"}


def test_host_ports_of_fellow_members_count():
    nodes = builders.nodes("n", 2)
    pods = builders.pods("p", 3, ports=[80])
    assert not bound(outcome(builders.snapshot(nodes), gang("g", 3, *pods)))
    assert len(set(bound(outcome(builders.snapshot(nodes), gang("g", 2, *pods))).values())) == 2


def test_small_pods_leave_the_large_hole():
    nodes = [builders.node("x1", gpus=2), builders.node("x2", gpus=1), builders.node("x3", gpus=1)]
    decision = outcome(builders.snapshot(nodes), gang("a", 2, *builders.pods("a", 2, gpus=1)))
    assert set(bound(decision).values()) == {"x2", "x3"}


def test_unlike_members_are_packed_where_the_first_fit_by_age_would_fail():
    nodes = builders.nodes("n", 2, gpus=8)
    small, large = builders.pods("s", 4, gpus=3), builders.pods("l", 2, gpus=2)
    assert len(bound(outcome(builders.snapshot(nodes), gang("g", 6, *large, *small)))) == 6
