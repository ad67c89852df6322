"""What is counted of decisions and evictions."""

from __future__ import annotations

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.model.keys import Key
from muster.model.records import EntryKey, EntryKind
from muster.scheduler.entries import Entry, Seen, State
from muster.scheduler.histograms import Histogram, doubling
from muster.scheduler.metrics import Metrics, Sample, exposed
from muster.sim.cluster import cluster
from muster.sim.world import World
from muster.testing.builders import gang_manifest, gang_manifests, node_manifest, pod_manifest
from synchronous import Driver


def lived() -> World:
    """A gang runs, an urgent one takes the place of half of it, and a third does not fit."""
    world = cluster(FeatureGates.of("GenericWorkload"), priority_admission=False)
    world.call(writes.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}))
    for number in range(4):
        assert world.call(writes.create(node_manifest(f"n{number}", gpus=1))).ok
    for manifests in (gang_manifests("low", 4, gpus=1), _urgent(), gang_manifests("late", 3, gpus=1)):
        for manifest in manifests:
            assert world.call(writes.create(manifest)).ok
        world.quiesce()
    return world


def _urgent() -> list[dict]:
    group, *pods = gang_manifests("urgent", 2, gpus=1)
    group["spec"]["priority"] = 10
    for pod in pods:
        pod["spec"]["priority"] = 10
    return [group, *pods]


def counted(world: World) -> dict[tuple[str, str], float]:
    """(name, first label's value) -> number."""
    scheduler = world.machine()
    pending = [(entry, len(scheduler.queue.pending(key))) for key, entry in scheduler.queue.entries.items()]
    samples = list(scheduler.metrics.samples(pending))
    shown = [(s, "/".join(value for key, value in s.labels if key != "profile")) for s in samples]
    return {(s.name.removeprefix("scheduler_"), labels): s.value for s, labels in shown}


def test_decisions_evictions_and_what_waits_are_counted_by_the_names_of_kube_scheduler():
    found = counted(lived())
    assert found["schedule_attempts_total", "scheduled"] == 6
    assert found["podgroup_schedule_attempts_total", "scheduled"] == 2
    assert found["podgroup_schedule_attempts_total", "waiting_on_preemption"] == 1
    assert found["workload_preemption_attempts_total", "success"] == 1
    assert (found["preemption_victims_sum", ""], found["preemption_victims_count", ""]) == (2, 1)
    assert found["preemption_workload_disruptions_sum", "podgroup"] == 2
    assert found["pending_entities", "podgroup/unschedulable"] == 1
    assert found["pending_pods", "unschedulable"] == 3


def test_what_was_counted_for_both_names_of_a_family_is_the_same():
    found = counted(lived())
    for part in ("victims_sum", "victims_count", "attempts_total"):
        one, other = (
            {labels: value for (name, labels), value in found.items() if name == f"{whose}_preemption_{part}"}
            for whose in ("workload", "podgroup")
        )
        assert one == other
        assert one


def test_the_text_names_each_family_once():
    text = exposed(
        [
            Sample("a_total", (("result", "x"),), 2, "counter"),
            Sample("a_total", (("result", "y"),), 1, "counter"),
            Sample("b_bucket", (("le", "+Inf"),), 3, "histogram"),
            Sample("b_sum", (), 1.5, "histogram"),
            Sample("b_count", (), 3, "histogram"),
        ]
    )
    assert text == (
        '# TYPE a_total counter\na_total{result="x"} 2\na_total{result="y"} 1\n'
        '# TYPE b histogram\nb_bucket{le="+Inf"} 3\nb_sum 1.5\nb_count 3\n'
    )


def test_a_histogram_counts_below_each_bound_and_a_bound_belongs_below_itself():
    observed = Histogram(doubling(1, 3))
    for value in (0, 1, 1.5, 4, 5):
        observed.observe(value)
    assert list(observed.buckets()) == [("1", 2), ("2", 3), ("4", 4), ("+Inf", 5)]
    assert (observed.sum, observed.count) == (11.5, 5)


def test_how_long_evicting_and_waiting_took_is_observed():
    found = counted(lived())
    assert found["preemption_evaluation_duration_seconds_count", "podgroup/success"] == 1
    assert found["podgroup_preemption_attempt_duration_seconds_count", ""] == sum(
        value for (name, _), value in found.items() if name == "podgroup_preemption_attempts_total"
    )
    assert found["preemption_execution_duration_seconds_count", "podgroup/success"] == 1
    assert found["podgroup_preemption_reprieved_total", ""] == 2
    assert found["podgroup_scheduling_algorithm_duration_seconds_count", ""] == sum(
        value for (name, _), value in found.items() if name == "podgroup_schedule_attempts_total"
    )


def test_a_pod_has_waited_from_when_it_could_be_scheduled_until_it_is_bound():
    driver = Driver()
    driver.create(node_manifest("n1", gpus=2))
    first, second = (pod_manifest(f"m-{rank}", group="m", gpus=1) for rank in range(2))
    driver.create(gang_manifest("m", 2), first)
    assert waiting_pods(driver) == {"incomplete": 1}
    driver.advance(100)
    driver.refuse = {"m-0": 500}
    driver.create(second)
    driver.advance(0.5)
    driver.refuse = {}
    driver.advance(5)
    assert driver.bound() == {"m-0", "m-1"}
    samples = driver.scheduler.metrics.samples(())
    waited = {s.labels: s.value for s in samples if s.name == "scheduler_pod_scheduling_sli_duration_seconds_bucket"}
    at_once, after_a_retry = (waited[("attempts", "1"), ("le", bound)] for bound in ("0.01", "5.12"))
    assert (at_once, after_a_retry) == (1, 2)


def test_pods_that_join_a_group_while_it_is_decided_are_pending():
    entry = Entry(EntryKey(EntryKind.POD_GROUP, Key("default", "g")), "u", Seen(0, 0), State.DECIDING, taken=3)
    assert pods_by_queue(Metrics("x").samples([(entry, 5)])) == {"active": 3, "pending": 2}


def test_a_gate_is_not_what_makes_a_group_incomplete():
    driver = Driver()
    gated = pod_manifest("m-0", group="m", gpus=1)
    gated["spec"]["schedulingGates"] = [{"name": "example.com/gate"}]
    driver.create(node_manifest("n1", gpus=2), gang_manifest("m", 2), gated)
    assert waiting_pods(driver) == {"gated": 1}


def test_domains_are_counted_that_hold_a_group_and_that_do_not():
    driver = Driver(gates=FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling"))
    nodes = [node_manifest(f"n{i}", gpus=i, labels={"rack": f"r{i}"}) for i in range(1, 5)]
    group, *pods = gang_manifests("m", 3, gpus=1)
    group["spec"]["schedulingConstraints"] = {"topology": [{"key": "rack"}]}
    driver.create(*nodes, group, *pods)
    found = {(s.name, dict(s.labels).get("result")): s.value for s in driver.scheduler.metrics.samples(())}
    assert found["scheduler_generated_placements_total", None] == 4
    assert found["scheduler_placement_evaluations_total", "feasible"] == 2
    assert found["scheduler_placement_evaluations_total", "infeasible"] == 2


def waiting_pods(driver: Driver) -> dict[str, float]:
    queue = driver.scheduler.queue
    pending = [(entry, len(queue.pending(key))) for key, entry in queue.entries.items()]
    return pods_by_queue(driver.scheduler.metrics.samples(pending))


def pods_by_queue(samples) -> dict[str, float]:
    return {s.labels[0][1]: s.value for s in samples if s.name == "scheduler_pending_pods" and s.value}
