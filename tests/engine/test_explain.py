"""Diagnoses: the right counts, the nearest node, and remedies that are enough."""

from dataclasses import replace

from muster.engine.decide import decide
from muster.model.diagnosis import Cure, Reason, Rejection, Remedy, Shortfall, Verdict
from muster.model.keys import Key
from muster.model.wording import verdict
from muster.plugins import default_profile
from muster.testing import builders

PROFILE = default_profile()


def diagnosis(nodes, entry, bound=(), **fields):
    return decide(builders.snapshot(nodes, bound, **fields), [entry], PROFILE, now=0).diagnoses[0]


def gang(needed, *pods):
    return builders.entry(*pods, group=builders.group("g", needed))


def thirty_of_thirty_three():
    label = {"accelerator": "big"}
    nodes = [
        *builders.nodes("wrong", 30, gpus=1),
        *builders.nodes("full", 12, gpus=1, labels=label),
        *builders.nodes("broken", 5, gpus=1, labels=label, taints=[builders.taint("broken")]),
        *builders.nodes("good", 30, gpus=1, labels=label),
    ]
    fillers = [builders.pod(f"f{i}", gpus=1, node=f"full{i}") for i in range(1, 13)]
    return nodes, fillers, gang(33, *builders.pods("g", 33, gpus=1, selector=label))


def test_the_most_that_fit_together_is_said_and_who_had_a_node():
    nodes, fillers, entry = thirty_of_thirty_three()
    found = diagnosis(nodes, entry, fillers)
    assert (found.verdict, found.placed, found.pending, found.min_count) == (Verdict.UNSCHEDULABLE, 30, 33, 33)
    lucky = [key for key, verdict in found.pods.items() if not verdict.rejections]
    assert len(lucky) == 30 and len(found.pods) == 33


def test_every_node_is_counted_under_why_it_was_of_no_use():
    nodes, fillers, entry = thirty_of_thirty_three()
    gpu = builders.GPU
    assert set(diagnosis(nodes, entry, fillers).rejections) == {
        Rejection(Reason.NODE_SELECTOR, 30),
        Rejection(Reason.NODE_TAINTED, 5, "broken:NoSchedule"),
        Rejection(Reason.INSUFFICIENT, 12, gpu),
        Rejection(Reason.TAKEN_BY_MEMBERS, 30, gpu),
    }


def test_alike_members_share_one_verdict():
    nodes, fillers, entry = thirty_of_thirty_three()
    assert len({id(verdict) for verdict in diagnosis(nodes, entry, fillers).pods.values()}) == 2


def test_remedies_are_those_that_are_enough_by_themselves():
    nodes, fillers, entry = thirty_of_thirty_three()
    remedies = diagnosis(nodes, entry, fillers).remedies
    assert remedies[0] == Remedy("tolerate", 3, "broken:NoSchedule")
    assert Remedy("lower-min-count", 30) in remedies
    assert Remedy("free", 3, builders.GPU, "3 nodes") in remedies
    assert [remedy.action for remedy in remedies][-1] == "add-nodes"


def test_a_remedy_that_opens_too_little_is_not_offered():
    nodes, fillers, _ = thirty_of_thirty_three()
    entry = gang(36, *builders.pods("g", 36, gpus=1, selector={"accelerator": "big"}))
    assert "tolerate" not in {remedy.action for remedy in diagnosis(nodes, entry, fillers).remedies}


def test_uncordoning_is_offered_with_the_number_of_nodes():
    nodes = builders.nodes("n", 4, gpus=2, unschedulable=True)
    found = diagnosis(nodes, gang(3, *builders.pods("p", 3, gpus=1)))
    assert found.remedies[0] == Remedy("uncordon", 2)
    assert found.rejections == (Rejection(Reason.NODE_UNSCHEDULABLE, 4),)


def test_a_node_short_of_two_resources_counts_under_both():
    found = diagnosis([builders.node("n", cpu=1000, memory=5)], builders.entry(builders.pod("p", cpu=2000, memory=9)))
    assert set(found.rejections) == {
        Rejection(Reason.INSUFFICIENT, 1, "cpu"),
        Rejection(Reason.INSUFFICIENT, 1, "memory"),
    }


def test_a_node_without_the_port_counts_once_and_not_under_resources():
    taken = builders.pod("b", node="n", ports=[80, 81])
    found = diagnosis([builders.node("n")], builders.entry(builders.pod("p", ports=[80, 81], gpus=1)), [taken])
    assert [(r.reason, r.nodes) for r in found.rejections] == [(Reason.HOST_PORTS, 1)]
    assert Cure.PORT_FREED in found.wakes_on


def test_the_shortfall_is_that_of_the_nearest_node():
    nodes = [builders.node("far", cpu=1000), builders.node("near", cpu=3500)]
    assert diagnosis(nodes, builders.entry(builders.pod("p", cpu=4000))).shortfall == Shortfall(
        "cpu", 500, "near", asked=4000, most=3500
    )


def test_with_several_missing_the_shortfall_is_what_they_ask_for_together():
    found = diagnosis(builders.nodes("n", 2, gpus=4), gang(12, *builders.pods("p", 12, gpus=1)))
    assert found.shortfall == Shortfall(builders.GPU, 4, nodes=2)


def test_leftovers_of_a_success_have_reasons_but_need_no_remedy():
    found = diagnosis([builders.node("n", gpus=2)], gang(1, *builders.pods("p", 3, gpus=1)))
    assert found.verdict is Verdict.SCHEDULED
    assert set(found.pods) == {Key("default", "p3")}
    assert found.rejections == (Rejection(Reason.TAKEN_BY_MEMBERS, 1, builders.GPU),)
    assert not found.remedies


def test_an_empty_cluster_has_a_reason_of_its_own():
    found = diagnosis([], builders.entry(builders.pod("p")))
    assert (found.verdict, found.rejections[0].reason, found.nodes) == (Verdict.UNSCHEDULABLE, Reason.NO_NODES, 0)
    assert found.wakes_on == {Cure.NODE_ADDED}


def test_a_class_that_fits_nowhere_is_a_proof():
    found = diagnosis(builders.nodes("n", 3, gpus=8), gang(2, builders.pod("a", gpus=1), builders.pod("b", gpus=9)))
    assert found.proven and found.placed == 1
    assert not found.pods[Key("default", "a")].rejections
    assert found.pods[Key("default", "b")].rejections == (Rejection(Reason.INSUFFICIENT, 3, builders.GPU),)


def test_the_first_unplaced_member_speaks_for_the_group():
    members = [replace(builders.pod("old", cpu=999_000), created=1), builders.pod("young", gpus=9)]
    found = diagnosis([builders.node("n", gpus=8)], gang(2, *members))
    assert found.rejections == (Rejection(Reason.INSUFFICIENT, 1, "cpu"),)


def remedies(nodes, entry, bound=()):
    return {remedy.action: remedy for remedy in diagnosis(nodes, entry, bound).remedies}


def test_uncordoning_lifts_the_taint_of_the_cordon_too():
    cordon = builders.taint("node.kubernetes.io/unschedulable")
    nodes = [
        builders.node("small", cpu=1000, unschedulable=True, taints=[cordon]),
        builders.node("large", cpu=4000, unschedulable=True, taints=[cordon]),
        builders.node("away", cpu=8000, unschedulable=True, taints=[cordon, builders.taint("dedicated")]),
    ]
    found = remedies(nodes, gang(2, *builders.pods("p", 2, cpu=2000)))
    assert found["uncordon"] == Remedy("uncordon", 1, "", "large")


def test_freeing_is_offered_only_where_one_resource_is_all_that_is_short():
    node = builders.node("n", cpu=4000, memory=4)
    one, both = builders.pod("one", cpu=3000, node="n"), builders.pod("both", cpu=3000, memory=3, node="n")
    waiting = builders.entry(builders.pod("p", cpu=4000, memory=4))
    assert remedies([node], waiting, [one])["free"] == Remedy("free", 3000, "cpu", "n")
    assert "free" not in remedies([node], waiting, [both])


def test_nobody_is_asked_to_free_what_nobody_holds():
    assert "free" not in remedies([builders.node("n", cpu=4000)], builders.entry(builders.pod("p", cpu=5000)))
    mates = gang(4, *builders.pods("p", 4, cpu=4000))
    assert "free" not in remedies(builders.nodes("n", 2, cpu=7000), mates)


def test_fragments_add_up_over_the_nearest_nodes():
    nodes = builders.nodes("n", 4, cpu=4000)
    bound = [builders.pod(f"f{i}", cpu=1000, node=f"n{i}") for i in range(1, 5)]
    entry = gang(2, *builders.pods("p", 2, cpu=4000))
    assert remedies(nodes, entry, bound)["free"] == Remedy("free", 2000, "cpu", "2 nodes")
    assert diagnosis(nodes, entry, bound).shortfall == Shortfall("cpu", 2000, nodes=2)


def test_another_node_is_not_offered_to_a_pod_bound_to_this_one():
    full = [builders.pod("f", cpu=3000, node="n")]
    by_label = builders.entry(builders.pod("p", cpu=4000, selector={"kubernetes.io/hostname": "n"}))
    by_name = builders.entry(builders.pod("p", cpu=4000, required=[builders.term((None, "In", ("n",)))]))
    free = builders.entry(builders.pod("p", cpu=4000))
    nodes = [builders.node("n", cpu=4000)]
    assert [("add-nodes" in remedies(nodes, e, full)) for e in (by_label, by_name, free)] == [False, False, True]


def test_of_unlike_missing_members_the_first_speaks_for_itself_only():
    pods = [*builders.pods("a", 2, cpu=1000, gpus=1), builders.pod("c", cpu=4000)]
    found = diagnosis([builders.node("n", cpu=4000, gpus=1)], gang(3, *pods))
    assert found.shortfall == Shortfall(builders.GPU, 1, "n")


def test_absurd_amounts_do_not_overflow():
    most = (1 << 63) - 1
    nodes = [builders.node("n", cpu=4000, memory=most), builders.node("m", cpu=most, memory=most)]
    pods = [builders.pod("big", cpu=most - 1), *builders.pods("p", 300, cpu=4000, memory=most)]
    found = diagnosis(nodes, gang(301, *pods))
    assert (found.verdict, found.placed, found.proven) == (Verdict.UNSCHEDULABLE, 2, True)
    assert all(remedy.amount > 0 for remedy in found.remedies)
    assert diagnosis([builders.node("n", cpu=4000)], builders.entry(builders.pod("p", cpu=most))).shortfall.lacking > 0


def test_several_kinds_that_are_missing_are_each_told_with_what_they_lack():
    nodes = builders.nodes("n", 2, cpu=8000, gpus=4)
    bound = [builders.pod(f"f{i}", gpus=3, node=f"n{i}") for i in (1, 2)]
    workers = builders.pods("w", 3, gpus=2)
    found = diagnosis(nodes, gang(5, *workers, builders.pod("head", cpu=9000), builders.pod("side", cpu=10000)), bound)
    assert [(lack.pod, lack.pods) for lack in found.lacks] == [("w1", 3), ("head", 1), ("side", 1)]
    assert found.lacks[0].shortfall == Shortfall(builders.GPU, 4, nodes=2)
    assert found.lacks[1].shortfall == Shortfall("cpu", 1000, "n1", asked=9000, most=8000)
    said = verdict(found)
    assert "missing: 3 like w1 (the 2 nearest nodes lack 4 nvidia.com/gpu in sum), 1 like head (each asks" in said
    assert "and 1 more kind" in said


def test_one_kind_is_told_once():
    assert diagnosis(builders.nodes("n", 2, gpus=4), gang(12, *builders.pods("p", 12, gpus=1))).lacks == ()
