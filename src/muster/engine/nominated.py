"""Pods that are nominated to a node, as neighbours: they keep others away before they are there, and draw nobody.

As kube-scheduler does, an entry of no higher priority has to fit with them there. What asks for company still has to
find it among pods that run. What their claims will need out of volumes or room that several nodes share is kept for
them too; what one node has for itself is held with its other room (`holds`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from muster.model.keys import Key
from muster.model.neighbours import Holding, Selection, SelectionIndex
from muster.model.records import PodRecord, QueueEntry
from muster.model.snapshot import Nomination, Snapshot

Kept = TypeVar("Kept", Selection, Holding)


def with_nominated(snapshot: Snapshot, heads: Sequence[QueueEntry]) -> tuple[Snapshot, Sequence[QueueEntry]]:
    """The snapshot, and the heads that are decided on it: all where no nominated pod bears on any, else the first,
    with those that bear on it as its neighbours.
    """
    if not snapshot.nominations or not heads:
        return snapshot, heads
    index = snapshot.nodes.index
    here = [n for n in snapshot.nominations if n.node in index]
    social = [n for n in here if _bears(snapshot, n, heads)]
    storing = [n for n in here if _competes(snapshot, n, heads)]
    if not social and not storing:
        return snapshot, heads
    first, known = heads[0], snapshot.neighbours
    held = tuple((n.node, n.cls.storage) for n in _others(storing, first) if n.cls.storage is not None)
    if held:
        snapshot = replace(snapshot, volumes=replace(snapshot.volumes, held=held))
    asked = SelectionIndex(_asked(first))
    matching: dict[Selection, np.ndarray] = {}
    holding: dict[Holding, np.ndarray] = {}
    for nomination in _others(social, first):
        at = index[nomination.node]
        for selection in asked.meant(nomination.pod.namespace, nomination.labels, known.spaces):
            _count(matching, known.matching, selection, at, len(snapshot.nodes))
        for term in nomination.apart:
            _count(holding, known.holding, Holding(term, None), at, len(snapshot.nodes))
    if not matching and not holding:
        return snapshot, heads[:1]
    seen = replace(known, matching={**known.matching, **matching}, holding={**known.holding, **holding})
    return replace(snapshot, neighbours=seen), heads[:1]


def _competes(snapshot: Snapshot, nomination: Nomination, heads: Sequence[QueueEntry]) -> bool:
    """Whether any of the heads may want the volumes that it needs, or the room for them."""
    storage = nomination.cls.storage
    if storage is None:
        return False
    classes = {kind.class_name for kind, _ in storage.late} | {kind.class_name for _, kind in storage.joint}
    return bool(classes) and any(
        pod.volumes is not None and any(_wants(snapshot, pod, use.name) in classes for use in pod.volumes.claims)
        for entry in heads
        if _others((nomination,), entry)
        for pod in entry.pods
    )


def _wants(snapshot: Snapshot, pod: PodRecord, name: str) -> str | None:
    """The storage class of a claim that has no volume yet."""
    claim = snapshot.volumes.claims.get(Key(pod.key.namespace, name))
    return claim.class_name if claim is not None and not claim.volume else None


def _others(nominations: Iterable[Nomination], entry: QueueEntry) -> list[Nomination]:
    """Those that hold against an entry: of no lower priority, and not its own."""
    mine = {pod.uid for pod in entry.pods}
    group = entry.group.key if entry.group is not None else None
    return [
        n
        for n in nominations
        if n.priority >= entry.priority and n.uid not in mine and (n.group is None or n.group != group)
    ]


def _asked(entry: QueueEntry) -> set[Selection]:
    """What must not be near its pods, or evenly spread, and is not what they have to be near."""
    demands = [pod.cls.demands for pod in entry.pods if pod.cls.demands is not None]
    company = {tuple(term.selector for term in each.affinity) for each in demands if each.affinity}
    found: set[Selection] = {(term.selector,) for each in demands for term in each.anti_affinity}
    found.update((constraint.selector,) for each in demands for constraint in each.spread if constraint.hard)
    return found - company


def _bears(snapshot: Snapshot, nomination: Nomination, heads: Sequence[QueueEntry]) -> bool:
    """Whether any of the heads may be kept away by it."""
    spaces = snapshot.neighbours.spaces
    for entry in heads:
        if not _others((nomination,), entry):
            continue
        if SelectionIndex(_asked(entry)).meant(nomination.pod.namespace, nomination.labels, spaces):
            return True
        for term in nomination.apart:
            if any(term.selector.selects(pod.key.namespace, dict(pod.labels), spaces) for pod in entry.pods):
                return True
    return False


def _count(found: dict[Kept, np.ndarray], known: Mapping[Kept, np.ndarray], what: Kept, at: int, nodes: int) -> None:
    if what not in found:
        before = known.get(what)
        found[what] = np.zeros(nodes, dtype=np.int64) if before is None else before.copy()
    found[what][at] += 1
