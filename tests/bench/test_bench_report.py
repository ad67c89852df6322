"""What `muster bench` prints and how it ends, with shapes that measure nothing."""

import gc
import json

import pytest

from muster.bench import suite
from muster.bench.cluster import Unfinished
from muster.bench.measure import Figure, Target, in_child, machine, peak_memory, seconds
from muster.bench.report import amount, row
from muster.bench.shapes import SHAPES, Shape

FAST = Target("fast", "pods/s", 100, at_most=False, about="more is better")
QUICK = Target("quick", "ms", 10, at_most=True, about="less is better")


def answering(*rounds):
    """A shape that answers with these values, round after round."""
    left = list(rounds)
    targets = tuple(target for target in (FAST, QUICK) if target.name in rounds[0])
    return Shape("made-up", targets, lambda nodes: left.pop(0))


@pytest.fixture
def bench(monkeypatch):
    """Runs `suite.run` on one made-up shape; returns exit code and what it said."""

    def run(shape, **arguments):
        monkeypatch.setattr(suite, "SHAPES", {"made-up": shape})
        said = []
        return suite.run(["made-up"], say=said.append, **arguments), "\n".join(said)

    return run


def test_the_median_of_the_repeats_decides(bench):
    assert bench(answering({"fast": 90}, {"fast": 110}, {"fast": 5000}))[0] == 0
    assert bench(answering({"fast": 90}, {"fast": 99}, {"fast": 5000}))[0] == 1


def test_less_is_better_where_the_target_is_an_upper_bound(bench):
    assert bench(answering({"quick": 10}), repeats=1)[0] == 0
    assert bench(answering({"quick": 10.1}), repeats=1)[0] == 1


def test_one_missed_figure_among_several_is_a_miss(bench):
    code, said = bench(answering({"fast": 200, "quick": 11}), repeats=1)
    assert code == 1
    assert "1 of 2 figures reach their target" in said


def test_the_table_shows_figure_target_and_margin(bench):
    code, said = bench(answering({"fast": 200.0}, {"fast": 150.0}, {"fast": 250.0}), nodes=7)
    (line,) = [line.split() for line in said.splitlines() if line.startswith("fast")]
    assert line == ["fast", "200", "150", "250", ">=", "100", "pods/s", "2.0x", "ok"]
    assert code == 0 and said.startswith("7 nodes; ")


def test_json_has_the_machine_and_every_figure(bench):
    _, said = bench(answering({"fast": 50.0, "quick": 5.0}), as_json=True, repeats=1, nodes=9)
    document = json.loads(said)
    assert document["nodes"] == 9
    assert set(document["machine"]) == {"processor", "python", "numpy", "muster", "system"}
    assert {figure["shape"]: (figure["ok"], figure["margin"]) for figure in document["figures"]} == {
        "fast": (False, 0.5),
        "quick": (True, 2.0),
    }


def test_a_shape_that_does_not_finish_fails_and_says_why(bench, capsys):
    def fails(nodes):
        raise Unfinished("3 pods are bound, 4 should be")

    assert bench(Shape("made-up", (FAST,), fails))[0] == 1
    assert "did not finish: made-up: 3 pods are bound, 4 should be" in capsys.readouterr().err


def test_unknown_shapes_are_refused_with_the_known_ones_before_anything_runs():
    with pytest.raises(suite.UnknownShape, match=r'no shape is called "gang-huge"; known: gang-small, gang-large'):
        suite.run(["gang-large", "gang-huge"])


@pytest.mark.parametrize(("arguments", "message"), [({"nodes": 0}, "nodes is 0"), ({"repeats": -1}, "repeats is -1")])
def test_impossible_numbers_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        suite.run(["gang-large"], **arguments)


def test_a_figure_of_zero_where_zero_is_wanted_is_a_hit_without_a_margin():
    figure = Figure(Target("idle", "decisions", 0, at_most=True, about=""), [0.0])
    assert figure.ok and row(figure)["margin"] is None
    assert not Figure(figure.target, [1.0]).ok


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (0.5, "0.50"), (12.34, "12.3"), (15_000, "15,000")])
def test_amounts_have_three_digits(value, text):
    assert amount(value) == text


def test_what_goes_wrong_in_a_child_process_is_told():
    with pytest.raises(RuntimeError, match="module 'json' has no attribute 'main'"):
        in_child("json", 3)


def test_the_shapes_are_those_of_the_plan():
    targets = {target.name: (target.bound, target.at_most) for shape in SHAPES.values() for target in shape.targets}
    assert targets == {
        "gang-small": (15_000, False),
        "gang-large": (15, True),
        "basic-pods": (10_000, False),
        "lived-in": (10_000, False),
        "spread": (2_000, False),
        "pod-affinity": (2_000, False),
        "mixed-gang": (5_000, False),
        "cpg-tas": (8_000, False),
        "tas-small": (12_000, False),
        "tas-large": (20, True),
        "tight": (50, True),
        "tight-placed": (99, False),
        "unschedulable": (20, True),
        "tas-unschedulable": (30, True),
        "preempt-gang": (10, True),
        "preempt-gang-victims": (10, True),
        "preempt-gang-gangs": (10, True),
        "preempt-gang-gangs-victims": (10, True),
        "preempt-rack": (100, True),
        "preempt-rack-victims": (400, True),
        "preempt-mode": (10, True),
        "preempt-mode-victims": (10, True),
        "unpreemptable": (50, True),
        "unpreemptable-victims": (0, True),
        "preempt-mixed": (500, True),
        "preempt-gap": (0, True),
        "preempt-best": (90, False),
        "restart": (5, True),
        "memory": (1.5, True),
        "end-to-end": (2_000, False),
        "idle": (0, True),
        "api-create": (5_000, False),
        "api-http-create": (2_500, False),
        "api-watch": (1, True),
        "api-list": (1, True),
        "api-memory": (12, True),
    }


def test_memory_and_time_are_in_bytes_and_seconds():
    assert 10 << 20 < peak_memory() < 1 << 40
    assert 0 <= seconds(lambda: None) < 5
    assert machine()["python"].count(".") == 2


def test_measuring_leaves_the_garbage_collector_as_it_was(bench):
    before, seen = gc.get_threshold(), []
    bench(Shape("made-up", (FAST,), lambda nodes: seen.append(gc.get_threshold()) or {"fast": 1}))
    assert seen[0] != before
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)
