"""Groups with a topology constraint against the oracle, which tries every domain by itself."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.engine.decide import decide
from muster.engine.work import Work
from muster.model.diagnosis import Verdict
from muster.plugins import default_profile
from muster.testing import builders, oracle
from muster.testing.strategies import SCARCE, TIER, ZONE, Instance, instances, puzzles

PROFILE = default_profile()
SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
QUICK = settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=SLOW_IS_FINE)
SOAK = settings(max_examples=4000, deadline=None, suppress_health_check=SLOW_IS_FINE, print_blob=True)


def constrained(instance: Instance, keys) -> Instance:
    """The same, with a topology key for every group that has one in `keys` (None: left as it is)."""
    heads = tuple(
        replace(head, group=replace(head.group, topology_key=key)) if head.group and key else head
        for head, key in zip(instance.heads, keys, strict=False)
    )
    return replace(instance, heads=heads)


KEYS = st.lists(st.sampled_from((ZONE, ZONE, TIER, None)), min_size=3, max_size=3)
LEVELS = st.sampled_from(((), (ZONE,), (ZONE, TIER), (TIER,)))
RACKED = st.builds(constrained, instances(nodes=7), KEYS)


@st.composite
def tight(draw):
    """Two gangs' worth of nodes, each filled to the last bit by one gang, and only the second is asked for."""
    here, other = draw(puzzles(nodes=3)), draw(puzzles(nodes=3))
    first = tuple(replace(node, labels={**node.labels, ZONE: "a"}) for node in here.nodes)
    second = tuple(replace(node, name=f"m{node.name}", labels={ZONE: "b"}) for node in other.nodes)
    return constrained(Instance((*first, *second), (), (), other.heads), (ZONE,))


def decided(instance, levels=()):
    view = builders.snapshot(
        instance.nodes,
        instance.bound,
        nominations=[builders.nomination(pod, node) for pod, node in instance.nominated],
        known={name for pod in instance.pods for name, _ in pod.cls.requests if name != SCARCE},
        levels=levels,
    )
    return decide(view, instance.heads, PROFILE, now=0, budget=Work()), view


def judged(instance, levels=()) -> list[str]:
    (decision, view), wrong = decided(instance, levels), []
    for head, plan, diagnosis in zip(instance.heads, decision.plans, decision.diagnoses, strict=True):
        answer, name = oracle.can_place(view, head), head.key.key.name
        wrong += [f"{name}: {fault}" for fault in oracle.violations(view, head, plan.binds)]
        wrong += [f"{name}: {fault}" for fault in faults(view, head, answer, plan.binds, diagnosis)]
        view = oracle.after(view, head, plan.binds)
    return wrong


def faults(view, head, answer, binds, diagnosis):
    if binds and len(binds) < head.needed:
        yield f"{len(binds)} bound, {head.needed} needed"
    if answer.feasible and not binds and diagnosis.proven:
        yield f"nothing bound, but {answer.most} can be placed: {dict(answer.assignment)}"
    if diagnosis.placed > answer.most:
        yield f"{diagnosis.placed} said to be placeable, {answer.most} are"
    alike = len({pod.cls for pod in head.pods}) == 1
    if alike and diagnosis.domain and diagnosis.placed != answer.most and diagnosis.verdict is Verdict.UNSCHEDULABLE:
        yield f"{diagnosis.placed} said to be placeable in the nearest domain, {answer.most} are"
    error = bool(oracle.mismatch(head)) or (head.group and head.group.topology_key and not clear(view, head))
    if bool(error) != (diagnosis.verdict is Verdict.ERROR) and len(view.nodes):
        yield f"verdict {diagnosis.verdict.name} though {'in error' if error else 'not in error'}"
    if diagnosis.deficits and alike:
        yield from wrong_deficits(view, head, dict(diagnosis.deficits))


def clear(view, head) -> bool:
    """Whether running members leave a domain."""
    return not head.bound or bool(oracle.domains(view, head))


def wrong_deficits(view, head, deficits):
    """What a domain is said to lack is what the group lacks if that domain were the whole cluster."""
    for value, names in oracle.domains(view, head).items():
        most = oracle.most_on(view, head, names)
        if deficits[value] != head.needed - most:
            yield f"{value} is said to lack {deficits[value]}, it takes {most} of {head.needed}"


@QUICK
@given(RACKED, LEVELS)
def test_decisions_about_domains_are_sound_and_complete(instance, levels):
    assert judged(instance, levels) == []


@pytest.mark.soak
@SOAK
@given(RACKED, LEVELS)
def test_thousands_of_decisions_about_domains_are_sound_and_complete(instance, levels):
    assert judged(instance, levels) == []


@settings(QUICK, max_examples=100)
@given(tight())
def test_the_only_domain_that_takes_a_tight_gang_is_found(instance):
    assert judged(instance) == []


@settings(QUICK, max_examples=100)
@given(instances(nodes=7), LEVELS)
def test_keeping_groups_together_costs_nobody_a_place(instance, levels):
    assert judged(instance, levels) == []
    loose, close = decided(instance)[0], decided(instance, levels)[0]
    first = (len(loose.plans[0].binds), len(close.plans[0].binds))
    assert first[0] == first[1] or not close.diagnoses[0].proven


@settings(QUICK, max_examples=60)
@given(RACKED, st.randoms(use_true_random=False))
def test_the_order_in_which_nodes_became_known_changes_nothing(instance, random):
    shuffled = replace(instance, nodes=tuple(random.sample(instance.nodes, len(instance.nodes))))
    assert decided(instance)[0] == decided(shuffled)[0]


def test_the_strategy_makes_constrained_groups_of_every_kind():
    seen = {"feasible": 0, "infeasible": 0, "split": 0, "pinned": 0, "several": 0}

    @settings(QUICK, max_examples=300, database=None)
    @given(RACKED)
    def count(instance):
        view = instance.snapshot
        for head in instance.heads[:1]:
            if head.group and head.group.topology_key:
                places = oracle.domains(view, head)
                seen["feasible" if oracle.can_place(view, head).feasible else "infeasible"] += 1
                seen["split"] += bool(head.bound) and not places
                seen["pinned"] += bool(head.bound) and len(places) == 1
                seen["several"] += len(places) > 1

    count()
    assert min(seen.values()) >= 8, seen
