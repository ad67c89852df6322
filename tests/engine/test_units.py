"""The units of eviction as columns, held to the plain way of telling them apart: pod by pod."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from random import Random

from muster.engine.preemption.units import Ancestry, Field
from muster.model.keys import Key
from muster.model.records import EntryKey, EntryKind, PodRecord
from muster.model.running import Running
from muster.model.snapshot import Snapshot
from muster.testing import builders, evictions

Unit = tuple[int, EntryKey | None, list[PodRecord]]
SEEDS = 150


def told_apart(snapshot: Snapshot, priority: int) -> tuple[list[Unit], list[PodRecord], dict[Key, int]]:
    """Units of lower priority, pods of lower priority that are going, and members by group that stay."""
    running = snapshot.running
    assert running is not None
    ancestry = Ancestry(snapshot.groups, running.composites)
    units: list[Unit] = []
    whole: dict[EntryKey, Unit] = {}
    going: list[PodRecord] = []
    present: dict[Key, int] = {}
    for pod in running.pods:
        group = None if pod.group is None else Key(pod.key.namespace, pod.group)
        counts_as = None if group is None else ancestry.of(group)
        own, top = counts_as or (pod.priority, None)
        stays = not pod.terminating and pod.uid not in running.leaving
        if stays and group is not None:
            present[group] = present.get(group, 0) + 1
        if own >= priority:
            continue
        if not stays:
            going.append(pod)
        elif top is None and pod.node in snapshot.nodes.index:
            units.append((own, None, [pod]))
        elif top is not None:
            if top not in whole:
                whole[top] = (own, top, [])
                units.append(whole[top])
            whole[top][2].append(pod)
    return units, going, present


def columns(field: Field) -> list[Unit]:
    return [
        (field.priority[u], field.whole[u], [field.pods[place] for place in field.pods_of[u]])
        for u in range(len(field))
    ]


def trees(random: Random, made: Snapshot) -> Snapshot:
    """The same cluster with some groups below composite ones, members on their way out and a node that went."""
    assert made.running is not None
    composites = {
        Key("default", name): builders.composite(
            name, 1, parent=parent, priority=20, disruption_all=random.random() < 0.5
        )
        for name, parent in (("root", None), ("inner", "root"))
    }
    groups = {
        key: replace(group, parent=random.choice((None, "root", "inner", "missing")))
        for key, group in made.groups.items()
        if random.random() < 0.9
    }
    pods = tuple(replace(pod, node="went") if random.random() < 0.1 else pod for pod in made.running.pods)
    leaving = frozenset(pod.uid for pod in pods if random.random() < 0.1)
    return replace(made, groups=groups, running=Running(pods, leaving, composites))


def test_units_as_columns_are_those_that_are_told_apart_pod_by_pod() -> None:
    random, kinds = Random(2), set[EntryKind]()
    for instance in islice(evictions.instances(4), SEEDS):
        snapshot = trees(random, instance.snapshot())
        field = Field(snapshot, instance.entry.priority)
        units, going, present = told_apart(snapshot, instance.entry.priority)
        assert columns(field) == units
        assert field.freeing == going
        assert {group: count for group, count in field.present.items() if count} == present
        kinds.update(top.kind for _, top, _ in units if top is not None)
    assert kinds == {EntryKind.POD_GROUP, EntryKind.COMPOSITE}


def test_what_units_use_is_what_their_pods_use() -> None:
    for instance in islice(evictions.instances(5), SEEDS):
        field = Field(instance.snapshot(), instance.entry.priority)
        names = ("cpu", "nvidia.com/gpu", "nothing")
        assert field.usage(names).T.tolist() == [[dict(pod.usage).get(name, 0) for name in names] for pod in field.pods]


def test_whoever_cannot_be_deleted_is_no_victim_and_neither_is_who_would_go_with_it() -> None:
    one, all_of = builders.group("one", 1), builders.group("all", 2, disruption_all=True)
    pods = [
        builders.pod("alone", node="n1"),
        builders.pod("one-1", group="one", node="n1"),
        builders.pod("one-2", group="one", node="n1"),
        builders.pod("all-1", group="all", node="n1"),
        builders.pod("all-2", group="all", node="n1"),
    ]
    made = builders.snapshot([builders.node("n1", gpus=8)], pods, groups=[one, all_of])
    spared = frozenset(pod.uid for pod in pods if pod.key.name in ("one-1", "all-2"))
    field = Field(replace(made, running=Running(tuple(pods), spared=spared)), 10)
    assert [pod.key.name for pod in field.pods] == ["alone", "one-2"]
