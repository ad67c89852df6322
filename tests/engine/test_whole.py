"""Groups and hierarchies of members that look at each other, asked about as one program."""

from __future__ import annotations

import numpy as np
import pytest

from muster.engine.decide import decide
from muster.engine.kinds import Kinds
from muster.engine.search import Outcome
from muster.engine.trial import Trial
from muster.engine.whole import LARGEST, Cell, Part, draw, in_some_order
from muster.model.diagnosis import Verdict
from muster.model.neighbours import LabelRequirement, PodDemands, PodSelector, PodTerm, SpreadConstraint
from muster.plugins import default_profile
from muster.testing import builders
from muster.testing.mixed import mixed
from muster.testing.solver import solve
from muster.testing.truth import unsound

ZONE = "zone"
WEB = PodSelector((LabelRequirement("app", "In", ("web",)),), ("default",))
NEAR = PodDemands(affinity=(PodTerm(WEB, ZONE),))
APART = PodDemands(anti_affinity=(PodTerm(WEB, ZONE),))
EVEN = PodDemands(spread=(SpreadConstraint(WEB, ZONE, 1, hard=True),))


def world(zones, *roles, **room):
    """A node for each zone named, and (trial, class of the first pod of each role)."""
    cluster = [builders.node(f"n{n}", labels={ZONE: zone}, **room) for n, zone in enumerate(zones)]
    pods = [
        builders.pod(f"p{n}", builders.pod_class(demands=demands, cpu=1 + n), labels={"app": app})
        for n, (demands, app) in enumerate(roles)
    ]
    snapshot = builders.snapshot(cluster, pending=pods)
    kinds = Kinds(snapshot, pods)
    classes = [kinds.of(pod) for pod in pods]
    trial = Trial(snapshot, default_profile(), classes, kinds)
    return trial, [trial.class_of(pod) for pod in pods]


def flat(need, *members):
    return Part(need, members=tuple(members))


def outcome(trial, part):
    return draw(trial, part, 1_000).outcome


@pytest.mark.parametrize(("count", "expected"), [(3, Outcome.FOUND), (4, Outcome.IMPOSSIBLE)])
def test_of_those_who_keep_each_other_out_there_is_one_in_a_domain(count, expected):
    trial, (web,) = world("aabbc", (APART, "web"))
    assert outcome(trial, flat(count, (web, count))) is expected


def test_two_roles_that_keep_each_other_out_need_a_domain_each():
    trial, (web, other) = world("ab", (APART, "web"), (APART, "web"))
    assert outcome(trial, flat(2, (web, 1), (other, 1))) is Outcome.FOUND
    trial, (web, other) = world("a", (APART, "web"), (APART, "web"))
    assert outcome(trial, flat(2, (web, 1), (other, 1))) is Outcome.IMPOSSIBLE


def test_those_who_are_kept_out_may_come_first_where_nobody_keeps_them_out_again():
    trial, (spread, plain) = world("ab", (EVEN, "web"), (None, "web"))
    drawn = draw(trial, flat(4, (spread, 2), (plain, 2)), 1_000)
    assert drawn.outcome is Outcome.FOUND and sum(cell.many for cell in drawn.cells) == 4


def test_who_wants_company_is_near_it_or_is_the_first():
    trial, (web, lonely) = world("ab", (NEAR, "web"), (NEAR, "db"))
    assert outcome(trial, flat(1, (lonely, 1))) is Outcome.IMPOSSIBLE
    assert outcome(trial, flat(2, (web, 1), (lonely, 1))) is Outcome.FOUND


def test_nobody_begins_twice():
    trial, (web,) = world("ab", (NEAR, "web"), pods=2)
    assert outcome(trial, flat(2, (web, 3))) is Outcome.FOUND
    trial, (web,) = world("ab", (NEAR, "web"), pods=2)
    assert outcome(trial, flat(3, (web, 3))) is Outcome.IMPOSSIBLE


@pytest.mark.parametrize(("count", "expected"), [(3, Outcome.FOUND), (4, Outcome.IMPOSSIBLE)])
def test_the_emptiest_domain_limits_the_others(count, expected):
    cluster = [builders.node("a", pods=9, labels={ZONE: "a"}), builders.node("b", pods=1, labels={ZONE: "b"})]
    pod = builders.pod("p", builders.pod_class(demands=EVEN), labels={"app": "web"})
    snapshot = builders.snapshot(cluster, pending=[pod])
    kinds = Kinds(snapshot, [pod])
    trial = Trial(snapshot, default_profile(), [kinds.of(pod)], kinds)
    assert outcome(trial, flat(count, (trial.class_of(pod), 5))) is expected


def test_children_share_the_domain_of_their_parent_and_nobody_is_left_on_the_ledger_without_an_answer():
    trial, (web,) = world("ab", (APART, "web"))
    halves = [np.array([0]), np.array([1])]
    both = (flat(1, (web, 1)), flat(1, (web, 1)))
    before = trial.ledger.used.copy()
    assert outcome(trial, Part(2, both, domains=halves)) is Outcome.IMPOSSIBLE
    assert (trial.ledger.used == before).all()
    assert outcome(trial, Part(2, both)) is Outcome.FOUND
    assert outcome(trial, Part(1, both, domains=halves)) is Outcome.IMPOSSIBLE  # both zones have their pod by now


def test_an_order_is_found_for_what_fits_and_nothing_is_placed_for_what_does_not():
    trial, (lonely, web) = world("ab", (NEAR, "db"), (NEAR, "web"))
    part = flat(2, (lonely, 1), (web, 1))
    before = trial.ledger.used.copy()
    assert not in_some_order(trial, [Cell(part, 0, 0, 1), Cell(part, 1, 1, 1)])
    assert (trial.ledger.used == before).all()
    assert in_some_order(trial, [Cell(part, 0, 0, 1), Cell(part, 1, 0, 1)])


def test_alike_nodes_are_one_in_large_questions_and_that_proves_but_places_nothing():
    trial, (web,) = world("a" * LARGEST + "b", (EVEN, "web"))
    assert outcome(trial, flat(4, (web, 4))) is Outcome.STOPPED
    cluster = [builders.node(f"n{n}", pods=9, labels={ZONE: "a"}) for n in range(LARGEST)]
    cluster.append(builders.node("small", pods=1, labels={ZONE: "b"}))
    pod = builders.pod("p", builders.pod_class(demands=EVEN), labels={"app": "web"})
    snapshot = builders.snapshot(cluster, pending=[pod])
    kinds = Kinds(snapshot, [pod])
    trial = Trial(snapshot, default_profile(), [kinds.of(pod)], kinds)
    assert outcome(trial, flat(4, (trial.class_of(pod), 4))) is Outcome.IMPOSSIBLE
    assert outcome(trial, flat(3, (trial.class_of(pod), 4))) is Outcome.STOPPED


def test_the_largest_questions_are_left_to_the_search():
    cluster = [builders.node(f"n{n}", cpu=n + 1, labels={ZONE: "a"}) for n in range(LARGEST + 1)]
    pod = builders.pod("p", builders.pod_class(demands=EVEN, cpu=1), labels={"app": "web"})
    snapshot = builders.snapshot(cluster, pending=[pod])
    kinds = Kinds(snapshot, [pod])
    trial = Trial(snapshot, default_profile(), [kinds.of(pod)], kinds)
    assert draw(trial, flat(1, (trial.class_of(pod), 1)), 1_000) == (Outcome.STOPPED, 0, (), {}, frozenset())


@pytest.mark.parametrize("number", [2927, 2933, 4247, 4973, 10547])
def test_a_hierarchy_whose_members_close_nodes_to_each_other_is_proven_impossible_in_the_first_attempt(number):
    instance = mixed(number)
    diagnosis = decide(instance.snapshot, [instance.entry], default_profile(), now=0).diagnoses[0]
    assert solve(instance.world, instance.entry).possible is False
    assert diagnosis.verdict is Verdict.UNSCHEDULABLE and diagnosis.proven


def test_a_gang_whose_members_must_come_in_a_certain_order_is_placed_in_the_first_attempt():
    instance = mixed(10035)  # the spread ones fit only once others have come to the emptiest rack
    plan = decide(instance.snapshot, [instance.entry], default_profile(), now=0).plans[0]
    assert plan.binds and not list(unsound(instance, plan.binds))


@pytest.mark.parametrize("number", [1738, 4018, 4335, 7552])
def test_a_group_whose_members_close_nodes_to_each_other_is_proven_impossible_in_the_first_attempt(number):
    instance = mixed(number)
    diagnosis = decide(instance.snapshot, [instance.entry], default_profile(), now=0).diagnoses[0]
    assert solve(instance.world, instance.entry).possible is False
    assert diagnosis.verdict is Verdict.UNSCHEDULABLE and diagnosis.proven


def test_a_hierarchy_whose_members_find_room_in_few_orders_only_is_placed_in_the_first_attempt():
    instance = mixed(2027)
    plan = decide(instance.snapshot, [instance.entry], default_profile(), now=0).plans[0]
    assert plan.binds and not list(unsound(instance, plan.binds))
