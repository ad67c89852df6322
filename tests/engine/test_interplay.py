"""Groups whose members look at each other."""

import pytest

from muster.engine.decide import decide
from muster.engine.kinds import Kinds
from muster.model.diagnosis import Reason, Verdict
from muster.model.neighbours import (
    LabelRequirement,
    PodDemands,
    PodSelector,
    PodTerm,
    SpreadConstraint,
    WeightedTerm,
)
from muster.plugins import default_profile
from muster.testing import builders

PROFILE = default_profile()
ZONE, HOST = "zone", builders.HOSTNAME
WEB = PodSelector((LabelRequirement("app", "In", ("web",)),), ("default",))
APART = PodDemands(anti_affinity=(PodTerm(WEB, HOST),))
ONE_A_ZONE = PodDemands(anti_affinity=(PodTerm(WEB, ZONE),))
EVEN = PodDemands(spread=(SpreadConstraint(WEB, ZONE, 1, hard=True),))


def nodes(count, zones=1, **fields):
    return [builders.node(f"n{n:03d}", labels={ZONE: f"z{n % zones}"}, **fields) for n in range(count)]


def gang(count, demands, *, group=None, **fields):
    """Alike pods, but for a label of their own that nobody selects by."""
    cls = builders.pod_class(demands=demands, **fields)
    members = [builders.pod(f"p{n:04d}", cls, group="g", labels={"app": "web", "index": str(n)}) for n in range(count)]
    return builders.entry(*members, group=group or builders.group("g", count))


def decided(cluster, *entries, bound=()):
    pending = [pod for entry in entries for pod in entry.pods]
    return decide(builders.snapshot(cluster, bound, pending=pending), entries, PROFILE, now=0)


def placed(decision, entry=0):
    return [bind.node for bind in decision.plans[entry].binds]


def test_labels_that_nobody_selects_by_do_not_tell_pods_apart():
    entry = gang(1000, APART)
    kinds = Kinds(builders.snapshot([], pending=entry.pods), entry.pods)
    assert len({kinds.of(pod) for pod in entry.pods}) == 1


@pytest.mark.parametrize("demands", [APART, ONE_A_ZONE], ids=["host", "zone"])
def test_a_gang_of_one_a_domain_fills_every_domain_and_not_one_more(demands):
    cluster = nodes(60, zones=60)
    assert sorted(placed(decided(cluster, gang(60, demands)))) == [node.name for node in cluster]
    diagnosis = decided(cluster, gang(61, demands)).diagnoses[0]
    assert (diagnosis.verdict, diagnosis.proven, diagnosis.placed) == (Verdict.UNSCHEDULABLE, True, 60)
    assert diagnosis.rejections == ((Reason.POD_ANTI_AFFINITY, 60, diagnosis.rejections[0].detail),)


def test_pods_that_come_apart_of_each_other_in_one_decision_see_each_other():
    entries = [builders.entry(builders.pod(name, demands=APART, labels={"app": "web"})) for name in "abc"]
    decision = decided(nodes(2), *entries)
    assert sorted(placed(decision, 0) + placed(decision, 1)) == ["n000", "n001"]
    assert decision.diagnoses[2].rejections[0][:2] == (Reason.POD_ANTI_AFFINITY, 2)


def test_an_even_gang_is_as_even_as_its_constraint_demands():
    cluster = nodes(9, zones=3, cpu=4000)
    chosen = placed(decided(cluster, gang(12, EVEN, cpu=1000)))
    zones = {node.name: node.labels[ZONE] for node in cluster}
    assert sorted(zones[name] for name in chosen) == ["z0"] * 4 + ["z1"] * 4 + ["z2"] * 4


def test_a_domain_that_is_full_holds_up_an_even_gang_and_the_proof_is_told():
    cluster = [*nodes(2, zones=2, cpu=1000), builders.node("roomy", labels={ZONE: "z1"})]
    diagnosis = decided(cluster, gang(4, EVEN, cpu=1000)).diagnoses[0]
    assert (diagnosis.placed, diagnosis.proven) == (3, True)
    assert {rejection.reason for rejection in diagnosis.rejections} >= {Reason.TOPOLOGY_SPREAD}


def test_pods_that_want_a_leader_wait_for_it_in_whichever_order_they_come():
    leader = PodSelector((LabelRequirement("app", "In", ("leader",)),), ("default",))
    near = builders.pod_class(cpu=1000, demands=PodDemands(affinity=(PodTerm(leader, ZONE),)))
    followers = [builders.pod(f"a{n}", near, group="g", labels={"app": "web"}) for n in range(3)]
    # Only the zone z1 has room for the leader, whose node selector knows nothing of it.
    head = builders.pod("z", group="g", cpu=8000, labels={"app": "leader"})
    entry = builders.entry(*followers, head, group=builders.group("g", 4))
    cluster = [builders.node(f"n{n}", cpu=4000 if n < 4 else 9000, labels={ZONE: f"z{n // 4}"}) for n in range(5)]
    cluster.append(builders.node("n5", cpu=2000, labels={ZONE: "z1"}))
    assert sorted(placed(decided(cluster, entry))) == ["n4", "n4", "n5", "n5"]


def test_preferences_draw_and_repel_without_keeping_anybody_out():
    wish = PodDemands(preferred=(WeightedTerm(-10, PodTerm(WEB, HOST)),))
    bound = [builders.pod("w", node="n000", labels={"app": "web"})]
    pod = builders.entry(builders.pod("p", demands=wish))
    assert placed(decided(nodes(2), pod, bound=bound)) == ["n001"]
    assert placed(decided(nodes(1), pod, bound=bound)) == ["n000"]


def test_a_running_pod_that_wants_to_be_alone_keeps_others_out():
    bound = [builders.pod("hermit", node="n000", demands=ONE_A_ZONE)]
    pod = builders.entry(builders.pod("p", labels={"app": "web"}))
    assert placed(decided(nodes(4, zones=2), pod, bound=bound)) in (["n001"], ["n003"])
    diagnosis = decided(nodes(4), pod, bound=bound).diagnoses[0]
    assert diagnosis.rejections[0][:2] == (Reason.EXISTING_ANTI_AFFINITY, 4)


def test_members_of_a_constrained_group_are_spread_inside_its_domain():
    group = builders.group("g", 4, topology_key="rack")
    inside = PodDemands(spread=(SpreadConstraint(WEB, ZONE, 1, hard=True),))
    cluster = [
        builders.node(f"r{rack}-{n}", cpu=2000, labels={"rack": str(rack), ZONE: f"z{n if rack else 0}"})
        for rack in range(2)
        for n in range(2)
    ]
    chosen = placed(decided(cluster, gang(4, inside, group=group, cpu=1000)))
    assert sorted(chosen) == ["r1-0", "r1-0", "r1-1", "r1-1"]
