"""Every shape measures something on a small cluster; how fast is for `make bench` to say."""

import pytest

from muster.bench import cluster, fleet, preemption
from muster.bench.shapes import SHAPES

NOTHING = ("unpreemptable-victims", "preempt-gap")


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_measures_each_of_its_targets(name):
    shape = SHAPES[name]
    values = shape.measure(50)
    assert set(values) == {target.name for target in shape.targets}
    if name == "idle":
        assert values == {"idle": 0}
    else:
        assert all(value > 0 for name, value in values.items() if name not in NOTHING)


def test_cycles_count_every_entry_and_pod_once():
    world = cluster.empty(40)
    pending = [*fleet.gang("g", 5, gpus=1), *fleet.gang("h", 4, gpus=1), *fleet.singles(3)]
    taken = cluster.cycles(world, pending)
    assert sum(cycle.entries for cycle in taken) == 5
    assert sum(cycle.pods for cycle in taken) == cluster.bound(world) == 12
    assert all(cycle.seconds > 0 for cycle in taken)


def test_a_shape_whose_pods_are_not_all_bound_has_no_figure():
    world = cluster.empty(1)
    cluster.cycles(world, fleet.gang("g", 2, gpus=fleet.GPUS))
    with pytest.raises(cluster.Unfinished, match="0 pods are bound, 2 should be"):
        cluster.expect_bound(world, 2)


def test_what_the_server_refuses_ends_the_shape_with_its_answer():
    world = cluster.empty(1)
    with pytest.raises(cluster.Unfinished, match="the server refused Pod p"):
        cluster.create(world, [fleet.pod("p", "app", cpu="a lot")])


VICTIMS = {"preempt-gang": 10, "preempt-gang-gangs": 10, "preempt-mode": 10, "preempt-rack": 12, "unpreemptable": 0}
"""On 150 nodes; a rack has three of them with four pods each."""


@pytest.mark.parametrize("name", VICTIMS)
def test_preemption_evicts_as_few_as_will_do_on_a_small_cluster_too(name):
    assert SHAPES[name].measure(150)[f"{name}-victims"] == VICTIMS[name]


def test_a_gang_that_finds_nobody_to_evict_has_no_figure():
    full = preemption.Full(preemption._nodes(4), preemption._whole_nodes(range(4), preemption.HIGH))
    with pytest.raises(cluster.Unfinished, match="high-0 found nobody to evict"):
        preemption._preempting("preempt-gang", full, preemption._gangs(1, gpus=8))


def test_a_later_preemptor_finds_the_earlier_one_in_place_and_spares_it():
    full = preemption.Full(preemption._nodes(20), preemption._whole_nodes(range(20), preemption.LOW))
    outcomes = [full.decide(entry) for entry in preemption._gangs(3, gpus=8)]
    assert [outcome.name for outcome in outcomes] == ["FOUND", "FOUND", "NO_VICTIMS"]
    assert full.victims == [10, 10, 0]
