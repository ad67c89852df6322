"""Groups with a topology constraint: which domain is chosen, what pins it, and what is said where none suffices."""

from dataclasses import replace

import pytest

from muster.engine.decide import decide
from muster.engine.profile import PlacementScore, ProfileError
from muster.engine.work import Work
from muster.model.diagnosis import Reason, Shortfall, Verdict
from muster.plugins import default_profile
from muster.testing import builders

PROFILE = default_profile()
RACK, BLOCK = "rack", "block"


def rack(value, count, **fields):
    """`count` nodes of one rack, `<value>-1` and so on; two accelerators each if nothing else is said."""
    return builders.nodes(f"{value}-", count, labels={RACK: value}, **{"gpus": 2, **fields})


def gang(size, minimum=None, bound=(), key=RACK, prefix="p", **fields):
    group = builders.group("g", size + len(bound) if minimum is None else minimum, topology_key=key)
    return builders.entry(*builders.pods(prefix, size, group="g", **{"gpus": 1, **fields}), group=group, bound=bound)


def decided(nodes, *heads, bound=(), profile=PROFILE, levels=()):
    bound = (*bound, *(pod for head in heads for pod in head.bound if pod.node in {node.name for node in nodes}))
    return decide(builders.snapshot(nodes, bound, levels=levels), heads, profile, now=0, budget=Work())


def places(decision, head=0):
    """The nodes of the bound pods, in pod order."""
    return [bind.node for bind in decision.plans[head].binds]


def racks(decision, head=0):
    return {name.split("-")[0] for name in places(decision, head)}


def test_all_members_share_one_domain():
    decision = decided((*rack("a", 1), *rack("b", 2)), gang(3))
    assert len(places(decision)) == 3
    assert racks(decision) == {"b"}


def test_of_domains_that_take_all_the_tightest_is_chosen():
    assert racks(decided((*rack("a", 3, cpu=2000), *rack("b", 2, cpu=2000)), gang(3, cpu=1000))) == {"b"}


def test_what_others_hold_counts_in_the_score_of_a_domain():
    other = builders.pod("x", cpu=2000, node="b-1")
    nodes = (*rack("a", 3, cpu=4000), *rack("b", 3, cpu=4000))
    assert racks(decided(nodes, gang(3, cpu=1000), bound=(other,))) == {"b"}


def test_a_domain_that_takes_more_members_beats_a_fuller_one():
    nodes = (*rack("a", 2, cpu=2000), *rack("b", 2, cpu=2000))
    other = builders.pod("x", cpu=1000, node="a-1")
    assert racks(decided(nodes, gang(4, minimum=2, cpu=1000, gpus=0), bound=(other,))) == {"b"}


def test_the_weights_of_the_placement_score_are_the_profiles():
    nodes = (*rack("a", 2, cpu=3000), *rack("b", 3, cpu=3000))
    head = gang(8, minimum=2, cpu=1000, gpus=0)
    assert racks(decided(nodes, head)) == {"b"}
    profile = replace(PROFILE, placement=PlacementScore(pod_count=0))
    assert racks(decided(nodes, head, profile=profile)) == {"a"}


@pytest.mark.parametrize(
    ("weights", "field"),
    [
        ({"pod_count": 101}, "podCount"),
        ({"allocation": True}, "allocation"),
        ({"pod_count": 0, "allocation": 0}, "podCount and allocation"),
        ({"resources": {"cpu": -1}}, "resources.cpu"),
        ({"resources": {"cpu": 0}}, "resources"),
    ],
)
def test_weights_that_make_no_sense_are_refused(weights, field):
    with pytest.raises(ProfileError, match=field):
        PlacementScore(**weights)


def test_a_running_member_fixes_the_domain():
    run = builders.pod("run", gpus=1, group="g", node="a-1")
    assert racks(decided((*rack("a", 2), *rack("b", 1)), gang(2, bound=(run,)))) == {"a"}


def test_later_members_wait_for_their_domain_though_others_are_free():
    run = builders.pod("run", gpus=2, group="g", node="a-1")
    decision = decided((*rack("a", 1), *rack("b", 2)), gang(1, bound=(run,)))
    assert places(decision) == []
    diagnosis = decision.diagnoses[0]
    assert (diagnosis.verdict, diagnosis.domain, diagnosis.placements) == (Verdict.UNSCHEDULABLE, "a", 1)
    assert diagnosis.deficits == (("a", 1),)


def test_running_members_in_two_domains_are_an_error_that_names_them():
    runs = [builders.pod(f"run-{name}", gpus=1, group="g", node=f"{name}-1") for name in "ab"]
    diagnosis = decided((*rack("a", 1), *rack("b", 1)), gang(1, bound=runs)).diagnoses[0]
    assert diagnosis.verdict is Verdict.ERROR
    assert diagnosis.rejections[0].reason is Reason.DOMAIN_SPLIT
    assert diagnosis.names == ("a", "b", RACK)


def test_a_running_member_outside_every_domain_is_an_error_that_names_it():
    run = builders.pod("run", gpus=1, group="g", node="bare")
    diagnosis = decided((builders.node("bare", gpus=2), *rack("a", 1)), gang(1, bound=(run,))).diagnoses[0]
    assert (diagnosis.verdict, diagnosis.rejections[0].reason) == (Verdict.ERROR, Reason.OUTSIDE_DOMAINS)
    assert diagnosis.names == ("run", "bare", RACK)


def test_members_on_lost_nodes_pin_nothing_while_others_do():
    runs = [builders.pod("run", gpus=1, group="g", node="a-1"), builders.pod("lost", gpus=1, group="g", node="gone")]
    assert racks(decided((*rack("a", 1), *rack("b", 1)), gang(1, bound=runs))) == {"a"}


def test_with_every_member_on_a_lost_node_nothing_is_placed_lest_the_group_be_split():
    lost = builders.pod("lost", gpus=1, group="g", node="gone")
    diagnosis = decided(rack("a", 1), gang(1, bound=(lost,))).diagnoses[0]
    assert (diagnosis.verdict, diagnosis.rejections[0].reason) == (Verdict.ERROR, Reason.DOMAIN_UNKNOWN)


def test_without_any_node_that_has_the_label_that_is_the_reason():
    diagnosis = decided(builders.nodes("n", 2, gpus=2), gang(2)).diagnoses[0]
    assert diagnosis.verdict is Verdict.UNSCHEDULABLE
    assert [(r.reason, r.detail) for r in diagnosis.rejections] == [(Reason.NO_DOMAINS, RACK)]
    assert diagnosis.placements == 0


def test_the_nearest_domain_is_told_with_what_it_lacks():
    diagnosis = decided((*rack("a", 1), *rack("b", 3), *rack("c", 2)), gang(8)).diagnoses[0]
    assert (diagnosis.domain, diagnosis.placements, diagnosis.placed) == ("b", 3, 6)
    assert diagnosis.deficits == (("a", 6), ("b", 2), ("c", 4))
    assert diagnosis.shortfall == Shortfall(builders.GPU, 2, "rack b", nodes=2)
    assert diagnosis.nodes == 3


def test_a_gang_that_fits_the_cluster_but_no_domain_binds_nothing():
    decision = decided((*rack("a", 1), *rack("b", 1)), gang(3))
    assert places(decision) == []
    assert decision.diagnoses[0].proven


def test_unlike_pods_find_the_one_domain_that_takes_them_all():
    nodes = (
        *builders.nodes("a-", 2, labels={RACK: "a"}, gpus=3),
        *builders.nodes("b-", 2, labels={RACK: "b"}, gpus=4),
        *builders.nodes("c-", 3, labels={RACK: "c"}, gpus=2),
    )
    members = [builders.pod(f"p{gpus}{n}", gpus=gpus, group="g") for n, gpus in enumerate((3, 3, 1, 1))]
    head = builders.entry(*members, group=builders.group("g", 4, topology_key=RACK))
    assert racks(decided(nodes, head)) == {"b"}


def test_each_head_sees_what_the_earlier_ones_took_of_a_domain():
    one = gang(2, prefix="p")
    two = replace(gang(2, prefix="q"), key=one.key._replace(key=one.key.key._replace(name="h")))
    decision = decided((*rack("a", 1), *rack("b", 1)), one, two)
    assert racks(decision, 0) == {"a"}
    assert racks(decision, 1) == {"b"}


def test_the_same_value_of_another_key_is_no_domain():
    nodes = (builders.node("n1", gpus=4, labels={BLOCK: "a"}), builders.node("n2", gpus=2, labels={RACK: "a"}))
    assert places(decided(nodes, gang(2))) == ["n2", "n2"]
