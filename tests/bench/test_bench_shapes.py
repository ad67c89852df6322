"""Every shape measures something on a small cluster; how fast is for `make bench` to say."""

import pytest

from muster.bench import cluster, fleet
from muster.bench.shapes import SHAPES


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_measures_each_of_its_targets(name):
    shape = SHAPES[name]
    values = shape.measure(50)
    assert set(values) == {target.name for target in shape.targets}
    if name == "idle":
        assert values == {"idle": 0}
    else:
        assert all(value > 0 for value in values.values())


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
