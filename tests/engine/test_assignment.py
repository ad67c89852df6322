"""Many copies at once must go where one copy after the other would have gone."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.engine.assignment import place_best
from muster.engine.trial import ClassState, Trial
from muster.plugins import default_profile
from muster.testing import builders

GIB = 1 << 30
PROFILE = default_profile()
CLASSES = (
    builders.pod_class(cpu=1000, memory=2 * GIB),
    builders.pod_class(cpu=3000, memory=GIB),
    builders.pod_class(),
    builders.pod_class(gpus=1, cpu=500),
    builders.pod_class(gpus=2, memory=GIB),
    builders.pod_class(ports=[80]),
)


@st.composite
def clusters(draw):
    """Nodes of a few sizes with different pods on them."""
    nodes, bound = [], []
    for n in range(draw(st.integers(1, 7))):
        name = f"n{n}"
        nodes.append(
            builders.node(
                name,
                cpu=draw(st.sampled_from((4000, 8000))),
                memory=draw(st.sampled_from((8, 16))) * GIB,
                gpus=draw(st.sampled_from((0, 2, 4, 8))),
                pods=draw(st.sampled_from((3, 20))),
            )
        )
        for b in range(draw(st.integers(0, 3))):
            bound.append(builders.pod(f"b{n}-{b}", draw(st.sampled_from(CLASSES)), node=name))
    return builders.snapshot(nodes, bound)


def one_after_the_other(snapshot, pod_class, count):
    """int64[N]: copies per node, every score made anew for each copy."""
    trial = Trial(snapshot, PROFILE, CLASSES)
    cls = trial.index[pod_class]
    counts = np.zeros(len(snapshot.nodes), dtype=np.int64)
    for _ in range(count):
        ranked = ClassState(trial, cls).scores()
        node = int(ranked.argmax())
        if ranked[node] < 0:
            break
        trial.ledger.place(cls, node)
        counts[node] += 1
    return counts


@settings(deadline=None, max_examples=150)
@given(clusters(), st.sampled_from(CLASSES), st.integers(1, 40))
def test_placing_many_equals_placing_one_by_one(snapshot, pod_class, count):
    trial = Trial(snapshot, PROFILE, CLASSES)
    cls = trial.index[pod_class]
    placed = place_best(trial, cls, count)
    counts = np.zeros(len(snapshot.nodes), dtype=np.int64)
    for _, nodes, some in trial.ledger.since(0):
        np.add.at(counts, nodes, some)
    expected = one_after_the_other(snapshot, pod_class, count)
    assert counts.tolist() == expected.tolist()
    assert placed == expected.sum()


@settings(deadline=None, max_examples=100)
@given(clusters(), st.lists(st.tuples(st.sampled_from(CLASSES), st.integers(1, 9), st.booleans()), max_size=12))
def test_slots_and_scores_that_follow_the_ledger_equal_those_made_anew(snapshot, steps):
    trial = Trial(snapshot, PROFILE, CLASSES)
    for pod_class, count, undone in steps:
        start = trial.ledger.checkpoint()
        place_best(trial, trial.index[pod_class], count)
        if undone:
            trial.ledger.rollback(start)
        for cls in range(len(CLASSES)):
            fresh = ClassState(trial, cls)
            assert trial.scores(cls).tolist() == fresh.scores().tolist()
            assert trial.state(cls).slots.tolist() == fresh.slots.tolist()


@settings(deadline=None, max_examples=100)
@given(clusters(), st.lists(st.tuples(st.sampled_from(CLASSES), st.integers(1, 9)), max_size=8))
def test_placing_never_takes_more_than_there_is(snapshot, steps):
    trial = Trial(snapshot, PROFILE, CLASSES)
    before = trial.ledger.used.copy()
    for pod_class, count in steps:
        place_best(trial, trial.index[pod_class], count)
    grown = trial.ledger.used > before
    assert not (grown & (trial.ledger.used > trial.ledger.capacity)).any()
