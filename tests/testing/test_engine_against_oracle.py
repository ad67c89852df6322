"""The engine against the oracle, on clusters small enough to look at everything.

`make test` looks at some hundreds of them, always the same; `make soak` at thousands, each time others. A failure is
shrunk by hypothesis to the smallest cluster that shows it, and printed.
"""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.engine.decide import decide
from muster.engine.work import Work
from muster.model.decision import Decision
from muster.model.diagnosis import Verdict
from muster.plugins import default_profile
from muster.testing import builders, oracle
from muster.testing.strategies import Instance, instances, puzzles

PROFILE = default_profile()
SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
QUICK = settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=SLOW_IS_FINE)
SOAK = settings(max_examples=6000, deadline=None, suppress_health_check=SLOW_IS_FINE, print_blob=True)


def decided(instance: Instance) -> Decision:
    return decide(instance.snapshot, instance.heads, PROFILE, now=0, budget=Work())


def judged(instance: Instance) -> list[str]:
    """Everything that is wrong with the engine's decision, one sentence each."""
    decision, view, wrong = decided(instance), instance.snapshot, []
    for head, plan, diagnosis in zip(instance.heads, decision.plans, decision.diagnoses, strict=True):
        answer, binds, name = oracle.can_place(view, head), plan.binds, head.key.key.name
        wrong += [f"{name}: {fault}" for fault in oracle.violations(view, head, binds)]
        wrong += [f"{name}: {fault}" for fault in _about_the_minimum(head, answer, binds, diagnosis)]
        wrong += [f"{name}: {fault}" for fault in _about_the_diagnosis(head, answer, binds, diagnosis)]
        view = oracle.after(view, head, binds)
        if binds:
            taken = {bind.pod for bind in binds}
            left = [pod for pod in head.pods if pod.key not in taken]
            fitting = [(str(pod.key), nodes) for pod in left if (nodes := oracle.feasible_nodes(view, head, pod))]
            wrong += [f"{name}: {pod} is left over and would fit on {nodes}" for pod, nodes in fitting]
    return wrong


def _about_the_minimum(head, answer, binds, diagnosis):
    if binds and len(binds) < head.needed:
        yield f"{len(binds)} bound, {head.needed} needed"
    if answer.feasible and not binds and diagnosis.proven:
        yield f"nothing bound, but {answer.most} can be placed: {dict(answer.assignment)}"
    if binds and oracle.mismatch(head):
        yield f"bound in spite of unlike {oracle.mismatch(head)}"


def _about_the_diagnosis(head, answer, binds, diagnosis):
    wanted = Verdict.SCHEDULED if binds else Verdict.ERROR if oracle.mismatch(head) else Verdict.UNSCHEDULABLE
    if diagnosis.verdict is not wanted:
        yield f"verdict {diagnosis.verdict.name}, not {wanted.name}"
    if diagnosis.entry != head.key or diagnosis.pending != len(head.pods):
        yield f"diagnosis of {diagnosis.entry} with {diagnosis.pending} pending members"
    if binds and diagnosis.placed != len(binds):
        yield f"{diagnosis.placed} said to be placed, {len(binds)} bound"
    if wanted is Verdict.UNSCHEDULABLE and diagnosis.proven and diagnosis.placed != answer.most:
        yield f"{diagnosis.placed} said to be placeable, {answer.most} are"
    unplaced = {pod.key for pod in head.pods} - {bind.pod for bind in binds}
    if wanted is not Verdict.ERROR and set(diagnosis.pods) != unplaced:
        yield f"verdicts for {sorted(map(str, diagnosis.pods))}, unplaced are {sorted(map(str, unplaced))}"


@QUICK
@given(instances())
def test_decisions_are_sound_complete_and_leave_nothing_that_would_fit(instance):
    assert judged(instance) == []


@pytest.mark.soak
@SOAK
@given(instances())
def test_thousands_of_decisions_are_sound_complete_and_leave_nothing_that_would_fit(instance):
    assert judged(instance) == []


@settings(QUICK, max_examples=200)
@given(puzzles())
def test_gangs_that_fill_every_node_are_placed(instance):
    assert judged(instance) == []


@pytest.mark.soak
@settings(SOAK, max_examples=3000)
@given(puzzles())
def test_thousands_of_gangs_that_fill_every_node_are_placed(instance):
    assert judged(instance) == []


@settings(QUICK, max_examples=100)
@given(instances(), st.randoms(use_true_random=False))
def test_the_order_in_which_nodes_and_pods_became_known_changes_nothing(instance, random):
    shuffled = replace(
        instance,
        nodes=tuple(random.sample(instance.nodes, len(instance.nodes))),
        bound=tuple(random.sample(instance.bound, len(instance.bound))),
        nominated=tuple(random.sample(instance.nominated, len(instance.nominated))),
    )
    assert decided(instance) == decided(instance) == decided(shuffled)


@settings(QUICK, max_examples=100)
@given(instances(by_name=False), st.randoms(use_true_random=False))
def test_other_names_of_nodes_do_not_change_how_many_are_placed(instance, random):
    names = [node.name for node in instance.nodes]
    other = instance.renamed(random.sample(names, len(names)))
    assert counts(decided(instance)) == counts(decided(other))


def counts(decision: Decision) -> list[int]:
    return [len(plan.binds) for plan in decision.plans]


@settings(QUICK, max_examples=100)
@given(instances())
def test_a_decision_leaves_the_snapshot_as_it_was(instance):
    view = instance.snapshot
    used, ports = view.used.tobytes(), {port: dict(counts) for port, counts in view.ports.items()}
    decide(view, instance.heads, PROFILE, now=0, budget=Work())
    assert view.used.tobytes() == used
    assert {port: dict(counts) for port, counts in view.ports.items()} == ports


def test_without_nodes_nothing_is_placed_and_nothing_breaks():
    head = builders.entry(*builders.pods("p", 2, gpus=1, group="g"), group=builders.group("g", 2))
    assert judged(Instance((), (), (), (head,))) == []


def test_the_strategy_makes_what_the_comparison_is_about():
    """Guards the generator: enough feasible and infeasible entries of each kind, or the tests above show little."""
    seen = {"feasible": 0, "infeasible": 0, "partial": 0, "ports": 0, "nominated": 0}

    @settings(QUICK, max_examples=200, database=None)
    @given(instances())
    def count(instance):
        for head in instance.heads[:1]:
            answer = oracle.can_place(instance.snapshot, head)
            seen["feasible" if answer.feasible else "infeasible"] += 1
            seen["partial"] += 0 < answer.most < len(head.pods)
            seen["ports"] += any(pod.cls.host_ports for pod in head.pods)
            seen["nominated"] += bool(instance.nominated)

    count()
    assert min(seen.values()) >= 10, seen
