"""The columns of what runs, held to the records themselves."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from muster.model.keys import Key
from muster.model.records import PodRecord
from muster.model.roster import NOBODY, SPARE, Columns, Roster
from muster.testing import builders


def said(pods: tuple[PodRecord, ...], known: Columns) -> list[tuple[object, ...]]:
    """What the columns say of each pod."""
    groups = [None if group == NOBODY else known.groups[group] for group in known.group.tolist()]
    nodes, usages = [known.nodes[i] for i in known.node.tolist()], [known.usages[i] for i in known.usage.tolist()]
    uids = [pod.uid for pod in pods]
    return list(zip(uids, known.priority.tolist(), groups, nodes, usages, known.going.tolist(), strict=True))


def meant(pod: PodRecord) -> tuple[object, ...]:
    group = None if pod.group is None else Key(pod.key.namespace, pod.group)
    return pod.uid, pod.priority, group, pod.node, pod.usage, pod.terminating


def some(random: Random, number: int) -> PodRecord:
    made = builders.pod(
        f"p{number}",
        namespace=random.choice(("default", "other")),
        node=f"n{random.randint(1, 5)}",
        group=random.choice((None, "a", "b")),
        priority=random.randint(-2, 2),
        gpus=random.randint(1, 3),
    )
    return replace(made, terminating=random.random() < 0.2)


def test_the_columns_say_what_the_records_say_however_pods_come_change_and_go() -> None:
    random, roster, there = Random(1), Roster(), dict[str, PodRecord]()
    for step in range(4 * SPARE):
        if there and random.random() < 0.4:
            uid = random.choice(list(there))
            del there[uid]
            roster.drop(uid)
        else:
            pod = some(random, random.randint(0, 60))
            there[pod.uid] = pod
            roster.put(pod)
        if step % 97 == 0:
            pods, known = roster.seen()
            assert {pod.uid for pod in pods} == set(there)
            assert said(pods, known) == [meant(pod) for pod in pods]
            assert {pod.uid: pod for pod in pods} == there


def test_what_was_seen_does_not_change_afterwards() -> None:
    roster = Roster([builders.pod("a", node="n1"), builders.pod("b", node="n1")])
    pods, known = roster.seen()
    before = said(pods, known)
    roster.drop(pods[0].uid)
    roster.put(builders.pod("b", node="n2", priority=7))
    assert said(pods, known) == before


def test_pods_that_went_are_forgotten() -> None:
    roster = Roster()
    for number in range(5 * SPARE):
        pod = builders.pod(f"p{number}", node=f"n{number}", group=f"g{number}")
        roster.put(pod)
        roster.drop(pod.uid)
        if number % SPARE == 0:
            roster.seen()
    pods, known = roster.seen()
    assert not pods
    assert max(len(known.groups), len(known.nodes)) <= 2 * SPARE
    assert np.array_equal(known.priority, [])
