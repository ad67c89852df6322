"""What is counted of decisions and evictions."""

from __future__ import annotations

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.scheduler.metrics import Sample, exposed
from muster.sim.cluster import cluster
from muster.sim.world import World
from muster.testing.builders import gang_manifests, node_manifest


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
            Sample("b_sum", (), 1.5, "summary"),
            Sample("b_count", (), 3, "summary"),
        ]
    )
    assert text == (
        '# TYPE a_total counter\na_total{result="x"} 2\na_total{result="y"} 1\n# TYPE b summary\nb_sum 1.5\nb_count 3\n'
    )
