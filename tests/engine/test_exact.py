"""Linear programs over fillings: what they find holds, what they prove is so, and what they spend is bounded."""

import subprocess
import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_search import check, most_by_trying_everything, packed, problem_from, problems

from muster.engine.exact import solve
from muster.engine.fillings import Pool, pools
from muster.engine.halves import halves, joined
from muster.engine.pairs import by_pairs
from muster.engine.patterns import budget_of
from muster.engine.problem import reaches
from muster.engine.relaxation import Relaxation
from muster.engine.search import Outcome

PLENTY = 5_000


@settings(deadline=None, max_examples=100, derandomize=True)
@given(problems())
def test_linear_programs_find_exactly_what_exists(problem):
    most = most_by_trying_everything(problem)
    for target in range(1, int(problem.counts.sum()) + 1):
        found = solve(problem, target, PLENTY)
        assert found.outcome is (Outcome.FOUND if target <= most else Outcome.IMPOSSIBLE)
        if found.outcome is Outcome.FOUND:
            check(problem, found, target)


@pytest.mark.parametrize("cut", range(3))
def test_nodes_cut_into_many_unlike_pods_are_put_together_again(cut):
    problem = packed(20, 4, cut)
    wanted = int(problem.counts.sum())
    found = solve(problem, wanted, PLENTY)
    assert found.outcome is Outcome.FOUND
    check(problem, found, wanted)


def test_the_same_problem_gives_the_same_placement():
    problem = packed(14, 4, 7)
    first, second = (solve(problem, int(problem.counts.sum()), PLENTY) for _ in range(2))
    assert first.expansions == second.expansions
    assert [(kind, counts.tolist()) for kind, counts in first.fillings] == [
        (kind, counts.tolist()) for kind, counts in second.fillings
    ]


def test_four_large_pods_on_three_nodes_are_proven_impossible_though_the_sums_allow_them():
    """One of them fits on each node. No bound on sums sees it, the linear program does."""
    problem = problem_from(np.array([[5], [1]]), np.array([4, 3]), np.full((3, 1), 9), np.zeros((3, 2), dtype=bool))
    assert not (budget_of(problem, reaches(problem), 0).spare < 0).any()
    assert solve(problem, 7, PLENTY).outcome is Outcome.IMPOSSIBLE
    assert solve(problem, 6, PLENTY).outcome is Outcome.FOUND


def test_a_list_with_gaps_proves_nothing():
    problem = problem_from(np.array([[5], [1]]), np.array([4, 3]), np.full((3, 1), 9), np.zeros((3, 2), dtype=bool))
    (pool,) = pools(problem, budget_of(problem, reaches(problem), 0), PLENTY)
    for complete in (True, False):
        relaxation = Relaxation(replace(pool, complete=complete), problem.counts, problem.copies)
        answer = relaxation.solve(PLENTY)
        assert answer is not None and answer[0] == pytest.approx(1)
        assert relaxation.proves(problem.counts, problem.copies, 0) is complete
        assert not relaxation.proves(problem.counts, problem.copies, 1)


def test_whole_fillings_only_are_what_the_integer_solver_chooses():
    """Two of the pods go together, the third needs a node of its own."""
    problem = problem_from(
        np.array([[2, 1, 0], [2, 0, 1], [2, 1, 1]]), np.ones(3, int), np.array([[4, 1, 1]] * 2), np.zeros((2, 3), bool)
    )
    (pool,) = pools(problem, budget_of(problem, reaches(problem), 0), PLENTY)
    answer = Relaxation(pool, problem.counts, problem.copies).choose(problem.counts, 0, PLENTY)
    assert not answer.impossible and answer.often is not None
    assert (answer.often @ pool.counts >= problem.counts).all()
    alone = problem.copies - 1
    assert Relaxation(pool, problem.counts, alone).choose(problem.counts, 0, PLENTY).impossible


def test_a_budget_that_is_too_small_ends_the_search_without_a_claim():
    problem = packed(30, 6, 1)
    found = solve(problem, int(problem.counts.sum()), 50)
    assert found.outcome is Outcome.STOPPED


@pytest.mark.parametrize("pods", [1, 2, 3, 4, 5])
def test_halves_join_to_every_filling_of_so_many_pods_once(pods):
    problem = packed(4, 4, 3)
    budget = budget_of(problem, reaches(problem), 0)
    half = halves(problem, 0, budget, 3)
    members, every, _ = joined(half, pods, half.room)
    expected = {
        some
        for some in combinations(range(len(half.pods)), pods)
        if (problem.amounts[half.pods[list(some)]].sum(axis=0) <= problem.free[0]).all()
    }
    assert every and expected and sorted(map(tuple, members.tolist())) == sorted(expected)


@pytest.mark.parametrize("pods", [2, 4, 5, 6])
@pytest.mark.parametrize("waste", [0, 1, 3])
def test_halves_that_may_waste_little_join_to_just_the_fillings_that_do(pods, waste):
    problem = packed(6, 4, 5)
    budget = budget_of(problem, reaches(problem), 0)
    half = halves(problem, 0, budget, 3)
    members, every, _ = joined(half, pods, np.full(len(half.room), waste))
    step = np.gcd.reduce(problem.amounts, axis=0)[budget.row]
    asked = budget.asked(problem)[half.pods] // step
    expected = {
        some
        for some in combinations(range(len(half.pods)), pods)
        if (problem.amounts[half.pods[list(some)]].sum(axis=0) <= problem.free[0]).all()
        and (asked[list(some)].sum(axis=0) >= half.room - waste).all()
    }
    assert every and sorted(map(tuple, members.tolist())) == sorted(expected)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.lists(st.sets(st.integers(0, 7), min_size=1, max_size=4), min_size=4, max_size=24), st.integers(2, 4))
def test_the_search_by_pairs_finds_a_choice_of_fillings_if_and_only_if_there_is_one(fillings, nodes):
    counts = np.array([[int(pod in some) for pod in range(8)] for some in fillings], dtype=np.int32)
    pool = Pool(np.zeros(len(counts), dtype=np.int64), counts, False, 0)
    pods, copies = np.ones(8, dtype=np.int64), np.array([nodes])
    often = by_pairs(Relaxation(pool, pods, copies), pods, 0, PLENTY)
    exists = any(
        (counts[list(some)].sum(axis=0) > 0).all() for some in combinations(range(len(counts)), min(nodes, len(counts)))
    )
    assert (often is not None) == exists
    if often is not None:
        assert int(often.sum()) <= nodes and (often @ counts >= 1).all()


def test_the_solver_is_not_loaded_before_it_is_needed_and_says_nothing():
    program = (
        "import sys; sys.path.insert(0, 'tests/engine');"
        "import muster.engine.decide; assert 'highspy' not in sys.modules;"
        "import test_search as t; from muster.engine.exact import solve;"
        "p = t.packed(8, 4, 0); print(solve(p, int(p.counts.sum()), 2000).outcome.name)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("FOUND\n", "")
