"""Domains of a label key: which nodes belong together, and sums over them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.resources import ResourceAxis
from muster.model.snapshot import NodeColumns
from muster.model.topology import Domains, detected_levels, domains_of
from muster.testing import builders

ZONE, RACK = "topology.kubernetes.io/zone", "rack"


def columns(*labels, levels=()):
    records = [builders.node(f"n{number:02d}", labels=some) for number, some in enumerate(labels)]
    return NodeColumns(records, ResourceAxis(), levels)


def test_nodes_without_the_label_belong_to_no_domain():
    domains = Domains(columns({RACK: "a"}, {}, {RACK: "b"}, {RACK: "a"}), RACK)
    assert domains.values == ("a", "b")
    assert domains.codes.tolist() == [0, -1, 1, 0]
    assert domains[0].nodes.tolist() == [0, 3]


def test_domains_stand_in_the_order_of_their_first_node():
    assert Domains(columns({RACK: "z"}, {RACK: "a"}, {RACK: "z"}), RACK).values == ("z", "a")


def test_a_key_that_no_node_carries_has_no_domains():
    domains = Domains(columns({}, {}), RACK)
    assert len(domains) == 0
    assert domains.sums(np.array([1, 2])).tolist() == []


def test_equal_values_under_different_parents_are_different_domains():
    nodes = columns({ZONE: "x", RACK: "1"}, {ZONE: "y", RACK: "1"}, {ZONE: "y", RACK: "2"}, {ZONE: "y", RACK: "1"})
    zones = domains_of(nodes, ZONE)
    in_x, in_y = (domains_of(nodes, RACK, zones[z]) for z in range(2))
    assert in_x[0].value == in_y[0].value == "1"
    assert (in_x[0].nodes.tolist(), in_y[0].nodes.tolist()) == ([0], [1, 3])
    assert in_y[0].inside.tolist() == [0, 2]
    assert in_y[0].path == ((ZONE, "y"), (RACK, "1"))


def test_domains_are_made_once_for_the_same_nodes():
    nodes = columns({RACK: "a"}, {RACK: "b"})
    assert domains_of(nodes, RACK) is domains_of(nodes, RACK)
    assert domains_of(nodes, RACK)[1] is domains_of(nodes, RACK)[1]


def test_reduceat_is_wrong_for_an_empty_segment():
    """Why no domain may be empty: numpy gives the next element there, not 0."""
    assert np.add.reduceat(np.array([5, 7]), [0, 1, 1]).tolist() == [5, 7, 7]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(("", "a", "b", "c")), st.integers(0, 99)), min_size=1, max_size=20))
def test_a_sum_is_that_of_the_nodes_with_the_value_whatever_their_order(given_nodes):
    nodes = columns(*({RACK: value} if value else {} for value, _ in given_nodes))
    domains, numbers = Domains(nodes, RACK), np.array([number for _, number in given_nodes])
    for d, value in enumerate(domains.values):
        assert domains.sums(numbers)[d] == sum(number for other, number in given_nodes if other == value)
        assert domains.sums(np.stack((numbers, numbers * 2)))[1, d] == 2 * domains.sums(numbers)[d]
    assert set(domains.values) == {value for value, _ in given_nodes if value}


def test_the_storage_order_makes_slices_of_the_primary_hierarchy():
    nodes = columns({ZONE: "y", RACK: "1"}, {ZONE: "x", RACK: "2"}, {ZONE: "y", RACK: "1"}, levels=(ZONE, RACK))
    zones = domains_of(nodes, ZONE)
    assert [placement.nodes.tolist() for placement in (zones[0], zones[1])] == [[0], [1, 2]]


def test_well_known_labels_are_detected_widest_first():
    some = ({"topology.muster.dev/rack": "r", "other": "x"}, {"topology.kubernetes.io/zone": "z"})
    assert detected_levels(some) == ("topology.kubernetes.io/zone", "topology.muster.dev/rack")
    assert detected_levels(()) == ()
    assert detected_levels(({"rack": "r"},)) == ()
