"""Pods that look at each other, alone and in groups: the engine against trying every order."""

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine_against_oracle import SLOW_IS_FINE

from muster.engine.decide import decide
from muster.engine.fit import still_fits
from muster.engine.work import Work
from muster.model.diagnosis import Reason
from muster.model.neighbours import (
    LabelRequirement,
    PodDemands,
    PodSelector,
    PodTerm,
    SpreadConstraint,
    WeightedTerm,
)
from muster.model.plan import Plan
from muster.model.records import PodRecord, QueueEntry
from muster.plugins import default_profile
from muster.testing import builders, company
from muster.testing.strategies import rarely

PROFILE = default_profile()
ZONE, HOST, ROOM = "zone", builders.HOSTNAME, "room"
SPACES = {"default": {"team": "a"}, "other": {"team": "b"}}
QUICK = settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=SLOW_IS_FINE)
SOAK = settings(max_examples=6000, deadline=None, suppress_health_check=SLOW_IS_FINE, print_blob=True)

KEYS = st.sampled_from((ZONE, HOST, HOST, ROOM))


@st.composite
def selectors(draw: st.DrawFn) -> PodSelector:
    requirements = draw(
        st.sampled_from(
            (
                (LabelRequirement("app", "In", ("a",)),),
                (LabelRequirement("app", "In", ("a", "b")),),
                (LabelRequirement("app", "In", ("b",)),),
                (LabelRequirement("app", "NotIn", ("a",)),),
                (LabelRequirement("app", "Exists"),),
                (),
                None,
            )
        )
    )
    anywhere = draw(rarely(st.sampled_from(((), (LabelRequirement("team", "In", ("b",)),))), None))
    return PodSelector(requirements, ("default",), anywhere)


@st.composite
def demands(draw: st.DrawFn) -> PodDemands | None:
    kind = draw(st.sampled_from(("none", "apart", "apart", "near", "spread", "spread", "mixed")))

    def terms(most: int) -> tuple[PodTerm, ...]:
        return tuple(draw(st.lists(st.builds(PodTerm, selectors(), KEYS), min_size=1, max_size=most)))

    def constraints() -> tuple[SpreadConstraint, ...]:
        flag = st.booleans()
        size = st.sampled_from((1, 1, 2))
        one = st.builds(
            SpreadConstraint, selectors(), KEYS, size, st.sampled_from((True, True, False)), size, flag, flag
        )
        return tuple(draw(st.lists(one, min_size=1, max_size=2, unique_by=lambda c: (c.topology_key, c.hard))))

    if kind == "none":
        return None
    return PodDemands(
        affinity=terms(2) if kind in ("near", "mixed") else (),
        anti_affinity=terms(2) if kind in ("apart", "mixed") else (),
        preferred=tuple(WeightedTerm(draw(st.sampled_from((-5, 5))), term) for term in terms(1)),
        spread=constraints() if kind == "spread" else (),
    )


@dataclass(frozen=True)
class Question:
    world: company.World
    entry: QueueEntry

    @property
    def snapshot(self):
        known = {name for pod in self.entry.pods for name, _ in pod.cls.requests}
        world, pending = self.world, self.entry.pods
        return builders.snapshot(world.nodes, world.bound, known=known, pending=pending, spaces=world.spaces)

    @property
    def plan(self) -> Plan:
        return decide(self.snapshot, [self.entry], PROFILE, now=0).plans[0]


@st.composite
def questions(draw: st.DrawFn, members: int = 4) -> Question:
    zones = [draw(st.sampled_from(("z1", "z1", "z2", ""))) for _ in range(draw(st.integers(1, 4)))]
    nodes = []
    for number, zone in enumerate(zones, 1):
        labels = {ZONE: zone, ROOM: draw(st.sampled_from(("r1", "r2", "")))}
        taints = draw(rarely(st.just((builders.taint("dedicated", "x"),)), ()))
        labels = {key: value for key, value in labels.items() if value}
        cpu = draw(st.integers(1, 4)) * 1000
        nodes.append(builders.node(f"n{number}", cpu=cpu, labels=labels, taints=taints))
    classes = [
        builders.pod_class(
            cpu=draw(st.sampled_from((0, 1000, 2000))),
            demands=draw(demands()),
            selector=draw(rarely(st.just({ZONE: "z1"}), {})),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]

    def one(name: str, group: str | None, node: str | None, namespace: str = "default") -> PodRecord:
        labels = {"app": draw(st.sampled_from("ab")), "index": name}
        cls = draw(st.sampled_from(classes))
        return builders.pod(name, cls, labels=labels, group=group, node=node, namespace=namespace)

    bound = []
    for number in range(draw(st.sampled_from((0, 0, 1, 2)))):
        space = draw(st.sampled_from(("default", "other")))
        bound.append(one(f"b{number}", None, draw(st.sampled_from(nodes)).name, space))
    size = draw(st.integers(1, members))
    if size == 1:
        entry = builders.entry(one("p", None, None))
    else:
        minimum = draw(st.one_of(st.just(size), st.integers(1, size)))
        entry = builders.entry(
            *(one(f"p{rank}", "g", None) for rank in range(size)), group=builders.group("g", minimum)
        )
    return Question(company.World(nodes, bound, SPACES), entry)


def judged(question: Question) -> list[str]:
    decision = decide(question.snapshot, [question.entry], PROFILE, now=0, budget=Work())
    plan, diagnosis = decision.plans[0], decision.diagnoses[0]
    wrong = []
    if plan.binds and not company.is_possible(question.world, question.entry, plan.binds):
        wrong.append(f"in no order can it be done: {plan.binds}")
    if plan.binds and len(plan.binds) < question.entry.needed:
        wrong.append("less than the minimum is bound")
    best = company.most(question.world, question.entry)
    if best >= question.entry.needed and not plan.binds:
        wrong.append(f"{best} can be placed, and it was {'called impossible' if diagnosis.proven else 'not found'}")
    return wrong


@QUICK
@given(questions())
def test_whatever_can_be_placed_in_some_order_is_and_nothing_else(question: Question) -> None:
    assert judged(question) == []


@pytest.mark.soak
@SOAK
@given(questions())
def test_whatever_can_be_placed_in_some_order_is_and_nothing_else_soak(question: Question) -> None:
    assert judged(question) == []


@QUICK
@given(questions(members=1))
def test_each_node_is_rejected_for_the_reason_that_comes_first(question: Question) -> None:
    diagnosis = decide(question.snapshot, [question.entry], PROFILE, now=0).diagnoses[0]
    (pod,), world = question.entry.pods, question.world
    expected = Counter(company.rejection(world, world.there, pod, node) for node in world.nodes)
    if Reason.NONE in expected:
        return
    found: Counter[Reason] = Counter()
    for rejection in diagnosis.rejections:
        static = rejection.reason in (Reason.NODE_TAINTED, Reason.NODE_UNSCHEDULABLE)
        found[Reason.NODE_SELECTOR if static else rejection.reason] += rejection.nodes
    assert found == expected


@QUICK
@given(questions())
def test_the_check_before_a_commit_takes_every_plan(question: Question) -> None:
    plan = question.plan
    pods = {pod.key: pod for pod in question.entry.pods}
    if plan.binds:
        assert still_fits(question.snapshot, PROFILE, [(pods[bind.pod], bind.node) for bind in plan.binds])
