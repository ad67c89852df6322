"""What the engine says about a failure is true: counts of reasons, remedies, and the check before a commit."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from test_engine_against_oracle import PROFILE, QUICK, SOAK, decided

from muster.engine.fit import still_fits
from muster.model.diagnosis import Reason, Remedy, Verdict
from muster.model.plan import Bind
from muster.model.records import QueueEntry, Toleration
from muster.testing import builders, oracle
from muster.testing.strategies import Instance, instances

WITH_DETAILS = (Reason.INSUFFICIENT,)


def single(instance: Instance) -> QueueEntry:
    """The first member of the first entry, as a pod of its own."""
    return builders.entry(replace(instance.heads[0].pods[0], group=None))


def told(instance: Instance) -> Counter:
    """What the engine counts for the only pod of the only entry; without details where the oracle gives none."""
    (diagnosis,) = decided(instance).diagnoses
    counts: Counter = Counter()
    for reason, nodes, detail in diagnosis.rejections:
        counts[(reason, detail if reason in WITH_DETAILS else "")] += nodes
    return counts


def wrong_counts(instance: Instance) -> str | None:
    head = single(instance)
    alone = replace(instance, heads=(head,))
    if not alone.nodes or oracle.can_place(alone.snapshot, head).feasible:
        return None
    expected: Counter = Counter()
    for (reason, detail), nodes in oracle.rejections(alone.snapshot, head, head.pods[0]).items():
        expected[(reason, detail if reason in WITH_DETAILS else "")] += nodes
    return None if told(alone) == expected else f"told {dict(told(alone))}, true is {dict(expected)}"


@QUICK
@given(instances(heads=1))
def test_reasons_are_counted_over_nodes_as_they_are(instance):
    assert wrong_counts(instance) is None


@pytest.mark.soak
@SOAK
@given(instances(heads=1))
def test_thousands_of_reasons_are_counted_over_nodes_as_they_are(instance):
    assert wrong_counts(instance) is None


def carried_out(instance: Instance, remedy: Remedy) -> Instance | None:
    """The instance with the remedy applied; None for remedies that leave open how."""
    (head,) = instance.heads
    match remedy.action:
        case "lower-min-count":
            assert head.group is not None
            return replace(instance, heads=(replace(head, group=replace(head.group, min_count=remedy.amount)),))
        case "uncordon":
            return replace(instance, nodes=tuple(replace(node, unschedulable=False) for node in instance.nodes))
        case "tolerate":
            # key=value:effect, as far as given
            taint, _, effect = remedy.detail.rpartition(":")
            key, equals, value = taint.partition("=")
            toleration = Toleration(key, "Equal" if equals else "Exists", value, effect)
            pods = tuple(
                replace(pod, cls=replace(pod.cls, tolerations=(*pod.cls.tolerations, toleration))) for pod in head.pods
            )
            return replace(instance, heads=(replace(head, pods=pods),))
        case "add-nodes":
            model = next((node for node in instance.nodes if node.name == remedy.detail), None)
            if model is None:
                return None
            copies = tuple(
                replace(model, name=f"copy-{i}", labels={**model.labels, builders.HOSTNAME: f"copy-{i}"})
                for i in range(remedy.amount)
            )
            return replace(instance, nodes=(*instance.nodes, *copies))
    return None


def idle_remedies(instance: Instance) -> list[str]:
    """Remedies that do not help."""
    (diagnosis,) = decided(instance).diagnoses
    if diagnosis.verdict is not Verdict.UNSCHEDULABLE:
        return []
    helped = [(remedy, carried_out(instance, remedy)) for remedy in diagnosis.remedies]
    return [
        f"{remedy} does not help"
        for remedy, after in helped
        if after is not None and not oracle.can_place(after.snapshot, after.heads[0]).feasible
    ]


@QUICK
@given(instances(heads=1, by_name=False, nodes=4))
def test_a_remedy_helps_by_itself(instance):
    assert idle_remedies(instance) == []


@pytest.mark.soak
@SOAK
@given(instances(heads=1, by_name=False, nodes=4))
def test_thousands_of_remedies_help_by_themselves(instance):
    assert idle_remedies(instance) == []


@QUICK
@given(instances(heads=1), st.data())
def test_the_check_before_a_commit_agrees_about_every_assignment(instance, data):
    assume(instance.nodes)
    (head,) = instance.heads
    view = replace(instance.snapshot, nominations=())
    answer = oracle.can_place(view, head)
    nodes = st.sampled_from([node.name for node in instance.nodes])
    places = {pod.key: answer.assignment.get(pod.key) or data.draw(nodes) for pod in head.pods}
    if data.draw(st.booleans()):
        places[head.pods[0].key] = data.draw(nodes)
    binds = [Bind(pod.key, pod.uid, places[pod.key]) for pod in head.pods]
    sound = not oracle.violations(view, head, binds)
    assert still_fits(view, PROFILE, [(pod, places[pod.key]) for pod in head.pods]) is sound


def test_a_plan_for_a_node_that_is_gone_does_not_fit():
    view = builders.snapshot([builders.node("n1")])
    assert still_fits(view, PROFILE, [(builders.pod("p"), "n1")])
    assert not still_fits(view, PROFILE, [(builders.pod("p"), "n2")])
