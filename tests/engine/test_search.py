"""Groups of unlike pods: found whenever it exists, proven impossible otherwise."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from case_files import CASES, load
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.engine.decide import decide
from muster.engine.dive import find
from muster.engine.problem import Problem, distinct_rows, most_placeable
from muster.engine.search import Outcome
from muster.engine.work import MAX_DOUBLINGS, Work
from muster.model.diagnosis import Verdict
from muster.plugins import default_profile
from muster.testing import builders

PROFILE = default_profile()
FAMILIES = ("gpu-mix", "roles", "hetero-flat", "selectors")
FILES = sorted(path for family in FAMILIES for path in (CASES / "search").glob(f"{family}-*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_group_that_fills_the_cluster_is_placed_within_the_first_budget(path):
    snapshot, entry = load(path)
    decision = decide(snapshot, [entry], PROFILE, now=0)
    assert decision.diagnoses[0].verdict is Verdict.SCHEDULED
    assert len(decision.plans[0].binds) == len(entry.pods)
    assert decision.work <= Work().expansions // 4
    assert not overcommitted(snapshot, entry, decision.plans[0].binds)


def overcommitted(snapshot, entry, binds):
    """Names of nodes that hold more than they have, or a pod that they do not suit."""
    cls = {pod.uid: pod.cls for pod in entry.pods}
    used = snapshot.used.copy()
    wrong = set()
    for bind in binds:
        node = snapshot.nodes.index[bind.node]
        used[:, node] += snapshot.axis.vector(cls[bind.uid].requests)
        labels = snapshot.nodes.records[node].labels
        if any(labels.get(key) != value for key, value in cls[bind.uid].node_selector):
            wrong.add(bind.node)
    over = (used > snapshot.nodes.alloc).any(axis=0)
    return wrong | {snapshot.nodes.names[n] for n in np.flatnonzero(over)}


@st.composite
def problems(draw):
    """Up to three classes on up to three nodes, two rows."""
    amount = st.integers(0, 5)
    classes = draw(st.integers(1, 3))
    amounts = np.array([[draw(amount), draw(amount)] for _ in range(classes)], dtype=np.int64)
    amounts[:, 0] += ~amounts.any(axis=1)
    counts = np.array([draw(st.integers(1, 3)) for _ in range(classes)], dtype=np.int64)
    room = np.array(
        [[draw(st.integers(0, 9)) for _ in range(2)] for _ in range(draw(st.integers(1, 3)))], dtype=np.int64
    )
    barred = np.array([[draw(st.integers(0, 3)) == 0 for _ in range(classes)] for _ in room], dtype=bool)
    return problem_from(amounts, counts, room, barred)


def problem_from(amounts, counts, room, barred):
    allowed = (room[:, None] >= amounts[None]).all(axis=2) & ~barred
    kinds, kind = distinct_rows(np.hstack((room, allowed)))
    nodes = tuple(np.flatnonzero(kind == k) for k in range(len(kinds)))
    return Problem(amounts, counts, room[kinds], allowed[kinds], nodes)


def most_by_trying_everything(problem):
    """The most members that fit together, by every way to fill every node."""
    kinds = [k for k, nodes in enumerate(problem.nodes) for _ in nodes]
    reached = {tuple(problem.counts.tolist())}
    for kind in kinds:
        after = set()
        for left in reached:
            for taken in product(*(range(n + 1) for n in left)):
                suits = all(problem.allowed[kind, c] or not n for c, n in enumerate(taken))
                if suits and (np.array(taken) @ problem.amounts <= problem.free[kind]).all():
                    after.add(tuple(a - b for a, b in zip(left, taken, strict=True)))
        reached = after
    return int(problem.counts.sum()) - min(sum(left) for left in reached)


@settings(deadline=None, max_examples=200)
@given(problems())
def test_the_search_finds_exactly_what_exists(problem):
    most = most_by_trying_everything(problem)
    assert most <= most_placeable(problem)
    for target in range(1, int(problem.counts.sum()) + 1):
        found = find(problem, target, 1_000)
        assert found.outcome is (Outcome.FOUND if target <= most else Outcome.IMPOSSIBLE)
        if found.outcome is Outcome.FOUND:
            check(problem, found, target)


def check(problem, found, target):
    used = [0] * len(problem.nodes)
    total = np.zeros_like(problem.counts)
    for kind, filling in found.fillings:
        used[kind] += 1
        assert (filling @ problem.amounts <= problem.free[kind]).all()
        assert problem.allowed[kind][filling > 0].all()
        total += filling
    assert all(n <= len(nodes) for n, nodes in zip(used, problem.nodes, strict=True))
    assert (total <= problem.counts).all() and total.sum() >= target


def packed(nodes, pieces, seed):
    """A problem in which every node is cut into `pieces` pods without a rest: all fit, exactly."""
    rng = np.random.default_rng(seed)
    size = np.array([48, 200, 8])
    cuts = np.sort(rng.integers(0, size + 1, (nodes, pieces - 1, 3)), axis=1)
    edges = np.concatenate((np.zeros((nodes, 1, 3), int), cuts, np.broadcast_to(size, (nodes, 1, 3))), axis=1)
    pods, counts = np.unique(np.diff(edges, axis=1).reshape(-1, 3), axis=0, return_counts=True)
    used = pods.any(axis=1)
    room = np.broadcast_to(size, (nodes, 3)).astype(np.int64)
    return problem_from(pods[used].astype(np.int64), counts[used], room, np.zeros((nodes, used.sum()), dtype=bool))


@pytest.mark.parametrize("cut", range(4))
def test_nodes_cut_into_unlike_pods_are_put_together_again(cut):
    problem = packed(8, 4, cut)
    found = find(problem, int(problem.counts.sum()), Work().expansions)
    assert found.outcome is Outcome.FOUND
    check(problem, found, int(problem.counts.sum()))


def test_a_group_too_varied_to_list_every_filling_ends_within_its_budget_and_claims_no_proof():
    problem = packed(30, 6, 1)
    found = find(problem, int(problem.counts.sum()), 400)
    assert found.outcome is Outcome.STOPPED
    assert found.expansions < 2 * 400


def test_one_missing_unit_is_proven_by_the_sums_alone():
    problem = packed(8, 4, 0)
    short = replace(problem, free=problem.free - (np.arange(3) == 1))
    assert find(short, int(short.counts.sum()), 10).outcome is Outcome.IMPOSSIBLE


def test_room_that_no_member_can_use_does_not_count_in_the_bound():
    pods, room = np.array([[2], [4]]), np.full((10, 1), 7)
    problem = problem_from(pods, np.array([16, 8]), room, np.zeros((10, 2), dtype=bool))
    assert most_placeable(problem) == 16 + (60 - 32) // 4


def test_a_budget_grows_with_attempts_up_to_sixteen_times():
    work = Work(100)
    assert [work.for_attempt(n) for n in (0, 1, 4, 9)] == [100, 200, 1600, 100 << MAX_DOUBLINGS]


def test_a_search_that_ran_out_is_not_called_a_proof():
    problem = packed(30, 6, 1)
    nodes = builders.nodes("n", 30, cpu=48, memory=200, gpus=8)
    kinds = [builders.pod_class(cpu=int(c), memory=int(m), gpus=int(g)) for c, m, g in problem.amounts]
    pods = [p for i, kind in enumerate(kinds) for p in builders.pods(f"p{i}-", int(problem.counts[i]), kind, group="g")]
    entry = builders.entry(*pods, group=builders.group("g", len(pods)))
    decision = decide(builders.snapshot(nodes), [entry], PROFILE, now=0, budget=Work(5))
    assert not decision.plans[0].binds
    assert not decision.diagnoses[0].proven
