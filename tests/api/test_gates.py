"""Feature gates: names, defaults, what needs what."""

from __future__ import annotations

import pytest

from muster.api.gates import GATES, WORKLOAD_AWARE, FeatureGates


def test_the_workload_aware_gates_are_off_by_default_and_can_all_be_on() -> None:
    assert not any(FeatureGates().enabled(name) for name in WORKLOAD_AWARE)
    assert all(FeatureGates.of(*WORKLOAD_AWARE).enabled(name) for name in WORKLOAD_AWARE)


def test_a_list_of_pairs_changes_the_defaults() -> None:
    gates = FeatureGates.parse(" GenericWorkload=true, SchedulerAsyncPreemption=False ")
    assert gates.generic_workload
    assert not gates.enabled("SchedulerAsyncPreemption")
    assert gates.on ^ FeatureGates().on == {"GenericWorkload", "SchedulerAsyncPreemption"}


def test_what_differs_from_the_defaults_is_written_as_it_is_read() -> None:
    gates = FeatureGates.of(*WORKLOAD_AWARE).changed({"PodLevelResources": False})
    assert FeatureGates.parse(str(gates)) == gates
    assert str(FeatureGates()) == ""


@pytest.mark.parametrize("name", ["GangScheduling", "WorkloadAwarePreemption"])
def test_a_merged_gate_is_refused_with_the_name_of_its_successor(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} was removed.*GenericWorkload"):
        FeatureGates.parse(f"{name}=true")


def test_an_unknown_gate_is_refused_with_the_list_of_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown feature gate 'Gangs'") as refused:
        FeatureGates.parse("Gangs=true")
    assert all(name in str(refused.value) for name in GATES)
    with pytest.raises(ValueError, match="unknown"):
        FeatureGates().enabled("Gangs")


@pytest.mark.parametrize("text", ["GenericWorkload", "GenericWorkload=", "GenericWorkload=yes", "=true"])
def test_what_is_no_pair_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"NAME=true|unknown"):
        FeatureGates.parse(text)


def test_a_locked_gate_cannot_be_switched_off() -> None:
    with pytest.raises(ValueError, match="InPlacePodVerticalScaling is locked to true"):
        FeatureGates.parse("InPlacePodVerticalScaling=false")
    assert FeatureGates.parse("InPlacePodVerticalScaling=true") == FeatureGates()


def test_a_gate_without_those_it_needs_is_refused_with_what_to_add() -> None:
    with pytest.raises(ValueError, match="add GenericWorkload=true,TopologyAwareWorkloadScheduling=true"):
        FeatureGates.parse("CompositePodGroup=true")
    with pytest.raises(ValueError, match=r"GenericWorkload is needed by CompositePodGroup, .* and WorkloadWithJob"):
        FeatureGates.of(*WORKLOAD_AWARE).changed({"GenericWorkload": False})


def test_a_gate_that_others_need_comes_with_all_that_must_go_off_with_it() -> None:
    on = FeatureGates.of(*WORKLOAD_AWARE)
    with pytest.raises(ValueError, match="switch off what needs it: add ") as refused:
        on.changed({"TopologyAwareWorkloadScheduling": False})
    assert str(refused.value).endswith("needs it: add CompositePodGroup=false")
    with pytest.raises(ValueError, match="switch off what needs it: add ") as refused:
        FeatureGates.parse("GenericWorkload=false", on)
    offered = str(refused.value).rpartition("add ")[2]
    off = FeatureGates.parse(f"GenericWorkload=false,{offered}", on)
    assert not any(off.enabled(name) for name in WORKLOAD_AWARE)


def test_a_gate_that_is_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="GenericWorkload is given twice"):
        FeatureGates.parse("GenericWorkload=true,GenericWorkload=false")
